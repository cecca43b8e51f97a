"""HyperNodeSums: the resources of HyperNodes as arrays, and in which HyperNodes the rows of the table are.

Invariant: `used` of a HyperNode is what was used on its rows when the round opened, plus what was placed there since.
Everything else is as it was when the round opened, whatever was placed since, as in Volcano.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.rounds.tiers import Purpose

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.volcano.rounds.round import Round, Task

_NOBODY = -1


class HyperNodeSums:
    """`index` is a HyperNode's place in the arrays. `in_tier` has, by tier, the place of the HyperNode that a row is
    in; `leaves` has that of the lowest tier as a place in `leaf_names`. -1 is none."""

    def __init__(self, round: Round) -> None:
        network, table, resources = round.topology, round.cluster.table, round.resources
        self.index = {name: place for place, name in enumerate(network)}
        rows = {name: _rows(round, name) for name in self.index}
        self.in_tier = {tier: np.full(table.capacity, _NOBODY, dtype=np.int32) for tier in network.tiers}
        self._holds = np.zeros((table.capacity, len(self.index)), dtype=np.bool_)
        for name, place in reversed(self.index.items()):
            self.in_tier[network.tier(name)][rows[name]] = place
            self._holds[rows[name], place] = True
        self.leaf_names = list(self.index)
        self.leaves = self.in_tier[network.tiers[0]]
        self._idle = {name: _sum(resources.idle, at) for name, at in rows.items()}
        self._future = {name: self._idle[name] + _sum(resources.releasing, at) for name, at in rows.items()}
        for name, at in rows.items():
            self._future[name].subtract(_sum(resources.pipelined, at))
        self._allocatable = {name: _sum(resources.allocatable, at) for name, at in rows.items()}
        names = set(resources.allocatable)
        self._room = {r: np.array([self._allocatable[name].get(r) for name in self.index]) for r in names}
        self._used = {r: np.array([resources.used[r][rows[name]].sum() for name in self.index]) for r in names}

    def has_room(self, name: str, need: Amounts, purpose: Purpose) -> bool:
        """Whether a HyperNode as a whole has room, or could be given it."""
        if purpose is Purpose.EVICT:
            return need.less_equal(self._allocatable[name])
        return need.less_equal(self._idle[name]) or need.less_equal(self._future[name])

    def filled(self, request: Amounts, weights: Mapping[str, int]) -> NDArray[np.float64]:
        """How full each HyperNode would be with a request, 0 where it does not fit."""
        count = len(self.index)
        score, too_small = np.zeros(count, dtype=np.float64), np.zeros(count, dtype=np.bool_)
        weighed = 0
        for name in request.names():
            weight = weights.get(name)
            if weight is None:
                continue
            weighed += weight
            room = self._room.get(name, np.zeros(count, dtype=np.float64))
            used = self._used.get(name, np.zeros(count, dtype=np.float64)) + request.get(name)
            too_small |= used > room
            score += weight * np.divide(used, room, out=np.zeros_like(score), where=room > 0)
        if weighed <= 0:
            return np.zeros(count, dtype=np.float64)
        score /= weighed
        score[too_small] = 0.0
        return score

    def use(self, task: Task, sign: float) -> None:
        """Count a task that comes to its row, or leaves it."""
        if task.row < 0:
            return
        for name, amount in task.request.items():
            used = self._used.get(name)
            if used is None:
                used = self._used[name] = np.zeros(len(self.index), dtype=np.float64)
            used += sign * amount * self._holds[task.row]


def _rows(round: Round, name: str) -> NDArray[np.int32]:
    row_of = round.cluster.table.row_of
    return np.array([row_of[node] for node in round.topology.nodes_of(name) if node in row_of], dtype=np.int32)


def _sum(columns: Mapping[str, NDArray[np.float64]], rows: NDArray[np.int32]) -> Amounts:
    total = Amounts()
    for name, column in columns.items():
        total.set(name, float(column[rows].sum()))
    return total
