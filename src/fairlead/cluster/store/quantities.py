"""Quantities at the API's edge: what may be one in a document, its exact value, and the spelling that is stored.

The arithmetic is the model's (core/model/quantity.py); here is only what the server accepts from JSON. The few distinct
quantities of a cluster come by again and again, so spellings are remembered.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from fairlead.core.model.quantity import Quantity, QuantityError, parse_quantity

QUANTITY_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NANO = 10**9


class NotAQuantity(ValueError):
    """The text is no quantity."""


def canonical(value: Any) -> str:
    """The server's spelling of a quantity given as string or number."""
    return _spelt(value if type(value) is str else _text(value))


def amount(value: Any) -> Fraction:
    """The exact value of a quantity, rounded up to the nano as the server keeps it."""
    return Fraction(nanos(value), NANO)


def nanos(value: Any) -> int:
    """The same as a whole number of nanos, which is quicker to compare."""
    return _read(value if type(value) is str else _text(value)).nanos


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) in (int, float):
        return repr(value)
    raise NotAQuantity(str(value))


@lru_cache(maxsize=8192)
def _spelt(text: str) -> str:
    return str(_read(text))


@lru_cache(maxsize=8192)
def _read(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise NotAQuantity(text) from error
