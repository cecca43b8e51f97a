"""From documents to a Table. Kinds without columns of their own show Name and Age, as custom resources do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairlead.api.tables.columns import AGE, NAME, Column

if TYPE_CHECKING:
    from fairlead.model.flow import Doc
    from fairlead.model.kinds import Kind


def render_table(kind: Kind, docs: Iterable[Doc], *, now: float, include_object: str, metadata: Doc) -> Doc:
    """The Table of these documents. `include_object` is None, Metadata or Object, as in the request."""
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(columns, doc, now, include_object) for doc in docs],
    }


def columns_of(kind: Kind) -> tuple[Column, ...]:
    return (NAME, AGE)


def _row(columns: tuple[Column, ...], doc: Doc, now: float, include_object: str) -> Doc:
    row: dict[str, Any] = {"cells": [column.cell(doc, now) for column in columns]}
    match include_object:
        case "None":
            pass
        case "Object":
            row["object"] = doc
        case _:
            row["object"] = {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": doc["metadata"],
            }  # fmt: skip
    return row
