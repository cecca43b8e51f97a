"""Audit: recounts the table while the scheduler runs, a few rows at a time, and repairs what differs.

What the table says is kept up to date by differences, so a defect would stay until a restart. The audit finds it within
a pass through all rows: it looks at some rows every few seconds. A repair moves nothing that is right: rows that list
other pods than they have are corrected, then every sum is computed anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.state.pod_states import PodPlace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

ROWS_AT_ONCE = 64
EVERY = 5.0
"""Seconds between two looks: 5,000 rows are a pass of some seven minutes. A look reads all pods of its rows, which
are in no cache of the processor; at every other second it took a thirtieth of the time of an experiment."""
_SHAPES_KEPT = 4096
"""Requests that the audit remembers; beyond that all are forgotten."""
_PENDING = PodPlace.PENDING
"""Asked for every pod of a row, too often to be looked up on the Enum."""


class Audit:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._next_row = 0
        self._next_at = float("-inf")
        self._amounts = _Amounts()
        self.found = 0
        """How often something differed."""

    def look(self, now: float) -> str:
        """Check the next rows, if it is time; the answer says what differed, and it has been repaired then."""
        if now < self._next_at:
            return ""
        self._next_at = now + EVERY
        table = self._cluster.table
        if self._next_row >= table.high:
            self._next_row = 0
        first, self._next_row = self._next_row, min(table.high, self._next_row + ROWS_AT_ONCE)
        differs = "" if self._is_right(first, self._next_row) else self._difference(first, self._next_row)
        if not differs and self._next_row >= table.high:
            differs = self._whole()
        return self.repair(differs) if differs else ""

    def after_failure(self) -> str:
        """Check everything, because something raised in the middle of a change."""
        try:
            self._cluster.check()
        except AssertionError as error:
            return self.repair(str(error))
        return ""

    def repair(self, differs: str) -> str:
        self.found += 1
        repair(self._cluster)
        return differs

    def _is_right(self, first: int, end: int) -> bool:
        """Whether the rows list the pods that they have, and count what those request. A look finds nothing, as good as
        always, so that this is what looks cost; it takes all pods of its rows at once."""
        table, pods = self._cluster.table, self._cluster.pods
        listed = table.pods[first:end]
        lengths = [len(here) for here in listed]
        if table.pod_count[first:end].tolist() != lengths:
            return False
        here = [*chain.from_iterable(listed)]
        try:
            states = [pods[pod.uid] for pod in here]
        except KeyError:
            return False
        counts = np.array(lengths, dtype=np.intp)
        rows = np.arange(first, end).repeat(counts).tolist()
        if [state.row for state in states] != rows or _PENDING in {state.place for state in states}:
            return False
        sums = self._amounts.sums([pod.shape.request for pod in here], counts, table.requested)
        for own, (resource, column) in zip(sums, table.requested.items(), strict=True):
            counted, claimed = column[first:end], table.claimed.get(resource)
            if (counted if claimed is None else counted - claimed[first:end]).tolist() != own:
                return False
        return True

    def _difference(self, first: int, end: int) -> str:
        """What the first of the rows with a difference says."""
        return next((words for row in range(first, end) if (words := self._row(row))), "")

    def _row(self, row: int) -> str:
        table, pods = self._cluster.table, self._cluster.pods
        here = table.pods[row]
        sums: dict[str, int] = {}
        for pod in here:
            pod_state = pods.get(pod.uid)
            if pod_state is None or pod_state.row != row or pod_state.place is _PENDING:
                return f"row {row} ({table.name(row)}) lists {pod.key}, which is not there"
            for resource, amount in pod.shape.request.items():
                sums[resource] = sums.get(resource, 0) + amount
        if table.pod_count[row] != len(here):
            return f"row {row} ({table.name(row)}) counts {table.pod_count[row]} pods and has {len(here)}"
        for resource, column in table.requested.items():
            claimed, counted, own = table.claimed.get(resource), column.item(row), sums.get(resource, 0)
            if counted != own + (0 if claimed is None else claimed.item(row)):
                return f"row {row} ({table.name(row)}) counts {counted} of {resource}, its pods {own}"
        return ""

    def _whole(self) -> str:
        """What no row shows: pods that have a row and are listed nowhere."""
        cluster = self._cluster
        seated = len(cluster.pods) - [pod_state.place for pod_state in cluster.pods.values()].count(_PENDING)
        listed = int(cluster.table.pod_count.sum())
        return "" if seated == listed else f"{seated} pods have a node, and nodes list {listed}"


class _Amounts:
    """The requests of pods as lines of a matrix, one for each shape that was met: pods of one shape share a request, so
    that it is read once."""

    def __init__(self) -> None:
        self._resources: list[str] = []
        self._requests: list[Mapping[str, int]] = []
        """Held as long as their lines are, because lines are found by identity."""
        self._line_of: dict[int, int] = {}
        self._lines: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)

    def sums(
        self, asked: Sequence[Mapping[str, int]], counts: NDArray[np.intp], resources: Iterable[str]
    ) -> list[list[int]]:
        """For each resource, what the pods of each row request together; `counts` says how many of the requests are
        those of each row. The sums are differences of running totals: if those overflow, the differences are right."""
        names = [*resources]
        if names != self._resources or len(self._requests) > _SHAPES_KEPT:
            self._resources, self._requests, self._line_of = names, [], {}
        line_of = self._line_of
        try:
            lines = [line_of[id(request)] for request in asked]
        except KeyError:
            self._meet(asked)
            lines = [line_of[id(request)] for request in asked]
        totals = np.zeros((len(asked) + 1, len(names)), dtype=np.int64)
        if lines:
            self._lines.take(lines, axis=0).cumsum(axis=0, out=totals[1:])
        ends = counts.cumsum()
        sums: list[list[int]] = (totals[ends] - totals[ends - counts]).T.tolist()
        return sums

    def _meet(self, asked: Iterable[Mapping[str, int]]) -> None:
        for request in asked:
            if id(request) not in self._line_of:
                self._line_of[id(request)] = len(self._requests)
                self._requests.append(request)
        amounts = [[request.get(name, 0) for name in self._resources] for request in self._requests]
        self._lines = np.array(amounts, dtype=np.int64)


def repair(cluster: Cluster) -> None:
    """Make the table what the pods say."""
    table = cluster.table
    true: dict[int, dict[str, Pod]] = {}
    for pod, row in cluster.seated():
        true.setdefault(row, {})[pod.uid] = pod
    for row in range(table.high):
        here, listed = true.get(row, {}), Counter(pod.uid for pod in table.pods[row])
        for pod in [*table.pods[row]]:
            if pod.uid not in here or listed[pod.uid] > 1:
                listed[pod.uid] -= 1
                cluster.vacate(pod, row)
        for uid, pod in here.items():
            if not listed[uid]:
                cluster.occupy(pod, row)
    _recount(cluster, true)


def _recount(cluster: Cluster, true: dict[int, dict[str, Pod]]) -> None:
    table = cluster.table
    columns = [*table.requested.items()]
    for column in (*(column for _, column in columns), table.nonzero_cpu, table.nonzero_memory, table.pod_count):
        column[:] = np.zeros_like(column)
    for resource, column in table.claimed.items():
        table.requested_column(resource)[:] += column
    for row, pods in true.items():
        for pod in pods.values():
            for resource, column in columns:
                column[row] += pod.shape.request.get(resource, 0)
            table.nonzero_cpu[row] += pod.shape.nonzero_cpu
            table.nonzero_memory[row] += pod.shape.nonzero_memory
            table.pod_count[row] += 1
    for row in range(table.high):
        table.counted.touch(row)
    cluster.gangs.recount()
