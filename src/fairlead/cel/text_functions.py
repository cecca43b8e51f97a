"""Functions of strings, lists and durations.

Names that begin with a dot are functions, the others methods whose first parameter is the receiver. Positions count
characters, not bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, NamedTuple

from fairlead.cel.operators import add, compare, equals
from fairlead.cel.patterns import BadPattern, Pattern, pattern
from fairlead.cel.steps import PER_CALL, ROOM, CostExceeded
from fairlead.cel.values import CelError, Duration, TypeName, type_name
from fairlead.core.model.quantity import Quantity


class Typed(NamedTuple):
    params: tuple[str, ...]
    act: Callable[..., Any]


# ---- regular expressions ----


def compiled_pattern(text: str) -> Pattern:
    """The pattern that a text is. Raises CelError in Go's words."""
    try:
        return pattern(text)
    except BadPattern as fault:
        raise CelError(str(fault)) from None


# ---- strings ----


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    return text.find(part, offset) if part else offset


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part)) if part else offset


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if not isinstance(item, str):
            raise CelError(f"join: invalid input: {item}")
    _bounded(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    times = text.count(old) if limit < 0 else min(limit, text.count(old))
    _bounded(len(text) + times * len(new))
    return text.replace(old, new, limit)


def _bounded(size: int) -> None:
    """Ends the evaluation if a text would get so long."""
    if size > ROOM:
        raise CostExceeded


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        chars = list(text)
        return chars if limit < 0 or limit >= len(chars) else [*chars[: limit - 1], "".join(chars[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
    return text[start:stop]


def _lower(text: str) -> str:
    return "".join(char.lower() if "A" <= char <= "Z" else char for char in text)


def _upper(text: str) -> str:
    return "".join(char.upper() if "a" <= char <= "z" else char for char in text)


def _quote(text: str) -> str:
    named = {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
    return '"' + "".join(named.get(char, char) for char in text) + '"'


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_CLAUSE = re.compile(r"%(?:\.(\d+))?(.?)", re.DOTALL)
_WHOLE = frozenset({"int", "uint"})
_VERBS: Mapping[str, tuple[frozenset[str], str]] = {
    "s": (
        frozenset({"string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "null_type",
                   "google.protobuf.Duration", "google.protobuf.Timestamp"}),
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
        " timestamps",
    ),
    "d": (_WHOLE, "decimal clause can only be used on integers"),
    "f": (frozenset({"double"}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({"double"}), "scientific clause can only be used on doubles"),
    "b": (_WHOLE | {"bool"}, "only integers and bools can be formatted as binary"),
    "o": (_WHOLE, "octal clause can only be used on integers"),
    "x": (_WHOLE | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
    "X": (_WHOLE | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
}  # fmt: skip
"""The types that each clause takes, and the complaint about others."""


def clauses_of(text: str) -> list[tuple[str, int]]:
    """The clauses of a format, with their precision. Raises CelError."""
    found = []
    for match in _CLAUSE.finditer(text):
        precision, verb = match[1], match[2]
        if not verb:
            raise CelError("unexpected end of string")
        if verb != "%" and verb not in _VERBS:
            raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        found.append((verb, 6 if precision is None else int(precision)))
    return found


def misfit(verb: str, kind: str) -> str:
    """What is wrong with a type for a clause; empty if nothing is."""
    kinds, complaint = _VERBS[verb]
    return "" if kind in kinds else f"error during formatting: {complaint}, was given {kind}"


def _format(text: str, values: list[Any]) -> str:
    left, clauses = iter(values), iter(clauses_of(text))

    def fill(found: re.Match[str]) -> str:
        verb, precision = next(clauses)
        if verb == "%":
            return "%"
        try:
            value = next(left)
        except StopIteration:
            raise CelError(f"index {len(values)} out of range") from None
        if wrong := misfit(verb, type_name(value)):
            raise CelError(wrong)
        return _formatted(value, verb, precision)

    return _CLAUSE.sub(fill, text)


def _formatted(value: Any, verb: str, precision: int) -> str:
    match verb:
        case "s":
            return _spelled(value)
        case "d":
            return str(int(value))
        case "f" | "e" if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
        case "f":
            return f"{value:.{precision}f}"
        case "e":
            mantissa, _, exponent = f"{value:.{precision}e}".partition("e")
            return f"{mantissa}\u00d710{exponent.lstrip('+').translate(_RAISED)}"
        case "b" | "o":
            return f"{int(value):{verb}}"
    raw = value.encode() if isinstance(value, str) else value
    shown = raw.hex() if isinstance(raw, bytes) else f"{int(raw):x}"
    return shown.upper() if verb == "X" else shown


def _spelled(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            return format_double(value)
        case Duration():
            return spelled_duration(value.nanos)
        case datetime():
            return spelled_moment(value)
        case list():
            return "[" + _join(list(_within(map(_inside, value))), ", ") + "]"
        case Mapping():
            entries = (f"{_inside(k)}:{_inside(v)}" for k, v in sorted(value.items()))
            return "{" + _join(list(_within(entries)), ", ") + "}"
        case TypeName():
            return value.name
        case bytes():
            return value.decode(errors="replace")
    return str(value)


def _inside(value: Any) -> str:
    """A value in a list or map, as an expression would write it."""
    match value:
        case str():
            return _quote(value)
        case bytes():
            return f"b{_quote(value.decode(errors='replace'))}"
        case Duration():
            return f'duration("{_spelled(value)}")'
        case datetime():
            return f'timestamp("{_spelled(value)}")'
    return _spelled(value)


def _within(parts: Iterable[str]) -> Iterator[str]:
    size = 0
    for part in parts:
        size += len(part)
        _bounded(size)
        yield part


def format_double(value: float) -> str:
    """A double as Go's `%g` with the least digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, point = Decimal(repr(value)).as_tuple()
    assert isinstance(point, int)
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    exponent = len(digits) + point - 1 if value else 0
    if -4 <= exponent < 6:
        return repr(value).removesuffix(".0")
    mantissa = shown[0] + (f".{shown[1:]}" if len(shown) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


# ---- durations ----

_FRACTION = re.compile(r"\.(\d+)")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def parse_duration(text: str) -> int | None:
    """Nanoseconds of a Go duration; None if it is none."""
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if body == "0":
        return 0
    parts = _PART.findall(body)
    if not parts or "".join(number + unit for number, unit in parts) != body:
        return None
    return sign * sum(round(float(number) * _UNITS[unit]) for number, unit in parts)


def spelled_duration(nanos: int) -> str:
    whole, rest = divmod(abs(nanos), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if nanos < 0 else ''}{whole}{fraction}s"


def spelled_moment(moment: datetime) -> str:
    """A moment in the zone that it was written in, with no more digits than it has."""
    text = moment.isoformat().replace("+00:00", "Z")
    return _FRACTION.sub(lambda found: f".{found[1]}".rstrip("0"), text)


# ---- lists ----


def _is_sorted(items: list[Any]) -> bool:
    return all(compare(first, second, "_<=_") <= 0 for first, second in pairwise(items))


def _sum(items: list[Any]) -> Any:
    total: Any = 0
    for at, item in enumerate(items):
        total = item if at == 0 else add(total, item)
    return total


def _least(items: list[Any], sign: int, word: str) -> Any:
    if not items:
        raise CelError(f"{word} called on empty list")
    best = items[0]
    for item in items[1:]:
        if sign * compare(item, best, "_<_") < 0:
            best = item
    return best


def _position_of(items: list[Any], wanted: Any) -> int:
    return next((at for at, item in enumerate(items) if equals(item, wanted)), -1)


def _last_position_of(items: list[Any], wanted: Any) -> int:
    return next((at for at in reversed(range(len(items))) if equals(items[at], wanted)), -1)


def _range(count: int) -> list[int]:
    if count > PER_CALL:
        raise CostExceeded
    return list(range(max(count, 0)))


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        flat += _flatten(item, depth - 1) if isinstance(item, list) and depth else [item]
    return flat


def _sort(items: list[Any]) -> list[Any]:
    if len({type_name(item) for item in items}) > 1:
        raise CelError("list elements must have the same type")
    return sorted(items, key=cmp_to_key(lambda one, other: compare(one, other, "_<_")))


def sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """Items in the order of their keys."""
    ordered = cmp_to_key(lambda one, other: compare(one, other, "_<_"))
    return [item for _, item in sorted(zip(keys, items, strict=True), key=lambda pair: ordered(pair[0]))]


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not any(equals(item, other) for other in found):
            found.append(item)
    return found


def _sum_or_quantity(items: list[Any]) -> Any:
    if items and all(isinstance(item, Quantity) for item in items):
        return sum(items[1:], items[0])
    return _sum(items)


_S, _L, _I = "string", "list", "int"
TEXT_FUNCTIONS: dict[str, tuple[Typed, ...]] = {
    "matches": (Typed((_S, _S), lambda text, regex: compiled_pattern(regex).matches(text)),),
    "find": (Typed((_S, _S), lambda text, regex: compiled_pattern(regex).find(text)),),
    "findAll": (
        Typed((_S, _S), lambda text, regex: compiled_pattern(regex).find_all(text)),
        Typed((_S, _S, _I), lambda text, regex, most: compiled_pattern(regex).find_all(text, most)),
    ),
    "contains": (Typed((_S, _S), lambda text, part: part in text),),
    "startsWith": (Typed((_S, _S), str.startswith),),
    "endsWith": (Typed((_S, _S), str.endswith),),
    "charAt": (Typed((_S, _I), _char_at),),
    "indexOf": (Typed((_S, _S), _index_of), Typed((_S, _S, _I), _index_of), Typed((_L, "dyn"), _position_of)),
    "lastIndexOf": (
        Typed((_S, _S), _last_index_of), Typed((_S, _S, _I), _last_index_of), Typed((_L, "dyn"), _last_position_of),
    ),
    "join": (Typed((_L,), _join), Typed((_L, _S), _join)),
    "lowerAscii": (Typed((_S,), _lower),),
    "upperAscii": (Typed((_S,), _upper),),
    "replace": (Typed((_S, _S, _S), _replace), Typed((_S, _S, _S, _I), _replace)),
    "split": (Typed((_S, _S), _split), Typed((_S, _S, _I), _split)),
    "substring": (Typed((_S, _I), _substring), Typed((_S, _I, _I), _substring)),
    "trim": (Typed((_S,), str.strip),),
    "format": (Typed((_S, _L), _format),),
    "reverse": (Typed((_L,), lambda items: items[::-1]),),
    ".strings.quote": (Typed((_S,), _quote),),
    ".lists.range": (Typed((_I,), _range),),
    "isSorted": (Typed((_L,), _is_sorted),),
    "sum": (Typed((_L,), _sum_or_quantity),),
    "min": (Typed((_L,), lambda items: _least(items, 1, "min")),),
    "max": (Typed((_L,), lambda items: _least(items, -1, "max")),),
    "slice": (Typed((_L, _I, _I), _slice),),
    "flatten": (Typed((_L,), _flatten), Typed((_L, _I), _flatten)),
    "sort": (Typed((_L,), _sort),),
    "distinct": (Typed((_L,), _distinct),),
}  # fmt: skip
