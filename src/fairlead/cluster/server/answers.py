"""Objects and lists as the bytes of an answer: whole, as a Table, or metadata only.

A list of whole objects is put together from the stored bytes without decoding any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from fairlead.cluster.server.negotiation import AnswerForm
from fairlead.cluster.store.schema import is_custom
from fairlead.cluster.store.storeapi import bookmark
from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.cluster.store.objects import Record
    from fairlead.cluster.store.paging import Chunk
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_META = "meta.k8s.io/v1"


def encoded(store: Store, kind: Kind, record: Record) -> bytes:
    """A record in the version that the client speaks."""
    return record.raw if kind.stored_as is None else orjson.dumps(store.shown(kind, record, keep=False))


def one(store: Store, kind: Kind, doc: Doc, shape: AnswerForm, *, include: str = "") -> bytes:
    """The answer that holds one object."""
    match shape:
        case AnswerForm.TABLE:
            metadata = {"resourceVersion": doc["metadata"].get("resourceVersion", "")}
            return orjson.dumps(table(store, kind, [doc], metadata, include))
        case AnswerForm.METADATA:
            return orjson.dumps(_metadata_only(doc))
    return orjson.dumps(doc)


def many(store: Store, kind: Kind, part: Chunk, shape: AnswerForm, *, include: str = "") -> bytes:
    """The answer that holds a list."""
    metadata: Doc = {"resourceVersion": str(part.version)}
    if part.continue_:
        metadata["continue"] = part.continue_
    if part.remaining is not None:
        metadata["remainingItemCount"] = part.remaining
    if shape in (AnswerForm.OBJECT, AnswerForm.DISCOVERY):
        return _joined(store, kind, part, metadata)
    docs = [store.shown(kind, record, keep=False) for record in part.records]
    if shape is AnswerForm.TABLE:
        return orjson.dumps(table(store, kind, docs, metadata, include))
    items = [_metadata_only(doc) for doc in docs]
    return orjson.dumps(
        {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata, "items": items}
    )


class EventForm:
    """How a watch shows the objects of its events, bookmarks included: a client that requested metadata or Tables has
    no decoder for anything else. Only the first Table names its columns."""

    def __init__(self, store: Store, kind: Kind, shape: AnswerForm, *, include: str = "") -> None:
        self._store, self._kind, self._shape, self._include = store, kind, shape, include
        self._columns_named = False

    def record(self, record: Record) -> bytes:
        """The object of an ADDED, MODIFIED or DELETED event."""
        if self._shape not in (AnswerForm.METADATA, AnswerForm.TABLE):
            return encoded(self._store, self._kind, record)
        doc = self._store.shown(self._kind, record)
        if self._shape is AnswerForm.METADATA:
            return orjson.dumps(_metadata_only(doc))
        return self._table([doc], doc["metadata"]["resourceVersion"])

    def bookmark(self, version: int, *, initial: bool = False) -> bytes:
        """The object of a BOOKMARK event. In a Table it is a row with empty cells, which shows the metadata even to
        those who want no objects: an annotation there marks the end of the initial events."""
        doc = bookmark(self._kind, version, initial=initial)
        match self._shape:
            case AnswerForm.METADATA:
                return orjson.dumps(_metadata_only(doc))
            case AnswerForm.TABLE:
                return self._table([], str(version), doc if self._include == "Object" else _metadata_only(doc))
        return orjson.dumps(doc)

    def _table(self, docs: list[Doc], version: str, bare: Doc | None = None) -> bytes:
        result = table(self._store, self._kind, docs, {"resourceVersion": version}, self._include)
        if bare is not None:
            result["rows"].append({"cells": [None] * len(result["columnDefinitions"]), "object": bare})
        if self._columns_named:
            result["columnDefinitions"] = None
        self._columns_named = True
        return orjson.dumps(result)


def table(store: Store, kind: Kind, docs: list[Doc], metadata: Doc, include: str) -> Doc:
    from fairlead.cluster.tables import render_table

    if include not in ("", "None", "Metadata", "Object"):
        raise BadRequest(f"unrecognized includeObject value: {include!r}")
    return render_table(kind, docs, now=store.clock(), include_object=include or "Metadata", metadata=metadata)


def _joined(store: Store, kind: Kind, part: Chunk, metadata: Doc) -> bytes:
    """Stored bytes in a row. Items of built-in kinds leave out what the list's own kind says already."""
    head = orjson.dumps({"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": metadata})
    items = [encoded(store, kind, record) for record in part.records]
    if not is_custom(kind):
        said = f'{{"apiVersion":"{kind.api_version}","kind":"{kind.kind}",'.encode()
        items = [b"{" + item[len(said) :] if item.startswith(said) else item for item in items]
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _metadata_only(doc: Doc) -> Doc:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": doc["metadata"]}
