"""Extender: somebody outside who is asked, over the wire, to filter, weigh, preempt or bind. Only the contract is here;
api/outside/extender.py speaks HTTP.

An extender sees the nodes that all plugins left over, after them, and one after the other on the shrinking list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.framework.plugin import Errand
    from fairlead.model.pod import Pod

PSEUDO_PLUGIN = "Extender"
"""The name under which a refusal by an extender is recorded."""


@dataclass(frozen=True, slots=True)
class Extended:
    """Rows left over, and what was said of the others: (message, final)."""

    rows: NDArray[np.int32]
    refused: Mapping[int, tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods that would have to go from one node, and how many budgets that would violate."""

    pods: tuple[Pod, ...]
    violations: int


class Extender(Protocol):
    """Each verb raises ExtenderError when it fails; `ignorable` says whether scheduling goes on without it."""

    name: str
    ignorable: bool
    filters: bool
    prioritizes: bool
    preempts: bool
    binds: bool

    def interested(self, pod: Pod) -> bool: ...

    def filter(self, cycle: Cycle, rows: NDArray[np.int32]) -> Extended: ...

    def prioritize(self, cycle: Cycle, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """What is added to the totals, weight and scale included."""
        ...

    def preempt(self, cycle: Cycle, victims: Mapping[str, Victims]) -> Mapping[str, Victims]: ...

    def bind(self, cycle: Cycle, row: int) -> Errand: ...
