"""Everything that acts except the scheduler: workloads, simulated kubelets, volumes, quotas, disruptions.

Reading order: workqueue (Reconciler, the frame that nearly all are written in) and writes (what they send), then any
controller, such as workloads/deployment; controller_group (many controllers as one), fresh_view (reading one's own
last write).

Further modules: disruption, due_keys, garbage, namespaces, pod_facts, reply_news, resource_claims, resource_quota,
storage, unattended.
"""
