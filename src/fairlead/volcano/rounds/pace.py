"""RoundPace: when the next round of a profile begins.

A round is due when its period is over and something changed. A round that broke off is followed by the next at once,
because that one leaves out the job that was to blame.
"""

from __future__ import annotations


class RoundPace:
    __slots__ = ("broken_off", "changed", "next_at", "opened_at")

    def __init__(self) -> None:
        self.next_at: float | None = None
        self.changed = False
        self.opened_at = float("-inf")
        self.broken_off = False
        """Whether the next round comes at once."""

    def noticed(self, now: float) -> None:
        """The cluster changed: a round is due."""
        self.changed = True
        if self.next_at is None:
            self.next_at = now

    def opened(self, now: float) -> None:
        self.changed, self.opened_at = False, now

    def ended(self, now: float, period: float) -> None:
        """The next round begins a period from now, or at once."""
        self.next_at = now if self.broken_off else now + period
        self.broken_off = False
