"""fairlead.testing: whole clusters in tests, and builders of the objects in them.

The names of `__all__` are public; docs/api.md says what is kept of them. They are imported when first used, because
pytest imports this package in every project where fairlead is installed. Two modules beside them are public too:
fairlead.testing.agree, which compares plugins, and fairlead.testing.strategies, which needs hypothesis.

Modules: asking, harness, manifests, pod_times, pytest_plugin, scheduler_choice, serving, storage_builders,
workload_builders.
"""

from fairlead.lazy_names import lazy_names

_HOMES = {
    "BudgetBuilder": "workload_builders",
    "Builder": "builders",
    "ClaimBuilder": "storage_builders",
    "CronJobBuilder": "workload_builders",
    "DaemonSetBuilder": "workload_builders",
    "DeploymentBuilder": "builders",
    "Harness": "harness",
    "JobBuilder": "builders",
    "NamespaceBuilder": "builders",
    "NodeBuilder": "builders",
    "PodBuilder": "builders",
    "PodGroupBuilder": "builders",
    "PodTimes": "pod_times",
    "PriorityClassBuilder": "builders",
    "QueueBuilder": "builders",
    "ReplicaSetBuilder": "builders",
    "ReplicatedBuilder": "builders",
    "StatefulSetBuilder": "workload_builders",
    "StorageClassBuilder": "storage_builders",
    "VolumeBuilder": "storage_builders",
    "WorkloadBuilder": "builders",
    "claim": "storage_builders",
    "cron_job": "workload_builders",
    "daemon_set": "workload_builders",
    "deployment": "builders",
    "disruption_budget": "workload_builders",
    "job": "builders",
    "namespace": "builders",
    "node": "builders",
    "nodes": "builders",
    "pod": "builders",
    "pod_using": "storage_builders",
    "podgroup": "builders",
    "priority_class": "builders",
    "queue": "builders",
    "replica_set": "builders",
    "stateful_set": "workload_builders",
    "storage_class": "storage_builders",
    "volume": "storage_builders",
}
__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
