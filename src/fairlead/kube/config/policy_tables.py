"""What the predicates and priorities of the legacy Policy became: the mapping of Kubernetes 1.22, as tables."""

from __future__ import annotations

from collections.abc import Mapping

PREDICATE_ORDER = (
    "CheckNodeUnschedulable", "GeneralPredicates", "HostName", "PodFitsHostPorts", "MatchNodeSelector",
    "PodFitsResources", "NoDiskConflict", "PodToleratesNodeTaints", "CheckNodeLabelPresence", "CheckServiceAffinity",
    "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred", "MaxAzureDiskVolumeCount",
    "MaxCinderVolumeCount", "CheckVolumeBinding", "NoVolumeZoneConflict", "EvenPodsSpread", "MatchInterPodAffinity",
)  # fmt: skip
"""The order in which predicates ran, which is the order of their plugins."""

MANDATORY_PREDICATES = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")

DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred", "MatchInterPodAffinity", "NoDiskConflict", "GeneralPredicates", "PodToleratesNodeTaints",
    "CheckVolumeBinding", "CheckNodeUnschedulable", "EvenPodsSpread",
)  # fmt: skip

PREDICATES: Mapping[str, tuple[str, ...]] = {
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "PodFitsResources": ("NodeResourcesFit",),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "EvenPodsSpread": ("PodTopologySpread",),
}
"""The plugins that filter in a predicate's place today."""

MOVED_TO_CSI: Mapping[str, str] = {
    "MaxEBSVolumeCount": "EBSLimits", "MaxGCEPDVolumeCount": "GCEPDLimits",
    "MaxAzureDiskVolumeCount": "AzureDiskLimits", "MaxCinderVolumeCount": "CinderLimits",
}  # fmt: skip

DEFAULT_PRIORITIES: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}

PRIORITIES: Mapping[str, str] = {
    "SelectorSpreadPriority": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "RequestedToCapacityRatio": "NodeResourcesFit",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
}
"""The plugin that scores in a priority's place today."""

STRATEGIES: Mapping[str, str] = {
    "LeastRequestedPriority": "LeastAllocated",
    "MostRequestedPriority": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
"""Priorities that are strategies of NodeResourcesFit today."""

ALGORITHM_PROVIDERS: Mapping[str, str] = {"DefaultProvider": "", "ClusterAutoscalerProvider": "MostAllocated"}
"""What `--algorithm-provider` may name, with the strategy of NodeResourcesFit in which it differs from the default."""

TAINTED_CONDITIONS = (
    "CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure",
)  # fmt: skip
"""Predicates of Kubernetes 1.17 and before. Such a condition is a taint of the node since, and the predicate that
respects taints was put in their place."""

PREDICATE_ALIASES: Mapping[str, str] = {"PodFitsPorts": "PodFitsHostPorts"}
PRIORITY_ALIASES: Mapping[str, str] = {"ServiceSpreadingPriority": "SelectorSpreadPriority"}
IGNORED_PRIORITY = "EqualPriority"
