"""Settings of a volcano-scheduler.conf that are legal and do not do what their author expects.

Each trap says what will happen, why, and what to write instead. None of them is an error: every one of these files
runs, here and in the original. Traps that come from queues are in volcano_queue_traps.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.volcano.config.records import HIERARCHY

if TYPE_CHECKING:
    from fairlead.config.problems import Path
    from fairlead.volcano.config.records import ListedPlugin, VolcanoConfig

_EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
_STRONG_BINPACK = 5


@dataclass(frozen=True, slots=True)
class Trap:
    """`path` is where it is in the file; the empty one is the file as a whole."""

    path: Path
    what: str
    why: str
    fix: str


def traps_of(config: VolcanoConfig) -> list[Trap]:
    """All that the file alone shows, in the order of its lines."""
    found = [trap for look in _LOOKS for trap in look(config)]
    return sorted(found, key=lambda trap: config.line(trap.path) or 0)


# ---- letting in ----


def _enqueue_before_evictions(config: VolcanoConfig) -> Iterator[Trap]:
    evicting = [action for action in _EVICTING if action in config.actions]
    voters = [name for name in ("overcommit", "proportion", "capacity") if _votes_on_entry(config, name)]
    if "enqueue" not in config.actions or not evicting or not voters or _overruled_by_sla(config):
        return
    yield Trap(
        ("actions",),
        f"{' and '.join(evicting)} will not start for groups that do not fit into a full cluster",
        f"enqueue lets a group in only while {' and '.join(voters)} find room for its minResources, and nobody is "
        "evicted for a group that was not let in",
        "take enqueue out of the actions, or raise overcommit-factor, or put sla into the first tier so that a group "
        "is let in after a while in any case",
    )


def _votes_on_entry(config: VolcanoConfig, name: str) -> bool:
    plugin = config.find(name)
    return plugin is not None and plugin.on("enableJobEnqueued")


def _overruled_by_sla(config: VolcanoConfig) -> bool:
    """A vote of an earlier tier stands."""
    for tier in config.tiers:
        names = {plugin.name for plugin in tier if plugin.on("enableJobEnqueued")}
        if names & {"overcommit", "proportion", "capacity"}:
            return False
        if "sla" in names:
            return True
    return False


def _entry_votes_without_enqueue(config: VolcanoConfig) -> Iterator[Trap]:
    plugin = config.find("overcommit")
    if plugin is not None and "enqueue" not in config.actions:
        yield Trap(
            plugin.path,
            "overcommit has no effect",
            "it only votes on whether groups are let in, and without the action enqueue every group is",
            'add enqueue to the actions, or take "overcommit" out',
        )


def _small_overcommit(config: VolcanoConfig) -> Iterator[Trap]:
    plugin = config.find("overcommit")
    factor: Any = plugin.arguments.get("overcommit-factor") if plugin is not None else None
    if plugin is not None and _is_number(factor) and factor < 1:
        yield Trap(
            (*plugin.path, "arguments", "overcommit-factor"),
            f"an overcommit-factor of {factor} counts as 1.2",
            "a factor below 1 would hold back room that is there, so the plugin falls back to its default",
            "write 1.0 to let in no more than fits",
        )


def _late_sla(config: VolcanoConfig) -> Iterator[Trap]:
    plugin = config.find("sla")
    if plugin is None or "enqueue" not in config.actions or _overruled_by_sla(config):
        return
    if any(_votes_on_entry(config, name) for name in ("overcommit", "proportion", "capacity")):
        yield Trap(
            plugin.path,
            "sla does not get waiting groups in",
            "it can only overrule overcommit, proportion and capacity from an earlier tier: in the same tier one "
            "refusal is enough",
            "put sla into a tier above theirs",
        )


# ---- evicting ----


def _gangs_without_protection(config: VolcanoConfig) -> Iterator[Trap]:
    plugin = config.find("gang")
    if plugin is None:
        return
    for action, switch in (("preempt", "enablePreemptable"), ("reclaim", "enableReclaimable")):
        if action in config.actions and not plugin.on(switch):
            yield Trap(
                (*plugin.path, switch),
                f"{action} may take single pods out of running gangs and leave the rest below their minimum",
                f"with {switch}: false the plugin gang does not protect the minMember of victims",
                f"take {switch} away, or set it to true",
            )


def _drf_decides_alone(config: VolcanoConfig) -> Iterator[Trap]:
    drf = config.find("drf")
    if "preempt" not in config.actions or drf is None or not drf.on("enablePreemptable"):
        return
    tier = {plugin.name: at for at, plugins in enumerate(config.tiers) for plugin in plugins}
    if tier.get("priority", len(tier)) < tier["drf"]:
        yield Trap(
            drf.path,
            "preempt may evict pods of equal or higher priority",
            "where priority names no victim in its tier, the question goes on to the next one, and there drf goes by "
            "shares alone",
            "set enablePreemptable: false for drf, or list it in the tier of priority",
        )


def _protection_of_another_tier(config: VolcanoConfig) -> Iterator[Trap]:
    """Gang above the plugins that name victims: where it leaves nobody, they are asked without it."""
    gang = config.find("gang")
    tier = {plugin.name: at for at, plugins in enumerate(config.tiers) for plugin in plugins}
    for action, switch, voters in (
        ("preempt", "enablePreemptable", ("drf", "tdm")),
        ("reclaim", "enableReclaimable", ("proportion", "capacity")),
    ):
        named = [name for name in voters if _names_victims(config, name, switch) and tier[name] > tier.get("gang", 99)]
        if action in config.actions and named and gang is not None and gang.on(switch):
            yield Trap(
                gang.path,
                f"{action} may break gangs all the same",
                f"gang is in a tier above {' and '.join(named)}: where it leaves no victims because all are needed, "
                "the question goes on to the next tier, which is asked without it",
                f"list gang (and conformance) in the tier of {' and '.join(named)} too, or there alone",
            )


def _nobody_names_victims(config: VolcanoConfig) -> Iterator[Trap]:
    for action, switch, voters in (
        ("preempt", "enablePreemptable", ("priority", "drf", "tdm")),
        ("reclaim", "enableReclaimable", ("proportion", "capacity", "drf")),
    ):
        if action in config.actions and not any(_names_victims(config, name, switch) for name in voters):
            yield Trap(
                ("actions",),
                f"{action} does not know whom to spare",
                f"none of {', '.join(voters)} is there to say whose claim is weaker, so whatever gang and conformance "
                "leave unprotected may be evicted, or nobody",
                f"add one of {', '.join(voters)}, with {switch} on",
            )


def _names_victims(config: VolcanoConfig, name: str, switch: str) -> bool:
    plugin = config.find(name)
    if plugin is None or not plugin.on(switch):
        return False
    return name != "drf" or switch == "enablePreemptable" or plugin.on(HIERARCHY, default=False)


def _no_budgets(config: VolcanoConfig) -> Iterator[Trap]:
    if any(action in config.actions for action in _EVICTING) and not config.has("pdb"):
        yield Trap(
            ("actions",),
            "PodDisruptionBudgets are not looked at when pods are evicted",
            "victims are deleted and not asked for through the eviction API; only the plugin pdb knows budgets",
            "list pdb in the first tier",
        )


def _topology_is_not_preempted_for(config: VolcanoConfig) -> Iterator[Trap]:
    if config.has("network-topology-aware") and "preempt" in config.actions and "gangpreempt" not in config.actions:
        yield Trap(
            ("actions",),
            "preempt makes no room for groups with a network topology",
            "it thinks of one pod at a time and passes over groups that must stay together in a hypernode",
            "add gangpreempt to the actions (Volcano 1.15)",
        )


def _evictions_before_allocate(config: VolcanoConfig) -> Iterator[Trap]:
    if "allocate" not in config.actions:
        return
    before = config.actions[: config.actions.index("allocate")]
    for action in ("preempt", "gangpreempt"):
        if action in before:
            yield Trap(
                ("actions",),
                f"{action} runs before allocate and evicts for pods that might have fitted",
                "actions run in the order in which they are listed",
                f"list {action} after allocate",
            )


def _shuffle_is_missing(config: VolcanoConfig) -> Iterator[Trap]:
    for name in ("tdm", "rescheduling"):
        plugin = config.find(name)
        if plugin is not None and "shuffle" not in config.actions:
            yield Trap(
                plugin.path,
                f"{name} will not move anything",
                "it only names the pods that should go; the action shuffle evicts them",
                "add shuffle to the actions",
            )


# ---- queues and nodes ----


def _two_ledgers(config: VolcanoConfig) -> Iterator[Trap]:
    if config.has("proportion", "capacity"):
        second = max((config.find("proportion"), config.find("capacity")), key=lambda one: one.path if one else ())
        assert second is not None
        yield Trap(
            second.path,
            "proportion and capacity both rule the queues, and the stricter of the two decides every time",
            "proportion computes what queues deserve from weights and does not let them go beyond it, capacity takes "
            "spec.deserved and lets them borrow",
            "keep one: capacity where queues have spec.deserved or parents, proportion where they have weights",
        )


def _no_queue_plugin(config: VolcanoConfig) -> Iterator[Trap]:
    if not config.has("proportion") and not config.has("capacity"):
        yield Trap(
            (),
            "queues have no limits and no fair share",
            "weight, capability, guarantee and deserved are read by the plugins proportion and capacity alone",
            "list one of the two",
        )


def _missing_basics(config: VolcanoConfig) -> Iterator[Trap]:
    for name, what, why in (
        (
            "predicates",
            "pods may be placed on nodes that they must not run on",
            "taints, node selectors, affinity, ports, volumes and the number of pods are looked at by predicates alone",
        ),
        (
            "gang",
            "groups are not placed as wholes: each pod starts as soon as it fits",
            "minMember is enforced by the plugin gang alone",
        ),
    ):
        if not config.has(name):
            yield Trap((), what, why, f"list {name}")


def _missing_actions(config: VolcanoConfig) -> Iterator[Trap]:
    for name, what in (
        ("allocate", "no pod is ever placed that asks for anything"),
        ("backfill", "pods that ask for no resources are never placed"),
    ):
        if name not in config.actions:
            yield Trap(("actions",), what, f"that is done by the action {name}", f"add {name} to the actions")


def _listed_twice(config: VolcanoConfig) -> Iterator[Trap]:
    listed = config.plugins()
    for at, plugin in enumerate(listed):
        if any(earlier.name == plugin.name for earlier in listed[:at]):
            yield Trap(
                plugin.path,
                f"{plugin.name} is listed twice, and both times it answers with the arguments given here",
                "a plugin has one set of arguments, the last; its switches hold where they are written",
                "list it once",
            )


def _packing_against_spreading(config: VolcanoConfig) -> Iterator[Trap]:
    binpack, nodeorder = config.find("binpack"), config.find("nodeorder")
    if binpack is None or nodeorder is None or not nodeorder.on("enableNodeOrder"):
        return
    packs, spreads = _weight(binpack, "binpack.weight"), _weight(nodeorder, "leastrequested.weight")
    if spreads and 0 < packs < _STRONG_BINPACK * spreads:
        yield Trap(
            binpack.path,
            "binpack and nodeorder pull in opposite directions and nearly cancel out",
            f"binpack.weight {packs} prefers full nodes, leastrequested.weight {spreads} (1 unless it is set) prefers "
            "empty ones, and balancedresource has a say too",
            "set leastrequested.weight: 0 for nodeorder, or a binpack.weight of 5 to 10",
        )


def _usage_without_metrics(config: VolcanoConfig) -> Iterator[Trap]:
    for name in ("usage", "rescheduling"):
        plugin = config.find(name)
        if plugin is not None and not _is_measured(config.metrics):
            yield Trap(
                plugin.path,
                f"{name} knows no utilisation and does nothing",
                "it goes by measurements, and the file does not say where they come from",
                'add metrics: {type: prometheus, address: "http://...", interval: 30s}',
            )


def _is_measured(metrics: Mapping[str, str]) -> bool:
    """Custom metrics are the cluster's own, and need no address."""
    return metrics.get("type") == "prometheus_adaptor" or bool(metrics.get("type") and metrics.get("address"))


def _devices_without_predicates(config: VolcanoConfig) -> Iterator[Trap]:
    plugin = config.find("deviceshare")
    if plugin is None:
        return
    if not config.has("predicates"):
        yield Trap(
            plugin.path, "devices are never handed out", "that happens together with predicates", "list predicates"
        )
    chosen = [name for name in _DEVICE_MODES if _is_true(plugin.arguments.get(name))]
    if len(chosen) > 1:
        yield Trap(
            plugin.path,
            f"{' and '.join(chosen)} exclude each other",
            "a card is shared by memory, handed out whole, or divided into virtual ones; the original ends itself",
            "keep one of them",
        )


_DEVICE_MODES = ("deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable", "deviceshare.VGPUEnable")


def _extender_without_address(config: VolcanoConfig) -> Iterator[Trap]:
    plugin = config.find("extender")
    if plugin is not None and not plugin.arguments.get("extender.urlPrefix"):
        yield Trap(plugin.path, "extender asks nobody", "it has no extender.urlPrefix", "add the address")


_LOOKS: tuple[Callable[[VolcanoConfig], Iterator[Trap]], ...] = (
    _enqueue_before_evictions, _entry_votes_without_enqueue, _small_overcommit, _late_sla, _gangs_without_protection,
    _drf_decides_alone, _protection_of_another_tier, _nobody_names_victims, _no_budgets,
    _topology_is_not_preempted_for, _evictions_before_allocate,
    _shuffle_is_missing, _two_ledgers, _no_queue_plugin, _missing_basics, _missing_actions, _listed_twice,
    _packing_against_spreading, _usage_without_metrics, _devices_without_predicates, _extender_without_address,
)  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _weight(plugin: ListedPlugin, name: str) -> int:
    value = plugin.arguments.get(name, 1)
    return value if type(value) is int else 1
