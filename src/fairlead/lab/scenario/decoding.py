"""decode: a document into one of the records, by the types of its fields, and json_schema: those types for editors.

What does not fit goes into a ConfigProblems, so that a file is reported whole, with the line of each. Field names are
the records' in camel case. A number where a duration is wanted counts seconds.

Invariant: if nothing was noted, what is returned holds only values of the types that its records name.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from fairlead.config.problems import CheckStage, ConfigProblems, suggestion
from fairlead.config.problems import Path as FieldPath
from fairlead.config.shapes import (
    ANYTHING,
    ConfigStruct,
    GoField,
    Listed,
    Mapped,
    Misfit,
    Scalar,
    Shape,
    ShapeDecoder,
    WrongValue,
    plain_text,
)
from fairlead.core.model.durations import parse_duration
from fairlead.lab.scenario.records import Distribution

LAWS = {"exponential": 1, "uniform": 2, "lognormal": 2, "pareto": 2, "choice": 0, "constant": 1}
"""How many values each law has; 0 for any number but none."""


def camel(name: str) -> str:
    """`start_delay` as `startDelay`."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


class ScenarioDecoder(ShapeDecoder):
    """Decodes one document. Relative paths are taken from `base`."""

    nulls_are_zero = False

    def __init__(self, problems: ConfigProblems, base: Path) -> None:
        super().__init__()
        self._problems = problems
        self._base = base

    def record(self, cls: Any, value: Any) -> Any:
        """An instance of a record class; the default one where the document does not fit."""
        found = self.decode(self._struct_of(cls), value)
        return cls() if found is None else found

    def _struct_of(self, cls: Any) -> ConfigStruct:
        hints = get_type_hints(cls, include_extras=True)
        names = {camel(one.name): one.name for one in fields(cls)}
        shapes = {name: self._shape_of(hints[field]) for name, field in names.items()}
        return ConfigStruct(
            cls.__name__, shapes, made=lambda given: cls(**{names[name]: inner for name, inner in given.items()})
        )

    def _shape_of(self, wanted: Any) -> Shape:
        wanted = _not_none(wanted)
        if is_dataclass(wanted) and wanted is not Distribution:
            return self._struct_of(wanted)
        if get_origin(wanted) is Annotated:
            return _SECONDS
        if get_origin(wanted) is Literal:
            return Scalar("choice", partial(_choice, get_args(wanted)))
        if get_origin(wanted) is Sequence:
            return Listed(self._shape_of(get_args(wanted)[0]), made=tuple)
        if get_origin(wanted) is Mapping:
            return Mapped(_PLAIN)
        return Scalar("path", self._path, self._base) if wanted is Path else _LEAVES[wanted]

    def _path(self, value: Any) -> Path:
        if not isinstance(value, str):
            raise WrongValue("is not a path", "a text")
        return self._base / value

    def _unknown(self, path: FieldPath, name: Any, known: Sequence[str]) -> None:
        self._note(path, f'unknown field "{name}"', suggestion(name, known) or f"known: {', '.join(known)}")

    def _misfit(self, path: FieldPath, shape: Shape, value: Any, field: GoField, misfit: Misfit) -> None:
        if isinstance(shape, Listed):
            self._note(path, "is not a list", "for example [a, b], or one entry a line after -")
        else:
            known = f"fields: {', '.join(shape.fields)}" if isinstance(shape, ConfigStruct) else ""
            self._note(path, "is not a mapping", known or "for example {cpu: 2, memory: 4Gi}")

    def _wrong(self, path: FieldPath, shape: Shape, error: ValueError) -> None:
        within, hint = (error.within, error.hint) if isinstance(error, WrongValue) else ((), "")
        self._note((*path, *within), str(error), hint)

    def _note(self, path: FieldPath, message: str, hint: str = "") -> None:
        self._problems.note(CheckStage.TYPES, path, message, hint=hint, original="")


def _choice(allowed: Sequence[str], value: Any) -> Any:
    if value not in allowed:
        raise WrongValue(f"{value!r} is not known", f"one of {', '.join(allowed)}")
    return value


def _fitting(wanted: Any, words: str, value: Any) -> Any:
    """A value of a simple type. A number is a text, too."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {str: isinstance(value, str) or number, bool: isinstance(value, bool), float: number}
    if not (number and value == int(value) if wanted is int else fits[wanted]):
        raise WrongValue(f"{value!r} does not fit here", f"wanted: {words}")
    return plain_text(value) if wanted is str else wanted(value)


def _plain_value(value: Any) -> str:
    if isinstance(value, dict | list) or value is None:
        raise WrongValue("is not a plain value", "for example 2 or 4Gi")
    return plain_text(value)


def _seconds(value: Any) -> float:
    seconds = _seconds_of(value)
    if seconds is None:
        raise WrongValue(f"{value!r} is not a duration", "such as 10s, 1m30s, 500ms, or a number of seconds")
    if seconds < 0:
        raise WrongValue("must not be negative", "0s or more")
    return seconds


def _distribution(value: Any) -> Distribution:
    if not isinstance(value, dict):
        seconds = _seconds_of(value)
        if seconds is None:
            words = "a number, a duration, or one law such as {exponential: 5m}"
            raise WrongValue("must be a number, a duration or a distribution", words)
        return Distribution("constant", (seconds,))
    if len(value) != 1 or next(iter(value)) not in LAWS:
        raise WrongValue(f"{', '.join(value) or 'nothing'} is no law", f"one of {', '.join(LAWS)}")
    ((law, inner),) = value.items()
    values = [_seconds_of(one) for one in (inner if isinstance(inner, list) else [inner])]
    numbers = [one for one in values if one is not None]
    if len(numbers) != len(values) or not numbers or (LAWS[law] and len(numbers) != LAWS[law]):
        count = LAWS[law] or "some"
        raise WrongValue("does not fit the law", f"{law} has {count} numbers or durations", (law,))
    return Distribution(law, tuple(numbers))


_SECONDS = Scalar("duration", _seconds, 0.0)
_PLAIN = Scalar("plain", _plain_value, "")
_LEAVES: Mapping[Any, Scalar] = {
    Any: ANYTHING,
    Distribution: Scalar("distribution", _distribution, Distribution("constant", (0.0,))),
    str: Scalar("text", partial(_fitting, str, "a text"), ""),
    bool: Scalar("bool", partial(_fitting, bool, "true or false"), False),
    int: Scalar("int", partial(_fitting, int, "a whole number"), 0),
    float: Scalar("float", partial(_fitting, float, "a number"), 0.0),
}


def _not_none(wanted: Any) -> Any:
    """The type of a field that may be None."""
    if get_origin(wanted) in (Union, types.UnionType):
        (wanted,) = (one for one in get_args(wanted) if one is not type(None))
    return wanted


def _seconds_of(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None


# ---- the schema ----

_SCALARS: Mapping[Any, Any] = {
    str: {"type": ["string", "number"]}, int: {"type": "integer"}, float: {"type": "number"},
    bool: {"type": "boolean"}, Path: {"type": "string"}, Any: {},
}  # fmt: skip


def json_schema(cls: Any) -> dict[str, Any]:
    """The JSON Schema of a record class, for editors that complete and check YAML."""
    hints = get_type_hints(cls, include_extras=True)
    properties = {camel(one.name): _schema_of(hints[one.name]) for one in fields(cls)}
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    needed = [camel(one.name) for one in fields(cls) if one.default is MISSING and one.default_factory is MISSING]
    return {**schema, "required": needed} if needed else schema


def _schema_of(wanted: Any) -> dict[str, Any]:
    wanted = _not_none(wanted)
    makers: list[tuple[bool, Callable[[], dict[str, Any]]]] = [
        (wanted is Distribution, lambda: {"type": ["number", "string", "object"]}),
        (is_dataclass(wanted), lambda: json_schema(wanted)),
        (get_origin(wanted) is Annotated, lambda: {"type": ["number", "string"]}),
        (get_origin(wanted) is Literal, lambda: {"enum": list(get_args(wanted))}),
        (get_origin(wanted) is Sequence, lambda: {"type": "array", "items": _schema_of(get_args(wanted)[0])}),
        (get_origin(wanted) is Mapping, lambda: {"type": "object"}),
    ]
    return next((make() for fits, make in makers if fits), None) or dict(_SCALARS[wanted])
