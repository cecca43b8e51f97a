"""Values that plugins and the engine exchange about a gang as a whole.

A `GangDomain` is a part of the cluster that could take all of a gang, a `Proposal` which member would go where in it. A
`GangCase` is the input of `pod_group_post_filter`: the members, and a way to try a placement. `GangRules` are a
profile's rules for gangs: how long one may stay incomplete once it has started, and what happens then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from random import Random

    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.framework.effects import Effects
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Status
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.gangs import Gang
    from fairlead.core.state.statement import Statement


@dataclass(frozen=True, slots=True)
class GangRules:
    """`timeout` is how long, in seconds, members wait for each other where their group says nothing. A gang that has
    started and still lacks members then is reported, or its started members are evicted (`evicts`). `rescues_whole`:
    room is made for a gang at once or not at all, instead of for each member by itself."""

    plugin: str
    timeout: float = 300.0
    evicts: bool = False
    rescues_whole: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class GangDomain:
    """Rows that could take a gang as a whole: a rack, a zone. `level` is the kind of thing it is, `name` which one.
    Without `rows` it is the whole cluster. One of a higher `rank` is used only if none of a lower one fits."""

    name: str
    rows: NDArray[np.int32] | None = None
    level: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """A domain that could take the gang, and which member would go where."""

    placement: GangDomain
    pods: tuple[tuple[Pod, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Pods that are evicted together: a single pod, or all pods of a group that may only be disrupted as a whole. Its
    priority is the one that decides who may evict it; `group` is empty for a single pod."""

    pods: tuple[tuple[Pod, int], ...]
    priority: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Considered:
    """A possible victim, and the rule that evicted or spared it."""

    name: str
    priority: int
    rule: str


class TrialFollower(Protocol):
    """Follows a trial that makes room for a gang, so that what a plugin keeps besides the table is as the trial has
    it. What a rollback undoes is reported like any other step; `end` undoes the rest."""

    def added(self, pod: Pod, row: int) -> None: ...

    def removed(self, pod: Pod, row: int) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PodGroupPostFilterResult:
    """The result of PodGroupPostFilter: the victims, and the row that each member would get."""

    status: Status
    victims: tuple[Pod, ...] = ()
    nominations: tuple[tuple[Pod, int], ...] = ()
    considered: tuple[Considered, ...] = ()


class GangCase(Protocol):
    """A gang that does not fit, and the means to find out what would help."""

    gang: Gang
    pods: Sequence[Pod]
    cluster: Cluster
    profile: Profile
    now: float
    rng: Random
    effects: Effects

    def fits(self) -> Sequence[tuple[Pod, int]] | Status:
        """Try to place the gang on the table as the trial has left it: who would go where, or why not. The table is
        left unchanged."""
        ...

    def still_fits(self, where: Sequence[tuple[Pod, int]], statement: Statement) -> bool:
        """Assign members to their rows through `statement`, one after the other; False as soon as one does not fit any
        more. The statement then holds those that did."""
        ...
