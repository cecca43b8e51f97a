"""Queues: the active, the backoff and the unschedulable queue, and which entry is in which.

The rules are in backlog.py and transitions.py; here are only the containers. Entries are known by namespace and name,
so a pod that was deleted and created anew under its name replaces its predecessor.

Invariant: an entry whose place is ACTIVE, BACKOFF or PARKED is in that queue and in no other, and the queues hold no
other entries. `check` recounts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.engine.queue.backoff import BackoffQueue, PodBackoff
from fairlead.core.engine.queue.entry import Entry, QueueName
from fairlead.core.engine.queue.heap import KeyedHeap, Order
from fairlead.core.engine.queue.parked import Parked

if TYPE_CHECKING:
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.pod import Pod

_ACTIVE, _BACKOFF, _PARKED, _NOWHERE = QueueName.ACTIVE, QueueName.BACKOFF, QueueName.PARKED, QueueName.NOWHERE
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


class ActiveOrder:
    """The order of the active queue: gangs that have started and lack members come first, then the QueueSort plugin
    decides, which all profiles share; without one, priority and then age."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._sorter = sorter_of(profiles)

    def reconfigure(self, profiles: Mapping[str, Profile]) -> None:
        self._sorter = sorter_of(profiles)

    def of(self, entry: Entry) -> Order:
        urgency = -1.0 if entry.gang is not None and entry.gang.is_half_bound else 0.0
        if self._sorter is None:
            return urgency, -entry.pod.priority, entry.since, entry.serial
        return (urgency, *self._sorter.queue_key(entry.pod, entry.since), entry.serial)


class Queues:
    def __init__(self, order: ActiveOrder, backoff: PodBackoff) -> None:
        self.order = order
        self._entries: dict[str, Entry] = {}
        self._keys: dict[str, str] = {}
        self.active: KeyedHeap[Entry] = KeyedHeap()
        self.backoff = BackoffQueue(backoff)
        self.parked = Parked()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def summary(self) -> str:
        """The lengths of the queues, in the words of kube-scheduler's debugger dump."""
        return f"activeQ:{len(self.active)}; backoffQ:{len(self.backoff)}; unschedulablePods:{len(self.parked)}"

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def by_uid(self, uid: str) -> Entry | None:
        key = self._keys.get(uid)
        return None if key is None else self._entries[key]

    def first(self) -> Entry | None:
        """The next entry: the first active one, else the first that may leave its backoff early."""
        return self.active.peek() or self.backoff.first()

    def put_active(self, entry: Entry) -> None:
        self._settle(entry, _ACTIVE)
        self.active.put(entry.key, self.order.of(entry), entry)

    def put_backoff(self, entry: Entry) -> None:
        self._settle(entry, _BACKOFF)
        self.backoff.put(entry, self.order.of(entry))

    def park(self, entry: Entry) -> None:
        self._settle(entry, _PARKED)
        self.parked.put(entry)

    def _settle(self, entry: Entry, place: QueueName) -> None:
        key = entry.key
        present = self._entries.get(key)
        if present is not None:
            self.remove(present)
        self._entries[key] = entry
        self._keys[entry.uid] = key
        entry.place = place

    def remove(self, entry: Entry) -> None:
        """Take an entry out of its queue."""
        key = entry.key
        if entry.place is _ACTIVE:
            self.active.remove(key)
        elif entry.place is _BACKOFF:
            self.backoff.remove(key)
        else:
            self.parked.remove(key)
        entry.place = _NOWHERE
        del self._entries[key]
        del self._keys[entry.uid]

    def replace_pod(self, entry: Entry, pod: Pod) -> None:
        """Give an entry a newer version of its pod, or another member that stands for its gang."""
        if pod is not entry.pod:
            del self._keys[entry.uid]
            entry.pod = pod
            self._keys[entry.uid] = entry.key
        self.reorder(entry)

    def reorder(self, entry: Entry) -> None:
        """Update an entry's order in its queue."""
        if entry.place is _ACTIVE:
            self.active.put(entry.key, self.order.of(entry), entry)
        elif entry.place is _BACKOFF:
            self.backoff.reorder(entry, self.order.of(entry))

    def counts(self) -> dict[str, int]:
        """The gauge `pending_pods`: pods by queue, every member of a gang counted; a pod with scheduling gates counts
        as gated."""
        found = {
            "active": len(self.active),
            "backoff": len(self.backoff),
            "unschedulable": len(self.parked) - self.parked.gated,
            "gated": self.parked.gated,
        }
        for entry in [entry for entry in list(self._entries.values()) if entry.gang is not None]:
            queue = "gated" if entry.gated else entry.place.value
            if queue not in found:  # just leaving, while another thread counts
                continue
            found[queue] -= 1
            for pod in entry.waiting():
                found["gated" if pod.gates else queue] += 1
        return found

    def check(self) -> None:
        """Check the invariant by recounting; raises AssertionError."""
        queues = ((_ACTIVE, self.active), (_BACKOFF, self.backoff), (_PARKED, self.parked))
        for place, queue in queues:
            listed = {entry.key: entry for entry in queue}
            assert len(listed) == len(queue), f"somebody is twice in {place.value}"
            placed = {entry.key: entry for entry in self._entries.values() if entry.place is place}
            assert listed == placed, f"{place.value} holds others than those whose place it is"
        assert self._keys == {entry.uid: key for key, entry in self._entries.items()}, "uids differ from entries"


def sorter_of(profiles: Mapping[str, Profile]) -> Plugin | None:
    """The plugin that orders the active queue; all profiles share one."""
    return next((plugin for profile in profiles.values() for plugin in profile.at("queue_key")), None)
