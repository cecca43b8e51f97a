"""Sweeps: the moments at which entries that have been parked for too long are looked for.

A sweep is due at a fixed period. It counts as of the moment when it was due, so that a late caller finds the same
entries as a punctual one.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Entry

SWEEP_PERIOD = 30.0
"""Seconds between two sweeps (kube-scheduler flushes its unschedulable pods every 30 s)."""


class Sweeps:
    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._next: float | None = None

    def reconfigure(self, limit: float) -> None:
        """Let entries be parked for so many seconds at most from now on."""
        self.limit = limit

    def cutoff(self, now: float) -> float | None:
        """If a sweep is due, the moment before which an entry must have been parked to be moved; else None."""
        if self._next is not None and now < self._next:
            return None
        start = now if self._next is None else self._next
        due = start + SWEEP_PERIOD * floor((now - start) / SWEEP_PERIOD)
        self._next = due + SWEEP_PERIOD
        return due - self.limit

    def of(self, entry: Entry, now: float) -> float:
        """The first sweep that finds an entry parked for too long."""
        start = now if self._next is None else self._next
        sweep = start + SWEEP_PERIOD * max(0, floor((entry.parked_since + self.limit - start) / SWEEP_PERIOD))
        while not entry.parked_since < sweep - self.limit:
            sweep += SWEEP_PERIOD
        return sweep
