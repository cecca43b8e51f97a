"""Rows of a run of the laboratory, kept in memory by table instead of being written to files."""

from __future__ import annotations

from collections import defaultdict
from typing import Any


class KeptRows(defaultdict[str, list[tuple[Any, ...]]]):
    """The rows of each table, in the order in which they came."""

    def __init__(self) -> None:
        super().__init__(list)

    def add(self, table: str, *row: Any) -> None:
        self[table].append(row)
