"""Objects and lists as the bytes of an answer: whole, as a Table, or metadata only.

A list of whole objects is put together from the stored bytes without decoding any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from fairlead.api.server.negotiation import AnswerForm
from fairlead.api.store.schema import is_custom
from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.api.store.objects import Record
    from fairlead.api.store.paging import Chunk
    from fairlead.api.store.store import Store
    from fairlead.model.flow import Doc
    from fairlead.model.kinds import Kind

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


def event_renderer(store: Store, kind: Kind, shape: AnswerForm, *, include: str = "") -> Callable[[Record], bytes]:
    """How a watch shows the objects of its events. Only the first Table names its columns."""
    if shape is not AnswerForm.TABLE:
        if shape is AnswerForm.METADATA:
            return lambda record: orjson.dumps(_metadata_only(store.shown(kind, record)))
        return lambda record: encoded(store, kind, record)
    first = True

    def render(record: Record) -> bytes:
        nonlocal first
        doc = store.shown(kind, record)
        result = table(store, kind, [doc], {"resourceVersion": doc["metadata"]["resourceVersion"]}, include)
        if not first:
            result["columnDefinitions"] = None
        first = False
        return orjson.dumps(result)

    return render


def table(store: Store, kind: Kind, docs: list[Doc], metadata: Doc, include: str) -> Doc:
    from fairlead.api.tables import render_table

    if include not in ("", "None", "Metadata", "Object"):
        raise BadRequest(f"unrecognized includeObject value: {include!r}")
    return render_table(kind, docs, now=store.now, include_object=include or "Metadata", metadata=metadata)


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
