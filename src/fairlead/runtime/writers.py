"""Writers: perform what controllers ask for, in order per object, and report each outcome exactly once.

`ConcurrentWriter` speaks to any ClusterApi: many writes are on their way at once, bounded, but two writes to one object
follow each other. `StoreWriter` is the short way to an embedded Store: no tasks and no awaiting, a slice of the queue
in each turn of the loop, so that the API server on the same loop stays responsive.

Invariant: every Write that was submitted gets one Reply, unless the writer was cut off at the end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from fairlead.errors import ApiError, InternalError
from fairlead.model.flow import Doc, Reply, Write

if TYPE_CHECKING:
    from fairlead.api.port import ClusterApi
    from fairlead.api.store.store import Store
    from fairlead.model.kinds import Kind

log = logging.getLogger("fairlead.runtime")

Deliver = Callable[[Sequence[Reply]], None]
_Key = tuple["Kind", str, str]

SLICE = 0.004
"""Seconds of work for which a StoreWriter may hold the event loop at a time. What it waits for other threads does not
count: the busier they are, the more a transaction has to be worth its while."""


class Writer(Protocol):
    def submit(self, writes: Sequence[Write]) -> None: ...

    async def finish(self, within: float) -> int:
        """Wait for what is on its way, but not longer than that; the answer is how many writes were given up."""
        ...

    def cut(self) -> None:
        """Give up whatever is left, at once."""
        ...


class ConcurrentWriter:
    """Up to `in_flight` writes at a time over a ClusterApi."""

    def __init__(self, api: ClusterApi, deliver: Deliver, *, in_flight: int = 64) -> None:
        self._api = api
        self._deliver = deliver
        self._in_flight = in_flight
        self._lanes: dict[_Key, deque[Write]] = {}
        self._ready: deque[_Key] = deque()
        self._workers: set[asyncio.Task[None]] = set()

    def submit(self, writes: Sequence[Write]) -> None:
        for write in writes:
            key = _object(write)
            lane = self._lanes.get(key)
            if lane is None:
                self._lanes[key] = deque((write,))
                self._ready.append(key)
            else:
                lane.append(write)
        for _ in range(min(len(self._ready), self._in_flight - len(self._workers))):
            worker = asyncio.get_running_loop().create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def finish(self, within: float) -> int:
        if self._workers:
            await asyncio.wait(set(self._workers), timeout=within)
        left = sum(map(len, self._lanes.values()))
        self.cut()
        if self._workers:
            await asyncio.wait(set(self._workers))
        return left

    def cut(self) -> None:
        self._ready.clear()
        self._lanes.clear()
        for worker in self._workers:
            worker.cancel()

    async def _work(self) -> None:
        while self._ready:
            key = self._ready.popleft()
            lane = self._lanes[key]
            reply = await _performed(self._api, lane[0])
            lane.popleft()
            if lane:
                self._ready.append(key)
            else:
                del self._lanes[key]
            self._deliver((reply,))


class StoreWriter:
    """The same on a Store. Order per object comes for free: there is only one queue. What a turn writes is one
    transaction of the journal, and its replies are delivered when that is done."""

    def __init__(self, store: Store, deliver: Deliver, *, slice_: float = SLICE) -> None:
        self._store = store
        self._deliver = deliver
        self._slice = slice_
        self._queue: deque[Write] = deque()
        self._turning: asyncio.Handle | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    def submit(self, writes: Sequence[Write]) -> None:
        self._queue.extend(writes)
        if self._queue and self._turning is None:
            self._empty.clear()
            self._turning = asyncio.get_running_loop().call_soon(self._turn)

    async def finish(self, within: float) -> int:
        try:
            async with asyncio.timeout(within):
                await self._empty.wait()
        except TimeoutError:
            pass
        left = len(self._queue)
        self.cut()
        return left

    def cut(self) -> None:
        self._queue.clear()
        if self._turning is not None:
            self._turning.cancel()
            self._turning = None
        self._empty.set()

    def _turn(self) -> None:
        replies: list[Reply] = []
        try:
            with self._store.batch():
                self._perform_a_slice(replies)
        except ApiError as error:
            # The disk would not have it: nothing of this turn happened.
            replies = [Reply(reply.write, None, reply.error or error) for reply in replies]
        if self._queue:
            self._turning = asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._turning = None
            self._empty.set()
        self._deliver(replies)

    def _perform_a_slice(self, replies: list[Reply]) -> None:
        ends = time.thread_time() + self._slice
        while self._queue:
            replies.append(_outcome(self._store.perform, self._queue.popleft()))
            if time.thread_time() > ends:
                return


def _object(write: Write) -> _Key:
    """What a write is about. Objects that are yet to be named have no order among them."""
    return write.kind.storage, write.namespace, write.name or f"?{id(write)}"


async def _performed(api: ClusterApi, write: Write) -> Reply:
    try:
        return Reply(write, await api.perform(write))
    except ApiError as error:
        return Reply(write, None, error)
    except Exception as error:
        return _surprise(write, error)


def _outcome(perform: Callable[[Write], Doc], write: Write) -> Reply:
    try:
        return Reply(write, perform(write))
    except ApiError as error:
        return Reply(write, None, error)
    except Exception as error:
        return _surprise(write, error)


def _surprise(write: Write, error: Exception) -> Reply:
    """A defect of ours must not cost the controller its reply, nor pass unseen."""
    log.error(
        "write failed unexpectedly: %s %s %s/%s",
        write.verb.value, write.kind.resource, write.namespace, write.name, exc_info=error,
    )  # fmt: skip
    return Reply(write, None, InternalError(f"{type(error).__name__}: {error}"))
