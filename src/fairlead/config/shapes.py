"""Strict decoding: a document against the shape it should have, with the original's words for what does not fit.

A shape says which fields there are and of which type. Decoding keeps what fits, drops nulls, turns durations into
seconds, and notes what does not fit: an unknown field with the nearest known one, a wrong type as Go's decoder says it.

Invariant: what `Decoder.decode` returns has only fields that its shape names, each of the type it names, or the
problem list has grown.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.config.problems import CheckStage, ConfigProblems, Path, dotted, suggestion
from fairlead.core.model.durations import parse_duration


class _Misfit(Exception):
    """A value that is not of the type; carries how Go's decoder calls it."""

    def __init__(self, found: str, wanted: str = "") -> None:
        self.found, self.wanted = found, wanted


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. `read` returns the value, raises _Misfit for a wrong type or ValueError for a wrong text."""

    go: str
    read: Callable[[Any], Any]
    zero: Any = None


@dataclass(frozen=True, slots=True)
class Listed:
    item: Shape

    @property
    def go(self) -> str:
        return f"[]{self.item.go}"


@dataclass(frozen=True, slots=True)
class ConfigStruct:
    """`embedded` names the Go struct through which a field is reached; `any_case` accepts names in any case."""

    go: str
    fields: Mapping[str, Shape]
    embedded: Mapping[str, str] = field(default_factory=dict)
    any_case: bool = False

    @property
    def name(self) -> str:
        return self.go.rpartition(".")[2]


Shape = Scalar | Listed | ConfigStruct


def go_kind(value: Any) -> str:
    """What Go's JSON decoder calls a value."""
    for kinds, name in (((bool,), "bool"), ((int, float), "number"), ((str,), "string"), ((list,), "array")):
        if isinstance(value, kinds):
            return name
    return "object" if isinstance(value, dict) else "null"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Misfit(go_kind(value))
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Misfit(go_kind(value))
    return value


def _integer(bits: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _Misfit(go_kind(value))
        if value != int(value) or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise _Misfit(f"number {json.dumps(value)}")
        return int(value)

    return read


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Misfit(go_kind(value))
    return value


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise _Misfit(go_kind(value), "string")
    return parse_duration(value)


def _base64(value: Any) -> str:
    if not isinstance(value, str):
        raise _Misfit(go_kind(value))
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error:
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        wrong = next((at for at, char in enumerate(value) if char not in alphabet), len(value))
        raise ValueError(f"illegal base64 data at input byte {wrong}") from None
    return value


STRING = Scalar("string", _text, "")
BOOL = Scalar("bool", _boolean, False)
INT32 = Scalar("int32", _integer(32), 0)
INT64 = Scalar("int64", _integer(64), 0)
FLOAT32 = Scalar("float32", _number, 0.0)
DURATION = Scalar("v1.Duration", _duration, 0.0)
NANOSECONDS = Scalar("time.Duration", _integer(64), 0)
BYTES = Scalar("[]uint8", _base64, "")
ANYTHING = Scalar("runtime.RawExtension", lambda value: value)


def named_string(go: str) -> Scalar:
    return Scalar(go, _text, "")


class Decoder:
    """Decodes one document (or the args of one plugin) that lies at `at` in the file.

    `wrap` puts the original's words about one misfit into their context.
    """

    def __init__(self, problems: ConfigProblems, at: Path = (), wrap: Callable[[str], str] = str) -> None:
        self._problems = problems
        self._at = at
        self._wrap = wrap
        self.unknown: list[tuple[Path, str, str]] = []
        """Unknown fields: path within the document, name, suggestion. The caller reports them."""

    def decode(self, shape: ConfigStruct, value: Any) -> dict[str, Any]:
        return self._struct(shape, value, (), ())

    def _any(self, shape: Shape, value: Any, path: Path, trail: tuple[str, ...], owner: str) -> Any:
        try:
            if isinstance(shape, Scalar):
                return shape.read(value)
            if isinstance(shape, Listed):
                return self._list(shape, value, path, trail, owner)
            if not isinstance(value, dict):
                raise _Misfit(go_kind(value))
            return self._struct(shape, value, path, trail)
        except _Misfit as misfit:
            wanted = misfit.wanted or shape.go
            words = (
                f"json: cannot unmarshal {misfit.found} into Go struct field {owner}.{'.'.join(trail)} of type {wanted}"
            )
            hint = f"wanted here: {_plain(wanted)}"
            self._note(path, words, hint)
        except ValueError as error:
            self._note(path, str(error), "such as 10s, 1m30s or 500ms" if shape is DURATION else "")
        return None

    def _note(self, path: Path, words: str, hint: str) -> None:
        self._problems.note(CheckStage.TYPES, (*self._at, *path), words, hint=hint, original=self._wrap(words))

    def _list(self, shape: Listed, value: Any, path: Path, trail: tuple[str, ...], owner: str) -> list[Any]:
        if not isinstance(value, list):
            raise _Misfit(go_kind(value))
        return [self._list_item(shape.item, item, (*path, at), trail, owner) for at, item in enumerate(value)]

    def _list_item(self, shape: Shape, value: Any, path: Path, trail: tuple[str, ...], owner: str) -> Any:
        """An item is never left out: null, or one that does not fit, is the zero of its type."""
        found = None if value is None else self._any(shape, value, path, trail, owner)
        if found is not None:
            return found
        return {} if isinstance(shape, ConfigStruct) else shape.zero if isinstance(shape, Scalar) else []

    def _struct(self, shape: ConfigStruct, value: dict[str, Any], path: Path, trail: tuple[str, ...]) -> dict[str, Any]:
        result = {}
        for written in sorted(value):
            name = _known_name(shape, written)
            if name is None:
                self.unknown.append(((*path, written), written, suggestion(written, shape.fields)))
            elif value[written] is not None:
                via = (shape.embedded[name],) if name in shape.embedded else ()
                inner = self._any(
                    shape.fields[name], value[written], (*path, written), (*trail, *via, name), shape.name
                )
                if inner is not None:
                    result[name] = inner
        return result


def _known_name(shape: ConfigStruct, written: str) -> str | None:
    if written in shape.fields:
        return written
    if shape.any_case:
        return next((name for name in shape.fields if name.lower() == written.lower()), None)
    return None


def note_unknown_fields(decoder: Decoder, problems: ConfigProblems) -> None:
    for path, _, hint in decoder.unknown:
        words = f'unknown field "{dotted(path)}"'
        problems.note(CheckStage.STRICT, path, words, hint=hint, original=words)


def _plain(go: str) -> str:
    """A Go type for people."""
    if go.startswith("[]") and go != "[]uint8":
        return "a list"
    words = {
        "string": "a text in quotes",
        "bool": "true or false",
        "int32": "a whole number",
        "int64": "a whole number",
        "float32": "a number",
        "[]uint8": "base64 text",
    }
    if go in words:
        return words[go]
    return "a mapping" if go[:1] == "v" else "another type"
