"""A clock of the test's own for coroutines that sleep: an election of a minute takes none."""

from __future__ import annotations

import asyncio
import heapq


class Time:
    """Virtual time for coroutines: it moves when everybody sleeps."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, self._count, future))
        await future

    async def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            for _ in range(20):
                await asyncio.sleep(0)
            if not self._sleepers or self._sleepers[0][0] > end:
                break
            self.now, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
        self.now = end
