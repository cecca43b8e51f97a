"""Claimants: the pods on each row that may have devices, with their priorities.

Preemption reads it: evicting a pod of a lower priority may free devices, and a row without one is not worth a trial.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod

_NOBODY = 1 << 40
"""Above all priorities."""


class Claimants:
    def __init__(self) -> None:
        self._priorities: dict[int, dict[str, int]] = {}
        """By row and the pod's uid."""
        self._least: NDArray[np.int64] = np.full(64, _NOBODY, dtype=np.int64)
        """The lowest priority of each row."""
        self.lowest_priority = _NOBODY
        """No pod that may have devices has a lower one."""

    def add(self, pod: Pod, row: int) -> None:
        self._priorities.setdefault(row, {})[pod.uid] = pod.priority
        if row >= len(self._least):
            self._widen(row + 1)
        if pod.priority < self._least[row]:
            self._least[row] = pod.priority
            self.lowest_priority = min(self.lowest_priority, pod.priority)

    def remove(self, pod: Pod, row: int) -> None:
        pods = self._priorities.get(row)
        if pods is None or pods.pop(pod.uid, None) is None:
            return
        self._least[row] = min(pods.values(), default=_NOBODY)
        if not pods:
            del self._priorities[row]

    def rows_below(self, priority: int, high: int) -> NDArray[np.bool_]:
        """Of the first `high` rows, those with such a pod of a priority below this one."""
        if len(self._least) < high:
            self._widen(high)
        return self._least[:high] < priority

    def _widen(self, size: int) -> None:
        wider = np.full(max(size, 2 * len(self._least)), _NOBODY, dtype=np.int64)
        wider[: len(self._least)] = self._least
        self._least = wider
