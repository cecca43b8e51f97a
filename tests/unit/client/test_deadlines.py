"""Deadlines end what takes too long, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.client.deadlines import Deadlines
from tests.support.virtual_loop import now, run_virtually


def test_each_request_is_ended_after_its_own_time() -> None:
    async def play() -> None:
        deadlines, ended, began = Deadlines(10), [], now()

        async def ask(name: str, after: float, seconds: float) -> None:
            await asyncio.sleep(after)
            try:
                await deadlines.within(asyncio.sleep(seconds))
                ended.append((name, "answered", now() - began))
            except TimeoutError:
                ended.append((name, "late", now() - began))

        await asyncio.gather(ask("a", 0, 30), ask("b", 3, 5), ask("c", 4, 60), ask("d", 40, 10.5))
        assert ended == [("b", "answered", 8), ("a", "late", 10), ("c", "late", 14), ("d", "late", 50)]

    run_virtually(play())


def test_a_task_that_is_cancelled_by_somebody_else_is_not_reported_as_a_timeout() -> None:
    async def play() -> None:
        task = asyncio.ensure_future(Deadlines(10).within(asyncio.sleep(30)))
        await asyncio.sleep(5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtually(play())


def test_the_same_task_may_ask_again_after_a_timeout() -> None:
    async def play() -> None:
        deadlines = Deadlines(1)
        for _ in range(2):
            with pytest.raises(TimeoutError, match="no answer within 1 s"):
                await deadlines.within(asyncio.sleep(5))
        await deadlines.within(asyncio.sleep(0.5))
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    run_virtually(play())
