"""RoundResources: what Volcano adds to a row. Four columns per resource: idle, used, releasing and pipelined.

    status added   idle    used    releasing   pipelined
    Releasing      -req    +req    +req
    Pipelined                                  +req
    any other      -req    +req

What will be idle is idle + releasing - pipelined. Columns are float64 in Volcano's units over the rows of the table,
and are made when a round opens. They belong to the round, so what it only tries does not show anywhere else.

Invariant: each column is the sum over the tasks in `on` of what the table above says, and idle + used is what is
allocatable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from fairlead.volcano.records.amounts import EPSILON, Amounts, is_counted, per_unit, within
from fairlead.volcano.records.tasks import TaskStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.table import NodeTable

_PIPELINED, _RELEASING = TaskStatus.PIPELINED, TaskStatus.RELEASING
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


class Booked(Protocol):
    """What is booked on a row: a task."""

    key: str
    request: Amounts
    status: TaskStatus


AnyBooked = TypeVar("AnyBooked", bound=Booked)


class RoundResources(Generic[AnyBooked]):
    def __init__(self, table: NodeTable) -> None:
        self._size = table.capacity
        self.allocatable: dict[str, NDArray[np.float64]] = {}
        self.idle: dict[str, NDArray[np.float64]] = {}
        self.used: dict[str, NDArray[np.float64]] = {}
        self.releasing: dict[str, NDArray[np.float64]] = {}
        self.pipelined: dict[str, NDArray[np.float64]] = {}
        self.on: list[dict[str, AnyBooked]] = [{} for _ in range(table.high)]
        """The tasks of each row by `namespace/name`, with the status they are booked under."""
        self._booked_as: list[dict[str, TaskStatus]] = [{} for _ in range(table.high)]
        self._touched: list[int] = []
        self._fitting: dict[int, _Fitting] = {}
        for resource in ("cpu", "memory", *table.allocatable):
            if is_counted(resource):
                self._open(resource, table.allocatable_column(resource).astype(np.float64) * per_unit(resource))

    def _open(self, resource: str, allocatable: NDArray[np.float64]) -> None:
        if resource in self.allocatable:
            return
        self.allocatable[resource] = allocatable
        self.idle[resource] = allocatable.copy()
        for columns in (self.used, self.releasing, self.pipelined):
            columns[resource] = np.zeros(self._size, dtype=np.float64)

    def _ensure(self, request: Amounts) -> None:
        for name in request.scalars:
            if name not in self.idle:
                self._open(name, np.zeros(self._size, dtype=np.float64))

    def offer(self, resource: str, allocatable: NDArray[np.float64]) -> None:
        """Add something that nodes have besides what they report themselves. To be called before anything is booked."""
        self.allocatable.pop(resource, None)
        self._open(resource, allocatable)

    # ---- writing ----

    def put(self, task: AnyBooked, row: int) -> bool:
        """Book a task on a row under its status. False, and nothing booked, if it is there already."""
        booked = self._booked_as[row]
        if task.key in booked:
            return False
        booked[task.key] = task.status
        self.on[row][task.key] = task
        self._write(task.request, task.status, row, 1.0)
        return True

    def put_all(self, tasks: Iterable[tuple[AnyBooked, int]]) -> None:
        """Book many tasks at once; tasks that share a request are added as one column."""
        alike: dict[tuple[int, bool, bool], tuple[Amounts, list[int]]] = {}
        for task, row in tasks:
            booked = self._booked_as[row]
            if task.key in booked:
                continue
            status = booked[task.key] = task.status
            self.on[row][task.key] = task
            key = (id(task.request), status is _PIPELINED, status is _RELEASING)
            if key not in alike:
                alike[key] = (task.request, [])
            alike[key][1].append(row)
        for (_, pipelined, releasing), (request, rows) in alike.items():
            self._write_all(request, np.bincount(rows, minlength=self._size), pipelined=pipelined, releasing=releasing)
            self._touched += rows

    def _write_all(self, request: Amounts, times: NDArray[np.intp], *, pipelined: bool, releasing: bool) -> None:
        """Add a request to each row so many times. Amounts are whole numbers, so nothing is rounded."""
        self._ensure(request)
        for name, amount in request.items():
            change = amount * times
            if pipelined:
                self.pipelined[name] += change
                continue
            self.idle[name] -= change
            self.used[name] += change
            if releasing:
                self.releasing[name] += change

    def take_off(self, task: AnyBooked, row: int) -> None:
        """Undo `put`, whatever the task's status is by now."""
        status = self._booked_as[row].pop(task.key, None)
        if status is not None:
            del self.on[row][task.key]
            self._write(task.request, status, row, -1.0)

    def update(self, task: AnyBooked, row: int) -> None:
        """Book a task that is on a row under its new status."""
        self.take_off(task, row)
        self.put(task, row)

    def _write(self, request: Amounts, status: TaskStatus, row: int, sign: float) -> None:
        self._ensure(request)
        self._touched.append(row)
        for name, amount in request.items():
            change = sign * amount
            if status is _PIPELINED:
                self.pipelined[name][row] += change
                continue
            self.idle[name][row] -= change
            self.used[name][row] += change
            if status is _RELEASING:
                self.releasing[name][row] += change

    # ---- reading ----

    def tasks_on(self, row: int) -> list[AnyBooked]:
        return list(self.on[row].values())

    def column(self, columns: dict[str, NDArray[np.float64]], resource: str) -> NDArray[np.float64]:
        """A column, zero where nobody has such a resource."""
        found = columns.get(resource)
        return found if found is not None else np.zeros(self._size, dtype=np.float64)

    def at(self, columns: dict[str, NDArray[np.float64]], row: int) -> Amounts:
        """A row of some columns as a vector: `resources.at(resources.idle, row)`."""
        amounts = Amounts()
        for name, column in columns.items():
            amounts.set(name, float(column[row]))
        return amounts

    def future_idle_at(self, row: int) -> Amounts:
        amounts = Amounts()
        for name in self.idle:
            amounts.set(name, float(self.idle[name][row] + self.releasing[name][row] - self.pipelined[name][row]))
        return amounts

    def fits_idle_at(self, request: Amounts, row: int) -> bool:
        return all(within(amount, self._idle_cell(name, row)) for name, amount in request.items())

    def fits_future_at(self, request: Amounts, row: int) -> bool:
        return all(within(amount, self._future_cell(name, row)) for name, amount in request.items())

    def _idle_cell(self, name: str, row: int) -> float:
        column = self.idle.get(name)
        return float(column[row]) if column is not None else 0.0

    def _future_cell(self, name: str, row: int) -> float:
        if name not in self.idle:
            return 0.0
        return float(self.idle[name][row] + self.releasing[name][row] - self.pipelined[name][row])

    def fits_idle(self, request: Amounts, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which rows have room now."""
        if len(rows) <= _FEW_ROWS:
            return self._fits(((amount, self._idle(name, rows)) for name, amount in request.items()), len(rows))
        return self._known(request).idle[rows]

    def fits_future(self, request: Amounts, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which rows will have room once releasing tasks are gone."""
        if len(rows) <= _FEW_ROWS:
            return self._fits(((amount, self.future_on(name, rows)) for name, amount in request.items()), len(rows))
        return self._known(request).future[rows]

    def short_of(self, request: Amounts, rows: NDArray[np.int32]) -> dict[tuple[str, ...], NDArray[np.bool_]]:
        """By resources, the rows that lack these of what will be idle. A row that lacks cpu is listed under cpu alone,
        else one that lacks memory under memory alone; the other resources have no order, so a row is listed under all
        that it lacks."""
        short: dict[tuple[str, ...], NDArray[np.bool_]] = {}
        left = np.ones(len(rows), dtype=np.bool_)
        for name, amount in (("cpu", request.cpu), ("memory", request.memory)):
            lacking = ~_fit(amount, self.future_on(name, rows)) & left
            if lacking.any():
                short[(name,)] = lacking
                left &= ~lacking
        together: dict[tuple[str, ...], NDArray[np.bool_]] = {(): left}
        for name, amount in request.scalars.items():
            lacking = ~_fit(amount, self.future_on(name, rows))
            if (lacking & left).any():
                together = {
                    names: mask
                    for before, where in together.items()
                    for names, mask in ((before, where & ~lacking), ((*before, name), where & lacking))
                    if mask.any()
                }
        short.update((names, mask) for names, mask in together.items() if names)
        return short

    def _idle(self, name: str, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        column = self.idle.get(name)
        return np.zeros(len(rows), dtype=np.float64) if column is None else column[rows]

    def future_on(self, name: str, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """What will be idle of a resource on some rows."""
        if name not in self.idle:
            return np.zeros(len(rows), dtype=np.float64)
        return self.idle[name][rows] + self.releasing[name][rows] - self.pipelined[name][rows]

    def _fits(self, pairs: Iterable[tuple[float, NDArray[np.float64]]], size: int) -> NDArray[np.bool_]:
        fitting = np.ones(size, dtype=np.bool_)
        for amount, column in pairs:
            fitting &= _fit(amount, column)
        return fitting

    # ---- remembering ----

    @property
    def mark(self) -> int:
        """The number of changes so far, for `touched_since`."""
        return len(self._touched)

    def touched_since(self, mark: int) -> set[int]:
        """The rows on which anything was booked since."""
        return set(self._touched[mark:])

    def _known(self, request: Amounts) -> _Fitting:
        """Where a request fits. Equal tasks share one request, so after each placement only a single row is compared
        again."""
        known = self._fitting.get(id(request))
        if known is None:
            if len(self._fitting) >= _REMEMBERED:
                self._fitting.clear()
            known = self._fitting[id(request)] = _Fitting(request, self._size)
            self._judge(known, np.arange(self._size, dtype=np.int32))
        elif known.mark < len(self._touched):
            self._judge_again(known, set(self._touched[known.mark :]))
        known.mark = len(self._touched)
        return known

    def _judge_again(self, known: _Fitting, rows: set[int]) -> None:
        """Compare the rows that changed. For few rows plain numbers are cheaper than arrays."""
        if len(rows) > _FEW_ROWS:
            self._judge(known, np.fromiter(rows, dtype=np.int32, count=len(rows)))
            return
        for row in rows:
            known.idle[row] = self.fits_idle_at(known.request, row)
            known.future[row] = self.fits_future_at(known.request, row)

    def _judge(self, known: _Fitting, rows: NDArray[np.int32]) -> None:
        items = list(known.request.items())
        known.idle[rows] = self._fits(((amount, self._idle(name, rows)) for name, amount in items), len(rows))
        known.future[rows] = self._fits(((amount, self.future_on(name, rows)) for name, amount in items), len(rows))


_FEW_ROWS = 32
"""Up to so many rows, comparing them directly is cheaper than to look up what is cached for all rows."""
_REMEMBERED = 512
"""Requests whose fitting rows are cached; when there are more, the cache is emptied."""


class _Fitting:
    """Where one request fits, row by row, as of `mark` in the list of touched rows."""

    __slots__ = ("future", "idle", "mark", "request")

    def __init__(self, request: Amounts, size: int) -> None:
        self.request = request
        self.idle: NDArray[np.bool_] = np.zeros(size, dtype=np.bool_)
        self.future: NDArray[np.bool_] = np.zeros(size, dtype=np.bool_)
        self.mark = 0


def _fit(amount: float, room: NDArray[np.float64]) -> NDArray[np.bool_]:
    """`within` over a column."""
    return (amount < room) | (np.abs(amount - room) < EPSILON)
