"""Whether a recorded decision is one: everything that replaying reads has the type that it should have.

Recordings are made by other programs and travel far. What is not as described is said with its path, before anything is
decided, so that a damaged line is never taken for a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], str]
"""What is wrong with a value at a path; empty if nothing is."""


def complaint_about(doc: Mapping[str, Any]) -> str:
    """The first thing that is wrong with a recorded cluster; empty if nothing is."""
    for name, check in _CLUSTER.items():
        if found := check(doc.get(name), name):
            return found
    return ""


def _is(expected: type | tuple[type, ...], words: str) -> Check:
    def check(value: Any, path: str) -> str:
        wrong = not isinstance(value, expected) or (isinstance(value, bool) and expected is int)
        return f"'{path}' should be {words}" if wrong else ""

    return check


def _optional(check: Check) -> Check:
    return lambda value, path: "" if value is None else check(value, path)


def _list_of(check: Check) -> Check:
    def checked(value: Any, path: str) -> str:
        if not isinstance(value, list | tuple):
            return f"'{path}' should be a list"
        return next((found for i, item in enumerate(value) if (found := check(item, f"{path}[{i}]"))), "")

    return checked


def _map_of(check: Check) -> Check:
    def checked(value: Any, path: str) -> str:
        if not isinstance(value, Mapping):
            return f"'{path}' should be an object"
        return next((found for key, item in value.items() if (found := check(item, f"{path}.{key}"))), "")

    return checked


def _object(fields: Mapping[str, Check]) -> Check:
    def checked(value: Any, path: str) -> str:
        if not isinstance(value, Mapping):
            return f"'{path}' should be an object"
        return next(
            (found for name, check in fields.items() if (found := check(value.get(name), f"{path}.{name}"))), ""
        )

    return checked


_TEXT = _is(str, "a string")
_NAMED = _object({"name": _TEXT, "namespace": _optional(_TEXT), "uid": _optional(_TEXT)})
_NODE = _object({"metadata": _NAMED})
_TYPED = _object({"apiVersion": _TEXT, "kind": _TEXT, "metadata": _NAMED})
_POD = _object({"metadata": _NAMED, "spec": _is(Mapping, "an object")})
_DECISION = _object({
    "pod": _POD,
    "node": _optional(_TEXT),
    "message": _optional(_TEXT),
    "feasible": _optional(_list_of(_TEXT)),
    "scores": _optional(_map_of(_map_of(_is(int, "a whole number")))),
    "nominated": _optional(_TEXT),
    "victims": _optional(_list_of(_TEXT)),
    "claims": _optional(_map_of(_TEXT)),
})  # fmt: skip
_CLUSTER: Mapping[str, Check] = {
    "nodes": _list_of(_NODE),
    "objects": _optional(_list_of(_TYPED)),
    "existing": _list_of(_POD),
    "decisions": _list_of(_DECISION),
}
