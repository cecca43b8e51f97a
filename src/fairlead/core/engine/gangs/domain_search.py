"""DomainSearch: the choice of the rack, the zone or the HyperNode for a gang that must be in one.

    by rank (near before far), the most promising first
      no room by sums alone ─▶ passed over: no trial could succeed
      trial: takes everybody and nothing could be better ─▶ that one
    none left ─▶ the best of those that fitted; or why none did

A trial assigns every member to a row, so its cost grows with the gang; it is made only where it can change the
decision. Sums of requests bound how many members a domain can hold. Domains whose bound is below what the gang needs
are not tried: no trial could succeed there. Where no domain fits, those trials are made that the message needs: the
first domain, whose refusals the members get, and the one that comes closest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.gangs.result import Result, Tried
from fairlead.core.framework.gang import GangDomain, Proposal
from fairlead.core.framework.results.cached_plugin import sums_of
from fairlead.core.framework.sums import free_of, rooms
from fairlead.core.model.reasons import Status, failed, unschedulable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.gangs.assembly import Assembly
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.table import NodeTable

_FOR_THE_ANSWER = 4
"""The most domains that are tried only to find the one that comes closest, for the message."""


def none_of(placements: int, first: Status) -> Status:
    """The status if no domain can take the gang, in kube-scheduler's words."""
    text = f"0/{placements} placements are available, first placement status: {first.reasons[0]}"
    return unschedulable(text)


class DomainSearch:
    def __init__(self, assembly: Assembly, placements: Sequence[GangDomain]) -> None:
        self._assembly = assembly
        self._placements = placements
        self._results: dict[GangDomain, Result] = {}
        gang = assembly.gang
        self._needed = max(1, gang.minimum - gang.scheduled)
        self._room = DomainCapacity.of(assembly)

    def run(self) -> Result:
        """The result of the attempt: the gang is whole, or waits for its victims, or is refused."""
        for rank in sorted({placement.rank for placement in self._placements}):
            found = self._among([placement for placement in self._placements if placement.rank == rank])
            if found is not None:
                return self._concluded(found)
        return self._concluded(self._nowhere())

    def _concluded(self, result: Result) -> Result:
        """The result with the domains that were looked at, for explanations. They are left out if the whole cluster was
        tried and had no room either."""
        named = [placement for placement in self._placements if placement.rows is not None]
        if result.status is None:
            named = [placement for placement in named if placement in self._results]
        elif result.placement is not None and result.placement.rows is None:
            named = []
        result.tried = tuple(self._tried(placement) for placement in named)
        self._assembly.count_trials(len(self._results))
        return result

    def _tried(self, placement: GangDomain) -> Tried:
        result = self._results.get(placement)
        fits = len(result.placed) if result is not None else self._most(placement)
        return Tried(placement.level, placement.name, fits, exact=result is not None)

    # ---- one rank ----

    def _among(self, placements: list[GangDomain]) -> Result | None:
        """The best of some domains; None if none fits. The search ends at the first domain that takes all members and
        that no other can beat."""
        promising, certain = self._by_promise(placements)
        fitting: list[GangDomain] = []
        for placement in promising:
            if placement.rows is not None and self._most(placement) < self._needed:
                continue
            result = self._try(placement)
            if result.status is None and certain and len(result.placed) == len(self._assembly.pods):
                return result
            if result.status is None:
                self._assembly.undo(result.members)
            elif not result.status.code.rejected or placement.rows is None:
                return result
            if result.status is None or result.waiting:
                fitting.append(placement)
        if not fitting:
            return None
        chosen = fitting[0] if len(fitting) == 1 else self._best(fitting)
        return Result(status=chosen) if isinstance(chosen, Status) else self._assembly.assemble(chosen)

    def _try(self, placement: GangDomain) -> Result:
        result = self._results[placement] = self._assembly.assemble(placement)
        return result

    def _most(self, placement: GangDomain) -> int:
        """The most members that a domain could take."""
        everybody = len(self._assembly.pods)
        if self._room is None or placement.rows is None:
            return everybody
        return min(everybody, self._room.within(placement.rows))

    def _by_promise(self, placements: list[GangDomain]) -> tuple[list[GangDomain], bool]:
        """The domains in the order of the score they would get if they took all members, highest first; and whether no
        domain can get more than that, so that the search may end at the first one that does."""
        plugins = self._assembly.profile.at("placement_score")
        everybody = tuple((pod, -1) for pod in self._assembly.pods)
        totals = self._totals([Proposal(placement, everybody) for placement in placements])
        if isinstance(totals, Status) or not all(plugin.scores_grow for plugin in plugins):
            return placements, False
        order = [*range(len(placements))]
        self._assembly.rng.shuffle(order)
        order.sort(key=lambda at: -int(totals[at]))
        return [placements[at] for at in order], True

    def _best(self, fitting: list[GangDomain]) -> GangDomain | Status:
        """The domain with the highest weighted total; among equals the seeded generator chooses."""
        totals = self._totals(
            [
                Proposal(
                    placement,
                    tuple((m.pod, m.placed.row) for m in self._results[placement].members if m.placed is not None),
                )
                for placement in fitting
            ]
        )
        if isinstance(totals, Status):
            return totals
        ties = np.flatnonzero(totals == totals.max())
        return fitting[int(ties[self._assembly.rng.randrange(len(ties))] if len(ties) > 1 else ties[0])]

    def _totals(self, proposals: Sequence[Proposal]) -> NDArray[np.int64] | Status:
        profile = self._assembly.profile
        totals = np.zeros(len(proposals), dtype=np.int64)
        for plugin in profile.at("placement_score"):
            scores = plugin.placement_score(self._assembly.gang, proposals, self._assembly.cluster)
            if isinstance(scores, Status):
                return failed(f'running PlacementScore plugin "{plugin.name}": {scores.message}')
            totals += np.array(scores, dtype=np.int64) * profile.weight(plugin)
        return totals

    # ---- none ----

    def _nowhere(self) -> Result:
        """The result if no domain fits. Members get the refusals of the first domain; the plugins that refused in
        any domain are blamed, because a change in any of them may help."""
        result = self._results.get(self._placements[0]) or self._try(self._placements[0])
        self._come_closest()
        if result.status is None or not result.status.code.rejected:
            return result
        count = sum(1 for placement in self._placements if placement.rows is not None)
        result.status, result.blamed = none_of(count, result.status), self._blamed()
        return result

    def _come_closest(self) -> None:
        """Try domains that might take more members than those tried so far, until no other could, or _FOR_THE_ANSWER
        were tried."""
        left = [placement for placement in self._placements if placement not in self._results]
        left.sort(key=lambda placement: -self._most(placement))
        for placement in left[:_FOR_THE_ANSWER]:
            if self._most(placement) <= max(len(result.placed) for result in self._results.values()):
                return
            self._try(placement)

    def _blamed(self) -> frozenset[str]:
        failures = [m.failure for result in self._results.values() for m in result.members if m.failure is not None]
        plugins = {plugin.name for plugin in self._assembly.profile.at("placement_generate")[:1]}
        if self._room is not None:
            plugins |= self._room.plugins
        return frozenset(plugins).union(*(failure.unschedulable_plugins for failure in failures))


class DomainCapacity:
    """An upper bound of the members that a domain holds, from their requests and the free amounts. How many pods of one
    shape a node holds is computed once, for all domains. Where members have several shapes, the bound is the number of
    smallest members whose requests add up to no more than the free amounts of the domain."""

    def __init__(self, table: NodeTable, shapes: Sequence[tuple[int, Mapping[str, int]]], by: set[str]) -> None:
        self._shapes = [(count, rooms(table, asked)) for count, asked in shapes]
        self.plugins = frozenset(by)
        """The plugins whose sums these are."""
        self._least: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        for resource in {name for _, asked in shapes for name in asked} if len(shapes) > 1 else ():
            amounts = sorted(amount for count, asked in shapes for amount in [asked.get(resource, 0)] * count)
            self._least.append((free_of(table, resource), np.cumsum(np.array(amounts, dtype=np.int64))))

    def within(self, rows: NDArray[np.int32]) -> int:
        most = sum(min(count, int(room[rows].sum())) for count, room in self._shapes)
        for free, needed in self._least:
            most = min(most, int(np.searchsorted(needed, free[rows].sum(), side="right")))
        return most

    @classmethod
    def of(cls, assembly: Assembly) -> DomainCapacity | None:
        """None if sums are no bound: no filter has any, or members may get nodes whose victims have yet to leave."""
        profile = assembly.profile
        if any(
            plugin.frees_room and plugin not in profile.at("pod_group_post_filter")
            for plugin in profile.at("post_filter")
        ):
            return None
        counts = Counter(id(pod.shape) for pod in assembly.pods)
        shapes: list[tuple[int, Mapping[str, int]]] = []
        by: set[str] = set()
        for shape, pod in {id(pod.shape): pod for pod in assembly.pods}.items():
            found = _asked(assembly, pod)
            if not found:
                return None
            by |= found.keys()
            shapes.append((counts[shape], {name: amount for one in found.values() for name, amount in one.items()}))
        return cls(assembly.cluster.table, shapes, by)


def _asked(assembly: Assembly, pod: Pod) -> Mapping[str, Mapping[str, int]]:
    """By plugin, the amounts that a filter with sums compares for a pod."""
    cycle = assembly.prepared(pod)
    filters = assembly.profile.at("filter") if cycle is not None else ()
    return {
        plugin.name: sums.asked
        for plugin in filters
        if cycle is not None and plugin.name not in cycle.no_filter and (sums := sums_of(plugin, cycle)) is not None
    }
