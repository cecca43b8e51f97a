"""Deadlines: ends requests whose answer takes too long, with one timer for all that wait.

aiohttp sets a timer for each request and another for each piece of its answer. For writes, whose answers are small and
come by the thousand, those timers were a twentieth of what a pod costs.

Invariant: a task is in `_waiting` exactly while it awaits something `within` the limit; the first has waited longest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class Deadlines:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, answer: Awaitable[Answer]) -> Answer:
        """The answer; TimeoutError if it takes longer than the limit."""
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        ends = self._waiting[task] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(ends, self._end_late_ones, loop)
        try:
            return await answer
        except asyncio.CancelledError:
            # Somebody else may have cancelled the task too; then it shall end.
            if task in self._late and task.uncancel() == 0:
                raise TimeoutError(f"no answer within {self._seconds:g} s") from None
            raise
        finally:
            self._waiting.pop(task, None)
            self._late.discard(task)

    def _end_late_ones(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        while self._waiting:
            task, ends = next(iter(self._waiting.items()))
            if ends > loop.time():
                self._timer = loop.call_at(ends, self._end_late_ones, loop)
                return
            del self._waiting[task]
            self._late.add(task)
            task.cancel()
