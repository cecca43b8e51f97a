"""The record of kube-scheduler: what this family brings to the core, the cluster and the commands."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.core.family import ControllerEntry, Family, PluginEntry


def _plugin(target: str, points: str) -> PluginEntry:
    return PluginEntry(f"fairlead.kube.{target}", frozenset(points.split()))


_PLUGINS: Mapping[str, PluginEntry] = {
    "SchedulingGates": _plugin("nodes.basics:SchedulingGates", "preEnqueue"),
    "PrioritySort": _plugin("nodes.basics:PrioritySort", "queueSort"),
    "NodeUnschedulable": _plugin("nodes.basics:NodeUnschedulable", "filter"),
    "NodeName": _plugin("nodes.basics:NodeName", "filter"),
    "TaintToleration": _plugin("nodes.taints:TaintToleration", "filter preScore score"),
    "NodeAffinity": _plugin("config.factories:node_affinity", "preFilter filter preScore score"),
    "NodePorts": _plugin("nodes.ports:NodePorts", "preFilter filter"),
    "NodeResourcesFit": _plugin(
        "config.factories:node_resources_fit", "preFilter filter preScore score placementScore"
    ),
    "VolumeRestrictions": _plugin("volumes.restrictions:VolumeRestrictions", "preFilter filter"),
    "NodeVolumeLimits": _plugin("volumes.limits:NodeVolumeLimits", "preFilter filter"),
    "VolumeBinding": _plugin("config.factories:volume_binding", "preFilter filter preScore score reserve preBind"),
    "VolumeZone": _plugin("volumes.zone:VolumeZone", "preFilter filter"),
    "PodTopologySpread": _plugin("config.factories:pod_topology_spread", "preFilter filter preScore score"),
    "InterPodAffinity": _plugin("config.factories:inter_pod_affinity", "preFilter filter preScore score"),
    "DynamicResources": _plugin(
        "config.factories:dynamic_resources", "preEnqueue preFilter filter postFilter score reserve preBind"
    ),
    "DefaultPreemption": _plugin("config.factories:default_preemption", "preEnqueue postFilter"),
    "NodeResourcesBalancedAllocation": _plugin("config.factories:balanced_allocation", "preScore score"),
    "ImageLocality": _plugin("nodes.images:ImageLocality", "score"),
    "DefaultBinder": _plugin("binder:DefaultBinder", "bind"),
    "NodeDeclaredFeatures": _plugin("nodes.features:NodeDeclaredFeatures", "preFilter filter"),
    "GangScheduling": _plugin("config.factories:gang_scheduling", "preEnqueue permit"),
    "TopologyPlacementGenerator": _plugin("config.factories:topology_placement_generator", "placementGenerate"),
    "PodGroupPodsCount": _plugin("gangs.placements:PodGroupPodsCount", "placementScore"),
}
"""The plugins in the order of the default configuration, with the points at which the original's take part."""

FAMILY = Family(
    "kube",
    plugins=_PLUGINS,
    finish="fairlead.kube.config.finish:finish",
    replay="fairlead.kube.replay.forms:FORMS",
    rows="fairlead.kube.rows:ROWS",
    controllers={
        "scheduler-plugins-podgroup-controller": ControllerEntry(
            "fairlead.kube.gangs.coscheduling_groups:CoschedulingGroups"
        ),
    },
)
