"""How busy nodes really are: plain numbers with their times, on a board that is written from outside and read within.

Scheduling neither fetches nor waits. The meter puts all that it knows on the board at once; the scheduler takes
what is there when a round opens. `metrics` says where the numbers should come from, as a configuration has it.

Invariant: a mapping that was put on the board is never changed, only replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.core.model.documents import EMPTY

_FRESH_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """How busy a node was on average over ten minutes, in percent, and when that was found out."""

    cpu: float
    memory: float
    measured: float

    def is_fresh(self, now: float) -> bool:
        return now - self.measured <= _FRESH_SECONDS


class UsageBoard:
    """The newest numbers by node name. Putting and taking may happen in different threads."""

    def __init__(self, metrics: Mapping[str, str] = EMPTY) -> None:
        self.metrics = metrics
        self._usage: Mapping[str, NodeUsage] = {}

    def put(self, usage: Mapping[str, NodeUsage]) -> None:
        self._usage = usage

    def usage(self) -> Mapping[str, NodeUsage]:
        return self._usage
