"""The step of an object from one state to another, as each version of its kind sees it.

An entry of managedFields names fields as they are called in the version in which its manager wrote, and it stays so
when others write in other versions. What a write changes for such an entry is found by converting both states to the
entry's version and comparing them there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.cluster.ownership.fieldsets import NONE, Fields, FieldsDifference, compare
from fairlead.cluster.ownership.merging import without
from fairlead.cluster.ownership.shape import shape_of
from fairlead.cluster.store.conversion import convert
from fairlead.cluster.store.objects import private_copy
from fairlead.cluster.store.schema import decode

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

FindKind = Callable[[str, str], "Kind | None"]
"""The kind of an apiVersion and a name, if it is served."""


class VersionedStep:
    """From `old` to `new`, two documents of `kind`."""

    def __init__(self, kind: Kind, old: Doc, new: Doc, find: FindKind) -> None:
        self._kind, self._old, self._new, self._find = kind, old, new, find
        self._differences: dict[str, FieldsDifference | None] = {}

    def seen_in(self, api_version: str) -> FieldsDifference | None:
        """What changed, in the fields of that version; None if it is not served (any more)."""
        if api_version not in self._differences:
            kind = self._version(api_version)
            self._differences[api_version] = None if kind is None else self._compared(kind)
        return self._differences[api_version]

    def _compared(self, kind: Kind) -> FieldsDifference:
        if kind is not self._kind:
            # What is applied comes from outside, and only what has the right types can be converted.
            decode(self._kind, private_copy(self._new))
        old, new = (shown_as(doc, self._kind, kind) for doc in (self._old, self._new))
        return compare(old, new, shape_of(kind))

    def translated(self, fields: Fields, api_version: str) -> Fields:
        """Fields of the old state that are named in another version, as the kind of the two documents names them: what
        the old state loses when they are taken away there."""
        kind = self._version(api_version)
        if kind is None or kind is self._kind or not fields:
            return fields
        there = shown_as(self._old, self._kind, kind)
        rest = shown_as(without(there, shape_of(kind), fields, NONE), kind, self._kind)
        lost = compare(rest, self._old, shape_of(self._kind))
        return lost.added | lost.modified

    def _version(self, api_version: str) -> Kind | None:
        if api_version == self._kind.api_version:
            return self._kind
        found = self._find(api_version, self._kind.kind)
        return found if found is not None and found.storage is self._kind.storage else None


def shown_as(doc: Doc, source: Kind, target: Kind) -> Doc:
    """A document in another version; the stored version lies between any two."""
    return convert(convert(doc, source, source.storage), target.storage, target)
