"""The paths that a rule may name as the place of its complaint: fields and keys of the schema below it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
_STEP = re.compile(r"\.([^.\[\]']+)|\['((?:\\.|[^'\\])*)'\]")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def field_path(schema: Schema, text: str) -> str | None:
    """A path as problems write it (`a.b[key]`), None if the schema has no such place."""
    found, at = "", 0
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        at = step.end()
        name = step[1]
        if name is None:
            if any(one not in _ESCAPES for one in _ESCAPE.findall(step[2])):
                return None
            name = _ESCAPE.sub(lambda escape: _ESCAPES[escape[1]], step[2])
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        inner = properties.get(name) if properties else others
        if not isinstance(inner, Mapping):
            return None
        found += (f".{name}" if found else name) if properties else f"[{name}]"
        schema = inner
    return found
