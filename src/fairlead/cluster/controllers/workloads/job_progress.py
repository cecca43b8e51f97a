"""How far a Job has come: which pods ended well, which did not, and what its status says of it. Pure bookkeeping.

The original keeps a finalizer on every pod of a Job until it is counted. Here a Tally remembers the uids it has
counted; what was counted before this process began stands in the Job's status. Invariant: no pod counts twice, and a
pod that the Job itself dismissed (it was suspended, shrunk or had succeeded) does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import with_condition
from fairlead.core.model.times import timestamp

if TYPE_CHECKING:
    from fairlead.cluster.controllers.pod_facts import PodFact
    from fairlead.core.model.flow import Doc

_FIRST_DELAY, _LONGEST_DELAY = 10.0, 600.0
_MOST_INDEXES = 1_000_000


@dataclass(slots=True)
class FinishedPods:
    succeeded: set[str] = field(default_factory=set)  # uids
    failed: set[str] = field(default_factory=set)
    dismissed: set[str] = field(default_factory=set)  # deleted by the Job itself
    indexes: set[int] = field(default_factory=set)
    earlier: tuple[int, int] | None = None  # succeeded and failed pods of an earlier life
    failures_in_a_row: int = 0
    last_failure: float = 0.0

    def count(self, pod: PodFact, now: float, *, gone: bool) -> None:
        """Take in a pod's newest state; `gone` if it was its last."""
        if pod.uid in self.succeeded or pod.uid in self.failed:
            return
        if pod.phase == "Succeeded":
            self.succeeded.add(pod.uid)
            self.failures_in_a_row = 0
            if pod.index is not None:
                self.indexes.add(pod.index)
        elif pod.phase == "Failed" or ((pod.deleting or gone) and pod.uid not in self.dismissed):
            self.failed.add(pod.uid)
            self.failures_in_a_row += 1
            self.last_failure = max(self.last_failure, pod.finished_at if pod.finished_at is not None else now)

    def begin(self, status: Doc) -> None:
        """Take over what the status says of pods that are no longer there."""
        if self.earlier is None:
            self.indexes |= indexes_of(status.get("completedIndexes") or "")
            self.earlier = (
                max(0, (status.get("succeeded") or 0) - len(self.succeeded)),
                max(0, (status.get("failed") or 0) - len(self.failed)),
            )

    @property
    def successes(self) -> int:
        return len(self.succeeded) + (self.earlier or (0, 0))[0]

    @property
    def failures(self) -> int:
        return len(self.failed) + (self.earlier or (0, 0))[1]

    def next_attempt(self) -> float:
        """When a failed pod may be replaced: 10 s after the first failure in a row, then 20 s, ... 10 min."""
        if not self.failures_in_a_row:
            return float("-inf")
        return self.last_failure + min(_FIRST_DELAY * 2.0 ** min(self.failures_in_a_row - 1, 10), _LONGEST_DELAY)


def is_indexed(job: Doc) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_finished(job: Doc) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions)


def condition_of(type_: str, *, reason: str, message: str, now: float, holds: bool = True) -> Doc:
    return {
        "type": type_,
        "status": "True" if holds else "False",
        "lastProbeTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
        "reason": reason,
        "message": message,
    }


def put_condition(conditions: list[Doc], new: Doc) -> list[Doc]:
    """Set a condition unless it already says the same."""
    for old in conditions:
        if old["type"] == new["type"] and (old["status"], old.get("reason")) == (new["status"], new["reason"]):
            return conditions
    return with_condition(conditions, new)


def indexes_of(text: str) -> set[int]:
    """`1,3-5` as numbers, the first million of them: anybody who may write the status may write any range."""
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1)[: max(0, _MOST_INDEXES - len(indexes))])
    return indexes


def indexes_text(indexes: Iterable[int]) -> str:
    """Numbers as `1,3-5`; two neighbours are written one by one."""
    runs: list[tuple[int, int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return ",".join(_run_text(first, last) for first, last in runs)


def _run_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
