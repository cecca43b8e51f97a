"""The library of functions: by name, whether they are methods, and the types that they take.

An overload is chosen by the types of the values at hand, as attributes of devices have no type before. What happens
when none fits is said in cel-go's words, which differ: see `missing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fairlead.cel.named_formats import FORMATS, NamedFormat
from fairlead.cel.net_functions import NET_FUNCTIONS
from fairlead.cel.operators import equals
from fairlead.cel.text_functions import TEXT_FUNCTIONS, format_double, parse_duration, spelled_duration, spelled_moment
from fairlead.cel.values import (
    NO_OVERLOAD,
    AddressRange,
    CelError,
    Duration,
    Maybe,
    TypeName,
    Uint,
    Version,
    normalised_version,
    parse_version,
    succeeds,
    type_name,
)
from fairlead.core.model.quantity import Quantity, QuantityError, parse_quantity

_MAX_INT = 2**63 - 1
_NANO = 10**9


class Overload(NamedTuple):
    params: tuple[str, ...]
    act: Callable[..., Any]


_SHORT = {
    "quantity": "kubernetes.Quantity", "semver": "kubernetes.Semver", "ip": "net.IP", "cidr": "net.CIDR",
    "url": "kubernetes.URL", "duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp",
    "optional": "optional_type",
}  # fmt: skip
_SAY_NAME_ONLY = frozenset({"size", "matches", "int", "uint", "double", "bool", "bytes"})
_SAY_NOTHING = frozenset({"contains", "startsWith", "endsWith"})


def missing(name: str, values: Sequence[Any]) -> CelError:
    """No overload takes these values. Functions of the standard library that test a trait name themselves, those that
    test the type inside say nothing, all others list the types."""
    if name in _SAY_NOTHING:
        return CelError(NO_OVERLOAD)
    if name in _SAY_NAME_ONLY:
        return CelError(f"{NO_OVERLOAD}: {name}")
    return CelError(f"{NO_OVERLOAD}: {name}({', '.join(map(type_name, values))})")


# ---- conversions ----

_SPACE = re.compile(r"\s")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def _to_int(value: Any) -> int:
    match value:
        case bool():
            raise _no_conversion(value, "int")
        case int():
            if value > _MAX_INT:
                raise CelError("integer overflow")
            return int(value)
        case float():
            if value != value or not -(2**63) < value < 2**63:
                raise CelError("integer overflow")
            return int(value)
        case str():
            try:
                return _in_range(int(value, 10) if value.lstrip("+-").isdigit() else None, value)
            except ValueError:
                raise _no_conversion(value, "int") from None
        case Duration():
            return value.nanos
        case datetime():
            return int(value.timestamp())
    raise _no_conversion(value, "int")


def _in_range(number: int | None, text: str) -> int:
    if number is None or not -(2**63) <= number <= _MAX_INT:
        raise _no_conversion(text, "int")
    return number


def _to_uint(value: Any) -> Uint:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if isinstance(value, str) and value.isdigit():
        number = int(value)
    if number is None:
        raise _no_conversion(value, "uint")
    if not 0 <= number < 2**64:
        raise CelError("unsigned integer overflow")
    return Uint(int(number))


def _to_double(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and not _SPACE.search(value):
        try:
            return float(value)
        except ValueError:
            pass
    raise _no_conversion(value, "double")


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {
        "1": True,
        "t": True,
        "T": True,
        "true": True,
        "TRUE": True,
        "True": True,
        "0": False,
        "f": False,
        "F": False,
        "false": False,
        "FALSE": False,
        "False": False,
    }
    if isinstance(value, str) and value in words:
        return words[value]
    raise _no_conversion(value, "bool")


def _to_string(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return format_double(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case Duration():
            return spelled_duration(value.nanos)
        case datetime():
            return spelled_moment(value)
    if type_name(value) in ("net.IP", "kubernetes.URL", "net.CIDR"):
        if isinstance(value, AddressRange):
            return f"{value.address}/{value.range.prefixlen}"
        return value.geturl() if hasattr(value, "geturl") else str(value)
    raise _no_conversion(value, "string")


def _to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        nanos = parse_duration(value)
        if nanos is not None:
            return Duration(nanos)
    raise _no_conversion(value, "google.protobuf.Duration")


def _to_timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str) and _RFC3339.fullmatch(value):
            return datetime.fromisoformat(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError):
        pass
    raise _no_conversion(value, "google.protobuf.Timestamp")


def _no_conversion(value: Any, wanted: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


# ---- quantities and versions ----


def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise CelError(str(error)) from None


def _as_integer(amount: Quantity) -> int:
    whole, rest = divmod(amount.nanos, _NANO)
    if rest or not -(2**63) <= whole <= _MAX_INT:
        raise CelError("cannot convert value to integer")
    return whole


def _is_integer(amount: Quantity) -> bool:
    whole, rest = divmod(amount.nanos, _NANO)
    return not rest and -(2**63) <= whole <= _MAX_INT


def _sign(amount: Quantity) -> int:
    return (amount.nanos > 0) - (amount.nanos < 0)


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _version(text: str, normalise: bool = False) -> Version:
    return parse_version(normalised_version(text) if normalise else text)


def _whole(number: int) -> Quantity:
    return Quantity(number * _NANO)


# ---- lists, sets, optionals ----


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | Mapping):
        return len(value)
    raise missing("size", (value,))


def _sets_contain(whole: list[Any], part: list[Any]) -> bool:
    return all(any(equals(item, other) for other in whole) for item in part)


def _intersect(left: list[Any], right: list[Any]) -> bool:
    return any(equals(item, other) for item in left for other in right)


def _of_non_zero(value: Any) -> Maybe:
    empty = value is None or value is False or value == Duration(0)
    empty = empty or (isinstance(value, int | float | str | bytes | list | dict) and not value)
    return Maybe(False) if empty else Maybe(True, value)


def _value_of(optional: Maybe) -> Any:
    if not optional.there:
        raise CelError("optional.none() dereference")
    return optional.value


def _f(*params: str, act: Callable[..., Any]) -> Overload:
    return Overload(tuple(_SHORT.get(param, param) for param in params), act)


def _unwrapped(items: list[Any]) -> list[Any]:
    return [item.value for item in items if item.there]


def _format_named(name: str) -> Maybe:
    found = FORMATS.get(name)
    return Maybe(found is not None, found)


def _same(value: Any) -> Any:
    return value


# ---- parts of times ----


def _in_zone(moment: datetime, zone: str = "UTC") -> datetime:
    """The moment as clocks of a zone show it: an hour and minute before or after UTC, or a name."""
    offset = _OFFSET.fullmatch(zone)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return moment.astimezone(timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes)))
    try:
        return moment.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {zone}") from None


def _part(of_moment: Callable[[datetime], int], nanos: int = 0) -> tuple[Overload, ...]:
    """A part of a time; of a duration it is so many nanoseconds, of which there is a whole number."""
    found = (
        _f("timestamp", act=lambda moment: of_moment(_in_zone(moment))),
        _f("timestamp", "string", act=lambda moment, zone: of_moment(_in_zone(moment, zone))),
    )
    return (*found, _f("duration", act=lambda span: int(span.nanos / nanos))) if nanos else found


_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)")
_TIME_PARTS: dict[str, tuple[Overload, ...]] = {
    "getFullYear": _part(lambda moment: moment.year),
    "getMonth": _part(lambda moment: moment.month - 1),
    "getDate": _part(lambda moment: moment.day),
    "getDayOfMonth": _part(lambda moment: moment.day - 1),
    "getDayOfWeek": _part(lambda moment: moment.isoweekday() % 7),
    "getDayOfYear": _part(lambda moment: moment.timetuple().tm_yday - 1),
    "getHours": _part(lambda moment: moment.hour, 3600 * _NANO),
    "getMinutes": _part(lambda moment: moment.minute, 60 * _NANO),
    "getSeconds": _part(lambda moment: moment.second, _NANO),
    "getMilliseconds": _part(lambda moment: moment.microsecond // 1000, 10**6),
}
_BOTH_WAYS: dict[str, tuple[Overload, ...]] = {
    "size": (_f("dyn", act=_size),),
    "matches": tuple(_f(*o.params, act=o.act) for o in TEXT_FUNCTIONS["matches"]),
}
"""Functions that may be written either way."""

GLOBAL: dict[str, tuple[Overload, ...]] = {
    "type": (_f("dyn", act=lambda value: TypeName(type_name(value))),),
    "dyn": (_f("dyn", act=lambda value: value),),
    "int": (_f("dyn", act=_to_int),),
    "uint": (_f("dyn", act=_to_uint),),
    "double": (_f("dyn", act=_to_double),),
    "bool": (_f("dyn", act=_to_bool),),
    "string": (_f("dyn", act=_to_string),),
    "bytes": (_f("string", act=str.encode), _f("bytes", act=lambda value: value)),
    "duration": (_f("dyn", act=_to_duration),),
    "timestamp": (_f("dyn", act=_to_timestamp),),
    "quantity": (_f("string", act=_quantity),),
    "isQuantity": (_f("string", act=succeeds(_quantity)),),
    "sign": (_f("quantity", act=_sign),),
    "semver": (_f("string", act=_version), _f("string", "bool", act=_version)),
    "isSemver": (
        _f("string", act=succeeds(_version)),
        _f("string", "bool", act=lambda text, loose: succeeds(lambda t: _version(t, loose))(text)),
    ),
    "sets.contains": (_f("list", "list", act=_sets_contain),),
    "sets.equivalent": (_f("list", "list", act=lambda a, b: _sets_contain(a, b) and _sets_contain(b, a)),),
    "sets.intersects": (_f("list", "list", act=_intersect),),
    "optional.unwrap": (_f("list", act=_unwrapped),),
    "format.named": (_f("string", act=_format_named),),
    **{f"format.{name}": (_f(act=partial(_same, one)),) for name, one in FORMATS.items()},
    "optional.of": (_f("dyn", act=lambda value: Maybe(True, value)),),
    "optional.none": (_f(act=lambda: Maybe(False)),),
    "optional.ofNonZeroValue": (_f("dyn", act=_of_non_zero),),
    **_BOTH_WAYS,
    **{
        name.removeprefix("."): tuple(_f(*o.params, act=o.act) for o in rows)
        for name, rows in {**TEXT_FUNCTIONS, **NET_FUNCTIONS}.items()
        if name.startswith(".")
    },
}

METHODS: dict[str, tuple[Overload, ...]] = {
    "compareTo": (_f("quantity", "quantity", act=_order), _f("semver", "semver", act=_order)),
    "isGreaterThan": (
        _f("quantity", "quantity", act=lambda a, b: a > b),
        _f("semver", "semver", act=lambda a, b: a > b),
    ),
    "isLessThan": (_f("quantity", "quantity", act=lambda a, b: a < b), _f("semver", "semver", act=lambda a, b: a < b)),
    "isInteger": (_f("quantity", act=_is_integer),),
    "asInteger": (_f("quantity", act=_as_integer),),
    "asApproximateFloat": (_f("quantity", act=lambda amount: amount.nanos / _NANO),),
    "add": (_f("quantity", "quantity", act=lambda a, b: a + b), _f("quantity", "int", act=lambda a, b: a + _whole(b))),
    "sub": (_f("quantity", "quantity", act=lambda a, b: a - b), _f("quantity", "int", act=lambda a, b: a - _whole(b))),
    "major": (_f("semver", act=lambda version: version.major),),
    "minor": (_f("semver", act=lambda version: version.minor),),
    "patch": (_f("semver", act=lambda version: version.patch),),
    "hasValue": (_f("optional", act=lambda optional: optional.there),),
    "value": (_f("optional", act=_value_of),),
    **_TIME_PARTS,
    "first": (_f("list", act=lambda items: Maybe(True, items[0]) if items else Maybe(False)),),
    "last": (_f("list", act=lambda items: Maybe(True, items[-1]) if items else Maybe(False)),),
    "unwrapOpt": (_f("list", act=_unwrapped),),
    "validate": (_f("kubernetes.NamedFormat", "string", act=NamedFormat.validate),),
    **_BOTH_WAYS,
    **{
        name: tuple(_f(*o.params, act=o.act) for o in rows)
        for name, rows in {**TEXT_FUNCTIONS, **NET_FUNCTIONS}.items()
        if not name.startswith(".")
    },
}
NAMESPACES = frozenset(name.partition(".")[0] for name in GLOBAL if "." in name) | {"cel", "math", "lists"}
"""Words that may stand before the dot of a function's name."""


def bound(name: str, overloads: Sequence[Overload], count: int) -> Callable[..., Any] | None:
    """A function of `count` values that finds the overload for them; None if there is none for so many."""
    fitting = [overload for overload in overloads if len(overload.params) == count]
    if not fitting:
        return None
    if len(fitting) == 1 and all(param == "dyn" for param in fitting[0].params):
        return fitting[0].act

    def call(*values: Any) -> Any:
        kinds = [type_name(value) for value in values]
        for params, act in fitting:
            if all(param in ("dyn", kind) for param, kind in zip(params, kinds, strict=True)):
                return act(*values)
        raise missing(name, values)

    return call
