"""Work that waits for a gang: which simulated pods compute only while enough members of their group run.

A worker of an MPI or PyTorch job that runs beside too few others holds its node and computes nothing. A pod with the
annotation `fairlead.io/run-together: "4"`, or one whose family says so of its job (`Family.run_together`), works while
four pods of its group run. When fewer do its work stops, and the time that is left goes on when they are back. Members
that have succeeded count on, also after their deletion: they are done, and nobody waits for them.

Its group is the one that it names in the words of a family, or its controller's pods; `fairlead.io/run-together-as`
names one for pods that are no gang for the scheduler.

    starts ──▶ waits ──enough run──▶ works ──its time is over──▶ ends
                 ▲                     │
                 └──── fewer run ──────┘

Invariant: what is left of a pod's work stands in its condition from the first time that its work waits, so that a
kubelet that is restarted goes on with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import condition
from fairlead.cluster.kubelets.pod_status import running_since
from fairlead.core.family import brought
from fairlead.core.model.pod import group_key
from fairlead.core.model.times import seconds_of, timestamp

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

RUN_TOGETHER = "fairlead.io/run-together"
RUN_TOGETHER_AS = "fairlead.io/run-together-as"
WORKING = "fairlead.io/Working"
"""The condition of a pod whose work has waited for its gang: whether it works now, and what is left."""
_LEFT = re.compile(r"; (?:([0-9.]+) s|all) of its work (?:is|was) left")

Key = tuple[str, str]
RunTogether = Callable[["Doc", "DocView"], int]


@dataclass(slots=True)
class Work:
    """A pod's part in the work of its gang. `left` is the work that is left in seconds, None if it has no end; `since`
    is when the pod began to work, None while it waits; `shown` is what the pod's condition says."""

    gang: Key
    left: float | None
    since: float | None = None
    shown: str = ""

    @property
    def ends_at(self) -> float | None:
        return None if self.left is None or self.since is None else self.since + self.left

    def stop(self, now: float) -> None:
        if self.left is not None and self.since is not None:
            self.left = max(0.0, self.left - (now - self.since))
        self.since = None

    def begin_anew(self, run_time: float | None) -> None:
        """Forget what was done: the containers were started again."""
        self.left, self.since = run_time, None


@dataclass(slots=True)
class _Gang:
    needed: int
    members: dict[Key, bool] = field(default_factory=dict)  # whether each runs
    running: int = 0
    succeeded: int = 0

    @property
    def works(self) -> bool:
        return self.running + self.succeeded >= self.needed


class GangWork:
    """The gangs whose members work together, and how many of each run."""

    def __init__(self, jobs: DocView | None = None) -> None:
        """`jobs` has the objects by which families know which pods compute together; without it only annotations of
        pods say so, because a view of pods and nodes alone refuses to look up others."""
        self._gangs: dict[Key, _Gang] = {}
        self._jobs = jobs

    def join(self, key: Key, doc: Doc, run_time: float | None) -> Work | None:
        """The work of a pod that is new on its node; None if it works alone."""
        needed = _needed(doc, self._jobs)
        if needed <= 1:
            return None
        annotations = doc["metadata"].get("annotations") or {}
        name = key[0], annotations.get(RUN_TOGETHER_AS) or group_key(doc) or key[1]
        gang = self._gangs.setdefault(name, _Gang(needed))
        gang.needed = needed
        gang.members.setdefault(key, False)
        work = Work(name, run_time)
        _resume(work, doc)
        return work

    def count(self, key: Key, work: Work, *, runs: bool, succeeded: bool = False) -> Sequence[Key]:
        """Note whether a member runs; returns the members whose work begins or stops because of that."""
        gang = self._gangs.get(work.gang)
        ran = gang.members.get(key) if gang is not None else None
        if gang is None or ran is None or (ran == runs and not succeeded):
            return ()
        worked = gang.works
        gang.running += runs - ran
        gang.members[key] = runs
        if succeeded:
            gang.succeeded += 1
            del gang.members[key]
            self._forget_if_empty(work.gang)
        return tuple(gang.members) if gang.works != worked else ()

    def leave(self, key: Key, work: Work) -> Sequence[Key]:
        """Forget a member; returns the members whose work stops because of that."""
        others = self.count(key, work, runs=False)
        gang = self._gangs.get(work.gang)
        if gang is not None:
            gang.members.pop(key, None)
            self._forget_if_empty(work.gang)
        return others

    def turn(self, work: Work, now: float) -> bool:
        """Let a running pod work or wait as its gang does. Returns whether its condition is to say so: a gang that
        starts whole and stays whole writes none."""
        gang = self._gangs.get(work.gang)
        if gang is not None and gang.works:
            work.since = now if work.since is None else work.since
            return work.shown == "False"
        work.stop(now)
        return work.shown != "False"

    def condition(self, work: Work, now: float) -> Doc:
        """What a pod's condition says after its turn, and notes that it does."""
        gang = self._gangs[work.gang]
        work.shown = "False" if work.since is None else "True"
        enough = f"{gang.running + gang.succeeded} of {gang.needed} pods that work together run"
        left = "all of its work" if work.left is None else f"{work.left:.6f} s of its work"
        verb = "is left" if work.since is None else "was left"
        return {
            "type": WORKING,
            "status": work.shown,
            "lastTransitionTime": timestamp(now),
            "reason": "WaitsForGang" if work.since is None else "GangRuns",
            "message": f"{enough}; {left} {verb}",
        }

    def _forget_if_empty(self, name: Key) -> None:
        gang = self._gangs.get(name)
        if gang is not None and not gang.members:
            del self._gangs[name]


def _resume(work: Work, doc: Doc) -> None:
    """Take over what the document of a running pod says of its work. One without the condition has worked from its
    start; the message of the condition has the exact figure, and its time is that of the pod's last turn."""
    if (doc.get("status") or {}).get("phase") != "Running":
        return
    shown = condition(doc, WORKING)
    if shown is None:
        work.since = running_since(doc)
        return
    left = _LEFT.search(shown.get("message") or "")
    if left is not None and left[1]:
        work.left = float(left[1])
    work.shown = shown["status"]
    work.since = seconds_of(shown["lastTransitionTime"]) if work.shown == "True" else None


def _needed(doc: Doc, jobs: DocView | None) -> int:
    annotations = doc["metadata"].get("annotations")
    text = annotations.get(RUN_TOGETHER, "").strip() if annotations else ""
    if text.isascii() and text.isdigit():
        return int(text)
    return 0 if jobs is None else next(_of_families(doc, jobs), 0)


def _of_families(doc: Doc, jobs: DocView) -> Iterator[int]:
    for read in _readers():
        if needed := read(doc, jobs):
            yield needed


@cache
def _readers() -> tuple[RunTogether, ...]:
    return tuple(brought("run_together"))
