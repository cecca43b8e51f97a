"""The rules that combine tier plugins, and the heap that live comparators need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from fairlead.volcano.rounds.goheap import Heap
from fairlead.volcano.rounds.tiers import Enabled, TierPlugin, Tiers, Vote


class Voter(TierPlugin):
    def __init__(self, vote: Vote) -> None:
        self.name = f"voter-{id(self)}"
        self._vote = vote

    def job_enqueueable(self, job: Any) -> Vote:
        return self._vote


class Chooser(TierPlugin):
    def __init__(self, *numbers: int) -> None:
        self.name = f"chooser-{id(self)}"
        self._numbers = numbers

    def preemptable(self, evictor: Any, candidates: Sequence[Any]) -> list[Any]:
        return [task for task in candidates if int(task.uid) in self._numbers]


class Hungry(TierPlugin):
    def __init__(self, starving: bool) -> None:
        self.name = f"hungry-{id(self)}"
        self._starving = starving

    def job_starving(self, job: Any) -> bool:
        return self._starving


class Candidate:
    def __init__(self, uid: int) -> None:
        self.uid = str(uid)


def tiers(*listed: Sequence[TierPlugin], **options: bool) -> Tiers:
    return Tiers([[Enabled(plugin) for plugin in tier] for tier in listed], **options)


NOTHING = cast("Any", None)
P, A, R = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


@pytest.mark.parametrize(
    ("votes", "admitted"),
    [
        ([[A], [P, R]], False),
        ([[P], [R]], True),
        ([], True),
        ([[A]], True),
        ([[P, R]], False),
    ],
)
def test_a_no_counts_at_once_and_a_yes_ends_with_its_tier(votes: list[list[Vote]], admitted: bool) -> None:
    asked = tiers(*[[Voter(vote) for vote in tier] for tier in votes])
    assert asked.job_enqueueable(NOTHING) is admitted


@pytest.mark.parametrize(
    ("choosers", "victims"),
    [
        ([[(1, 2), (2, 3)]], [2]),
        ([[(1,), ()], [(3,)]], [3]),
        ([[(1,), (2,), (3,)]], [3]),
        ([[()]], []),
    ],
)
def test_victims_are_agreed_on_tier_by_tier(choosers: list[list[tuple[int, ...]]], victims: list[int]) -> None:
    asked = tiers(*[[Chooser(*numbers) for numbers in tier] for tier in choosers])
    assert [
        int(task.uid) for task in asked.preemptable(NOTHING, cast("Any", [Candidate(n) for n in (1, 2, 3)]))
    ] == victims


def test_an_empty_intersection_starts_anew_only_where_that_is_kept() -> None:
    asked = tiers([Chooser(1), Chooser(2), Chooser(3)], [Chooser(1)], disagreement_restarts=False)
    assert [int(task.uid) for task in asked.preemptable(NOTHING, cast("Any", [Candidate(n) for n in (1, 2, 3)]))] == [1]


def test_starving_is_decided_by_the_first_tier_that_has_a_say() -> None:
    assert not tiers([Hungry(True), Hungry(False)], [Hungry(True)]).job_starving(NOTHING)
    assert tiers([], [Hungry(True)]).job_starving(NOTHING)
    assert not tiers([]).job_starving(NOTHING)


def test_a_switch_that_is_off_silences_a_plugin_at_its_point() -> None:
    starving = [Enabled(Hungry(False), {"enableJobStarving": False}), Enabled(Hungry(True))]
    assert Tiers([starving]).job_starving(NOTHING)


def test_the_instance_listed_last_speaks_for_all_of_its_name() -> None:
    one, other = Voter(R), Voter(P)
    one.name = other.name = "same"
    assert tiers([one], [other]).job_enqueueable(NOTHING)


def test_a_heap_does_not_notice_that_its_items_changed() -> None:
    weights = {"a": 1, "b": 2, "c": 3}
    heap: Heap[str] = Heap(lambda left, right: weights[left] < weights[right], "cab")
    weights["a"] = 9
    assert [heap.pop(), heap.pop(), heap.pop()] == ["a", "b", "c"]


def test_a_heap_pops_in_order_when_nothing_changes() -> None:
    heap = Heap(lambda left, right: left < right, [5, 3, 8, 1, 9, 2, 7])
    twin = heap.copy()
    assert [heap.pop() for _ in range(len(heap))] == [1, 2, 3, 5, 7, 8, 9]
    assert len(twin) == 7
