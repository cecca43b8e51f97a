"""Volcano's kinds of the Kubernetes API, and the resource under which changes of one wake pods."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.core.family import SchedulerField
from fairlead.core.model.kinds import Kind, define

VC_JOB = define("batch.volcano.sh/v1alpha1", "Job", "jobs", short="vcjob vj")
VC_CRON_JOB = define("batch.volcano.sh/v1alpha1", "CronJob", "cronjobs", short="vccronjob vccj")
VC_COMMAND = define("bus.volcano.sh/v1alpha1", "Command", "commands", sub="")
# Volcano writes the status of these two with the object itself: their CRDs have no status subresource.
VC_POD_GROUP = define("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", short="pg podgroup-v1beta1", sub="")
VC_QUEUE = define("scheduling.volcano.sh/v1beta1", "Queue", "queues", cluster=True, short="q queue-v1beta1")
VC_JOB_FLOW = define("flow.volcano.sh/v1alpha1", "JobFlow", "jobflows", short="jf")
VC_JOB_TEMPLATE = define("flow.volcano.sh/v1alpha1", "JobTemplate", "jobtemplates", short="jt")
VC_NUMATOPOLOGY = define(
    "nodeinfo.volcano.sh/v1alpha1", "Numatopology", "numatopologies", cluster=True, short="numatopo", sub=""
)
VC_HYPER_NODE = define("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", cluster=True, short="hn")
VC_NODE_SHARD = define("shard.volcano.sh/v1alpha1", "NodeShard", "nodeshards", cluster=True)

SERVED: tuple[Kind, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
"""All of them, in the order in which discovery lists them."""
SAVED: tuple[Kind, ...] = (
    VC_QUEUE, VC_HYPER_NODE, VC_NUMATOPOLOGY, VC_NODE_SHARD, VC_JOB_TEMPLATE, VC_JOB_FLOW, VC_CRON_JOB, VC_JOB,
    VC_POD_GROUP,
)  # fmt: skip
"""Those that a snapshot of a cluster saves, those to which others refer first."""
SCHEDULER_FIELDS: Mapping[Kind, SchedulerField] = {VC_JOB: SchedulerField(("spec",), "volcano")}
UNATTENDED: Mapping[Kind, str] = {VC_QUEUE: "no scheduler here has a Volcano profile: start with --volcano-conf"}

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
"""By which a pod names its PodGroup."""
GROUP_ANNOTATIONS: Mapping[str, str] = {GROUP_ANNOTATION: VC_POD_GROUP.group}
HYPER_NODE_EVENTS = "topology.volcano.sh/HyperNode"
