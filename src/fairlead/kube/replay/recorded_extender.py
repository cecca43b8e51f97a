"""RecordedExtender: answers as an extender answered when a decision was recorded, so that it need not be there.

It is asked only in replays, about the one pod whose answers it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.extender import Extended, Victims
from fairlead.core.model.reasons import SUCCESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Doc, Write
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Status
    from fairlead.core.state.cluster import Cluster


class RecordedExtender:
    ignorable = False
    binds = False
    outside = None

    def __init__(self, answers: Doc) -> None:
        self.name = str(answers["name"])
        self._filter: Doc = answers.get("filter") or {}
        self._scores: Mapping[str, int] = answers.get("scores") or {}
        self._victims: Mapping[str, Doc] = answers.get("victims") or {}
        self.filters = "filter" in answers
        self.prioritizes = "scores" in answers
        self.preempts = "victims" in answers

    def interested(self, pod: Pod) -> bool:
        return True

    def filter(self, cycle: Cycle, rows: NDArray[np.int32]) -> Extended:
        name, kept = cycle.cluster.table.name, frozenset(self._filter["kept"])
        refused = self._filter.get("refused") or {}
        left = [row for row in rows.tolist() if name(row) in kept]
        said = {row: refused[name(row)] for row in rows.tolist() if name(row) in refused}
        return Extended(
            np.array(left, dtype=np.int32), {row: (one["message"], one["final"]) for row, one in said.items()}
        )

    def prioritize(self, cycle: Cycle, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        name = cycle.cluster.table.name
        return np.array([self._scores.get(name(row), 0) for row in rows.tolist()], dtype=np.int64)

    def preempt(self, cycle: Cycle, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        pods = {pod.uid: pod for offered in victims.values() for pod in offered.pods}
        return {
            node: Victims(tuple(pods[uid] for uid in said["pods"] if uid in pods), said["violations"])
            for node, said in self._victims.items()
            if node in victims
        }

    def bind(self, cycle: Cycle, row: int) -> NoErrand:
        return NoErrand()


class NoErrand:
    """Nothing is bound in a replay."""

    def start(self, now: float) -> list[Write]:
        return []

    def progress(self, now: float, cluster: Cluster, replies: object) -> Status:
        return SUCCESS

    def wake_at(self) -> float | None:
        return None
