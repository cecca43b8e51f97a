"""Functions of strings, lists and durations.

Names that begin with a dot are functions, the others methods whose first parameter is the receiver. Positions count
characters, not bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cmp_to_key, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from fairlead.cel.operators import add, compare, equals
from fairlead.cel.values import CelError, Duration, TypeName, type_name
from fairlead.core.model.quantity import Quantity


class Typed(NamedTuple):
    params: tuple[str, ...]
    act: Callable[..., Any]


# ---- regular expressions ----

_GO_COMPLAINTS = (
    ("missing ), unterminated subpattern", "missing closing )"),
    ("unbalanced parenthesis", "unexpected )"),
    ("unterminated character set", "missing closing ]"),
    ("nothing to repeat", "missing argument to repetition operator"),
    ("multiple repeat", "invalid nested repetition operator"),
    ("bad escape (end of pattern)", "trailing backslash at end of expression"),
    ("bad escape", "invalid escape sequence"),
    ("bad character range", "invalid character class range"),
)
_WHOLE_PATTERN = frozenset({"missing closing )", "unexpected )"})
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NOT_IN_GO = re.compile(
    r"(?P<escape>\\(?:[1-7](?![0-7])|[89NUuZ]))"
    r"|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]"  # other escapes, and sets of characters
    r"|(?P<behind>\(\?<[=!](?:[^>]*>|.*))"
    r"|(?P<perl>\(\?(?:P(?!<)|[imsU-]*[^imsU\-:)<P]))"
    r"|(?P<count>\{(?:\d+,)?(?!1000\D)[1-9]\d{3,}(?:,\d*)?\})"
    r"|(?P<possessive>(?:[*+?]|\{\d+(?:,\d*)?\})\+)",
    re.DOTALL,
)
"""What Python's regular expressions have and Go's have not: references back, look-around, atomic groups, comments,
flags, possessive repetition."""
_NAMED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<", re.DOTALL)
_IN_PYTHON = {r"\z": r"\Z", "(?<": "(?P<"}
"""What both have and write differently."""
_GO_REFUSES = {
    "escape": "invalid escape sequence",
    "behind": "invalid named capture",
    "perl": "invalid or unsupported Perl syntax",
    "count": "invalid repeat count",
    "possessive": "invalid nested repetition operator",
}


@lru_cache(maxsize=1024)
def pattern(text: str) -> re.Pattern[str]:
    """A regular expression; what is none is said in the words of Go's package."""
    for found in _NOT_IN_GO.finditer(text):
        if found.lastgroup is not None:
            raise CelError(f"error parsing regexp: {_GO_REFUSES[found.lastgroup]}: `{found.group()}`")
    try:
        return re.compile(_NAMED.sub(lambda found: _IN_PYTHON.get(found[0], found[0]), text))
    except re.error as error:
        raise CelError(f"error parsing regexp: {_go_complaint(text, error)}") from None


def _go_complaint(text: str, error: re.error) -> str:
    said = next((go for python, go in _GO_COMPLAINTS if python in error.msg), error.msg)
    if said == "trailing backslash at end of expression":
        return f"{said}: ``"
    shown = text if said in _WHOLE_PATTERN else text[error.pos or 0 :]
    if said == "missing argument to repetition operator":
        shown = text[error.pos or 0 : (error.pos or 0) + 1]
    elif said == "invalid escape sequence":
        shown = text[error.pos or 0 : (error.pos or 0) + 2]
    return f"{said}: `{shown}`"


def _find(text: str, regex: str) -> str:
    found = pattern(regex).search(text)
    return found.group(0) if found else ""


def _find_all(text: str, regex: str, limit: int = -1) -> list[str]:
    found = [match.group(0) for match in pattern(regex).finditer(text)]
    return found if limit < 0 else found[:limit]


# ---- strings ----


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if not 0 <= offset < max(len(text), 1):
        raise CelError(f"index out of range: {offset}")
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return text.rfind(part)
    if not 0 <= offset < max(len(text), 1):
        raise CelError(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part))


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if not isinstance(item, str):
            raise CelError(f"join: invalid input: {item}")
    return separator.join(items)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        chars = list(text)
        return chars if limit < 0 or limit >= len(chars) else [*chars[: limit - 1], "".join(chars[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _lower(text: str) -> str:
    return "".join(char.lower() if "A" <= char <= "Z" else char for char in text)


def _upper(text: str) -> str:
    return "".join(char.upper() if "a" <= char <= "z" else char for char in text)


def _quote(text: str) -> str:
    named = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
             '"': '\\"'}  # fmt: skip
    return '"' + "".join(named.get(char, char) for char in text) + '"'


_CLAUSE = re.compile(r"%(?:\.(\d+))?([a-zA-Z%])")


def _format(text: str, values: list[Any]) -> str:
    left = iter(values)

    def fill(found: re.Match[str]) -> str:
        precision, verb = found[1], found[2]
        if verb == "%":
            return "%"
        try:
            value = next(left)
        except StopIteration:
            raise CelError(f"index {len(values)} out of range") from None
        return _formatted(value, verb, 6 if precision is None else int(precision))

    return _CLAUSE.sub(fill, text)


def _formatted(value: Any, verb: str, precision: int) -> str:
    match verb:
        case "s":
            return _spelled(value)
        case "d" if isinstance(value, int) and not isinstance(value, bool):
            return str(int(value))
        case "f" if isinstance(value, int | float):
            return f"{value:.{precision}f}"
        case "e" if isinstance(value, int | float):
            return f"{value:.{precision}e}"
        case "b" if isinstance(value, int):
            return f"{int(value):b}"
        case "o" if isinstance(value, int):
            return f"{int(value):o}"
        case "x" | "X" if isinstance(value, int | str | bytes):
            raw = value.encode() if isinstance(value, str) else value
            shown = raw.hex() if isinstance(raw, bytes) else f"{int(raw):x}"
            return shown.upper() if verb == "X" else shown
    raise CelError(f'error during formatting: unrecognized formatting clause "{verb}"')


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
        case list():
            return "[" + ", ".join(map(_spelled, value)) + "]"
        case Mapping():
            return "{" + ", ".join(f"{_spelled(k)}: {_spelled(v)}" for k, v in sorted(value.items())) + "}"
        case TypeName():
            return value.name
        case bytes():
            return value.decode(errors="replace")
    return str(value)


def format_double(value: float) -> str:
    """A double as Go's `%g` with the least digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    return text.removesuffix(".0")


# ---- durations ----

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
    return f"{format_double(nanos / 10**9)}s"


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
    "matches": (Typed((_S, _S), lambda text, regex: pattern(regex).search(text) is not None),),
    "find": (Typed((_S, _S), _find),),
    "findAll": (Typed((_S, _S), _find_all), Typed((_S, _S, _I), _find_all)),
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
