"""ReplyNews: which objects a controller knows from replies to its writes before the watch shows them.

A reply counts as an observation, so the same change arrives twice: with the reply and later with the watch, which may
show older states in between. ReplyNews drops what is old. For each object it keeps the newest version that a reply
brought, until the watch has reached it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc


class ReplyNews:
    def __init__(self) -> None:
        self.ahead: dict[str, int] = {}
        """By uid, the version that a reply brought before the watch did."""
        self.deleted: set[str] = set()
        """Uids of objects that a reply reported as deleted; the watch will show it."""
        self._deleted_by_watch: set[str] = set()
        """Uids of objects that the watch showed as deleted while writes were under way: their replies are old."""

    def is_gone(self, uid: str) -> bool:
        """Whether the watch has shown that the object is deleted, so that a reply about it is old."""
        return uid in self._deleted_by_watch

    def takes(self, uid: str, version: int) -> bool:
        """Note a document that a reply brought; False if the object is known to be deleted."""
        if uid in self._deleted_by_watch or uid in self.deleted:
            return False
        if self.ahead.get(uid, 0) < version:
            self.ahead[uid] = version
        return True

    def settled(self) -> None:
        """No write is under way: no reply about a deleted object can come."""
        self._deleted_by_watch.clear()

    def knows_deletion(self, uid: str, *, under_way: bool) -> bool:
        """The watch shows a deletion; returns whether a reply has reported it. `under_way` says whether replies are
        awaited."""
        self.ahead.pop(uid, None)
        if under_way:
            self._deleted_by_watch.add(uid)
        known = uid in self.deleted
        self.deleted.discard(uid)
        return known

    def knows(self, doc: Doc) -> bool:
        """The watch shows a document; returns whether a reply brought that version, or a newer one."""
        metadata = doc["metadata"]
        uid = metadata.get("uid", "")
        if uid in self.deleted:
            return True
        ahead = self.ahead.get(uid)
        if ahead is None:
            return False
        version = int(metadata.get("resourceVersion") or 0)
        if version >= ahead:
            del self.ahead[uid]
        return version <= ahead
