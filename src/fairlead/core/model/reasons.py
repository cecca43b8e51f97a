"""Why: the values that plugins answer with and users read.

A refusal is an answer, not an error. A `Status` is one plugin's answer about a pod as a whole (may it queue, may it be
prepared, reserved, permitted); a `Reject` is its answer about many nodes at once: a reason and the rows that it
refuses. `final` means that no eviction could help, kube-scheduler's UnschedulableAndUnresolvable.

The texts are those that users and tools match on, to the letter; `fit_message` composes them as kube-scheduler does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from fairlead.core.model.records import record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Code(IntEnum):
    """What a Status says. The numbers and their consequences for the queue are kube-scheduler's."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def rejected(self) -> bool:
        return self in _REJECTED

    @property
    def label(self) -> str:
        """The name that metrics and logs use."""
        return _CODE_LABELS[self]


_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})
_CODE_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


@record(frozen=True, slots=True)
class Status:
    """One plugin's answer about a pod. Success is usually said with None, which costs nothing."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Whether this is success."""
        return self.code is Code.SUCCESS

    @property
    def message(self) -> str:
        """The reasons as one text."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same answer, with the name of who gave it."""
        return self if self.plugin == plugin else Status(self.code, self.reasons, plugin)


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """A refusal that evicting pods could change."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """A refusal that no eviction could change."""
    return Status(Code.UNRESOLVABLE, reasons)


def failed(*reasons: str) -> Status:
    """Not a refusal but a failure: the attempt ends and is retried after a backoff."""
    return Status(Code.ERROR, reasons)


@record(frozen=True, slots=True)
class Reason:
    """Why a node is refused: by which plugin and in which words. An `error` is no refusal but a failure to judge the
    node (code Error): it fails the attempt if the node is looked at, and no eviction helps."""

    plugin: str
    text: str
    final: bool = False
    error: bool = False


@record(frozen=True, slots=True, eq=False)
class Reject:
    """A reason and the rows that it refuses: a mask aligned with the Nodes that were judged. `final`, where given,
    is a mask of the rows where no eviction could help, or a function that computes it, because a pod that finds a node
    needs no reasons; otherwise the reason says it for all."""

    reason: Reason
    rows: NDArray[np.bool_]
    final: NDArray[np.bool_] | Callable[[], NDArray[np.bool_]] | None = None

    def is_final(self) -> NDArray[np.bool_] | bool:
        """Whether no eviction could help: of each row, or of all."""
        if self.final is None:
            return self.reason.final
        return self.final() if callable(self.final) else self.final


@record(frozen=True, slots=True)
class Verdict:
    """What one plugin said of one node: its reasons, and whether they are final, so that no eviction could help. With
    `error` the plugin failed to judge the node, and the reason is the text of that failure."""

    plugin: str
    reasons: tuple[str, ...]
    final: bool
    error: bool = False

    @property
    def status(self) -> Status:
        return Status(Code.UNRESOLVABLE if self.final else Code.UNSCHEDULABLE, self.reasons, self.plugin)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why no node was found: the verdicts and how many nodes got each, or `early`, the status with which PreFilter
    ended the search. `absent` is the status of the nodes that PreFilter excluded, `absent_count` their number."""

    total: int
    counts: Mapping[Verdict, int]
    absent: Status | None = None
    absent_count: int = 0
    early: Status | None = None
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()

    @property
    def message(self) -> str:
        """The text of the PodScheduled condition, before anything that a rescue adds."""
        if self.early is not None:
            return fit_message(self.total, early=self.early.message)
        histogram: Counter[str] = Counter()
        for verdict, count in self.counts.items():
            for reason in verdict.reasons:
                histogram[reason] += count
        if self.absent is not None and self.absent_count:
            for reason in self.absent.reasons:
                histogram[reason] += self.absent_count
        return fit_message(self.total, histogram)


def fit_message(total: int, histogram: Mapping[str, int] | None = None, *, early: str = "") -> str:
    """`0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.`

    The entries are sorted as strings, so that `10 x` comes before `2 y`, as in the original.
    """
    text = f"0/{total} nodes are available:"
    if early:
        return f"{text} {early}."
    entries = sorted(f"{count} {reason}" for reason, count in (histogram or {}).items())
    return f"{text} {', '.join(entries)}." if entries else text


def with_rescue(message: str, rescue: str) -> str:
    """A refusal's message followed by what the attempts to make room said."""
    return f"{message} {rescue}" if rescue else message


def truncated(note: str, limit: int = 1024) -> str:
    """An event's note, cut as kube-scheduler cuts it."""
    if 4 * len(note) <= limit:  # no character takes more bytes
        return note
    raw = note.encode()
    if len(raw) <= limit:
        return note
    return raw[: limit - 4].decode(errors="ignore") + " ..."


def joined(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)
