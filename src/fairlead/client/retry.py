"""When to ask again, and how fast to ask at all: backoff with jitter, and a token bucket.

Both are pure: they compute a delay and leave the waiting to the caller. Jitter matters because a thousand clients that
lost one server come back at the same moment otherwise; the random source is passed in, so tests know what to expect.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryDelays:
    """Delays that grow by `factor` up to `most`, each stretched by up to `jitter` of itself."""

    first: float = 0.1
    factor: float = 2.0
    most: float = 10.0
    jitter: float = 0.5

    def delay(self, failures: int, rng: random.Random) -> float:
        """How long to wait after so many failures in a row (1 is the first)."""
        # The exponent is capped because a float overflows long before anybody waits that long.
        plain = min(self.most, self.first * self.factor ** min(failures - 1, 60))
        return plain * (1.0 + self.jitter * rng.random())


class Throttle:
    """A token bucket: `qps` requests a second on average, `burst` at once. `take` says how long to wait first."""

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a throttle needs qps above 0 and a burst of at least 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled_at: float | None = None

    def take(self, now: float) -> float:
        """Take one token at time `now`; the answer is the delay until it is really there (0 when it was)."""
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._qps)
