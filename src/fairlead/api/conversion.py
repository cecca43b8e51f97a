"""One object, two shapes: Events of core/v1 and events.k8s.io/v1, and the versions of the scheduling group.

Both shapes of an Event keep the fields of the other under a `deprecated` name, so converting back and forth loses
nothing. PodGroup and Workload have the same fields in all their versions; only apiVersion changes. So it is for kinds
that users define, except that each version shows no more than its own schema knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.api.custom.structural import conformed
from fairlead.model.kinds import EVENT, EVENT_V1

if TYPE_CHECKING:
    from fairlead.model.flow import Doc
    from fairlead.model.kinds import Kind

_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_BACK = {new: old for old, new in _RENAMED.items()}


def convert(doc: Doc, source: Kind, target: Kind) -> Doc:
    """The document of `source` as `target` shows it; the same object when the two are one kind."""
    if source is target:
        return doc
    if source is EVENT and target is EVENT_V1:
        return _renamed(doc, _RENAMED, target)
    if source is EVENT_V1 and target is EVENT:
        return _renamed(doc, _BACK, target)
    if target.definition is not None:
        return conformed(target, doc)
    return {**doc, "apiVersion": target.api_version}


def _renamed(doc: Doc, names: dict[str, str], target: Kind) -> Doc:
    return {names.get(key, key): value for key, value in doc.items()} | {"apiVersion": target.api_version}
