"""A view that is never behind what its controller wrote.

On a real cluster the view is a mirror that follows the watch; the reply to a write comes sooner. A controller that read
an object without its own last write in it would undo half of that write, because it patches the difference.

Invariant: `get` returns the newest document that watch or replies showed, and None for an object that this controller
deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind

_Place = tuple["Kind", str, str]


class FreshView:
    """A DocView over another, with what replies showed on top until the watch shows it too."""

    def __init__(self, view: DocView) -> None:
        self._view = view
        self._written: dict[_Place, Doc] = {}
        self._deleted: dict[_Place, str] = {}  # -> uid
        self.is_ahead = False
        """Whether anything is kept that the watch has not shown."""

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        seen = self._view.get(kind, namespace, name)
        if not self.is_ahead:
            return seen
        place = (kind, namespace, name)
        written = self._written.get(place)
        if written is not None and (seen is None or _version(seen) < _version(written)):
            return written
        return None if seen is not None and seen["metadata"].get("uid") == self._deleted.get(place) else seen

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        return self._view.list(kind, namespace)

    def written(self, kind: Kind, doc: Doc) -> None:
        """A reply brought this document. An embedded Store has it already, and then nothing is kept."""
        place = _place(kind, doc)
        seen = self._view.get(*place)
        if seen is not doc and (seen is None or _version(seen) < _version(doc)):
            self._written[place] = doc
            self.is_ahead = True

    def deleted(self, kind: Kind, doc: Doc) -> None:
        """A reply showed that this object is gone."""
        place = _place(kind, doc)
        self._written.pop(place, None)
        if self._view.get(*place) is not None:
            self._deleted[place] = doc["metadata"].get("uid", "")
        self.is_ahead = bool(self._written or self._deleted)

    def seen(self, kind: Kind, doc: Doc, *, gone: bool) -> None:
        """The watch showed this object."""
        if not self.is_ahead:
            return
        place = _place(kind, doc)
        written = self._written.get(place)
        if written is not None and (gone or _version(doc) >= _version(written)):
            del self._written[place]
        if gone or self._deleted.get(place) != doc["metadata"].get("uid", ""):
            self._deleted.pop(place, None)
        self.is_ahead = bool(self._written or self._deleted)


def _place(kind: Kind, doc: Doc) -> _Place:
    metadata = doc["metadata"]
    return kind, metadata.get("namespace", ""), metadata["name"]


def _version(doc: Doc) -> int:
    return int(doc["metadata"].get("resourceVersion") or 0)
