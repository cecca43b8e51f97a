"""Transitions: the moves of an entry into the active, the backoff or the unschedulable queue, and what they count.

Every move into the active or the backoff queue passes the gates (PreEnqueue) first; an entry that a gate refuses is
parked instead. Where no entry leaves its backoff early, the gates are passed after the backoff. The Backlog decides
which move an entry makes; it is carried out here, so that gates and counters cannot be forgotten.

Invariant: `blamed` is the sum, over all entries in the queues, of the plugins that the entry blames.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fairlead.core.engine.queue.entry import Entry, LastRefusal, QueueName
from fairlead.core.engine.queue.requeue import Requeue
from fairlead.core.model.events import UNSCHEDULABLE_POD_ADD, UNSCHEDULABLE_POD_UPDATE

if TYPE_CHECKING:
    from fairlead.core.engine.queue.gates import Gates
    from fairlead.core.engine.queue.nominator import Nominator
    from fairlead.core.engine.queue.queues import Queues
    from fairlead.core.engine.queue.tallies import QueueTallies

_ACTIVE = QueueName.ACTIVE.value
_NOMINATING = frozenset({UNSCHEDULABLE_POD_ADD.label, UNSCHEDULABLE_POD_UPDATE.label})
"""Labels under which a pod becomes active because its object was seen, with the node that its status nominates."""


class Transitions:
    def __init__(self, queues: Queues, gates: Gates, nominator: Nominator, tallies: QueueTallies) -> None:
        self._queues = queues
        self._gates = gates
        self._nominator = nominator
        self._tallies = tallies

    def requeue(self, entry: Entry, strategy: Requeue, label: str, now: float) -> bool:
        """Put an entry where a strategy leads. True if that is the active or the backoff queue."""
        if strategy is Requeue.SKIP:
            self.park(entry, label)
            return False
        if strategy is Requeue.AFTER_BACKOFF and self._queues.backoff.backoff.lasts(entry, now):
            return self._to_backoff(entry, label)
        return self.to_active(entry, label, now)

    def to_active(self, entry: Entry, label: str, now: float, *, admitted: bool = False) -> bool:
        """Put an entry into the active queue if its gates are open. An entry from backoff was `admitted` there."""
        if not admitted and not self.admit(entry):
            self.park(entry, label)
            return False
        if entry.first_attempt is None:
            entry.first_attempt = now
        self._remove_namesake(entry)
        self._queues.put_active(entry)
        self._tallies.incoming[_ACTIVE, label] += 1
        if label in _NOMINATING:
            self._nominator.observe(entry.pod)
        return True

    def _to_backoff(self, entry: Entry, label: str) -> bool:
        if self._queues.backoff.backoff.early and not self.admit(entry):
            self.park(entry, label)
            return False
        self._queues.put_backoff(entry)
        self._tallies.incoming[QueueName.BACKOFF.value, label] += 1
        return True

    def park(self, entry: Entry, label: str) -> None:
        """Put an entry into the unschedulable queue, where it waits for an event."""
        present = self._queues.get(entry.key)
        if present is not None and present is not entry and present.uid == entry.uid:
            self._count_blame(entry, -1)
            return
        self._remove_namesake(entry)
        if entry.place is not QueueName.PARKED:
            self._tallies.incoming[QueueName.PARKED.value, label] += 1
        self._queues.park(entry)

    def _remove_namesake(self, entry: Entry) -> None:
        """Remove a waiting pod of the same namespace and name: it was deleted, but its deletion was not seen."""
        present = self._queues.get(entry.key)
        if present is not None and present is not entry:
            self.remove(present)

    def remove(self, entry: Entry) -> None:
        """Take an entry out of the queues, and what it blames out of the gauge."""
        if entry.blamed:
            self._count_blame(entry, -1)
        self._queues.remove(entry)

    def admit(self, entry: Entry) -> bool:
        """Ask the gates about an entry; a refusal is written into the entry."""
        refusal = self._gates.ask(entry)
        if refusal is None:
            if entry.gated:
                entry.refusal = entry.refusal._replace(message="")
            entry.gated_by = ""
            return True
        if refusal.plugin not in entry.blamed:
            self._tallies.blamed[refusal.plugin, entry.pod.scheduler_name] += 1
        blamed, pending, _ = entry.refusal
        entry.refusal = LastRefusal(blamed | {refusal.plugin}, pending, refusal.message)
        entry.gated_by = refusal.plugin
        return False

    def count_blame(self, entry: Entry) -> None:
        """Count the plugins that an entry blames, before it comes back into a queue after an attempt."""
        self._count_blame(entry, 1)

    def _count_blame(self, entry: Entry, change: int) -> None:
        for plugin in entry.blamed:
            key = (plugin, entry.pod.scheduler_name)
            self._tallies.blamed[key] += change
            if not self._tallies.blamed[key]:
                del self._tallies.blamed[key]

    def check(self) -> None:
        """Recount the gauge; an AssertionError says that it is wrong."""
        blamed = Counter((plugin, entry.pod.scheduler_name) for entry in self._queues for plugin in entry.blamed)
        assert self._tallies.blamed == blamed, "the gauge of blamed plugins is not the sum of the entries"
