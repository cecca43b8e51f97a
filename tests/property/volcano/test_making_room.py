"""Leaving out hopeless rows does not change what preempt and reclaim decide; and nobody is evicted for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.nodeorder import NodeOrder
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.queues.capacity import Capacity
from fairlead.volcano.queues.drf import Drf
from fairlead.volcano.queues.proportion import Proportion
from fairlead.volcano.rounds.actions import making_room
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.round import Round
from fairlead.volcano.rounds.tiers import Enabled
from tests.support.rounds import RoundScenario, Tier, evicted, promised

jobs = st.lists(
    st.tuples(
        st.sampled_from(["red", "blue"]),
        st.sampled_from([0, 10]),
        st.integers(0, 3),
        st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=4),
        st.sampled_from(["1", "2", "3", "500m"]),
    ),
    min_size=2,
    max_size=8,
)


def square_of(listed: list[tuple[str, int, int, list[str], str]], weight: int) -> RoundScenario:
    square = RoundScenario(a="4", b="6", c="3").queue("red", weight=weight, deserved={"cpu": "6"})
    square.queue("blue", deserved={"cpu": "7"})
    for number, (queue, priority, least, places, cpu) in enumerate(listed):
        name = f"j{number}"
        square.job(name, queue=queue, priority=priority, least=least)
        for place in places:
            if place:
                square.runs(name, place, cpu=cpu)
            else:
                square.waits(name, 1, cpu=cpu, priority=priority)
    return square


def tiers_of(kind: str) -> list[Tier]:
    none = Arguments()
    queues = Capacity() if kind == "capacity" else Proportion()
    return [
        [Priority(), Enabled(GangTierPlugin(), {"enablePreemptable": False})],
        [Predicates.of(none), queues, *([Drf()] if kind == "drf" else []), NodeOrder.of(none)],
    ]


@contextmanager
def nothing_left_out() -> Iterator[None]:
    """Every row is tried, and every time."""

    def all_rows(self: Any, request: Any, rows: Any, queues: Any, **options: Any) -> Any:
        return np.ones(len(rows), dtype=np.bool_)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making_room.Evictable, "promising", all_rows)
        patch.setattr(making_room.RefusedRows, "of", lambda self, task: np.zeros(self._size, dtype=np.bool_))
        yield


def decided(round: Round) -> tuple[list[str], dict[str, str]]:
    return evicted(round), promised(round)


@settings(max_examples=60)
@given(jobs, st.integers(1, 3), st.sampled_from(["proportion", "capacity", "drf"]))
def test_leaving_out_hopeless_rows_changes_no_decision(
    listed: list[tuple[str, int, int, list[str], str]], weight: int, kind: str
) -> None:
    actions = ("allocate", "reclaim", "preempt")
    found = decided(square_of(listed, weight).act(*actions, tiers=tiers_of(kind)))
    with nothing_left_out():
        assert decided(square_of(listed, weight).act(*actions, tiers=tiers_of(kind))) == found


@settings(max_examples=60)
@example(
    [
        ("red", 0, 0, ["a"] * 2, "1"),
        ("red", 0, 0, ["a"] * 4, "1"),
        ("red", 10, 0, ["a"] * 2, "1"),
        ("red", 10, 2, ["b", ""], "3"),
    ],
    1,
    ("preempt",),
)
@given(jobs, st.integers(1, 3), st.sampled_from([("reclaim",), ("preempt",), ("gangpreempt",), ("gangreclaim",)]))
def test_who_is_evicted_makes_room_for_a_job_that_gets_its_minimum(
    listed: list[tuple[str, int, int, list[str], str]], weight: int, actions: tuple[str, ...]
) -> None:
    round = square_of(listed, weight).act("allocate", *actions, tiers=tiers_of("proportion"))
    got_room = [task for job in round.jobs.values() for task in job.tasks.values() if task.eviction_occurred]
    assert bool(round.outcome.evictions) == any(task.row >= 0 for task in got_room) or not got_room
    claimants = {task.job.uid for task in got_room if task.job is not None}
    if any(task.job is not None and task.job.uid not in claimants for task, _ in round.outcome.evictions):
        # Within a job a more important task takes the place of another whatever becomes of the job, as in the original.
        assert any(round.tiers.job_pipelined(task.job) for task in got_room if task.job is not None)
    for row in range(3):
        assert round.resources.future_idle_at(row).cpu >= min(0.0, _overbooked(round, row))


def _overbooked(round: Round, row: int) -> float:
    """How far a row was in debt before the round promised anything."""
    offered = float(round.resources.allocatable["cpu"][row])
    return offered - sum(task.request.cpu for task in round.resources.tasks_on(row) if task.pod.node_name)
