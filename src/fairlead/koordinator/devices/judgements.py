"""Judgements: what is said of each class of nodes to pods that demand the same devices, as columns by class.

`verdicts` has 0 where the pod finds its devices and the number of a refusal where it does not; `scores` the score of
the node. The last entry of both stands for rows without devices (code -1). Classes are judged when they first occur.

Invariant: an entry equals what DeviceChoice says of any node of the class with nothing of a reservation's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.reasons import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.koordinator.devices.classes import DeviceClasses, NodeDeviceClass
    from fairlead.koordinator.devices.rows import Given

_UNKNOWN = -1
_KEPT_DEMANDS = 64
"""Judgements are kept for so many kinds of demands."""

Judge = Callable[["NodeDeviceClass"], "Given | Status"]
Rate = Callable[["NodeDeviceClass"], int]


class DemandJudgements:
    """What is known for one kind of demand."""

    def __init__(self, classes: DeviceClasses) -> None:
        self._classes = classes
        self._generation = classes.generation
        self._verdicts = _column(0)
        self._scores = _column(0)
        self.refusals: list[Status] = []
        """Refusals by their number in the column less one."""
        self._number_of: dict[Hashable, int] = {}

    def verdicts(self, codes: NDArray[np.int32], judge: Judge) -> NDArray[np.int64]:
        """For each code the number of a refusal, 0 if there is none."""
        self._widen()
        found = self._verdicts.take(codes)
        unknown = found == _UNKNOWN
        if unknown.any():
            for code in np.unique(codes[unknown]).tolist():
                said = judge(self._classes.listed[code])
                self._verdicts[code] = self._number(said) if isinstance(said, Status) else 0
            found = self._verdicts.take(codes)
        return found

    def scores(self, codes: NDArray[np.int32], rate: Rate) -> NDArray[np.int64]:
        """For each code the score of a node of that class."""
        self._widen()
        found = self._scores.take(codes)
        unknown = found == _UNKNOWN
        if unknown.any():
            for code in np.unique(codes[unknown]).tolist():
                self._scores[code] = rate(self._classes.listed[code])
            found = self._scores.take(codes)
        return found

    def _number(self, refusal: Status) -> int:
        number = self._number_of.get((refusal.code, refusal.reasons))
        if number is None:
            self.refusals.append(refusal)
            number = self._number_of[refusal.code, refusal.reasons] = len(self.refusals)
        return number

    def _widen(self) -> None:
        """Have an entry for each class, and one more for rows without devices."""
        count = len(self._classes.listed)
        if self._generation != self._classes.generation:
            self._generation = self._classes.generation
            self._verdicts, self._scores = _column(0), _column(0)
        if len(self._verdicts) <= count:
            self._verdicts = _widened(self._verdicts, 2 * count)
            self._scores = _widened(self._scores, 2 * count)


def _column(length: int) -> NDArray[np.int64]:
    column = np.full(length + 1, _UNKNOWN, dtype=np.int64)
    column[-1] = 0
    return column


def _widened(column: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    wider = _column(length)
    wider[: len(column) - 1] = column[:-1]
    return wider


class Judgements:
    """The judgements of one plugin, by kind of demand; the kind that was requested longest ago is forgotten first."""

    def __init__(self, classes: DeviceClasses) -> None:
        self.classes = classes
        self._by_demand: dict[Hashable, DemandJudgements] = {}

    def of(self, demand: Hashable) -> DemandJudgements:
        found = self._by_demand.pop(demand, None)
        if found is None:
            found = DemandJudgements(self.classes)
            if len(self._by_demand) >= _KEPT_DEMANDS:
                del self._by_demand[next(iter(self._by_demand))]
        self._by_demand[demand] = found
        return found
