"""Parked: the unschedulable queue, in which entries wait for an event, indexed by the plugins that refused them.

There may be thousands of events a second and tens of thousands of parked entries, and most events concern few of them.
So an event is judged only for entries that blame a plugin which listens to it.

Invariant: an entry is indexed under exactly the plugins it blamed when it was parked; park it again when they change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from fairlead.core.engine.queue.heap import KeyedHeap

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Entry

_GATE = "\0gate "
"""Prefix of the index of gated entries: by the plugin that gates them, not by other plugins that they blame."""


class Parked:
    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._by_plugin: dict[str, dict[str, Entry]] = {}
        self._filed_under: dict[str, tuple[str, ...]] = {}
        self._by_age: KeyedHeap[Entry] = KeyedHeap()
        self._gated: set[str] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    @property
    def gated(self) -> int:
        return len(self._gated)

    def put(self, entry: Entry) -> None:
        """Park an entry, or index a parked one anew."""
        key = entry.key
        self.remove(key)
        names = (_GATE + entry.gated_by,) if entry.gated else tuple(sorted(entry.blamed))
        self._entries[key] = entry
        self._filed_under[key] = names
        self._by_age.put(key, (entry.parked_since, entry.serial), entry)
        if entry.gated:
            self._gated.add(key)
        for name in names:
            self._by_plugin.setdefault(name, {})[key] = entry

    def remove(self, key: str) -> None:
        if self._entries.pop(key, None) is None:
            return
        self._by_age.remove(key)
        self._gated.discard(key)
        for name in self._filed_under.pop(key):
            entries = self._by_plugin[name]
            del entries[key]
            if not entries:
                del self._by_plugin[name]

    def blaming(self, plugins: Collection[str]) -> list[Entry]:
        """Entries that blame one of these plugins."""
        if not self._entries:
            return []
        found = [entries for name, entries in self._by_plugin.items() if name in plugins]
        if len(found) == 1:
            return list(found[0].values())
        return list({key: entry for entries in found for key, entry in entries.items()}.values())

    def behind(self, plugins: Collection[str]) -> list[Entry]:
        """Entries that one of these plugins gates."""
        return [entry for name in plugins for entry in self._by_plugin.get(_GATE + name, {}).values()]

    def gates_any(self, plugins: Collection[str]) -> bool:
        return bool(self._gated) and any(_GATE + name in self._by_plugin for name in plugins)

    def oldest(self) -> Entry | None:
        """The entry that has been parked longest."""
        return self._by_age.peek()

    def parked_before(self, moment: float) -> list[Entry]:
        """Take out all entries that have been parked since before a moment, oldest first."""
        found = []
        while (entry := self._by_age.peek()) is not None and entry.parked_since < moment:
            self._by_age.remove(entry.key)
            found.append(entry)
        return found
