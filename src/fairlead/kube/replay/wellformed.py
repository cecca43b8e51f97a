"""Whether a recorded decision is one: everything that replaying reads has the type that it should have.

Recordings are made by other programs and travel far. What is not as described is said with its path, before anything is
decided, so that a damaged line is never taken for a difference. This module has the parts of checks; each form of
recordings (forms.py) puts its own together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], str]
"""What is wrong with a value at a path; empty if nothing is."""


def complaint_about(doc: Mapping[str, Any], fields: Mapping[str, Check]) -> str:
    """The first thing that is wrong with a line of a recording; empty if nothing is."""
    return next((found for name, check in fields.items() if (found := check(doc.get(name), name))), "")


def is_a(expected: type | tuple[type, ...], words: str) -> Check:
    """A value of this type; `words` say what it should be."""

    def check(value: Any, path: str) -> str:
        wrong = not isinstance(value, expected) or (isinstance(value, bool) and expected is int)
        return f"'{path}' should be {words}" if wrong else ""

    return check


def optional(check: Check) -> Check:
    """A value that may be missing."""
    return lambda value, path: "" if value is None else check(value, path)


def list_of(check: Check) -> Check:
    """A list of such values."""

    def checked(value: Any, path: str) -> str:
        if not isinstance(value, list | tuple):
            return f"'{path}' should be a list"
        return next((found for i, item in enumerate(value) if (found := check(item, f"{path}[{i}]"))), "")

    return checked


def map_of(check: Check) -> Check:
    """An object with such values under any names."""

    def checked(value: Any, path: str) -> str:
        if not isinstance(value, Mapping):
            return f"'{path}' should be an object"
        return next((found for key, item in value.items() if (found := check(item, f"{path}.{key}"))), "")

    return checked


def object_of(fields: Mapping[str, Check]) -> Check:
    """An object with these fields and perhaps others."""

    def checked(value: Any, path: str) -> str:
        if not isinstance(value, Mapping):
            return f"'{path}' should be an object"
        return next(
            (found for name, check in fields.items() if (found := check(value.get(name), f"{path}.{name}"))), ""
        )

    return checked


TEXT = is_a(str, "a string")
NAMED = object_of({"name": TEXT, "namespace": optional(TEXT), "uid": optional(TEXT)})
NODE = object_of({"metadata": NAMED})
TYPED = object_of({"apiVersion": TEXT, "kind": TEXT, "metadata": NAMED})
POD = object_of({"metadata": NAMED, "spec": is_a(Mapping, "an object")})
