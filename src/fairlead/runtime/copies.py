"""Copies: a question that may change everything is answered in a copy of this process.

    on the controller's thread, between two steps:   fork ──▶ the controller goes on at once
                                                       └────▶ the copy answers, writes the answer to a pipe, and ends

The copy has the controller exactly as it was at that moment, with its queues, its generator and its caches, and shares
the memory with the original until one of them writes to it. So a question costs the controller one fork, whatever it
asks; nothing that it does can be seen outside, and a question that is cut off leaves no trace.

Invariant: a copy runs no code but the question's. It closes every file and socket that it inherited before it begins,
and ends without cleaning up, because what there is to clean up belongs to the original.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NoReturn, TypeVar

from fairlead.errors import FairleadError, TooManyRequests

Answer = TypeVar("Answer")
LIMIT = 60.0
"""Seconds that a question may take."""
_READ = 1 << 16


class CopyFailed(FairleadError):
    """A copy ended without an answer, or took too long."""


class ProcessCopy(Generic[Answer]):
    """A copy that works on a question. `result` waits for the answer; `cancel` ends the copy."""

    def __init__(self, question: Callable[[], Answer], *, limit: float = LIMIT) -> None:
        self._ends_at = time.monotonic() + limit
        self._limit = limit
        self._ending = threading.Lock()
        self._pipe, theirs = os.pipe()
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            _answer_and_end(question, theirs)
        os.close(theirs)

    def result(self) -> Answer:
        """What the question returned; what it raised is raised."""
        try:
            parts = []
            while (part := self._read()) != b"":
                parts.append(part)
        finally:
            self.cancel()
        if not parts:
            raise CopyFailed("the copy that answers the question ended without an answer")
        returned, outcome = pickle.loads(b"".join(parts))
        if not returned:
            raise outcome
        answer: Answer = outcome
        return answer

    def _read(self) -> bytes:
        left = self._ends_at - time.monotonic()
        ready = left > 0 and select.select([self._pipe], [], [], left)[0]
        if not ready:
            raise CopyFailed(f"the question took more than {self._limit:g} s and was cut off")
        return os.read(self._pipe, _READ)

    def cancel(self) -> None:
        """End the copy, whatever it is at. Does nothing the second time."""
        with self._ending:
            pid, self._pid = self._pid, 0
        if pid:
            os.close(self._pipe)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def kill(self) -> None:
        """End the copy while another thread waits for its `result`, which then raises CopyFailed."""
        with self._ending:
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)


def branch(question: Callable[[], Answer]) -> Answer:
    """The answer of a copy that is made now. A copy may branch again, to try one thing and then another."""
    return ProcessCopy(question).result()


class CopyPool:
    """Waits for copies, so that neither the controller's thread nor the event loop has to. At most `most` copies are
    made and work at a time, because each needs a processor; `waiting` more questions may wait for their turn."""

    def __init__(self, most: int = 2, *, waiting: int = 32) -> None:
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="question")
        self._free = asyncio.Semaphore(most)
        self._asked, self._most_asked = 0, most + waiting

    async def ask(
        self,
        ask: Callable[[Callable[[Any], ProcessCopy[Answer]]], Future[ProcessCopy[Answer]]],
        question: Callable[[Any], Answer],
    ) -> Answer:
        """The answer of a copy of a controller. `ask` is a runtime's, with the controller given. Cancelling ends the
        copy. Raises TooManyRequests if too many wait already."""
        if self._asked >= self._most_asked:
            raise TooManyRequests("too many questions wait to be answered, please try again later", retry_after=1)
        self._asked += 1
        try:
            async with self._free:
                copy = await asyncio.wrap_future(ask(lambda controller: ProcessCopy(lambda: question(controller))))
                try:
                    return await asyncio.get_running_loop().run_in_executor(self._threads, copy.result)
                except asyncio.CancelledError:
                    copy.kill()
                    raise
        finally:
            self._asked -= 1


def _answer_and_end(question: Callable[[], Any], pipe: int) -> NoReturn:
    """The whole life of a copy."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        gc.disable()
        os.closerange(3, pipe)
        os.closerange(pipe + 1, _most_files())
        try:
            outcome = (True, question())
        except Exception as error:
            outcome = (False, error)
        _write(pipe, _pickled(outcome))
    finally:
        os._exit(0)


def _most_files() -> int:
    """One more than the highest file that is open."""
    try:
        return max(map(int, os.listdir("/proc/self/fd"))) + 1
    except OSError:
        return 4096


def _pickled(outcome: tuple[bool, Any]) -> bytes:
    try:
        packed = pickle.dumps(outcome)
        pickle.loads(packed)  # an exception with arguments of its own may be packed and not unpacked
        return packed
    except Exception as error:
        return pickle.dumps((False, CopyFailed(f"{type(outcome[1]).__name__}: {outcome[1]} ({error})")))


def _write(pipe: int, packed: bytes) -> None:
    view = memoryview(packed)
    while view:
        view = view[os.write(pipe, view) :]
