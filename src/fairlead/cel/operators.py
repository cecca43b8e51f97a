"""What operators do with values: arithmetic within 64 bits, comparisons, membership, look-up.

Two numbers of different types compare by value; any other pair of different types is unequal and has no order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from fairlead.cel.values import (
    NO_OVERLOAD,
    NUMBERS,
    CelError,
    DefaultMap,
    Duration,
    KeyedList,
    Maybe,
    ObjectValue,
    SetList,
    Uint,
    type_name,
)
from fairlead.core.model.quantity import Quantity

_INT = (-(2**63), 2**63 - 1)
_UINT = (0, 2**64 - 1)
_ORDERED = frozenset({
    "bool", "int", "uint", "double", "string", "bytes", "google.protobuf.Duration", "google.protobuf.Timestamp",
})  # fmt: skip


def _bounded(value: int, like: str) -> int:
    low, high = _UINT if like == "uint" else _INT
    if not low <= value <= high:
        raise CelError("unsigned integer overflow" if like == "uint" else "integer overflow")
    return Uint(value) if like == "uint" else value


def _missing(function: str, left: str, handled: frozenset[str]) -> CelError:
    """cel-go names the operator only if the left side cannot be its operand at all."""
    return CelError(NO_OVERLOAD if left in handled else f"{NO_OVERLOAD}: {function}")


_ADDS = frozenset({
    "int", "uint", "double", "string", "bytes", "list", "google.protobuf.Duration", "google.protobuf.Timestamp",
})  # fmt: skip
_SUBTRACTS = frozenset({"int", "uint", "double", "google.protobuf.Duration", "google.protobuf.Timestamp"})
_DIVIDES = frozenset({"int", "uint"})


def _moved(moment: datetime, nanos: int) -> datetime:
    try:
        return moment + timedelta(microseconds=nanos / 1000)
    except OverflowError:
        raise CelError("timestamp overflow") from None


def add(left: Any, right: Any) -> Any:
    one, other = type_name(left), type_name(right)
    if one == other:
        if one in ("int", "uint"):
            return _bounded(left + right, one)
        if one in ("double", "string", "bytes"):
            return left + right
        if one == "list":
            return left + right if left.__class__ is list else _merged(left, right)
        if isinstance(left, Duration):
            return Duration(left.nanos + right.nanos)
    if isinstance(left, datetime) and isinstance(right, Duration):
        return _moved(left, right.nanos)
    if isinstance(right, datetime) and isinstance(left, Duration):
        return _moved(right, left.nanos)
    raise _missing("_+_", one, _ADDS)


def subtract(left: Any, right: Any) -> Any:
    one, other = type_name(left), type_name(right)
    if one == other:
        if one in ("int", "uint"):
            return _bounded(left - right, one)
        if one == "double":
            return left - right
        if isinstance(left, Duration):
            return Duration(left.nanos - right.nanos)
        if isinstance(left, datetime):
            return Duration(round((left - right).total_seconds() * 10**9))
    if isinstance(left, datetime) and isinstance(right, Duration):
        return _moved(left, -right.nanos)
    raise _missing("_-_", one, _SUBTRACTS)


def multiply(left: Any, right: Any) -> Any:
    one, other = type_name(left), type_name(right)
    if one == other and one in ("int", "uint"):
        return _bounded(left * right, one)
    if one == other == "double":
        return left * right
    raise _missing("_*_", one, NUMBERS)


def divide(left: Any, right: Any) -> Any:
    one, other = type_name(left), type_name(right)
    if one == other and one in ("int", "uint"):
        if right == 0:
            raise CelError("division by zero")
        quotient = abs(left) // abs(right)
        return _bounded(quotient if (left < 0) == (right < 0) else -quotient, one)
    if one == other == "double":
        if right == 0:
            return (
                math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
            )
        return left / right
    raise _missing("_/_", one, NUMBERS)


def modulo(left: Any, right: Any) -> Any:
    one, other = type_name(left), type_name(right)
    if one == other and one in ("int", "uint"):
        if right == 0:
            raise CelError("modulus by zero")
        return _bounded(int(math.copysign(1, left)) * (abs(left) % abs(right)), one)
    raise _missing("_%_", one, _DIVIDES)


def negate(value: Any) -> Any:
    kind = type_name(value)
    if kind == "int":
        return _bounded(-value, kind)
    if kind == "double":
        return -value
    if isinstance(value, Duration):
        return Duration(-value.nanos)
    raise CelError(f"{NO_OVERLOAD}: -_")


def logical_not(value: Any) -> bool:
    if isinstance(value, bool):
        return not value
    raise CelError(NO_OVERLOAD)


def equals(left: Any, right: Any) -> bool:
    """Equality is defined for every pair of values."""
    one, other = type_name(left), type_name(right)
    if one != other:
        return one in NUMBERS and other in NUMBERS and bool(left == right)
    if one == "list":
        if left.__class__ is not list:
            return _equal_unordered(left, right)
        return len(left) == len(right) and all(map(equals, left, right))
    if one == "map":
        if isinstance(left, ObjectValue) and isinstance(right, ObjectValue):
            return _equal_records(left, right)
        return len(left) == len(right) and all(
            any(equals(key, theirs) and equals(value, right[theirs]) for theirs in right) for key, value in left.items()
        )
    if isinstance(left, Maybe):
        return left.there == right.there and (not left.there or equals(left.value, right.value))
    return bool(left == right)


def _equal_records(left: ObjectValue, right: ObjectValue) -> bool:
    """Fields that the schema does not know count where both have them, as in the original."""
    if len(left.raw) != len(right.raw) or left.keys() != right.keys():
        return False
    if not all(equals(value, right[name]) for name, value in left.items()):
        return False
    return all(
        value == right.raw[name] for name, value in left.raw.items() if name not in left.known and name in right.raw
    )


def _equal_unordered(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, KeyedList):
        mine = {left.key_of(item): item for item in left}
        return all(left.key_of(item) in mine and equals(mine[left.key_of(item)], item) for item in right)
    return all(any(equals(item, other) for other in left) for item in right)


def _merged(left: list[Any], right: list[Any]) -> list[Any]:
    """The lists in one: elements of a set stand there once, and elements of a keyed list in the place of the one with
    the same keys."""
    if isinstance(left, KeyedList):
        found = {left.key_of(item): item for item in left}
        return KeyedList(list((found | {left.key_of(item): item for item in right}).values()), left.keys)
    if isinstance(left, SetList):
        return SetList([*left, *(item for item in right if not any(equals(item, other) for other in left))])
    return list(left) + right


def compare(left: Any, right: Any, function: str) -> int:
    """-1, 0 or 1; NaN has no order and raises."""
    one, other = type_name(left), type_name(right)
    if one not in _ORDERED:
        raise CelError(f"{NO_OVERLOAD}: {function}")
    if one != other and not (one in NUMBERS and other in NUMBERS):
        raise CelError(NO_OVERLOAD)
    if left != left or right != right:
        raise CelError("NaN values cannot be ordered")
    return int(left > right) - int(left < right)


def _ordering(function: str, accept: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def order(left: Any, right: Any) -> bool:
        return accept(compare(left, right, function))

    return order


def contained(item: Any, container: Any) -> bool:
    if isinstance(container, list):
        return any(equals(item, member) for member in container)
    if isinstance(container, Mapping):
        return any(equals(item, key) for key in container)
    raise CelError(f"{NO_OVERLOAD}: @in")


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "_+_": add, "_-_": subtract, "_*_": multiply, "_/_": divide, "_%_": modulo, "_==_": equals,
    "_!=_": lambda left, right: not equals(left, right),
    "_<_": _ordering("_<_", lambda sign: sign < 0), "_<=_": _ordering("_<=_", lambda sign: sign <= 0),
    "_>_": _ordering("_>_", lambda sign: sign > 0), "_>=_": _ordering("_>=_", lambda sign: sign >= 0),
    "@in": contained,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {"-_": negate, "!_": logical_not}


def look_up(container: Any, key: Any) -> Any:
    """`container[key]`, and `container.key` of a map."""
    if isinstance(container, Mapping):
        found = _member(container, key)
        if found.there:
            return found.value
        if isinstance(container, DefaultMap):
            return {}
        if isinstance(container, ObjectValue) and key in container.faults:
            raise CelError(container.faults[key])
        raise CelError(f"no such key: {spelled(key)}")
    if isinstance(container, list):
        at = _position(key)
        if not 0 <= at < len(container):
            raise CelError(f"index out of bounds: {at}")
        return container[at]
    if isinstance(container, Maybe):
        raise CelError(NO_OVERLOAD)
    raise CelError(NO_OVERLOAD)


def maybe_look_up(container: Any, key: Any) -> Maybe:
    """The same where absence is an answer: `container[?key]`. Of an optional container the value is looked at."""
    if isinstance(container, Maybe):
        return maybe_look_up(container.value, key) if container.there else container
    if isinstance(container, Mapping):
        found = _member(container, key)
        return Maybe(True, {}) if not found.there and isinstance(container, DefaultMap) else found
    if isinstance(container, list):
        at = _position(key)
        return Maybe(True, container[at]) if 0 <= at < len(container) else Maybe(False)
    raise CelError(NO_OVERLOAD)


def _member(container: Mapping[Any, Any], key: Any) -> Maybe:
    if isinstance(key, str):
        return Maybe(True, container[key]) if key in container else Maybe(False)
    for theirs, value in container.items():
        if equals(key, theirs):
            return Maybe(True, value)
    return Maybe(False)


def _position(key: Any) -> int:
    if isinstance(key, bool) or not isinstance(key, int | float) or key != int(key):
        raise CelError(f"unsupported index type '{type_name(key)}' in list")
    return int(key)


def spelled(value: Any) -> str:
    """A value in an error text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Quantity):
        return str(value)
    return str(value)
