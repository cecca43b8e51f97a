"""WorkTogether and PodsAhead: pods of a job that hold places while their work waits for the others.

A pod of a gang that waits for the rest of it holds its node and computes nothing, and two gangs that hold half of what
each needs wait for each other for ever. The report names such jobs and the GPU hours that they held.

Invariant: `lost` counts every second of every pod that had a node while too few ran.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class WorkTogether:
    """One job's pods. `needed` of them have to run at once; those that succeeded count on."""

    needed: int
    held: int = 0
    running: int = 0
    succeeded: int = 0
    lost: float = 0.0
    """Seconds for which pods held a place and waited."""
    _since: float = 0.0

    @property
    def works(self) -> bool:
        return self.needed <= 1 or self.running + self.succeeded >= self.needed

    @property
    def will_end(self) -> int:
        """How many pods that have a node are to end, once they run for as long as they say."""
        return self.held if self.needed <= 1 or self.held + self.succeeded >= self.needed else 0

    def change(self, now: float, *, held: int = 0, running: int = 0, succeeded: int = 0) -> None:
        """Count pods that got a place or lost it, that began to run or ended."""
        if not self.works:
            self.lost += self.held * (now - self._since)
        self.held += held
        self.running += running
        self.succeeded += succeeded
        self._since = now


@dataclass(slots=True)
class PodsAhead:
    """What is still to happen to the pods of jobs that have arrived, and what ended gangs held while they waited."""

    ending: int = 0
    """How many pods have a node and will end by themselves: of a gang none before enough have a node."""
    to_come: int = 0
    """How many are yet to be created."""
    waited: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """For how many seconds pods of jobs that have ended held cores and GPUs while their work waited."""
    broken: list[str] = field(default_factory=list)
    """Names of pods whose gang can never work again."""
