"""GateWatch: events that may wake gated pods, collected until somebody looks at the queue.

Most gated pods stay gated: a thousand pods that wait for their victims to leave would be asked about every deletion. So
events are only noted, and each gate is asked once before the queue is next read. For the few entries whose gate has
opened, the notes are then judged in order, as if each had been judged when it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.engine.queue.requeue import Requeue

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.engine.queue.gates import Gates
    from fairlead.core.engine.queue.hints import Hints
    from fairlead.core.engine.queue.parked import Parked
    from fairlead.core.engine.queue.requeue import Requeuing
    from fairlead.core.model.events import ClusterEvent


class Note(NamedTuple):
    event: ClusterEvent
    old: object
    new: object
    only: Callable[[Entry], bool] | None


class GateWatch:
    def __init__(self) -> None:
        self._notes: list[Note] = []
        self.noted_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._notes)

    def note(self, note: Note, now: float) -> None:
        self._notes.append(note)
        self.noted_at = now

    def opened(
        self, parked: Parked, gates: Gates, hints: Hints, requeuing: Requeuing
    ) -> Iterator[tuple[Entry, Requeue, str]]:
        """Entries whose gate has opened and that one of the noted events may help: how to requeue them, and the label
        of that event. The notes are then dropped."""
        notes, self._notes = self._notes, []
        listeners = [hints.listeners(note.event).plugins for note in notes]
        for entry in parked.behind(frozenset().union(*listeners)):
            if gates.is_shut(entry):
                continue
            for note, plugins in zip(notes, listeners, strict=True):
                if entry.gated_by not in plugins or (note.only is not None and not note.only(entry)):
                    continue
                strategy = requeuing.judge(entry, note.event, note.old, note.new)
                if strategy is not Requeue.SKIP:
                    yield entry, strategy, note.event.label
                    break
