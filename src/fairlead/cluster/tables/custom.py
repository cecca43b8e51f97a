"""Rows of custom resources: the printer columns of their definitions, read with the few JSONPath forms these use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.cluster.tables.columns import age_of, name

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_STEP = re.compile(r"\.([A-Za-z0-9_\-]+)|\[(\d+)\]|\['([^']+)'\]|\[\?\(@\.(\w+)==\"([^\"]*)\"\)\]")


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[tuple[str, ...], ...]:
    return tuple(match.groups(default="") for match in _STEP.finditer(path))


def value_at(doc: Any, path: str) -> Any:
    """What a printer column's path finds, or None."""
    found = doc
    for member, index, quoted, key, wanted in _steps(path):
        if key:
            candidates = found if isinstance(found, list) else ()
            found = next((one for one in candidates if isinstance(one, dict) and one.get(key) == wanted), None)
        elif index:
            found = found[int(index)] if isinstance(found, list) and len(found) > int(index) else None
        else:
            found = found.get(member or quoted) if isinstance(found, dict) else None
        if found is None:
            return None
    return found


def custom_cells(doc: Doc, now: float, columns: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Name, then what the columns find; dates as ages."""
    return [name(doc), *(_cell(value_at(doc, one["jsonPath"]), one["type"], now) for one in columns)]


def _cell(value: Any, kind: str, now: float) -> Any:
    if value is None:
        return None
    if kind == "date":
        return _age(value, now)
    if kind == "string":
        return value if isinstance(value, str) else _as_text(value)
    return value if isinstance(value, int | float) else None


def _age(value: Any, now: float) -> Any:
    try:
        return age_of(value, now)
    except (TypeError, ValueError):
        return "<invalid>"


def _as_text(value: Any) -> str:
    return orjson.dumps(value).decode()
