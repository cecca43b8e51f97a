"""Rounds: the actions there are, and running them over a round, a slice at a time.

An action is a module in engine/actions with a NAME and `execute(round)`, a generator that yields after every attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.engine.actions import allocate, backfill, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.framework.round import Round

Execute = Callable[["Round"], Iterator[None]]

ACTIONS: Mapping[str, Execute] = {
    module.NAME: module.execute
    for module in (enqueue, allocate, backfill, preempt, reclaim, shuffle, gangpreempt, gangreclaim)
}


def run_actions(round: Round) -> Iterator[None]:
    """All actions of a round in order; yields after every attempt."""
    for name in round.actions:
        execute = ACTIONS.get(name)
        if execute is None:
            raise FairleadError(f"there is no action {name!r}")
        round.witness.action(name)
        yield from execute(round)
