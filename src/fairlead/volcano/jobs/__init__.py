"""Volcano's controllers: Jobs, flows, cron jobs, PodGroups for plain pods, and Queues.

Reading order: jobs (the Job controller), phases (its phase machine as a table), job_policies (which event leads to
which action), job_pods with job_pod_builder and job_volumes, job_groups (the PodGroup of a Job) with job_requests,
job_status, job_plugins/ (svc, env, ssh, mpi, ...), job_garbage (TTL), flows, cron, podgroups, queues.

Further modules: admission, cli, figures, installed_plugins, job_commands, job_holding, job_restart, job_surroundings,
ssh_keys, together, what_if.
"""
