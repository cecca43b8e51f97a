"""Retries: how often something has failed in a row, and the pause before it is tried again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from fairlead.client.retry import RetryDelays


class Retries:
    """`rng` stretches the pauses, and `sleep` makes them."""

    def __init__(
        self,
        delays: RetryDelays | None = None,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._delays = delays or RetryDelays(first=0.5, most=30.0, jitter=1.0)
        self._rng = rng or random.Random()
        self._sleep = sleep
        self.failures = 0

    def worked(self) -> None:
        """The next failure is the first again."""
        self.failures = 0

    def failed(self, delays: RetryDelays | None = None) -> float:
        """Count a failure; returns how long to pause after it, by other delays than usual if some are given."""
        self.failures += 1
        return (delays or self._delays).delay(self.failures, self._rng)

    async def after_first(self) -> None:
        """Count a failure that is tried again at once the first time, and after pauses from then on."""
        self.failures += 1
        if self.failures > 1:
            await self._sleep(self._delays.delay(self.failures - 1, self._rng))

    async def pause(self, seconds: float) -> None:
        await self._sleep(seconds)
