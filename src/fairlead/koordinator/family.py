"""The record of Koordinator: what this family brings to the core, the cluster and the commands."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.core.family import CommandEntry, ControllerEntry, Family, PluginEntry
from fairlead.koordinator.gates import GATES


def _plugin(factory: str, points: str) -> PluginEntry:
    return PluginEntry(f"fairlead.koordinator.config.factories:{factory}", frozenset(points.split()))


_PLUGINS: Mapping[str, PluginEntry] = {
    "LoadAwareScheduling": _plugin("load_aware_scheduling", "preFilter filter score reserve"),
    "NodeResourcesFitPlus": _plugin("node_resources_fit_plus", "preScore score"),
    "ScarceResourceAvoidance": _plugin("scarce_resource_avoidance", "preScore score"),
    "SchedulingHint": _plugin("scheduling_hint", "preFilter"),
    "NodeNUMAResource": _plugin("node_numa_resource", "preFilter filter preScore score reserve preBind"),
    "DeviceShare": _plugin("device_share", "preFilter filter preScore score reserve preBind"),
    "Reservation": _plugin("reservation", "preFilter filter postFilter preScore score reserve preBind bind"),
    "Coscheduling": _plugin(
        "coscheduling", "preEnqueue preFilter postFilter preScore score reserve permit preBind postBind"
    ),
    "ElasticQuota": _plugin("elastic_quota", "preFilter postFilter reserve"),
    "DefaultPreBind": _plugin("default_pre_bind", "preBind"),
}
"""The plugins, with the points at which the original's take part."""


def _beside(target: str) -> ControllerEntry:
    """A controller that a scheduler with this family's plugins needs beside it; few clusters load one."""
    return ControllerEntry(f"fairlead.koordinator.{target}", with_plugins=True)


_CONTROLLERS: Mapping[str, ControllerEntry] = {
    "koordinator-node-agents": _beside("agents.node_agents:NodeAgents"),
    "koordinator-quota-profiles": _beside("quotas.profiles:QuotaProfiles"),
    "koordinator-built-in-quotas": _beside("quotas.built_in:BuiltInQuotas"),
    "koordinator-descheduler": _beside("descheduling.controller:Descheduler"),
}

_COMMANDS: Mapping[str, CommandEntry] = {
    "descheduler": CommandEntry(
        "fairlead.koordinator.descheduling.command:descheduler_command",
        "Move pods off overloaded nodes, in koord-descheduler's place.",
        after="scheduler",
    ),
    "quota": CommandEntry(
        "fairlead.koordinator.quotas.command:quota_group",
        "List Koordinator's quotas; show what one may use, uses and offers to others.",
        after="status",
    ),
}

FAMILY = Family(
    "koordinator",
    extends=("kube",),
    kinds="fairlead.koordinator.read_kinds:READ",
    plugins=_PLUGINS,
    arguments="fairlead.koordinator.config.shapes:ARGUMENTS",
    gates=GATES,
    gates_without_effect="fairlead.koordinator.gates:WITHOUT_EFFECT",
    finish="fairlead.koordinator.config.finish:finish",
    presets="fairlead.koordinator.config.preset:PRESETS",
    controllers=_CONTROLLERS,
    commands=_COMMANDS,
    grants="fairlead.koordinator.grants:GRANTS",
    group_of="fairlead.koordinator.records.gangs:named_gang",
    adjust_node="fairlead.koordinator.records.node_reservation:less_reserved",
    served="fairlead.koordinator.kinds:SERVED",
    saved="fairlead.koordinator.kinds:SAVED",
    kept_annotations=("koordinator.sh/", "node.koordinator.sh/"),
    hooks="fairlead.koordinator.admission.hooks:hooks",
    replay="fairlead.koordinator.replay.forms:FORMS",
    what_if="fairlead.koordinator.what_if:WHAT_IF",
    rows="fairlead.koordinator.rows:ROWS",
)
