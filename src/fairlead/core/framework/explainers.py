"""What plugins and indexes may know besides verdicts, for explanations. They are called when somebody wants to know,
between two attempts; an answer changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fairlead.core.model.gang_explanation import Domain
    from fairlead.core.model.lack import Lack
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


@runtime_checkable
class LackExplainer(Protocol):
    """A plugin that can say how much of something is missing for pods that want to start together."""

    def lacks(self, pods: Sequence[Pod], cluster: Cluster) -> Iterable[Lack]:
        """What is short, with amounts; nothing if there is enough of it for all."""
        ...


@runtime_checkable
class QuotaExplainer(Protocol):
    """A plugin that keeps accounts of quotas."""

    def quota_use(self, pods: Sequence[Pod], cluster: Cluster) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """By the names of the pods' quotas: `used` and `max`, quantities by resource."""
        ...


@dataclass(frozen=True, slots=True)
class HeldRoom:
    """What is left of the room that `holder` holds on a row. `why` is why the pods in question may not use it; empty if
    they may."""

    row: int
    holder: str
    left: Mapping[str, int]
    why: str = ""


@runtime_checkable
class RoomExplainer(Protocol):
    """An index of a Cluster that knows of room which is held on rows for certain pods."""

    def held_rooms(self, pods: Sequence[Pod]) -> Iterable[HeldRoom]:
        """All such room; usable is what any of the pods may use."""
        ...


@dataclass(frozen=True, slots=True)
class GangFacts:
    """A gang that a plugin keeps together: its pods, how many must start together, and, if its last attempt found no
    part of the network for it, the parts that were looked at, the best first."""

    pods: tuple[Pod, ...]
    minimum: int
    api: str
    domains: tuple[Domain, ...] = ()


@runtime_checkable
class GangExplainer(Protocol):
    """A plugin that has gangs of its own, which the Cluster does not know."""

    def gang_facts(self, namespace: str, name: str, cluster: Cluster) -> GangFacts | None: ...
