"""Following a recorded round where its steps do not tell who came next: what is guessed, and guessed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.replay.replay import Guide, Parted
from fairlead.volcano.replay.room import Ahead, as_shown, as_taken, as_tried
from fairlead.volcano.replay.trail import Lost, Trail
from fairlead.volcano.rounds.goheap import Heap


@dataclass
class Name:
    name: str


@dataclass
class Group:
    name: str
    tasks: dict[str, Name] = field(default_factory=dict)


class Told:
    """The rest of a recording: who is named, in order, and whether the very next step names anybody."""

    def __init__(self, names: list[str], at_once: bool) -> None:
        self._names, self._at_once = names, at_once

    def wanting(self) -> list[str]:
        return self._names

    def next_wanting(self) -> str:
        return self._names[0] if self._at_once else ""


def groups(*names: str) -> list[Group]:
    return [Group(name, {name: Name(f"{name}-0")}) for name in names]


def order(told: Told, choose: Callable[[Sequence[str]], str] = lambda names: names[0]) -> list[str]:
    return [job.name for job in as_taken(groups("a", "b", "c"), lambda: told, choose)]  # type: ignore[arg-type, misc]


def test_whom_the_next_step_names_comes_next() -> None:
    assert order(Told(["c-0"], at_once=True))[0] == "c"


def test_before_a_step_without_a_name_come_those_that_are_never_named() -> None:
    assert order(Told(["a-0"], at_once=False)) == ["b", "c", "a"]


def test_any_may_come_before_a_step_without_a_name() -> None:
    offered: list[Sequence[str]] = []

    def last(names: Sequence[str]) -> str:
        offered.append(names)
        return names[-1]

    assert order(Told(["c-0", "b-0"], at_once=False), last) == ["b", "c", "a"]
    assert offered == [["a", "c", "b"], ["a", "c"], ["a"]]


def test_a_choice_that_led_nowhere_is_not_made_again_at_its_step() -> None:
    trail = Trail()
    assert trail.choose("j", 3, "walk", ["a", "b"]) == "a"
    assert trail.turn_back()
    trail.start()
    assert trail.choose("j", 3, "walk", ["a", "b"]) == "b"
    assert trail.choose("j", 5, "walk", ["a", "c"]) == "a"


def test_where_all_options_led_nowhere_the_choice_before_was_wrong() -> None:
    trail = Trail()
    tried = []
    for _ in range(5):
        trail.start()
        try:
            tried.append(trail.choose("j", 3, "walk", ["a", "b"]))
            tried.append(trail.choose("j", 5, "walk", ["c", "d"]))
        except Lost:
            tried.append("lost")
        assert trail.turn_back()
    assert tried == ["a", "c", "a", "d", "a", "lost", "b", "c", "b", "d"]


def test_a_choice_that_leaves_no_step_is_not_to_blame() -> None:
    trail = Trail()
    for chosen in ("c", "b"):
        trail.start()
        assert trail.choose("j", 3, "walk", ["a", "c", "b"]) == "a"
        assert trail.choose("j", 3, "walk", ["c", "b"]) == chosen
        assert trail.turn_back()


def test_if_only_what_was_said_differs_those_it_is_about_come_in_another_order() -> None:
    trail = Trail()
    trail.choose("j", 3, "walk", ["a", "b"])
    assert not trail.vary({"k"})
    assert trail.vary({"j", "k"})
    assert (trail.variant("j"), trail.variant("k")) == (1, 0)


@pytest.mark.parametrize("what", ["jobs", "queues"])
def test_what_comes_into_heaps_and_sums_comes_in_another_order_once_ours_led_nowhere(what: str) -> None:
    guide = Guide([], Random(0))
    assert list(guide.walk(what, range(9))) == list(range(9))
    guide.shuffle = 1
    walked = list(guide.walk(what, range(9)))
    assert walked != list(range(9)) == sorted(walked)


@pytest.mark.parametrize("seed", range(5))
def test_whom_to_show_first_is_found_by_what_each_eviction_changes(seed: int) -> None:
    """Who has most goes first, and an eviction leaves a job with less."""
    victims = VictimRound({"a": 5, "b": 4, "c": 4})
    gone = victims.evict(Random(seed).sample(victims.tasks, len(victims.tasks)), 5)
    steps = [{"do": "evict", "for": "w", "pod": name, "action": "preempt"} for name in gone]
    shown = as_shown(WAITING, 0, victims.tasks, Ahead(victims, steps, 0))  # type: ignore[arg-type]
    assert victims.evict(list(shown), 5) == gone


def test_before_a_trial_without_a_name_come_rows_that_no_step_is_on() -> None:
    steps = [{"do": "discard"}, {"do": "evict", "for": "w", "pod": "v"}, {"do": "discard"}, {"do": "commit"}]
    ahead = Ahead(on_row_0("v"), steps, 0)  # type: ignore[arg-type]
    waiting = Name("w")
    rows = as_tried(waiting, np.array([0, 1, 2], dtype=np.int32), np.array([5.0, 5.0, 7.0]), lambda: ahead)  # type: ignore[arg-type]
    assert list(rows) == [2, 1, 0]


def test_an_eviction_that_was_thought_through_does_not_say_for_whom() -> None:
    steps = [{"do": "evict", "pod": "v"}, {"do": "evict", "pod": "v", "for": "other"}]
    guide = Guide(steps, Random(0))
    guide.evicted(Name("v"), Name("w"))  # type: ignore[arg-type]
    with pytest.raises(Parted):
        guide.evicted(Name("v"), Name("w"))  # type: ignore[arg-type]


def test_gangreclaim_passes_over_queues_without_a_word() -> None:
    guide = Guide([{"action": "gangreclaim"}, {"action": "reclaim"}], Random(0))
    guide.action("gangreclaim")
    guide.overused(Name("q"))  # type: ignore[arg-type]
    guide.action("reclaim")
    with pytest.raises(Parted):
        guide.overused(Name("q"))  # type: ignore[arg-type]


WAITING: Any = SimpleNamespace(name="w", request=Amounts(0.0, 0.0))


class VictimRound:
    """As much of a round as is asked whom to evict: of the jobs on row 0, a task of the one with most goes first."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.jobs = {name: SimpleNamespace(tasks={}, has=size, move=_move) for name, size in sizes.items()}
        for name, job in self.jobs.items():
            for number in range(sizes[name]):
                task = SimpleNamespace(name=f"{name}-{number}", row=0, job=job, request=Amounts(), status=None)
                job.tasks[task.name] = task
        self.tasks = [task for job in self.jobs.values() for task in job.tasks.values()]
        self.resources = SimpleNamespace(future_idle_at=lambda row: Amounts())
        self.tiers = SimpleNamespace(
            preemptable=lambda task, shown: shown,
            deallocated=lambda task: _has(task, -1),
            allocated=lambda task: _has(task, 1),
        )

    def victims_heap(self, victims: list[Any], task: Any) -> Heap[Any]:
        return Heap(lambda left, right: bool(left.job.has > right.job.has), victims)

    def evict(self, shown: list[Any], count: int) -> list[str]:
        """Who goes; all are back afterwards."""
        heap = self.victims_heap(shown, WAITING)
        gone = []
        for _ in range(count):
            gone.append(heap.pop())
            self.tiers.deallocated(gone[-1])
        for task in gone:
            self.tiers.allocated(task)
        return [task.name for task in gone]


def _move(task: Any, status: TaskStatus) -> None:
    task.status = status


def _has(task: Any, by: int) -> None:
    task.job.has += by


def on_row_0(name: str) -> SimpleNamespace:
    victim = SimpleNamespace(name=name, row=0)
    return SimpleNamespace(jobs={"j": SimpleNamespace(tasks={name: victim})})
