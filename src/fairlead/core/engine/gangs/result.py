"""The result of an attempt at a gang: the verdict, its members one by one, and the domains that were tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.outcome import Failure
    from fairlead.core.engine.cycle.placement import Placed
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.gang import GangDomain, PodGroupPostFilterResult
    from fairlead.core.framework.plugin import PostFilterResult
    from fairlead.core.framework.points import Permission
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Status


@dataclass(slots=True, eq=False)
class MemberResult:
    """One member in one attempt: its place, or why it has none. With `rescued`, its victims have to leave first."""

    pod: Pod
    cycle: Cycle
    placed: Placed | None = None
    permission: Permission | None = None
    failure: Failure | None = None
    rescued: PostFilterResult | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """How many members a domain could take; an upper bound if it was not tried."""

    level: str
    name: str
    fits: int
    exact: bool = True


@dataclass(slots=True, eq=False)
class Result:
    """`status` is None if the gang is whole. `waiting` means that it will be when its victims are gone. `blamed` are
    plugins that refused it, besides those that refused its members."""

    members: list[MemberResult] = field(default_factory=list)
    status: Status | None = None
    waiting: bool = False
    needs_room: bool = False
    tried: tuple[Tried, ...] = ()
    placement: GangDomain | None = None
    rescue: PodGroupPostFilterResult | None = None
    blamed: frozenset[str] = frozenset()

    @property
    def placed(self) -> list[MemberResult]:
        return [member for member in self.members if member.placed is not None]
