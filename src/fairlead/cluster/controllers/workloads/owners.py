"""KnownOwners: the objects that a workload controller looks after, by identity, and its queue of them.

Pods name their owner by uid, visits are of a name: an object that was made anew under the name of a deleted one is
another owner, and pods of the deleted one do not concern it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import identity, namespaced_name

if TYPE_CHECKING:
    from fairlead.cluster.controllers.workqueue import Workqueue
    from fairlead.core.model.flow import Change, Doc

Key = tuple[str, str]


class KnownOwners:
    def __init__(self, queue: Workqueue[Key]) -> None:
        self._queue = queue
        self._keys: dict[str, Key] = {}

    def observe(self, change: Change) -> str:
        """Keep and queue the object of a change, or forget it; returns its identity."""
        own = identity(change.doc)
        if change.gone:
            self._keys.pop(own, None)
        else:
            key = self._keys[own] = namespaced_name(change.doc)
            self._queue.add(key)
        return own

    def visit(self, own: str) -> bool:
        """Queue the owner with this identity. Returns whether it is known."""
        key = self._keys.get(own)
        if key is not None:
            self._queue.add(key)
        return key is not None

    def visit_all(self) -> None:
        for key in self._keys.values():
            self._queue.add(key)

    def knows(self, doc: Doc) -> bool:
        """Whether this document is of an object that is looked after, not of another one with its name."""
        return identity(doc) in self._keys
