"""decode: a document into one of the records, by the types of its fields, and json_schema: those types for editors.

Complaints go into a ConfigProblems, so that a file is reported whole, with the line of each. Field names are the
records' in camel case. A number where a duration is wanted counts seconds.

Invariant: if nothing was noted, what is returned holds only values of the types that its records name.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from fairlead.config.problems import CheckStage, ConfigProblems, suggestion
from fairlead.config.problems import Path as FieldPath
from fairlead.core.model.durations import parse_duration
from fairlead.lab.scenario.records import Distribution

LAWS = {"exponential": 1, "uniform": 2, "lognormal": 2, "pareto": 2, "choice": 0, "constant": 1}
"""How many values each law has; 0 for any number but none."""


def camel(name: str) -> str:
    """`start_delay` as `startDelay`."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


class ScenarioDecoder:
    """Decodes one document. Relative paths are taken from `base`."""

    def __init__(self, problems: ConfigProblems, base: Path) -> None:
        self._problems = problems
        self._base = base

    def record(self, cls: Any, value: Any, path: FieldPath = ()) -> Any:
        """An instance of a record class; the default one where the document does not fit."""
        if not isinstance(value, dict):
            self._note(path, "is not a mapping", f"fields: {', '.join(camel(one.name) for one in fields(cls))}")
            return cls()
        hints = get_type_hints(cls, include_extras=True)
        known = {camel(one.name): one for one in fields(cls)}
        given: dict[str, Any] = {}
        for name, inner in value.items():
            if name not in known:
                hint = suggestion(name, known) or f"known: {', '.join(known)}"
                self._note((*path, name), f'unknown field "{name}"', hint)
            elif inner is not None:
                given[known[name].name] = self._value(hints[known[name].name], inner, (*path, name))
        return cls(**{name: inner for name, inner in given.items() if inner is not _WRONG})

    def _value(self, wanted: Any, value: Any, path: FieldPath) -> Any:
        wanted = _not_none(wanted)
        if wanted is Any:
            return value
        if wanted is Distribution:
            return self._distribution(value, path)
        if is_dataclass(wanted):
            return self.record(wanted, value, path)
        if get_origin(wanted) is Annotated:
            return self._seconds(value, path)
        if get_origin(wanted) is Literal:
            return self._choice(get_args(wanted), value, path)
        if get_origin(wanted) is Sequence:
            return self._sequence(get_args(wanted)[0], value, path)
        if get_origin(wanted) is Mapping:
            return self._mapping(value, path)
        return self._scalar(wanted, value, path)

    def _sequence(self, item: Any, value: Any, path: FieldPath) -> Any:
        if not isinstance(value, list):
            return self._note(path, "is not a list", "for example [a, b], or one entry a line after -")
        return tuple(
            inner for at, one in enumerate(value) if (inner := self._value(item, one, (*path, at))) is not _WRONG
        )

    def _mapping(self, value: Any, path: FieldPath) -> Any:
        if not isinstance(value, dict):
            return self._note(path, "is not a mapping", "for example {cpu: 2, memory: 4Gi}")
        for name, one in value.items():
            if isinstance(one, dict | list) or one is None:
                self._note((*path, name), "is not a plain value", "for example 2 or 4Gi")
        return {name: _plain(one) for name, one in value.items()}

    def _choice(self, allowed: Sequence[str], value: Any, path: FieldPath) -> Any:
        if value not in allowed:
            return self._note(path, f"{value!r} is not known", f"one of {', '.join(allowed)}")
        return value

    def _scalar(self, wanted: Any, value: Any, path: FieldPath) -> Any:
        if wanted is Path:
            return (self._base / value) if isinstance(value, str) else self._note(path, "is not a path", "a text")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fits: Mapping[Any, tuple[bool, str]] = {
            str: (isinstance(value, str) or number, "a text"),
            bool: (isinstance(value, bool), "true or false"),
            int: (number and value == int(value), "a whole number"),
            float: (number, "a number"),
        }
        good, words = fits[wanted]
        if not good:
            return self._note(path, f"{value!r} does not fit here", f"wanted: {words}")
        return _plain(value) if wanted is str else wanted(value)

    def _seconds(self, value: Any, path: FieldPath) -> Any:
        seconds = _seconds_of(value)
        if seconds is None:
            return self._note(path, f"{value!r} is not a duration", "such as 10s, 1m30s, 500ms, or a number of seconds")
        return seconds if seconds >= 0 else self._note(path, "must not be negative", "0s or more")

    def _distribution(self, value: Any, path: FieldPath) -> Any:
        if not isinstance(value, dict):
            seconds = _seconds_of(value)
            words = "a number, a duration, or one law such as {exponential: 5m}"
            if seconds is None:
                return self._note(path, "must be a number, a duration or a distribution", words)
            return Distribution("constant", (seconds,))
        if len(value) != 1 or next(iter(value)) not in LAWS:
            return self._note(path, f"{', '.join(value) or 'nothing'} is no law", f"one of {', '.join(LAWS)}")
        ((law, inner),) = value.items()
        values = [_seconds_of(one) for one in (inner if isinstance(inner, list) else [inner])]
        numbers = [one for one in values if one is not None]
        if len(numbers) != len(values) or not numbers or (LAWS[law] and len(numbers) != LAWS[law]):
            count = LAWS[law] or "some"
            return self._note((*path, law), "does not fit the law", f"{law} has {count} numbers or durations")
        return Distribution(law, tuple(numbers))

    def _note(self, path: FieldPath, message: str, hint: str = "") -> Any:
        self._problems.note(CheckStage.TYPES, path, message, hint=hint, original="")
        return _WRONG


class _Wrong:
    """What stands for a value that did not fit."""


_WRONG = _Wrong()


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


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


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
