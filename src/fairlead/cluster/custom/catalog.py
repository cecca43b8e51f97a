"""Which defined kinds are served right now: the Registry follows every write of a definition.

A changed definition gives new kinds, because a kind never changes. Its objects then belong to the new stored kind;
their owner (commits.py) gets a Redefinition. A definition that is not established has a stored kind
as well, under which its objects stay, and serves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.cluster.custom.definitions import is_established, kinds_of, served_versions

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind, Registry


@dataclass(frozen=True, slots=True)
class DefinedKinds:
    """What one definition gives: its kinds, the stored one first, and those of them that are served."""

    spec: Doc
    established: bool
    kinds: tuple[Kind, ...]
    served: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Redefinition:
    """One definition's kinds before and after a write of it (None: it gave none, or gives none any more)."""

    name: str
    before: DefinedKinds | None
    after: DefinedKinds | None

    @property
    def old(self) -> Kind | None:
        """The kind under which the objects were kept."""
        return None if self.before is None else self.before.kinds[0]

    @property
    def new(self) -> Kind | None:
        """The kind to which the objects belong now."""
        return None if self.after is None else self.after.kinds[0]


class Catalog:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._defined: dict[str, DefinedKinds] = {}

    def follow(self, name: str, doc: Doc | None) -> Redefinition | None:
        """The definition of that name is now this one, or gone; None if that changes no kind."""
        before = self._defined.get(name)
        established = doc is not None and is_established(doc)
        if doc is not None and before is not None and (before.spec, before.established) == (doc["spec"], established):
            return None
        kinds = () if doc is None else tuple(kinds_of(doc))
        after = None
        if doc is not None and kinds:
            versions = served_versions(doc) if established else set()
            served = tuple(kind for kind in kinds if kind.version in versions)
            after = DefinedKinds(doc["spec"], established, kinds, served)
        if before is None and after is None:
            return None
        self._replace(name, before, after)
        return Redefinition(name, before, after)

    def undo(self, change: Redefinition) -> None:
        """Serve what was served before that change, which was the last one of its definition."""
        self._replace(change.name, change.after, change.before)

    def stored_kind(self, name: str) -> Kind | None:
        """The kind under which objects of this definition are kept."""
        found = self._defined.get(name)
        return None if found is None else found.kinds[0]

    def _replace(self, name: str, before: DefinedKinds | None, after: DefinedKinds | None) -> None:
        if before is not None:
            for kind in before.served:
                self._registry.remove(kind)
            del self._defined[name]
        if after is not None:
            self._defined[name] = after
            for kind in after.served:
                self._registry.add(kind)
