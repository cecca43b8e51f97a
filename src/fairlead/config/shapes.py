"""Strict decoding: a document against the shape it should have.

A shape says which fields there are and of which type. ShapeDecoder walks a document along it: it keeps what fits, drops
nulls, and notes what does not fit. All configuration files are decoded by it. Formats differ in the words for an
unknown field and a wrong type: those are a subclass's. Decoder has the words of Go's decoder.

Invariant: what `decode` returns has only fields that its shape names, each of the type it names, or the subclass was
called with what does not fit.
"""

from __future__ import annotations

import base64
import binascii
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fairlead.config.problems import CheckStage, ConfigProblems, Path, dotted, suggestion
from fairlead.core.model.durations import parse_duration


class Misfit(Exception):
    """A value that is not of the type; carries how Go's decoder calls it."""

    def __init__(self, found: str, wanted: str = "") -> None:
        super().__init__(found)
        self.found, self.wanted = found, wanted


class GoField(NamedTuple):
    """Where Go has the field: the struct, and the fields that lead to it."""

    owner: str
    trail: tuple[str, ...]


class WrongValue(ValueError):
    """A leaf that cannot be read, with what to write instead, and `within` the leaf where."""

    def __init__(self, message: str, hint: str = "", within: Path = ()) -> None:
        super().__init__(message)
        self.hint, self.within = hint, within


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. `read` returns the value, raises Misfit for a wrong type or ValueError for a wrong text."""

    go: str
    read: Callable[[Any], Any]
    zero: Any = None


@dataclass(frozen=True, slots=True)
class Listed:
    """`made` makes of the decoded items what the decoder returns."""

    item: Shape
    made: Callable[[list[Any]], Any] = list

    @property
    def go(self) -> str:
        return f"[]{self.item.go}"


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping with any names, whose values have one shape."""

    item: Shape

    @property
    def go(self) -> str:
        return f"map[string]{self.item.go}"


@dataclass(frozen=True, slots=True)
class ConfigStruct:
    """`embedded` names the Go struct through which a field is reached; `any_case` accepts names in any case; `made`
    makes of the decoded fields what the decoder returns."""

    go: str
    fields: Mapping[str, Shape]
    embedded: Mapping[str, str] = field(default_factory=dict)
    any_case: bool = False
    made: Callable[[dict[str, Any]], Any] = dict

    @property
    def name(self) -> str:
        return self.go.rpartition(".")[2]


Shape = Scalar | Listed | Mapped | ConfigStruct


def go_kind(value: Any) -> str:
    """What Go's JSON decoder calls a value."""
    for kinds, name in (((bool,), "bool"), ((int, float), "number"), ((str,), "string"), ((list,), "array")):
        if isinstance(value, kinds):
            return name
    return "object" if isinstance(value, dict) else "null"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Misfit(go_kind(value))
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Misfit(go_kind(value))
    return value


def _integer(bits: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Misfit(go_kind(value))
        if value != int(value) or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise Misfit(f"number {json.dumps(value)}")
        return int(value)

    return read


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit(go_kind(value))
    return value


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise Misfit(go_kind(value), "string")
    return parse_duration(value)


def _base64(value: Any) -> str:
    if not isinstance(value, str):
        raise Misfit(go_kind(value))
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


class ShapeDecoder(ABC):
    """Decodes one document (or a part of one) that lies at `at` in the file.

    This class is the walk along a shape, which is the same for every format. A subclass words what does not fit as its
    format does, and notes it or raises.
    """

    nulls_are_zero = True
    """Whether null in a list or a mapping is the zero of its type; else it is a value that does not fit."""

    def __init__(self, at: Path = ()) -> None:
        self._at = at

    def decode(self, shape: ConfigStruct, value: Any) -> Any:
        """What the document says; None if it is not a mapping, which is noted."""
        return self._any(shape, value, (), (), "")

    @abstractmethod
    def _unknown(self, path: Path, name: Any, known: Sequence[str]) -> None:
        """Note that a mapping has a field that its shape does not name."""

    @abstractmethod
    def _misfit(self, path: Path, shape: Shape, value: Any, field: GoField, misfit: Misfit) -> None:
        """Note that a value is of another type than its shape."""

    @abstractmethod
    def _wrong(self, path: Path, shape: Shape, error: ValueError) -> None:
        """Note that a leaf has the right type and still cannot be read."""

    def _names(self, value: Mapping[str, Any]) -> Iterable[str]:
        return value

    def _any(self, shape: Shape, value: Any, path: Path, trail: tuple[str, ...], owner: str) -> Any:
        try:
            if isinstance(shape, Scalar):
                return shape.read(value)
            if isinstance(shape, Listed):
                if not isinstance(value, list):
                    raise Misfit(go_kind(value))
                items = [self._item(shape.item, item, (*path, at), trail, owner) for at, item in enumerate(value)]
                return shape.made(items)
            if not isinstance(value, dict):
                raise Misfit(go_kind(value))
            if isinstance(shape, Mapped):
                return {name: self._item(shape.item, one, (*path, name), trail, owner) for name, one in value.items()}
            return self._struct(shape, value, path, trail)
        except Misfit as misfit:
            self._misfit((*self._at, *path), shape, value, GoField(owner, trail), misfit)
        except ValueError as error:
            self._wrong((*self._at, *path), shape, error)
        return None

    def _item(self, shape: Shape, value: Any, path: Path, trail: tuple[str, ...], owner: str) -> Any:
        """An item is never left out: null, or one that does not fit, is the zero of its type."""
        absent = value is None and self.nulls_are_zero
        found = None if absent else self._any(shape, value, path, trail, owner)
        if found is not None:
            return found
        if isinstance(shape, ConfigStruct):
            return shape.made({})
        return shape.zero if isinstance(shape, Scalar) else [] if isinstance(shape, Listed) else {}

    def _struct(self, shape: ConfigStruct, value: dict[str, Any], path: Path, trail: tuple[str, ...]) -> Any:
        result = {}
        for written in self._names(value):
            name = _known_name(shape, written)
            if name is None:
                self._unknown((*self._at, *path, written), written, tuple(shape.fields))
            elif value[written] is not None:
                via = (shape.embedded[name],) if name in shape.embedded else ()
                inner = self._any(
                    shape.fields[name], value[written], (*path, written), (*trail, *via, name), shape.name
                )
                if inner is not None:
                    result[name] = inner
        return shape.made(result)


class Decoder(ShapeDecoder):
    """Decodes with the words of Go's decoder. `wrap` puts the original's words about one misfit into their context."""

    def __init__(self, problems: ConfigProblems, at: Path = (), wrap: Callable[[str], str] = str) -> None:
        super().__init__(at)
        self._problems = problems
        self._wrap = wrap
        self.unknown: list[tuple[Path, str, str]] = []
        """Unknown fields: path within the document, name, suggestion. The caller reports them."""

    def _names(self, value: Mapping[str, Any]) -> Iterable[str]:
        return sorted(value)

    def _unknown(self, path: Path, name: Any, known: Sequence[str]) -> None:
        self.unknown.append((path[len(self._at) :], name, suggestion(name, known)))

    def _misfit(self, path: Path, shape: Shape, value: Any, field: GoField, misfit: Misfit) -> None:
        wanted = misfit.wanted or shape.go
        found = f"json: cannot unmarshal {misfit.found} into Go struct field"
        self._note(path, f"{found} {field.owner}.{'.'.join(field.trail)} of type {wanted}", _plain(wanted))

    def _wrong(self, path: Path, shape: Shape, error: ValueError) -> None:
        hint = "such as 10s, 1m30s or 500ms" if shape is DURATION else ""
        self._problems.note(CheckStage.TYPES, path, str(error), hint=hint, original=self._wrap(str(error)))

    def _note(self, path: Path, words: str, wanted: str) -> None:
        hint = f"wanted here: {wanted}"
        self._problems.note(CheckStage.TYPES, path, words, hint=hint, original=self._wrap(words))


def _known_name(shape: ConfigStruct, written: Any) -> str | None:
    if written in shape.fields:
        return str(written)
    if shape.any_case:
        return next((name for name in shape.fields if name.lower() == str(written).lower()), None)
    return None


def note_unknown_fields(decoder: Decoder, problems: ConfigProblems) -> None:
    for path, _, hint in decoder.unknown:
        words = f'unknown field "{dotted(path)}"'
        problems.note(CheckStage.STRICT, path, words, hint=hint, original=words)


def plain_text(value: Any) -> str:
    """A plain value as YAML would write it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


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
