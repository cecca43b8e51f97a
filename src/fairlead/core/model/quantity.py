"""Amounts of resources: "1500m", "4Gi" and "2e3" to exact numbers, to int64 base units, and back to text.

Whatever precision a text has, parsing rounds it away from zero to a whole number of nanos, so every Quantity is one
exact integer and sums never round. Rounding to base units (milli for cpu, ones for everything else) happens once per
pod, after summing, because that is where the original rounds.

Amounts outside int64 are clamped by `value` and `milli` (the original yields 0 or wraps there, which would make the
largest request of all fit anywhere). Exponents above MAX_EXPONENT are refused instead of being evaluated. What a node
offers and a pod requests is clamped further, to MOST_COUNTED, because a table adds up many of them.

Invariant: `parse_quantity(str(q)) == q`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from fairlead.core.model.syntax import is_label_key, parse_int64

DECIMAL_SI = "DecimalSI"
BINARY_SI = "BinarySI"
DECIMAL_EXPONENT = "DecimalExponent"

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)
MOST_COUNTED = 2**53
"""The most of a resource, in base units, that one node or one pod counts with: eight pebibytes, or nine million million
cores. A thousand such pods on a node have a sum that int64 holds, and floats hold each exactly."""
MAX_EXPONENT = 400
_MAX_DIGITS = 4000
_NANO = 10**9
_MICRO = 10**6

FORMAT_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX_ERROR = "unable to parse quantity's suffix"
NUMBER_ERROR = "unable to parse numeric part of quantity"

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIX_OF_POWER_OF_TEN = {power: suffix for suffix, power in _DECIMAL_SUFFIXES.items()}
_SUFFIX_OF_POWER_OF_1024 = {0: ""} | {power // 10: suffix for suffix, power in _BINARY_SUFFIXES.items()}


class QuantityError(ValueError):
    """A text that is no quantity; the message is the original's."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. `format` is how it likes to be written; `text` is kept if it was written canonically."""

    nanos: int
    format: str = DECIMAL_SI
    text: str = field(default="", repr=False)

    def value(self) -> int:
        """The amount in ones, rounded away from zero, clamped to int64."""
        return _clamp(_divide_away_from_zero(self.nanos, _NANO))

    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero, clamped to int64."""
        return _clamp(_divide_away_from_zero(self.nanos, _MICRO))

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __str__(self) -> str:
        return self.text or _canonical(self.nanos, self.format)


ZERO = Quantity(0)


def parse_quantity(text: str | int | float) -> Quantity:
    """The quantity that a text (or a JSON number) denotes; raises QuantityError."""
    if type(text) is str:
        return _parse(text)
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(FORMAT_ERROR)
    return _parse(repr(text) if isinstance(text, float) else str(text))


def read_quantity(field_value: object) -> Quantity:
    """The quantity in a field of a document, where null is zero and blanks around a text do not matter."""
    if type(field_value) is str:
        return _parse(field_value.strip())
    if field_value is None:
        return ZERO
    if isinstance(field_value, int | float):
        return parse_quantity(field_value)
    raise QuantityError(FORMAT_ERROR)


@lru_cache(maxsize=16384)
def _parse(text: str) -> Quantity:
    found = _SHAPE.fullmatch(text) if text else None
    if found is None:
        raise QuantityError(FORMAT_ERROR)
    sign, whole, fraction, suffix = found[1], found[2].lstrip("0") or "0", found[3] or "", found[4]
    power_of_two, power_of_ten, style = _interpret_suffix(suffix)
    digits = whole + fraction
    is_blank = not found[2] and not fraction
    if len(digits) > _MAX_DIGITS or power_of_ten > MAX_EXPONENT:
        raise QuantityError(NUMBER_ERROR)
    if is_blank and (power_of_two >= 50 or power_of_ten < -9):  # smaller units of nothing are zero
        raise QuantityError(NUMBER_ERROR)
    nanos = _nanos(int(digits) << power_of_two, power_of_ten - len(fraction))
    if style == BINARY_SI:
        nanos = min(nanos, MAX_INT64 * _NANO)
        if 0 < nanos < _NANO:
            style = DECIMAL_SI
    keep = _is_written_canonically(digits, len(fraction), power_of_two=power_of_two, power_of_ten=power_of_ten)
    return Quantity(-nanos if sign == "-" else nanos, style, text if keep or text == "0" else "")


def _interpret_suffix(suffix: str) -> tuple[int, int, str]:
    """(power of two, power of ten, format)."""
    if (power := _DECIMAL_SUFFIXES.get(suffix)) is not None:
        return 0, power, DECIMAL_SI
    if (power := _BINARY_SUFFIXES.get(suffix)) is not None:
        return power, 0, BINARY_SI
    found = _EXPONENT.fullmatch(suffix)
    exponent = parse_int64(found[1]) if found else None
    if exponent is None:
        raise QuantityError(SUFFIX_ERROR)
    return 0, exponent, DECIMAL_EXPONENT


def _nanos(unscaled: int, power_of_ten: int) -> int:
    """unscaled * 10**power_of_ten in nanos, rounded up. (`unscaled` is not negative.)"""
    shift = power_of_ten + 9
    if shift >= 0:
        return int(unscaled * 10**shift)
    if unscaled.bit_length() < -shift:  # less than one nano, and a tiny exponent costs nothing
        return 1 if unscaled else 0
    return int(-(-unscaled // 10**-shift))


def _is_written_canonically(digits: str, decimals: int, *, power_of_two: int, power_of_ten: int) -> bool:
    """Whether the original would write the text back as it is, which it does for more texts than its own canonical
    ones: `1E3`, `+1` and `1.500` stay as they are."""
    if power_of_two:
        fits = decimals == 0 and 15 - len(digits) - int(power_of_two * 3 / 10) - 1 >= 0
        return fits and int(digits) & 7 != 0
    scale = power_of_ten - decimals
    if len(digits) > 18 or scale < -9 or scale % 3:
        return False
    return not digits.endswith("000") and digits[0] != "0"


def _canonical(nanos: int, style: str) -> str:
    """No fraction, no precision lost, the largest suffix that manages both."""
    if nanos == 0:
        return "0"
    if style == BINARY_SI and abs(nanos) >= 1024 * _NANO and nanos % _NANO == 0:
        amount, power = _without_factor(nanos // _NANO, 1024, most=6)
        return f"{amount}{_SUFFIX_OF_POWER_OF_1024[power]}"
    if style == DECIMAL_EXPONENT:
        amount, power = _without_factor(nanos, 1000, most=MAX_EXPONENT)
        power = 3 * power - 9
        return f"{amount}e{power}" if power else str(amount)
    amount, power = _without_factor(nanos, 1000, most=9)
    return f"{amount}{_SUFFIX_OF_POWER_OF_TEN[3 * power - 9]}"


def _without_factor(number: int, factor: int, *, most: int) -> tuple[int, int]:
    times = 0
    while times < most and number % factor == 0:
        number //= factor
        times += 1
    return number, times


def _divide_away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _clamp(number: int) -> int:
    return max(MIN_INT64, min(number, MAX_INT64))


def to_units(resource: str, amount: Quantity) -> int:
    """An amount in the base units of a resource: milli for cpu, ones for everything else."""
    return amount.milli() if resource == "cpu" else amount.value()


@lru_cache(maxsize=16384)
def nanos_to_units(resource: str, nanos: int) -> int:
    """The same for a bare number of nanos that a pod requests; at most MOST_COUNTED."""
    return min(MOST_COUNTED, _clamp(_divide_away_from_zero(nanos, _MICRO if resource == "cpu" else _NANO)))


def counted(units: Mapping[str, int]) -> dict[str, int]:
    """Amounts as a table of nodes counts with them; see MOST_COUNTED."""
    return {resource: min(amount, MOST_COUNTED) for resource, amount in units.items()}


def format_quantity(units: int, resource: str) -> str:
    """Base units of a resource as users write them: `1500m` of cpu, `2Gi` of memory, `3` of anything else."""
    if resource == "cpu":
        return _canonical(units * _MICRO, DECIMAL_SI)
    return _canonical(units * _NANO, BINARY_SI if _is_counted_in_bytes(resource) else DECIMAL_SI)


def _is_counted_in_bytes(resource: str) -> bool:
    name = resource.removeprefix("requests.").removeprefix("limits.")
    return name in ("memory", "ephemeral-storage", "storage") or name.startswith("hugepages-")


@lru_cache(maxsize=4096)
def is_extended(resource: str) -> bool:
    """Whether a name belongs to somebody else's resource, such as `nvidia.com/gpu`."""
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return is_label_key("requests." + resource)


@lru_cache(maxsize=4096)
def is_scalar(resource: str) -> bool:
    """Whether scheduling counts a resource besides cpu, memory, ephemeral-storage and pods. Other names are ignored."""
    return (
        resource.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in resource
        or is_extended(resource)
    )
