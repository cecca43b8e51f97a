"""From documents to a Table: columns as the API server defines them, cells made here.

The columns of built-in kinds (names, types, formats, priorities) come from the generated table, so they are the
original's by construction; each group's module makes the cells in that order. Custom resources print what their
definitions say, and whatever has neither shows its name and age.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from fairlead.cluster.store.schema import schema_data
from fairlead.cluster.tables.columns import age, name
from fairlead.cluster.tables.core import CORE_CELLS
from fairlead.cluster.tables.custom import custom_cells
from fairlead.cluster.tables.others import OTHER_CELLS
from fairlead.cluster.tables.pods import pod_cells, pod_conditions
from fairlead.cluster.tables.workloads import WORKLOAD_CELLS
from fairlead.core.model.kinds import POD

if TYPE_CHECKING:
    from fairlead.cluster.tables.columns import Cells
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Definition, Kind

_CELLS: dict[Kind, Cells] = {POD: pod_cells, **CORE_CELLS, **WORKLOAD_CELLS, **OTHER_CELLS}
_NAME = ["Name", "string", "name", 0]
_DEFINED_NAME = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def render_table(kind: Kind, docs: Iterable[Doc], *, now: float, include_object: str, metadata: Doc) -> Doc:
    """The Table of these documents. `include_object` is None, Metadata or Object, as in the request."""
    cells = cells_of(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": column_definitions(kind),
        "rows": [_row(kind, cells(doc, now), doc, include_object) for doc in docs],
    }


def _key(kind: Kind) -> str:
    return f"{kind.api_version}/{kind.kind}"


def column_definitions(kind: Kind) -> list[Doc]:
    """The header: what each column is called, holds, and whether only `-o wide` shows it."""
    if kind.definition is None:
        return _built_in_columns(kind)
    return [_DEFINED_NAME, *map(_defined_column, _columns(kind.definition))]


def _columns(definition: Definition) -> tuple[Mapping[str, Any], ...]:
    return definition.columns or (_AGE,)


def _defined_column(column: Mapping[str, Any]) -> Doc:
    return {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format", ""),
        "description": column.get("description", ""),
        "priority": column.get("priority", 0),
    }


@cache
def _built_in_columns(kind: Kind) -> list[Doc]:
    data = schema_data()
    if _key(kind) in data["columns"]:
        rows = data["columns"][_key(kind)]
    else:
        printed = data["printed"].get(_key(kind)) or [{"name": "Age", "type": "date"}]
        rows = [_NAME, *([one["name"], one["type"], one.get("format", ""), one.get("priority", 0)] for one in printed)]
    return [
        {"name": title, "type": type_, "format": wire_format, "description": "", "priority": priority}
        for title, type_, wire_format, priority in rows
    ]


def cells_of(kind: Kind) -> Cells:
    """The maker of this kind's cells."""
    found = _CELLS.get(kind)
    if found is not None:
        return found
    if kind.definition is not None:
        columns = list(_columns(kind.definition))
        return lambda doc, now: custom_cells(doc, now, columns)
    printed = schema_data()["printed"].get(_key(kind))
    if printed:
        return lambda doc, now: custom_cells(doc, now, printed)
    return lambda doc, now: [name(doc), age(doc, now)]


def _row(kind: Kind, cells: list[Any], doc: Doc, include_object: str) -> Doc:
    row: Doc = {"cells": cells}
    if kind is POD and (conditions := pod_conditions(doc)):
        row["conditions"] = conditions
    match include_object:
        case "None":
            pass
        case "Object":
            row["object"] = doc
        case _:
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": doc["metadata"],
            }
    return row
