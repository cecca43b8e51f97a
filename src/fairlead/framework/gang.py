"""What plugins and the engine say to each other about a gang as a whole.

A `Placement` is a part of the cluster that could take all of a gang, a `Proposal` what that would look like. A
`GangCase` is what a rescue gets to work with: who wants in, and a way to try. `GangRules` are what a profile says about
gangs beyond the plugins' answers: how long one may stay incomplete once it has started, and what happens then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from random import Random

    import numpy as np
    from numpy.typing import NDArray

    from fairlead.model.pod import Pod
    from fairlead.model.reasons import Status
    from fairlead.state.cluster import Cluster
    from fairlead.state.gangs import Gang
    from fairlead.state.statement import Statement


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
    """A placement that could take the gang, and which member would go where."""

    placement: GangDomain
    pods: tuple[tuple[Pod, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """What is evicted together: a pod, or all of a group that wants to go as a whole. The rule, if there is one, says
    what kept it."""

    pods: tuple[tuple[Pod, int], ...]
    priority: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Considered:
    """A possible victim that was looked at, and what came of it."""

    name: str
    priority: int
    rule: str


@dataclass(frozen=True, slots=True)
class GangRescued:
    """What an attempt to make room for a gang came to: whom to evict, and where each member would go."""

    status: Status
    victims: tuple[Pod, ...] = ()
    nominations: tuple[tuple[Pod, int], ...] = ()
    considered: tuple[Considered, ...] = ()


class GangCase(Protocol):
    """A gang that does not fit, and the means to find out what would help."""

    gang: Gang
    pods: Sequence[Pod]
    cluster: Cluster
    now: float
    rng: Random

    def fits(self) -> Sequence[tuple[Pod, int]] | Status:
        """Try to place the gang on the table as it is pretended to be just now: who would go where, or why not. The
        table is left as it was."""
        ...

    def still_fits(self, where: Sequence[tuple[Pod, int]], statement: Statement) -> bool:
        """Put members onto their rows, one after the other; says whether all of them are still let there. If not, some
        are on the table, by this statement."""
        ...
