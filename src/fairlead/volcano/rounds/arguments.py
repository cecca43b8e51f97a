"""Arguments: what a configuration file says to a plugin, read as Volcano reads it.

A value of the wrong type counts as not given. Whole numbers must be whole numbers, other numbers may be either, and
true and false may be spelt out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_SPELT = {"true": True, "false": False}


class Arguments:
    __slots__ = ("_given",)

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._given = given or {}

    def whole(self, name: str, default: int, *, least: int | None = None) -> int:
        """A whole number; one below `least` is the default."""
        value = self._given.get(name)
        if type(value) is not int or (least is not None and value < least):
            return default
        return value

    def number(self, name: str, default: float, *, least: float | None = None) -> float:
        value = self._given.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or (least is not None and value < least):
            return default
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._given.get(name)
        if isinstance(value, str):
            value = _SPELT.get(value.lower())
        return value if isinstance(value, bool) else default

    def text(self, name: str, default: str = "") -> str:
        value = self._given.get(name)
        return value if isinstance(value, str) else default

    def names(self, name: str) -> list[str]:
        """A list separated by commas."""
        return [part.strip() for part in self.text(name).split(",") if part.strip()]

    def mapping(self, name: str) -> Arguments:
        """Arguments within arguments."""
        value = self._given.get(name)
        return Arguments(value if isinstance(value, Mapping) else None)

    def raw(self, name: str) -> Any:
        return self._given.get(name)

    def __iter__(self) -> Iterator[str]:
        return (str(name) for name in self._given)

    def items(self) -> list[tuple[str, Any]]:
        return [(str(name), value) for name, value in self._given.items()]

    def __contains__(self, name: str) -> bool:
        return name in self._given


def resource_weights(arguments: Arguments, prefix: str) -> dict[str, int]:
    """What resources weigh, as binpack and network-topology-aware are configured: cpu, memory, and those that are
    listed under `<prefix>.resources`; a weight below zero is 1."""
    listed = arguments.names(f"{prefix}.resources")
    weights = {name: arguments.whole(f"{prefix}.resources.{name}", 1, least=0) for name in listed}
    for name in ("cpu", "memory"):
        weights[name] = arguments.whole(f"{prefix}.{name}", 1, least=0)
    return weights
