"""Extender: the contract of kube-scheduler's HTTP extenders, which filter, score, preempt or bind from outside.

Only the contract is here; api/outside/extender.py speaks HTTP. Extenders are asked after all filters, one after the
other, each about the nodes that are left.
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
    """The rows that an extender passes, and (message, final) of those it refused."""

    rows: NDArray[np.int32]
    refused: Mapping[int, tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Victims:
    """The victims on one node, and how many of them violate a disruption budget."""

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
        """The scores to add to the totals, already weighted and scaled."""
        ...

    def preempt(self, cycle: Cycle, victims: Mapping[str, Victims]) -> Mapping[str, Victims]: ...

    def bind(self, cycle: Cycle, row: int) -> Errand: ...
