"""Admission: the way of an object from a request to what is stored.

    create:  strategy ─▶ defaults ─▶ built-in mutating admission ─▶ validation
    update:  strategy ─▶ defaults ─▶ validation of the object, then of the step from the old one

Nothing here looks at a clock or writes anything; other objects (priority classes, runtime classes) are read through
the DocView. Invariant: what comes out is a new document; what went in is unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.api.admission import strategy

if TYPE_CHECKING:
    from fairlead.model.flow import Doc, DocView
    from fairlead.model.kinds import Kind


class Admission:
    """Defaults and rules for every kind; kinds without any pass as they are."""

    def __init__(self, view: DocView) -> None:
        self._view = view

    def create(self, kind: Kind, doc: Doc) -> Doc:
        """The object as it will be stored. Raises Invalid or Forbidden."""
        return strategy.prepare_create(kind, doc)

    def update(self, kind: Kind, new: Doc, old: Doc, subresource: str = "") -> Doc:
        """The new state as it will be stored. Raises Invalid or Forbidden."""
        if subresource == "status":
            return strategy.prepare_status(kind, new, old)
        return strategy.prepare_update(kind, new, old)
