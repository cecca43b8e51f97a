"""Rounds: the actions there are, and running them over a round, a slice at a time.

An action is a module in volcano/rounds/actions with a NAME and `execute(round)`, a generator that yields after every
attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.figures import Lapse
from fairlead.errors import FairleadError
from fairlead.volcano.records.round_figures import Span
from fairlead.volcano.rounds.actions import (
    allocate,
    backfill,
    enqueue,
    gangpreempt,
    gangreclaim,
    preempt,
    reclaim,
    shuffle,
)

if TYPE_CHECKING:
    from fairlead.core.framework.meter import Meter
    from fairlead.volcano.rounds.round import Round

Execute = Callable[["Round"], Iterator[None]]

ACTIONS: Mapping[str, Execute] = {
    module.NAME: module.execute
    for module in (enqueue, allocate, backfill, preempt, reclaim, shuffle, gangpreempt, gangreclaim)
}


def run_actions(round: Round) -> Iterator[None]:
    """All actions of a round in order; yields after every attempt."""
    for name in round.settings.actions:
        execute = ACTIONS.get(name)
        if execute is None:
            raise FairleadError(f"there is no action {name!r}")
        round.witness.action(name)
        yield from execute(round) if round.meter is None else _measured(round.meter, name, execute(round))


def _measured(meter: Meter, name: str, attempts: Iterator[None]) -> Iterator[None]:
    """An action, and how long it took: what others do between its attempts is not its time."""
    spent, began = 0.0, meter.clock()
    for _ in attempts:
        spent += meter.clock() - began
        yield
        began = meter.clock()
    meter.lapses.append(Lapse(Span.ACTION, (name,), spent + meter.clock() - began))
