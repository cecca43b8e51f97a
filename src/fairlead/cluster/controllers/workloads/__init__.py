"""Controllers that make pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs.

Each controller is one Reconciler in a module of its kind's name; revisions and rollout are shared by those that roll
out templates, owners and pod_templates by all.

Modules: batch_job, cron_job, cron_schedule, daemon_pods, daemon_set, deployment, deployment_status, job_progress,
replicaset, shares, stateful_pods, stateful_set.
"""
