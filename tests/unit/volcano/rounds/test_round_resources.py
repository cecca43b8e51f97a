"""The books of a round: four columns that follow the tasks on each row, and the memory of who fits where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.model.node import compile_node
from fairlead.core.state.table import NodeTable
from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.round_resources import RoundResources

GPU = "nvidia.com/gpu"


@dataclass
class Entry:
    key: str
    request: Amounts
    status: TaskStatus


def books_over(rows: int, **allocatable: str) -> RoundResources[Entry]:
    table = NodeTable()
    for number in range(rows):
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}}
        table.put(compile_node({"metadata": {"name": f"n{number}"}, "status": status}))
    return RoundResources(table)


def asking(cpu: float, *, gpu: float = 0) -> Amounts:
    return Amounts(cpu, 0, {"pods": 1, **({GPU: gpu} if gpu else {})})


@pytest.mark.parametrize(
    ("status", "idle", "used", "releasing", "pipelined"),
    [
        (TaskStatus.RUNNING, 3000, 1000, 0, 0),
        (TaskStatus.BINDING, 3000, 1000, 0, 0),
        (TaskStatus.RELEASING, 3000, 1000, 1000, 0),
        (TaskStatus.PIPELINED, 4000, 0, 0, 1000),
    ],
)
def test_each_status_is_booked_its_own_way(
    status: TaskStatus, idle: int, used: int, releasing: int, pipelined: int
) -> None:
    resources = books_over(1)
    entry = Entry("d/p", asking(1000), status)
    assert resources.put(entry, 0)
    columns = (resources.idle, resources.used, resources.releasing, resources.pipelined)
    assert [resources.at(column, 0).cpu for column in columns] == [idle, used, releasing, pipelined]
    assert resources.future_idle_at(0).cpu == idle + releasing - pipelined
    resources.take_off(entry, 0)
    assert resources.at(resources.idle, 0).cpu == 4000


def test_a_task_is_taken_off_as_it_was_booked_whatever_it_is_now() -> None:
    resources = books_over(1)
    entry = Entry("d/p", asking(1000), TaskStatus.PIPELINED)
    resources.put(entry, 0)
    entry.status = TaskStatus.PENDING
    resources.take_off(entry, 0)
    assert (resources.at(resources.pipelined, 0).cpu, resources.at(resources.idle, 0).cpu) == (0, 4000)


def test_a_task_is_booked_once() -> None:
    resources = books_over(1)
    entry = Entry("d/p", asking(1000), TaskStatus.RUNNING)
    assert resources.put(entry, 0)
    assert not resources.put(entry, 0)
    assert resources.at(resources.used, 0).cpu == 1000


def test_the_first_shortage_of_a_row_is_reported_cpu_before_others() -> None:
    resources = books_over(2, **{GPU: "1"})
    resources.put(Entry("d/a", asking(4000), TaskStatus.RUNNING), 0)
    rows = np.array([0, 1], dtype=np.int32)
    short = resources.short_of(asking(1000, gpu=2000), rows)
    assert {names: mask.tolist() for names, mask in short.items()} == {("cpu",): [True, False], (GPU,): [False, True]}


def test_a_row_that_is_short_of_several_things_that_have_no_order_gets_that_reason() -> None:
    resources = books_over(2, **{GPU: "1", "foo.com/x": "1"})
    resources.put(Entry("d/a", asking(0, gpu=1000), TaskStatus.RUNNING), 0)
    request = asking(1000, gpu=1000)
    request.set("foo.com/x", 2000)
    short = resources.short_of(request, np.array([0, 1], dtype=np.int32))
    assert {frozenset(names): mask.tolist() for names, mask in short.items()} == {
        frozenset({GPU, "foo.com/x"}): [True, False],
        frozenset({"foo.com/x"}): [False, True],
    }


def test_room_is_enough_if_it_lacks_less_than_can_be_noticed() -> None:
    resources = books_over(1)
    assert resources.fits_idle_at(asking(4000.05), 0)
    assert not resources.fits_idle_at(asking(4000.2), 0)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 39), st.integers(0, 7), st.sampled_from(list(TaskStatus))), max_size=60))
def test_what_is_remembered_equals_what_is_computed_anew(steps: list[tuple[int, int, TaskStatus]]) -> None:
    resources, once = books_over(40), books_over(40)
    rows = np.arange(40, dtype=np.int32)
    small, large = asking(500), asking(3600)
    on: dict[str, tuple[Entry, int]] = {}
    for row, number, status in steps:
        key = f"d/{number}"
        if key in on:
            resources.take_off(*on.pop(key))
        else:
            on[key] = (Entry(key, small if number % 2 else large, status), row)
            resources.put(*on[key])
        for request in (small, large):
            assert resources.fits_idle(request, rows).tolist() == [
                resources.fits_idle_at(request, int(r)) for r in rows
            ]
            assert resources.fits_future(request, rows).tolist() == [
                resources.fits_future_at(request, int(r)) for r in rows
            ]
    once.put_all(on.values())
    for columns in ("idle", "used", "releasing", "pipelined"):
        for name, column in getattr(resources, columns).items():
            assert np.array_equal(column, once.column(getattr(once, columns), name)), (columns, name)
