"""Quarantine: what raised an exception, kept apart so that it costs one attempt and not the scheduler.

A pod, a gang or a job of a round whose attempt raised has one more, in case it was a matter of the moment. If that
raises too it is not tried again until it changes, or until its time is over: ten minutes, and twice as long each time.
Meanwhile its condition, its events and its explanation say why. Everything else goes on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

FIRST, LONGEST = 600.0, 6 * 3600.0
_WORDS = "an error inside the scheduler"


@dataclass(slots=True)
class Quarantined:
    """`fingerprint` is what the object looked like when it raised."""

    reason: str
    until: float
    times: int
    fingerprint: object


class Quarantine:
    def __init__(self) -> None:
        self.held: dict[str, Quarantined] = {}
        self.raised: Counter[str] = Counter()
        """How often something raised, by what was being done."""

    def put(self, key: str, doing: str, error: Exception, *, now: float, fingerprint: object = None) -> str:
        """Keep an object apart; the answer is the reason, as its users read it."""
        known = self.held.get(key)
        times = known.times + 1 if known is not None and known.fingerprint == fingerprint else 1
        until = now + min(LONGEST, FIRST * 2 ** min(times - 2, 10)) if times > 1 else now
        reason = f"{_WORDS}: {type(error).__name__}: {error}"
        self.held[key] = Quarantined(reason, until, times, fingerprint)
        self.raised[doing] += 1
        return reason

    def reason(self, key: str, now: float, fingerprint: object = None) -> str:
        """Why an object may not be tried; empty if it may."""
        held = self.held.get(key)
        if held is None or now >= held.until or held.fingerprint != fingerprint:
            return ""
        return held.reason

    def next_end(self, after: float) -> float | None:
        """When the time of the next object is over that ends later than this; None if there is none."""
        return min((held.until for held in self.held.values() if held.until > after), default=None)

    def sweep(self, now: float) -> None:
        """Forget what has behaved for as long again as it was kept apart."""
        for key, held in [*self.held.items()]:
            if now >= held.until + FIRST * held.times:
                del self.held[key]
