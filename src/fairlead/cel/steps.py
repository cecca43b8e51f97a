"""Steps: what an expression has cost while it runs, in the units of the API server, and what it may still cost.

A name, a field and most calls cost one step; calls that go through texts or lists cost what their sizes make of it, as
cel-go counts them (interpreter/runtimecost.go, and Kubernetes' library/cost.go for its own functions). A caller that
runs an expression gives it a number of steps, so that equal inputs end in the same place on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

from fairlead.cel.values import Maybe, ObjectValue

PER_CALL = 1_000_000
"""Steps that the API server allows one evaluation."""


class CostExceeded(Exception):
    """More steps than were allowed. No expression can forgive that, so this is no CelError."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


ROOM = 10_000_000
"""Characters and elements that one evaluation may produce or compare. The original has no such limit: it counts a list
in a list, and a text that is put together from others, as one."""
COMPARED = 5
"""As many of them a compared element counts for."""


class Steps:
    """What is left for an evaluation."""

    __slots__ = ("left", "room")

    def __init__(self, left: int = PER_CALL) -> None:
        self.left = left
        self.room = ROOM

    def fill(self, count: int) -> None:
        """Raises CostExceeded if there is not so much room."""
        self.room -= count
        if self.room < 0:
            raise CostExceeded

    def take(self, count: int) -> None:
        """Raises CostExceeded if there are not so many."""
        self.left -= count
        if self.left < 0:
            raise CostExceeded


def size_of(value: Any) -> int:
    if isinstance(value, ObjectValue):
        return len(value.raw)
    if isinstance(value, str | bytes | list | Mapping):
        return len(value)
    return size_of(value.value) if isinstance(value, Maybe) and value.there else 1


def whole_size(value: Any) -> int:
    """All that is in a value, and it."""
    if isinstance(value, list):
        return 1 + sum(map(whole_size, value))
    if isinstance(value, Mapping):
        return 1 + sum(map(whole_size, value.values()))
    return 1


def _characters(size: float, factor: float = 0.1) -> int:
    return ceil(size * factor)


def _compared(values: Sequence[Any], result: Any) -> int:
    return _characters(min(size_of(values[0]), size_of(values[1])))


def _read(values: Sequence[Any], result: Any) -> int:
    return _characters(size_of(values[0]))


def _read_twice(values: Sequence[Any], result: Any) -> int:
    return _characters(size_of(values[0]), 0.2)


def _converted(kind: type[str] | type[bytes]) -> Callable[[Sequence[Any], Any], int]:
    def cost(values: Sequence[Any], result: Any) -> int:
        return _characters(len(values[0])) if isinstance(values[0], kind) else 1

    return cost


def _added(values: Sequence[Any], result: Any) -> int:
    return _characters(len(values[0]) + len(values[1])) if isinstance(values[0], str | bytes) else 1


def _ordered(values: Sequence[Any], result: Any) -> int:
    return _compared(values, result) if isinstance(values[0], str | bytes) else 1


def _contained(values: Sequence[Any], result: Any) -> int:
    return len(values[1]) if isinstance(values[1], list) else 1


def _searched(values: Sequence[Any], result: Any) -> int:
    return _characters(1 + size_of(values[0])) * _characters(size_of(values[1]), 0.25)


def _substring(values: Sequence[Any], result: Any) -> int:
    return _characters(size_of(values[0])) * _characters(size_of(values[1]))


def _through(values: Sequence[Any], result: Any) -> int:
    return _traversed(values[0])


def _traversed(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode(errors="replace")) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if isinstance(value, list):
        return sum(map(_traversed, value))
    if isinstance(value, Mapping):
        return sum(_traversed(key) + _traversed(item) for key, item in value.items())
    return 1


def _joined(values: Sequence[Any], result: Any) -> int:
    return _characters(size_of(result), 0.2)


def _in_network(values: Sequence[Any], result: Any) -> int:
    length = len(values[0].address.packed)
    return _characters(2 * length) + (_read(values[1:], result) if isinstance(values[1], str) else 0)


def _network_in_network(values: Sequence[Any], result: Any) -> int:
    return _in_network(values, result) + _characters(len(values[0].address.packed)) + 1


def _sets(factor: int) -> Callable[[Sequence[Any], Any], int]:
    return lambda values, result: 1 + factor * size_of(values[0]) * size_of(values[1])


def _new_list(values: Sequence[Any], result: Any) -> int:
    return 11 + size_of(result)


def _flattened(values: Sequence[Any], result: Any) -> int:
    return 11 + size_of(values[0]) * (values[1] if len(values) == 2 else 1)


def squared(items: list[Any]) -> int:
    """The cost of comparing each element with each."""
    factor = 2.1 if items and isinstance(items[0], str | bytes) else 2.0
    return 11 + int(len(items) ** 2 * factor)


def _address(values: Sequence[Any], result: Any) -> int:
    return _read(values, result) if isinstance(values[0], str) else 1


CALLS: Mapping[str, Callable[[Sequence[Any], Any], int]] = {
    **dict.fromkeys(("_==_", "_!=_"), _compared),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    "_+_": _added, "@in": _contained, "matches": _searched, "contains": _substring, "find": _searched,
    "findAll": _searched, "bytes": _converted(str), "string": _converted(bytes),
    **dict.fromkeys(
        ("startsWith", "endsWith", "strings.quote", "format", "url", "lowerAscii", "upperAscii", "substring", "trim",
         "cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _read),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _read_twice),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _through),
    "join": _joined, "ip": _address, "containsIP": _in_network, "containsCIDR": _network_in_network,
    "sets.contains": _sets(1), "sets.intersects": _sets(1), "sets.equivalent": _sets(2),
    **dict.fromkeys(("slice", "lists.range", "reverse"), _new_list), "flatten": _flattened,
    "distinct": lambda values, result: squared(values[0]), "sort": lambda values, result: squared(values[0]),
    "validate": lambda values, result: values[0].cost(values[1]),
}  # fmt: skip
"""What a call costs by its values and its result; functions that are not here cost one step."""
BY_RESULT = frozenset({"join", "slice", "lists.range", "reverse"})
"""Functions whose costs depend on the result: the others pay before they begin."""
