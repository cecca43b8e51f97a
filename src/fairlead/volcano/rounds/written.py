"""WrittenStatuses: what rounds have written of groups, pods and queues, so that the next round does not write it again.

A round reads the cluster as the watch has shown it. The answer to a write, and the watch's word of it, can come later
than the next round; without a memory that round would find the old status and write the new one a second time, with an
Event for each. What is remembered of a status holds for one version of the object: when the watch shows another
version, what that one says counts, and a write that failed is forgotten.

A status that is still on the move is held back for some seconds. A gang whose pods are being created, a group whose
binds are on their way, a group whose pods start one after the other, and a queue whose jobs are placed would otherwise
be written once a round with the state of that moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from fairlead.volcano.kinds import VC_QUEUE
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.closing import said_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Write
    from fairlead.core.model.kinds import Kind
    from fairlead.volcano.rounds.closing import GroupReport

_REPEATED_AFTER = 30 * 60.0
"""Seconds after which an Event is emitted again although it says the same; the API server forgets Events in an hour."""
_QUIET = 2.0
"""Seconds for which numbers must stand before they are written, and between two writes of a queue's sums."""
_LONGEST_HELD = 30.0
"""Seconds after which numbers are written although they still change."""
_FEW = 1024
_ALLOCATED, _BINDING = TaskStatus.ALLOCATED, TaskStatus.BINDING
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""

_Key = tuple[str, ...]


class _Moving(NamedTuple):
    """Numbers of a group, since when they are so, and since when they are held back, if they are."""

    numbers: tuple[object, ...]
    changed_at: float
    held_since: float | None


class WrittenStatuses:
    def __init__(self) -> None:
        self._statuses: dict[_Key, tuple[str, object]] = {}
        self._events: dict[_Key, tuple[str, float]] = {}
        self._moving: dict[str, _Moving] = {}
        self._summed: dict[str, float] = {}  # queue -> when its sums were written
        self.holding = False
        """Whether the last round held something back, so that another one has to come."""

    # ---- statuses ----

    def is_new(self, kind: Kind, namespace: str, name: str, *, version: str, said: object) -> bool:
        """Whether a status was not written yet to this version of an object. It is taken as written from now on."""
        key, entry = (kind.kind, namespace, name), (version, said)
        if self._statuses.get(key) == entry:
            return False
        self._statuses[key] = entry
        return True

    def is_new_sum(self, queue: str, *, version: str, said: object, now: float) -> bool:
        """Whether the sums of a queue are to be written now: they are new, and the last ones were not written a moment
        ago."""
        if self._statuses.get((VC_QUEUE.kind, "", queue)) == (version, said):
            return False
        if now - self._summed.get(queue, float("-inf")) < _QUIET:
            self.holding = True
            return False
        self._summed[queue] = now
        return self.is_new(VC_QUEUE, "", queue, version=version, said=said)

    def failed(self, write: Write) -> None:
        """The API refused a status, or it was never sent: the next round may write it again."""
        self._statuses.pop((write.kind.kind, write.namespace, write.name), None)

    # ---- what is on the move ----

    def is_gathering(self, report: GroupReport, now: float) -> bool:
        """Whether pods of a gang that is too small came a moment ago. A later round will know better what to say of it
        and of them."""
        job = report.job
        return len(job.tasks) < job.min_available and self._moves(report, ("pods", len(job.tasks)), now)

    def is_binding(self, report: GroupReport, now: float) -> bool:
        """Whether binds are on their way that make a group Running: its phase and its conditions are one write then."""
        job = report.job
        on_the_way = job.counts.of(_ALLOCATED) + job.counts.of(_BINDING)
        starts = report.phase == "Inqueue" and on_the_way > 0 and job.scheduled + on_the_way >= job.min_available
        return report.changed and starts and self._moves(report, ("binding",), now)

    def is_counting(self, report: GroupReport, now: float) -> bool:
        """Whether nothing but the numbers of a group's pods differs from its status, and they still change."""
        stands = said_of(report.conditions) == said_of(report.job.group.conditions)
        return report.changed and stands and self._moves(report, ("counts", *report.counted), now)

    def _moves(self, report: GroupReport, numbers: tuple[object, ...], now: float) -> bool:
        """Whether numbers changed a moment ago; not for ever, and not if the phase is to be written."""
        group = report.job.group
        known = self._moving.get(group.uid)
        held_since = known.held_since if known is not None and known.held_since is not None else now
        changed_at = known.changed_at if known is not None and known.numbers == numbers else now
        moves = report.phase == group.phase and now - changed_at < _QUIET and now - held_since < _LONGEST_HELD
        self._moving[group.uid] = _Moving(numbers, changed_at, held_since if moves else None)
        self.holding |= moves
        return moves

    # ---- events ----

    def is_news(self, uid: str, kind: str, reason: str, note: str, now: float) -> bool:
        """Whether an Event about a group says what was not emitted lately. What is emitted takes back what contradicts
        it: that a group is ready, and that it waits."""
        key = (uid, kind, reason)
        known = self._events.get(key)
        if known is not None and known[0] == note and now - known[1] < _REPEATED_AFTER:
            return False
        for other in (("Normal", "Scheduled"), ("Warning", "Unschedulable")):
            if other != (kind, reason):
                self._events.pop((uid, *other), None)
        self._events[key] = (note, now)
        return True

    # ---- forgetting ----

    def keep(self, groups: Iterable[str], pods: int) -> None:
        """Forget groups that are gone, and what is left of pods that are, now and then."""
        known = set(groups)
        if len(self._moving) > 2 * len(known) + _FEW:
            self._moving = {uid: entry for uid, entry in self._moving.items() if uid in known}
        if len(self._events) > 4 * len(known) + _FEW:
            self._events = {key: entry for key, entry in self._events.items() if key[0] in known}
        if len(self._statuses) > 2 * (len(known) + pods) + _FEW:
            self._statuses.clear()
