"""Which defined kinds are served right now: the Registry and the Store follow every write of a definition.

A changed definition gives new kinds, because a kind never changes. Objects that are there move to the new stored kind
and take the form that its schema gives them; their versions stay. Who watches them is told to ask anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.cluster.custom.definitions import kinds_of, served_versions

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind, Registry

Move = Callable[["Kind", "Kind | None"], None]
"""Told when the objects of a stored kind belong to another one, or to none any more."""


class Catalog:
    def __init__(self, registry: Registry, move: Move) -> None:
        self._registry, self._move = registry, move
        self._kinds: dict[str, list[Kind]] = {}
        self._specs: dict[str, Doc] = {}

    def follow(self, name: str, doc: Doc | None) -> None:
        """The definition of that name is now this one, or gone."""
        wanted = [] if doc is None else kinds_of(doc)
        before = self._kinds.get(name, [])
        if doc is not None and before and wanted and self._specs.get(name) == doc["spec"]:
            return
        for kind in before:
            self._registry.remove(kind)
        self._kinds[name] = wanted
        if doc is not None:
            self._specs[name] = doc["spec"]
            served = served_versions(doc) if wanted else set()
            for kind in wanted:
                if kind.version in served:
                    self._registry.add(kind)
        if not wanted:
            del self._kinds[name]
        if before and (not wanted or before[0] is not wanted[0]):
            self._move(before[0], wanted[0] if wanted else None)

    def stored_kind(self, name: str) -> Kind | None:
        """The kind under which objects of this definition are kept."""
        found = self._kinds.get(name)
        return found[0] if found else None
