"""Which objects of a kind a list or a watch is about: namespace, labels, fields.

Field selectors are per kind, and only the fields that the real server indexes are understood: a selector on another
field is an error there (`field label not supported: X`) and here, so a script that works here works there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.client.port import EVERYTHING, Query
from fairlead.core.model import kinds
from fairlead.core.model.selectors import parse_label_selector
from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.cluster.store.objects import Record
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

Extract = Callable[["Doc"], str]
_PLAIN = re.compile(r"[\w./:-]+", re.ASCII)
"""Values that JSON spells as they are."""


def _path(*names: str, default: str = "") -> Extract:
    if len(names) == 2:
        return _path_of_two(*names, default)

    def extract(doc: Doc) -> str:
        value: Any = doc
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if type(value) is str:
            return value
        return default if value is None else _as_text(value)

    return extract


def _path_of_two(outer: str, inner: str, default: str) -> Extract:
    """The same for the usual paths. Every change of a pod is looked up by its phase, before and after."""

    def extract(doc: Doc) -> str:
        part = doc.get(outer)
        value: Any = part.get(inner) if isinstance(part, dict) else None
        if type(value) is str:
            return value
        return default if value is None else _as_text(value)

    return extract


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _paths(*fields: str, default: str = "") -> dict[str, Extract]:
    return {field: _path(*field.split("."), default=default) for field in fields}


def _event_source(doc: Doc) -> str:
    source = doc.get("source")
    component = source.get("component") if isinstance(source, dict) else ""
    return component or doc.get("reportingComponent") or ""


_EVERY_KIND = _paths("metadata.name", "metadata.namespace")
_EVENT_FIELDS = {
    **_paths(
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
        "reason", "reportingComponent", "type",
    ),
    "source": _event_source,
}  # fmt: skip
_POD_IP = _path("status", "podIP")
FIELDS: dict[Kind, Mapping[str, Extract]] = {
    kinds.POD: {
        **_paths(
            "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase",
            "status.nominatedNodeName", "status.podIP",
        ),
        **_paths("spec.hostNetwork", default="false"),
        "status.podIPs": _POD_IP,
    },
    kinds.NODE: _paths("spec.unschedulable", default="false"),
    kinds.NAMESPACE: {**_paths("status.phase"), "name": _path("metadata", "name")},
    kinds.SECRET: _paths("type"),
    kinds.EVENT: _EVENT_FIELDS,
    kinds.JOB: {"status.successful": _path("status", "succeeded", default="0")},
    kinds.REPLICATION_CONTROLLER: _paths("status.replicas", default="0"),
    kinds.SERVICE: _paths("spec.clusterIP", "spec.type"),
    kinds.RESOURCE_SLICE: _paths("spec.nodeName", "spec.driver"),
}  # fmt: skip
_RENAMED_IN_EVENTS_V1 = {
    "regarding.": "involvedObject.", "reportingController": "reportingComponent", "note": "message",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldTerm:
    extract: Extract
    value: str
    equal: bool
    mark: bytes = b""
    """What is in the bytes of every object whose field has the value; empty if nothing has to be."""

    @classmethod
    def of(cls, extract: Extract, value: str, *, equal: bool) -> FieldTerm:
        is_written_out = _PLAIN.fullmatch(value) and extract({}) != value
        return cls(extract, value, equal, value.encode() if is_written_out else b"")

    def matches(self, doc: Doc) -> bool:
        return (self.extract(doc) == self.value) == self.equal


def _stored_field(kind: Kind, field: str) -> str:
    """The name that a field has in the stored version of the kind."""
    if kind is kinds.EVENT_V1:
        for theirs, ours in _RENAMED_IN_EVENTS_V1.items():
            if field.startswith(theirs):
                return ours + field.removeprefix(theirs)
    return field


def _unescaped(text: str, selector: str) -> str:
    result, rest = "", text
    while rest:
        char, rest = rest[0], rest[1:]
        if char == "\\":
            if rest[:1] not in ("\\", ",", "="):
                raise BadRequest(f"invalid field selector: invalid escape in {selector!r}")
            char, rest = rest[0], rest[1:]
        result += char
    return result


def _split_terms(selector: str) -> list[str]:
    terms, current, escaped = [], "", False
    for char in selector:
        if char == "," and not escaped:
            terms.append(current)
            current = ""
        else:
            current += char
        escaped = char == "\\" and not escaped
    return [term for term in [*terms, current] if term]


def _field_term(kind: Kind, term: str, selector: str) -> FieldTerm:
    position = min((term.index(sign) for sign in ("!=", "=") if sign in term), default=-1)
    if position < 0:
        raise BadRequest(f"invalid selector: '{selector}'; can't understand '{term}'")
    sign = next(sign for sign in ("!=", "==", "=") if term.startswith(sign, position))
    field, value = term[:position], _unescaped(term[position + len(sign) :], selector)
    supported = FIELDS.get(kind.storage) or _defined_fields(kind)
    extract = supported.get(_stored_field(kind, field)) or _EVERY_KIND.get(field)
    if extract is None:
        raise BadRequest(_not_supported(kind, field))
    return FieldTerm.of(extract, value, equal=sign != "!=")


def _defined_fields(kind: Kind) -> Mapping[str, Extract]:
    """The fields that a definition lets lists choose by."""
    paths = kind.definition.selectable if kind.definition is not None else ()
    return _paths(*(path.removeprefix(".") for path in paths))


def _not_supported(kind: Kind, field: str) -> str:
    """Each kind with fields of its own has its own words in the original; all others share theirs."""
    if kind is kinds.JOB:
        return f'field label "{field}" not supported for Job'
    if kind is kinds.RESOURCE_SLICE:
        return f"field label not supported for {kind.api_version}, Kind={kind.kind}: {field}"
    if kind.storage in FIELDS:
        return f"field label not supported: {field}"
    if kind.definition is not None:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def parse_field_selector(kind: Kind, selector: str) -> tuple[FieldTerm, ...]:
    return tuple(_field_term(kind, term, selector) for term in _split_terms(selector))


class Selection:
    """A compiled question: does this record belong to the list or watch?"""

    __slots__ = ("_fields", "_labels", "_leaves_out", "everything", "kind", "namespace")

    def __init__(self, kind: Kind, query: Query = EVERYTHING) -> None:
        self.kind = kind
        self.namespace = query.namespace if kind.namespaced else ""
        self._fields = parse_field_selector(kind, query.field_selector) if query.field_selector else ()
        try:
            self._labels = parse_label_selector(query.label_selector) if query.label_selector else None
        except ValueError as error:
            raise BadRequest(str(error)) from error
        self.everything = self._labels is None and not self._fields
        extractors = {term.extract for term in self._fields}
        excluded = None if len(extractors) != 1 or any(term.equal for term in self._fields) else extractors.pop()
        self._leaves_out = (
            None
            if excluded is None or self._labels is not None or self.namespace
            else (excluded, frozenset(term.value for term in self._fields))
        )
        """Of a selector that only leaves out values of one field (pods that have ended): that field and the values."""

    def is_whole(self, kind: Kind) -> bool:
        """Whether all objects of a stored kind belong to it, in the version that is stored."""
        return self.everything and not self.namespace and self.kind is kind

    def chosen(self, records: list[Record]) -> list[Record]:
        """Those that belong to it. No record is asked if all do, as those of most watches of a controller."""
        if self.everything and not self.namespace:
            return records
        return [record for record in records if self.matches(record)]

    def sees(self, before: Record | None, after: Record | None) -> tuple[bool, bool]:
        """Whether two states of an object belong to it, neither of which needs to be there."""
        if self._leaves_out is None:
            return before is not None and self.matches(before), after is not None and self.matches(after)
        extract, values = self._leaves_out
        was = is_now = False
        if before is not None:
            doc = before.decoded
            was = self.matches(before) if doc is None else extract(doc) not in values
        if after is not None:
            doc = after.decoded
            is_now = self.matches(after) if doc is None else extract(doc) not in values
        return was, is_now

    def matches(self, record: Record) -> bool:
        doc = record.decoded
        if self.namespace and record.namespace != self.namespace:
            return False
        if self.everything:
            return True
        if doc is not None:
            return self._matches_document(doc, self._fields)
        # Decoding is what costs, so the bytes are asked first: those of a running pod hardly ever say "Failed".
        raw, undecided = record.raw, []
        for term in self._fields:
            if term.mark in raw:
                undecided.append(term)
            elif term.equal:
                return False
        return (self._labels is None and not undecided) or self._matches_document(record.doc, undecided)

    def _matches_document(self, doc: Doc, terms: Iterable[FieldTerm]) -> bool:
        if self._labels is not None and not self._labels.matches(doc["metadata"].get("labels") or {}):
            return False
        return all([term.matches(doc) for term in terms])  # noqa: C419, a generator costs more than what it saves
