"""What a CustomResourceDefinition that is being deleted takes along: its objects first, then itself.

A definition has a finalizer of ours. It is removed when no object of the defined kind is left, however the last one
went.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.cluster.custom.definitions import CLEANUP
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CUSTOM_RESOURCE_DEFINITION

if TYPE_CHECKING:
    from fairlead.cluster.custom.catalog import Catalog
    from fairlead.cluster.store.object_table import ObjectTable
    from fairlead.cluster.store.objects import Key
    from fairlead.cluster.store.verbs import VerbOutcome
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind


class DefinitionCleanup:
    """`delete` deletes one object; `change` performs a write of a definition."""

    def __init__(
        self,
        table: ObjectTable,
        catalog: Catalog,
        *,
        delete: Callable[[Kind, Key, Doc | None], None],
        change: Callable[[Write], object],
    ) -> None:
        self._table, self._catalog, self._delete, self._change = table, catalog, delete, change

    def follow(self, outcome: VerbOutcome) -> None:
        """To be called after every write: most have nothing to do with definitions."""
        kind, after = outcome.kind, outcome.after
        if kind is CUSTOM_RESOURCE_DEFINITION and after is not None:
            if "deletionTimestamp" in after["metadata"]:
                self._clear(after["metadata"]["name"])
        elif kind.definition is not None and after is None:
            self._release(kind.definition.name)

    def _clear(self, name: str) -> None:
        kind = self._catalog.stored_kind(name)
        if kind is not None:
            for record in self._table.records(kind):
                if "deletionTimestamp" not in record.doc["metadata"]:
                    self._delete(kind, record.key, None)
        self._release(name)

    def _release(self, name: str) -> None:
        """Remove the finalizer of a definition that is being deleted, if no object of its kind is left."""
        kind, record = self._catalog.stored_kind(name), self._table.find(CUSTOM_RESOURCE_DEFINITION, "", name)
        if record is None or (kind is not None and self._table.holds(kind)):
            return
        metadata = record.doc["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if "deletionTimestamp" in metadata and CLEANUP in finalizers:
            patch = {"metadata": {"finalizers": [one for one in finalizers if one != CLEANUP] or None}}
            self._change(Write(Verb.PATCH, CUSTOM_RESOURCE_DEFINITION, "", name, body=patch))
