"""The plugins by the names that a configuration file calls them by, made from the arguments it gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.volcano.devices.deviceshare import DeviceShare
from fairlead.volcano.numa.plugin import NumaAware
from fairlead.volcano.plugins.binpack import BinPack
from fairlead.volcano.plugins.cdp import CooldownProtection
from fairlead.volcano.plugins.conformance import Conformance
from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.nodegroup import NodeGroup
from fairlead.volcano.plugins.nodeorder import NodeOrder
from fairlead.volcano.plugins.pdb import DisruptionBudgets
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.plugins.rescheduling import Rescheduling
from fairlead.volcano.plugins.resource_strategy_fit import ResourceStrategyFit
from fairlead.volcano.plugins.resourcequota import ResourceQuotaPlugin
from fairlead.volcano.plugins.sla import Sla
from fairlead.volcano.plugins.tdm import TimeDivision
from fairlead.volcano.plugins.usage import UsagePlugin
from fairlead.volcano.queues.capacity import capacity
from fairlead.volcano.queues.drf import drf
from fairlead.volcano.queues.overcommit import Overcommit
from fairlead.volcano.queues.proportion import Proportion
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.topology.network_topology import NetworkTopologyAware
from fairlead.volcano.topology.task_topology import TaskTopology

if TYPE_CHECKING:
    from fairlead.core.model.usage import UsageBoard
    from fairlead.volcano.devices.device_config import DeviceConfig
    from fairlead.volcano.rounds.tiers import TierPlugin

HIERARCHY = "enableHierarchy"

_PLAIN: Mapping[str, Callable[[Arguments], TierPlugin]] = {
    "binpack": BinPack.of,
    "cdp": lambda _: CooldownProtection(),
    "conformance": lambda _: Conformance(),
    "gang": lambda _: GangTierPlugin(),
    "network-topology-aware": NetworkTopologyAware.of,
    "nodeorder": NodeOrder.of,
    "numa-aware": NumaAware.of,
    "overcommit": Overcommit.of,
    "pdb": lambda _: DisruptionBudgets(),
    "predicates": Predicates.of,
    "priority": lambda _: Priority(),
    "proportion": Proportion.of,
    "resource-strategy-fit": ResourceStrategyFit.of,
    "resourcequota": lambda _: ResourceQuotaPlugin(),
    "sla": Sla.of,
    "task-topology": TaskTopology.of,
    "tdm": TimeDivision.of,
}
_HIERARCHICAL: Mapping[str, Callable[..., TierPlugin]] = {"capacity": capacity, "drf": drf, "nodegroup": NodeGroup.of}
"""Those that a switch makes follow the tree of queues."""

_MEASURING: Mapping[str, Callable[[Arguments, UsageBoard | None], TierPlugin]] = {
    "rescheduling": Rescheduling.of,
    "usage": UsagePlugin.of,
}
"""Those that go by how busy nodes are."""

NAMES = frozenset({*_PLAIN, *_HIERARCHICAL, *_MEASURING, DeviceShare.name})


def tier_plugin(
    name: str,
    arguments: Mapping[str, Any],
    switches: Mapping[str, bool],
    *,
    usage: UsageBoard | None = None,
    devices: DeviceConfig | None = None,
) -> TierPlugin | None:
    """The plugin of a name; None if there is none, which the original only logs. `usage` says how busy nodes are,
    `devices` what cards are like. Raises ConfigError for arguments that exclude each other."""
    if name in _MEASURING:
        return _MEASURING[name](Arguments(arguments), usage)
    if name == DeviceShare.name:
        return DeviceShare.of(Arguments(arguments), devices)
    if name in _HIERARCHICAL:
        return _HIERARCHICAL[name](Arguments(arguments), hierarchy=switches.get(HIERARCHY, False))
    make = _PLAIN.get(name)
    return make(Arguments(arguments)) if make is not None else None
