"""GangExplanations, from the last attempt at each gang. They are kept for a bounded number of gangs."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.lacks import domain_lack
from fairlead.core.engine.explain.shortages import of_members
from fairlead.core.model.explanation import ProtectedPod
from fairlead.core.model.gang_explanation import Domain, GangExplanation

if TYPE_CHECKING:
    from fairlead.core.engine.gangs.result import Result
    from fairlead.core.engine.modes import LacksOf
    from fairlead.core.engine.queue.entry import Waiting
    from fairlead.core.state.gangs import Gang
    from fairlead.core.state.table import NodeTable

_KEPT = 5_000
_NAMED = 100
"""How many domains and possible victims are named."""


class GangExplanations:
    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._kept: OrderedDict[str, GangExplanation] = OrderedDict()

    def of(self, key: str) -> GangExplanation | None:
        return self._kept.get(key)

    def keep(self, gang: Gang, result: Result, *, now: float, attempts: int, scheduler: str) -> None:
        explanation = GangExplanation(
            namespace=gang.namespace,
            name=gang.name,
            api=gang.api,
            scheduler=scheduler,
            verdict=_verdict(result),
            message="" if result.status is None else result.status.message,
            at=now,
            attempts=attempts,
            minimum=gang.minimum,
            members=len(gang),
            scheduled=gang.scheduled,
            fits=_fits(gang, result),
            where=self._where(result),
            domains=_domains(result),
            tried=(sum(tried.exact for tried in result.tried), len(result.tried)),
            blockers=_blockers(result),
            considered=_considered(result) or self._evicted_for(gang, result),
        )
        self._kept[gang.key] = explanation
        self._kept.move_to_end(gang.key)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def _evicted_for(self, gang: Gang, result: Result) -> tuple[ProtectedPod, ...]:
        """A gang that starts because others had to go: who did, from the attempt before."""
        before = self._kept.get(gang.key)
        went_on = before is not None and before.verdict in ("Preempting", "Scheduled") and result.status is None
        return before.considered if before is not None and went_on else ()

    def _where(self, result: Result) -> dict[str, int]:
        where: dict[str, int] = {}
        for member in result.members:
            if member.placed is not None:
                name = self._table.name(member.placed.row)
                where[name] = where.get(name, 0) + 1
        return where


def explain_gang(
    gang: Gang, known: GangExplanation | None, waiting: Waiting | None, table: NodeTable, lacks_of: LacksOf
) -> GangExplanation:
    """The explanation of a gang's last attempt with amounts and, while it waits, what is short for it."""
    explained = _described(gang, known, waiting)
    pods, texts = gang.pending(), [text for text, _ in explained.blockers]
    explained = replace(explained, shortages=of_members((pod.request for pod in pods), texts, table))
    if explained.verdict in ("Scheduled", "Completed"):
        return explained
    needed = max(0, gang.minimum - gang.scheduled)
    lacks = (*domain_lack(explained.domains, needed), *lacks_of(pods[: needed or None], texts))
    return replace(explained, lacks=lacks)


def _described(gang: Gang, known: GangExplanation | None, waiting: Waiting | None) -> GangExplanation:
    """The explanation of a gang's last attempt, with the numbers of members as they are now."""
    gated = waiting is not None and waiting.queue == "gated" and (known is None or not gang.is_whole)
    if known is None or gated:
        known = GangExplanation(
            gang.namespace,
            gang.name,
            gang.api,
            known.scheduler if known else "",
            "Gated" if gated else "Waiting",
            message=waiting.message if waiting is not None else "",
        )
    minimum = gang.minimum if gang.group is not None and not gang.group.unknown else 0
    return replace(known, minimum=minimum, members=len(gang), scheduled=gang.scheduled)


def _fits(gang: Gang, result: Result) -> int:
    """How many members have a node or found one in the attempt."""
    if result.status is None:
        return gang.scheduled
    best = max((tried.fits for tried in result.tried if tried.exact), default=0)
    return gang.scheduled + max(best, len(result.placed))


def _domains(result: Result) -> tuple[Domain, ...]:
    """Domains, best first: those that were tried before those that were only estimated."""
    best = sorted(result.tried, key=lambda tried: (-tried.fits, not tried.exact))
    return tuple(Domain(tried.name, tried.fits, tried.level, tried.exact) for tried in best[:_NAMED])


def _verdict(result: Result) -> str:
    if result.status is None:
        return "Scheduled"
    if not result.status.code.rejected:
        return "Error"
    return "Preempting" if result.waiting else "Unschedulable"


def _blockers(result: Result) -> tuple[tuple[str, int], ...]:
    texts = Counter(member.failure.message for member in result.members if member.failure is not None)
    return tuple(texts.most_common(_NAMED))


def _considered(result: Result) -> tuple[ProtectedPod, ...]:
    if result.rescue is None:
        return ()
    return tuple(ProtectedPod(c.name, c.priority, c.rule) for c in result.rescue.considered[:_NAMED])
