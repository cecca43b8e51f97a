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
    return _complaint(doc, _CLUSTER)


def complaint_about_koordinator(doc: Mapping[str, Any]) -> str:
    """The first thing that is wrong with a recorded cluster of Koordinator's scheduler; empty if nothing is."""
    return _complaint(doc, _KOORDINATOR)


def complaint_about_round(doc: Mapping[str, Any]) -> str:
    """The first thing that is wrong with a recorded round of Volcano; empty if nothing is."""
    return _complaint(doc, _ROUND)


def complaint_about_story(doc: Mapping[str, Any]) -> str:
    """The first thing that is wrong with a recorded story of Volcano Jobs; empty if nothing is."""
    return _complaint(doc, _STORY)


def _complaint(doc: Mapping[str, Any], fields: Mapping[str, Check]) -> str:
    for name, check in fields.items():
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
_EXTENDER = _object({
    "name": _TEXT,
    "filter": _optional(_object({
        "kept": _list_of(_TEXT),
        "refused": _optional(_map_of(_object({"message": _TEXT, "final": _is(bool, "true or false")}))),
    })),
    "scores": _optional(_map_of(_is(int, "a whole number"))),
    "victims": _optional(_map_of(_object({"pods": _list_of(_TEXT), "violations": _is(int, "a whole number")}))),
})  # fmt: skip
_DECISION = _object({
    "pod": _POD,
    "node": _optional(_TEXT),
    "message": _optional(_TEXT),
    "feasible": _optional(_list_of(_TEXT)),
    "scores": _optional(_map_of(_map_of(_is(int, "a whole number")))),
    "nominated": _optional(_TEXT),
    "victims": _optional(_list_of(_TEXT)),
    "claims": _optional(_map_of(_TEXT)),
    "extenders": _optional(_list_of(_EXTENDER)),
})  # fmt: skip
_CLUSTER: Mapping[str, Check] = {
    "nodes": _list_of(_NODE),
    "objects": _optional(_list_of(_TYPED)),
    "existing": _list_of(_POD),
    "waiting": _optional(_list_of(_POD)),
    "decisions": _list_of(_DECISION),
}

_KOORDINATOR: Mapping[str, Check] = {
    "config": _is(Mapping, "an object"),
    "gates": _optional(_map_of(_is(bool, "true or false"))),
    "nodes": _list_of(_NODE),
    "objects": _list_of(_TYPED),
    "existing": _list_of(_POD),
    "decisions": _list_of(_object({
        "step": _is(int, "a whole number"),
        "deleted": _optional(_list_of(_optional(_TEXT))),
        "object": _optional(_TYPED),
        "pod": _optional(_POD),
        "reservation": _optional(_TYPED),
        "node": _optional(_TEXT),
        "message": _optional(_TEXT),
        "scores": _optional(_map_of(_map_of(_is(int, "a whole number")))),
        "annotations": _optional(_is(Mapping, "an object")),
        "victims": _optional(_list_of(_TEXT)),
    })),
}  # fmt: skip

_LISTED = _optional(_list_of(_object({"metadata": _NAMED})))
_STEP = _object({
    **{name: _optional(_TEXT) for name in ("action", "do", "pod", "node", "for", "overused")},
    "scores": _optional(_map_of(_is((int, float), "a number"))),
})  # fmt: skip
_CONDITION = _object({"type": _TEXT, "status": _TEXT, "reason": _optional(_TEXT), "message": _optional(_TEXT)})
_GROUP = _object({"phase": _optional(_TEXT), "conditions": _optional(_list_of(_CONDITION))})
_AFTER = _object({
    "binds": _optional(_map_of(_TEXT)),
    "evicted": _optional(_list_of(_TEXT)),
    "unschedulable": _optional(_map_of(_optional(_TEXT))),
    "podgroups": _map_of(_GROUP),
})  # fmt: skip
_ROUND: Mapping[str, Check] = {
    "conf": _TEXT,
    "nodes": _list_of(_NODE),
    "pods": _list_of(_POD),
    "queues": _LISTED,
    "podgroups": _LISTED,
    "hypernodes": _LISTED,
    "steps": _list_of(_STEP),
    "after": _AFTER,
}

_STORY: Mapping[str, Check] = {
    "namespace": _TEXT,
    "steps": _list_of(_object({
        "do": _TEXT,
        "object": _optional(_object({"kind": _TEXT, "metadata": _is(Mapping, "an object")})),
        "pods": _optional(_list_of(_TEXT)),
        "after": _optional(_is(Mapping, "an object")),
    })),
}  # fmt: skip
