"""The settings of a descheduler; names and defaults are the original's, units are seconds.

Selectors that are None select everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.core.model.requirements import LabelSelector

RESERVATION_FIRST, EVICT_DIRECTLY = "ReservationFirst", "EvictDirectly"
EVICTION, DELETE, SOFT_EVICTION = "Eviction", "Delete", "SoftEviction"
BEST_EFFORT, DRAIN_NODE = "BestEffort", "DrainNode"
GATES = frozenset({
    "MaxUnavailablePerWorkload", "MaxMigratingPerWorkload", "MaxMigratingPerNode", "MaxMigratingPerNamespace",
    "MaxMigratingGlobally", "ExpectedReplicas", "PVC", "BarePods", "LocalStorage", "SystemCritical",
    "PriorityThreshold", "LabelSelector", "Namespaces", "NodeFit",
})  # fmt: skip
"""Checks before an eviction that a configuration may switch off (`skipEvictionGates`)."""

Thresholds = Mapping[str, float]
"""Percentages of a node, by resource."""


@dataclass(frozen=True, slots=True)
class NamespaceChoice:
    """Namespaces by name: those included, if any are named, without those excluded."""

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def has(self, namespace: str) -> bool:
        return (not self.include or namespace in self.include) and namespace not in self.exclude


@dataclass(frozen=True, slots=True)
class ObjectLimiter:
    """At most `most` evictions (a number or a percentage; None is as many as may migrate) within `window` seconds,
    of which `burst` at once."""

    window: float
    most: int | str | None = None
    burst: int = 1


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """MigrationControllerArgs."""

    dry_run: bool = False
    failed_bare_pods: bool = False
    all_bare_pods: bool = False
    local_storage_pods: bool = False
    critical_pods: bool = False
    ignores_claims: bool = False
    priority_below: int | None = None
    selector: LabelSelector | None = None
    namespaces: NamespaceChoice = NamespaceChoice()
    skipped: frozenset[str] = frozenset()
    most_globally: int = 0
    most_per_node: int = 2
    most_per_namespace: int = 0
    most_per_workload: int | str | None = None
    most_unavailable: int | str | None = None
    ignores_replicas: bool = False
    limiters: Mapping[str, ObjectLimiter] = field(default_factory=lambda: {"workload": ObjectLimiter(300.0)})
    mode: str = RESERVATION_FIRST
    ttl: float = 300.0
    schedulers: tuple[str, ...] = ("koord-scheduler",)
    evictions_per_second: float = 10.0
    evictions_at_once: int = 1
    policy: str = EVICTION
    delete_options: Mapping[str, Any] | None = None
    arbitration_interval: float = 0.5


@dataclass(frozen=True, slots=True)
class AnomalyCondition:
    """When a node counts as overloaded: in more than `abnormal` passes in a row; until `timeout` or more than `normal`
    passes without."""

    timeout: float = 60.0
    abnormal: int = 5
    normal: int = 3


@dataclass(frozen=True, slots=True)
class NodePool:
    name: str = "__default_node_pool__"
    selector: LabelSelector | None = None
    by_deviation: bool = False
    low: Thresholds = field(default_factory=dict)
    high: Thresholds = field(default_factory=dict)
    prod_low: Thresholds = field(default_factory=dict)
    prod_high: Thresholds = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})
    anomaly: AnomalyCondition | None = AnomalyCondition()


@dataclass(frozen=True, slots=True)
class LowNodeLoadSettings:
    paused: bool = False
    dry_run: bool = False
    number_of_nodes: int = 0
    expiration: float = 180.0
    namespaces: NamespaceChoice = NamespaceChoice()
    selectors: tuple[LabelSelector, ...] = ()
    node_fit: bool = True
    detector_timeout: float = 300.0
    pools: tuple[NodePool, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTier:
    """Nodes of one price."""

    name: str
    selector: LabelSelector


@dataclass(frozen=True, slots=True)
class CustomPrioritySettings:
    """`order` lists tiers from expensive to cheap."""

    order: tuple[NodeTier, ...]
    paused: bool = False
    dry_run: bool = False
    namespaces: NamespaceChoice = NamespaceChoice()
    nodes: LabelSelector | None = None
    selectors: tuple[LabelSelector, ...] = ()
    node_fit: bool = True
    mode: str = BEST_EFFORT
    cordons: bool = False


BalanceSettings = LowNodeLoadSettings | CustomPrioritySettings


@dataclass(frozen=True, slots=True)
class DeschedulerProfile:
    """`balance` are the plugins of a pass, in their order. `migration` decides whether a pod may go, and moves it."""

    name: str = "koord-descheduler"
    selector: LabelSelector | None = None
    balance: tuple[BalanceSettings, ...] = ()
    migration: MigrationSettings = field(default_factory=MigrationSettings)


@dataclass(frozen=True, slots=True)
class DeschedulerSettings:
    """`interval` 0 is one pass only. The limits are those of one pass over all profiles; None is no limit. The first
    profile says how pods are moved, and the others agree with it; they add plugins for nodes of their own."""

    interval: float = 0.0
    dry_run: bool = False
    selector: LabelSelector | None = None
    most_per_node: int | None = None
    most_per_namespace: int | None = None
    most_in_total: int | None = None
    profile: DeschedulerProfile = field(default_factory=DeschedulerProfile)
    others: tuple[DeschedulerProfile, ...] = ()

    @property
    def profiles(self) -> tuple[DeschedulerProfile, ...]:
        """All profiles, in the order of the file."""
        return self.profile, *self.others
