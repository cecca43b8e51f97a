"""LoopThread: asynchronous work in a thread of its own, for callers that are synchronous.

    with LoopThread(work, name="cluster") as thread:     # returns when the work says that it has begun
        thread.call(function)                            # in the loop's thread, between two of its callbacks

`work` is a coroutine function of two arguments: `begun`, a function to call when it is ready for `call`, and
`stopped`, an Event that is set when it shall end. Invariant: an error of the work is raised in the caller that waits
for it to begin or to end, never lost.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

Answer = TypeVar("Answer")
Work = Callable[[Callable[[], None], asyncio.Event], Coroutine[Any, Any, None]]

_PATIENCE = 30.0
"""Seconds to wait for the beginning, for a call and for the end."""


class LoopThread:
    """Runs `work` until it ends by itself or is closed."""

    def __init__(self, work: Work, *, name: str) -> None:
        self._work = work
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._stopped = asyncio.Event()
        self._begun: Future[None] = Future()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        try:
            self._begun.result(timeout=_PATIENCE)
        except BaseException:
            self._error = None  # it is being raised
            self.close()
            raise

    def call(self, deed: Callable[[], Answer]) -> Answer:
        """Do something in the loop's thread and wait for it."""

        async def done() -> Answer:
            return deed()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(timeout=_PATIENCE)

    def close(self) -> None:
        """Let the work end and wait for it. Raises what it ended with, if that was an error."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout=_PATIENCE)
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        try:
            with self._runner:
                self._runner.run(self._work(self._has_begun, self._stopped))
        except BaseException as error:
            self._error = error
            if not self._begun.done():
                self._begun.set_exception(error)

    def _has_begun(self) -> None:
        if not self._begun.done():
            self._begun.set_result(None)
