"""Quantities as the API server reads and writes them: `1500m`, `4Gi`, `1e3`; exact, with the canonical spelling.

The server keeps a quantity's family of suffixes (decimal, binary or exponent) and writes the largest suffix that
needs no fraction; more than nine decimal places are rounded up. The few distinct quantities of a cluster come by again
and again, so answers are remembered.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

QUANTITY_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_FORM = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d+)|([KMGTPE]i|[numkMGTPE]))?\Z")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_NANO = 10**9
_LONGEST = 400
"""Characters of a quantity, and its greatest exponent: beyond this nobody means an amount."""


class NotAQuantity(ValueError):
    """The text is no quantity."""


def canonical(value: Any) -> str:
    """The server's spelling of a quantity given as string or number."""
    if type(value) is str:
        return _canonical(value)
    if type(value) in (int, float):
        return _canonical(repr(value))
    raise NotAQuantity(str(value))


def amount(value: Any) -> Fraction:
    """The exact value of a quantity, rounded up to the nano as the server keeps it."""
    if type(value) not in (str, int, float):
        raise NotAQuantity(str(value))
    return _read(value if type(value) is str else repr(value))[0]


@lru_cache(maxsize=8192)
def _read(text: str) -> tuple[Fraction, str]:
    match = _FORM.match(text)
    if match is None or not (match[2] or match[3]) or len(text) > _LONGEST or len(match[4] or "") > 4:
        raise NotAQuantity(text)
    sign, whole, decimals, exponent, suffix = match.groups()
    number = Fraction(int((whole or "") + (decimals or "") or "0"), 10 ** len(decimals or ""))
    if exponent:
        number *= Fraction(10) ** int(exponent[1:])
        family = "exponent"
    elif suffix in _BINARY:
        number *= 2 ** _BINARY[suffix]
        family = "binary"
    else:
        number *= Fraction(10) ** _DECIMAL[suffix or ""]
        family = "decimal"
    nanos = -((-number * _NANO) // 1)
    return Fraction(-nanos if sign == "-" else nanos, _NANO), family


@lru_cache(maxsize=8192)
def _canonical(text: str) -> str:
    number, family = _read(text)
    if family == "binary":
        if (number.denominator == 1 and abs(number) >= 1024) or number == 0:
            return _binary(int(number))
        family = "decimal"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, exponent = _mantissa(abs(number))
    if family == "exponent":
        return f"{sign}{mantissa}" + (f"e{exponent}" if exponent else "")
    return f"{sign}{mantissa}{_SUFFIXES[exponent]}"


def _binary(number: int) -> str:
    suffix, rest = "", number
    for name in _BINARY:
        if rest == 0 or rest % 1024:
            break
        suffix, rest = name, rest // 1024
    return f"{rest}{suffix}"


def _mantissa(number: Fraction) -> tuple[int, int]:
    """An integer and a power of ten that is a multiple of three, the greatest that leaves no fraction."""
    units, exponent = int(number * _NANO), -9
    while units % 1000 == 0 and exponent < 18:
        units, exponent = units // 1000, exponent + 3
    return units, exponent
