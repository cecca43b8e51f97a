"""What a column is, and the words that cells are made of: ages, joined lists, selectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.model.flow import Doc

Cell = Callable[["Doc", float], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a Table: its definition, and how a cell is made from a document and the time."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self) -> Doc:
        return {
            "name": self.name, "type": self.type, "format": self.format, "description": "", "priority": self.priority,
        }  # fmt: skip


def seconds_of(timestamp: str) -> float:
    """Seconds since the epoch of an RFC 3339 time."""
    return datetime.fromisoformat(timestamp).timestamp()


def human_duration(seconds: float) -> str:
    """`45s`, `5m10s`, `3h15m`, `2d3h`, `12d`, `2y45d`: two units while they matter, then one."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 60 * 2:
        return f"{total}s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if minutes < 10:
        return _two(minutes, "m", total % 60, "s")
    if minutes < 60 * 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def age_of(timestamp: str | None, now: float) -> str:
    return human_duration(now - seconds_of(timestamp)) if timestamp else "<unknown>"


def name(doc: Doc, now: float) -> Any:
    return doc["metadata"]["name"]


def age(doc: Doc, now: float) -> Any:
    return age_of(doc["metadata"].get("creationTimestamp"), now)


NAME = Column("Name", name, format="name")
AGE = Column("Age", age)
