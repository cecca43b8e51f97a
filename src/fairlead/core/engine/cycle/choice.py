"""The choice among scored rows: the highest total, and among equals one at random, or kube-scheduler's heap order."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.engine.cycle.placement import Placed, ScoredRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.cycle.placement import ScoreSheet
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.results.constant import ConstantPart


class FirstOfEquals(Random):
    """A generator for which the first of several equals is always the one drawn."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0 if stop is None else start


def best_of_sheet(sheet: ScoreSheet, judged: int, rng: Random, *, heap_order: bool) -> Placed:
    """The best row of a sheet. `heap_order` breaks ties as kube-scheduler's heap does, else the generator does."""
    best = _first_in_heap(sheet.totals) if heap_order else _any_best(sheet.totals, rng)
    rest = sheet.totals.copy()
    rest[best] = np.iinfo(np.int64).min
    chosen, runner_up = sheet.candidate(best), sheet.candidate(int(rest.argmax()))
    return Placed(chosen.row, len(sheet.rows), judged, chosen, runner_up=runner_up, sheet=sheet)


def _first_in_heap(totals: NDArray[np.int64]) -> int:
    order = heap_preorder(len(totals))
    return int(order[totals[order].argmax()])


def _any_best(totals: NDArray[np.int64], rng: Random) -> int:
    ties = np.flatnonzero(totals == totals.max())
    return int(ties[rng.randrange(len(ties))] if len(ties) > 1 else ties[0])


def best_of_ranking(
    cycle: Cycle,
    ranked: NDArray[np.signedinteger[Any]],
    constant: ConstantPart,
    within: NDArray[np.int32] | None,
    *,
    feasible: int,
    judged: int,
) -> Placed:
    """The best row of a ranking, in which refused rows have -1 and to which all rows add the same constant. The ranking
    is written to and left as it was."""
    best = int(ranked.argmax())
    level = next_level = ranked.item(best)
    ties = (ranked == ranked[best]).nonzero()[0]  # a number of the array's own width is compared with sooner
    if len(ties) > 1:
        at = cycle.rng.randrange(len(ties))
        best, second = ties.item(at), ties.item(at - 1)
    else:
        ranked[best] = -1
        second = int(ranked.argmax())
        next_level, ranked[best] = ranked.item(second), level
    row, other = (best, second) if within is None else (within.item(best), within.item(second))
    chosen = ScoredRow(row, level + constant.offset, constant.scores_of(row))
    runner_up = ScoredRow(other, next_level + constant.offset, constant.scores_of(other))
    return Placed(row, feasible, judged, chosen, runner_up=runner_up)


@lru_cache(maxsize=64)
def heap_preorder(size: int) -> NDArray[np.intp]:
    """Positions of a binary heap over a list, in pre-order: the order in which kube-scheduler's heap prefers equals."""
    order: list[int] = []
    waiting = [0] if size else []
    while waiting:
        position = waiting.pop()
        order.append(position)
        waiting += [child for child in (2 * position + 2, 2 * position + 1) if child < size]
    return np.array(order, dtype=np.intp)
