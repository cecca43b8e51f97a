"""What happens to an object between the request and the store: defaults, built-in admission, strategy, validation.

Modules: builtin, chain, containers, custom, custom_rules, devices, groups, hooks, label_keys, limits, metadata, names,
nodes, plain_defaults, plain_rules, pod_admission, pod_defaults, pod_updates, pods, problems, quota, resources,
scheduling, selectors, service_addresses, volumes, webhook_denial, workload_defaults, workloads.
"""

from fairlead.cluster.admission.chain import Admission, default

__all__ = ["Admission", "default"]
