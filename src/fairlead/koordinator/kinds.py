"""Koordinator's kinds of the Kubernetes API, and the resources under which changes of them wake pods."""

from __future__ import annotations

from fairlead.core.model.kinds import Kind, define

KOORD_POD_GROUP = define("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "podgroups", sub="")
KOORD_ELASTIC_QUOTA = define("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "elasticquotas", sub="")
KOORD_QUOTA_PROFILE = define(
    "quota.koordinator.sh/v1alpha1", "ElasticQuotaProfile", "elasticquotaprofiles", short="eqp", sub=""
)
KOORD_RESERVATION = define("scheduling.koordinator.sh/v1alpha1", "Reservation", "reservations", cluster=True)
KOORD_DEVICE = define("scheduling.koordinator.sh/v1alpha1", "Device", "devices", cluster=True, sub="")
KOORD_NETWORK_TOPOLOGY = define(
    "scheduling.koordinator.sh/v1alpha1", "ClusterNetworkTopology", "clusternetworktopologies", cluster=True
)
KOORD_MIGRATION_JOB = define(
    "scheduling.koordinator.sh/v1alpha1", "PodMigrationJob", "podmigrationjobs", cluster=True, short="pmj"
)
KOORD_NODE_METRIC = define("slo.koordinator.sh/v1alpha1", "NodeMetric", "nodemetrics", cluster=True)
KOORD_NODE_TOPOLOGY = define(
    "topology.node.k8s.io/v1alpha1",
    "NodeResourceTopology",
    "noderesourcetopologies",
    cluster=True,
    short="node-res-topo",
    sub="",
)
KOORD_NODE_SLO = define("slo.koordinator.sh/v1alpha1", "NodeSLO", "nodeslos", cluster=True)
KOORD_SCHEDULE_EXPLANATION = define(
    "scheduling.koordinator.sh/v1alpha1", "ScheduleExplanation", "scheduleexplanations", short="sched-exp"
)
KOORD_RECOMMENDATION = define("analysis.koordinator.sh/v1alpha1", "Recommendation", "recommendations", short="recom")
KOORD_COLOCATION_PROFILE = define(
    "config.koordinator.sh/v1alpha1", "ClusterColocationProfile", "clustercolocationprofiles", cluster=True
)

SERVED: tuple[Kind, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
"""All of them, in the order in which discovery lists them."""
SAVED: tuple[Kind, ...] = (
    KOORD_COLOCATION_PROFILE, KOORD_QUOTA_PROFILE, KOORD_ELASTIC_QUOTA, KOORD_DEVICE, KOORD_NODE_TOPOLOGY,
    KOORD_NETWORK_TOPOLOGY, KOORD_NODE_METRIC, KOORD_NODE_SLO, KOORD_POD_GROUP, KOORD_RESERVATION, KOORD_MIGRATION_JOB,
)  # fmt: skip
"""Those that a snapshot of a cluster saves, those to which others refer first."""

NODE_METRIC_EVENTS = "slo.koordinator.sh/NodeMetric"
RESERVATION_EVENTS = "scheduling.koordinator.sh/Reservation"
DEVICE_EVENTS = "scheduling.koordinator.sh/Device"
NODE_TOPOLOGY_EVENTS = "topology.node.k8s.io/NodeResourceTopology"
POD_GROUP_EVENTS = "scheduling.sigs.k8s.io/PodGroup"
ELASTIC_QUOTA_EVENTS = "scheduling.sigs.k8s.io/ElasticQuota"
