"""The public names as type checkers see them; __init__.py imports each when it is first used."""

from fairlead.testing.builders import Builder as Builder
from fairlead.testing.builders import DeploymentBuilder as DeploymentBuilder
from fairlead.testing.builders import JobBuilder as JobBuilder
from fairlead.testing.builders import NamespaceBuilder as NamespaceBuilder
from fairlead.testing.builders import NodeBuilder as NodeBuilder
from fairlead.testing.builders import PodBuilder as PodBuilder
from fairlead.testing.builders import PodGroupBuilder as PodGroupBuilder
from fairlead.testing.builders import PriorityClassBuilder as PriorityClassBuilder
from fairlead.testing.builders import QueueBuilder as QueueBuilder
from fairlead.testing.builders import ReplicaSetBuilder as ReplicaSetBuilder
from fairlead.testing.builders import ReplicatedBuilder as ReplicatedBuilder
from fairlead.testing.builders import WorkloadBuilder as WorkloadBuilder
from fairlead.testing.builders import deployment as deployment
from fairlead.testing.builders import job as job
from fairlead.testing.builders import namespace as namespace
from fairlead.testing.builders import node as node
from fairlead.testing.builders import nodes as nodes
from fairlead.testing.builders import pod as pod
from fairlead.testing.builders import podgroup as podgroup
from fairlead.testing.builders import priority_class as priority_class
from fairlead.testing.builders import queue as queue
from fairlead.testing.builders import replica_set as replica_set
from fairlead.testing.harness import Harness as Harness
from fairlead.testing.pod_times import PodTimes as PodTimes
from fairlead.testing.storage_builders import ClaimBuilder as ClaimBuilder
from fairlead.testing.storage_builders import StorageClassBuilder as StorageClassBuilder
from fairlead.testing.storage_builders import VolumeBuilder as VolumeBuilder
from fairlead.testing.storage_builders import claim as claim
from fairlead.testing.storage_builders import pod_using as pod_using
from fairlead.testing.storage_builders import storage_class as storage_class
from fairlead.testing.storage_builders import volume as volume
from fairlead.testing.workload_builders import BudgetBuilder as BudgetBuilder
from fairlead.testing.workload_builders import CronJobBuilder as CronJobBuilder
from fairlead.testing.workload_builders import DaemonSetBuilder as DaemonSetBuilder
from fairlead.testing.workload_builders import StatefulSetBuilder as StatefulSetBuilder
from fairlead.testing.workload_builders import cron_job as cron_job
from fairlead.testing.workload_builders import daemon_set as daemon_set
from fairlead.testing.workload_builders import disruption_budget as disruption_budget
from fairlead.testing.workload_builders import stateful_set as stateful_set

__all__ = [
    "BudgetBuilder",
    "Builder",
    "ClaimBuilder",
    "CronJobBuilder",
    "DaemonSetBuilder",
    "DeploymentBuilder",
    "Harness",
    "JobBuilder",
    "NamespaceBuilder",
    "NodeBuilder",
    "PodBuilder",
    "PodGroupBuilder",
    "PodTimes",
    "PriorityClassBuilder",
    "QueueBuilder",
    "ReplicaSetBuilder",
    "ReplicatedBuilder",
    "StatefulSetBuilder",
    "StorageClassBuilder",
    "VolumeBuilder",
    "WorkloadBuilder",
    "claim",
    "cron_job",
    "daemon_set",
    "deployment",
    "disruption_budget",
    "job",
    "namespace",
    "node",
    "nodes",
    "pod",
    "pod_using",
    "podgroup",
    "priority_class",
    "queue",
    "replica_set",
    "stateful_set",
    "storage_class",
    "volume",
]
