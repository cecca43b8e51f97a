"""One line of the benchmark table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A measured value and the bar it is held against; `nodes` and `pods` say how large the cluster was."""

    name: str
    value: float
    unit: str
    bar: float
    nodes: int = 0
    pods: int = 0
    note: str = ""
    higher_is_better: bool = True
