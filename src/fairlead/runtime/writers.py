"""Writers: perform what controllers request, in order per object, and report each outcome exactly once.

`ConcurrentWriter` speaks to any ClusterApi: many writes are on their way at once, the most urgent first (see
write_queue.py), but two writes to one object follow each other. `StoreWriter` is the short way to an embedded Store: no
tasks and no awaiting, a slice of the queue in each turn of the loop, so that the API server on the same loop stays
responsive.

Invariant: every Write that was submitted gets one Reply, unless the writer was cut off at the end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fairlead.core.model.flow import Doc, Reply, Write
from fairlead.errors import ApiError, InternalError, NotSent
from fairlead.runtime.known_state import KnownState
from fairlead.runtime.write_queue import Queued, WriteFigures, WriteQueue, class_of

if TYPE_CHECKING:
    from fairlead.client.port import ClusterApi
    from fairlead.client.retry import Throttle
    from fairlead.cluster.store.store import Store
    from fairlead.runtime.known_state import Mirrored

log = logging.getLogger("fairlead.runtime")

Deliver = Callable[[Sequence[Reply]], None]

SLICE = 0.004
"""Seconds of work for which a StoreWriter may hold the event loop at a time. What it waits for other threads does not
count: the busier they are, the more a transaction has to be worth its while."""


@dataclass(frozen=True, slots=True)
class SendingRules:
    """`may_write` says whether this process may write now: only a leader does. `writes` and `events` are limits on
    requests a second, if there are any. `answered` is called with every answer of the API."""

    may_write: Callable[[], bool] = lambda: True
    writes: Throttle | None = None
    events: Throttle | None = None
    answered: Callable[[Reply], None] = lambda reply: None

    def throttle(self, *, events: bool) -> Throttle | None:
        return self.events if events else self.writes


_ANY_TIME = SendingRules()


class Writer(Protocol):
    def submit(self, writes: Sequence[Write]) -> None: ...

    async def finish(self, within: float) -> int:
        """Wait for what is on its way, but not longer than that; the answer is how many writes were given up."""
        ...

    def cut(self) -> None:
        """Give up whatever is left, at once."""
        ...

    def figures(self) -> WriteFigures:
        """What waits to be written."""
        ...


class ConcurrentWriter:
    """Many writes at a time over a ClusterApi, as a WriteQueue gives them out. Nothing is sent unless `may_write`."""

    def __init__(
        self,
        api: ClusterApi,
        deliver: Deliver,
        *,
        in_flight: int = 64,
        rules: SendingRules = _ANY_TIME,
        mirrored: Mirrored = lambda kind, namespace, name: None,
    ) -> None:
        """`mirrored` returns what a watch last showed of an object."""
        self._known = KnownState(mirrored)
        self._api = api
        self._deliver = deliver
        self._rules = rules
        self._queue = WriteQueue(in_flight)
        self._workers: set[asyncio.Task[None]] = set()
        self._choosing = {False: 0, True: 0}
        """Workers that have nothing to send yet, of everything else and of events: they have just been started or wait
        for the limit on requests a second."""

    def submit(self, writes: Sequence[Write]) -> None:
        if not writes:
            return
        unsent = self._queue.submit(writes, _now())
        if unsent:
            self._deliver(unsent)
        self._start_workers(events=False)
        self._start_workers(events=True)

    def figures(self) -> WriteFigures:
        return self._queue.figures(_now())

    async def finish(self, within: float) -> int:
        ends = _now() + within
        while self._workers and (left := ends - _now()) > 0:
            await asyncio.wait(set(self._workers), timeout=left, return_when=asyncio.FIRST_COMPLETED)
        given_up = self._queue.give_up()
        self.cut()
        if self._workers:
            await asyncio.wait(set(self._workers))
        return given_up

    def cut(self) -> None:
        self._queue.give_up()
        for worker in self._workers:
            worker.cancel()

    def _start_workers(self, *, events: bool) -> None:
        """As many as there are writes that could be sent now. A worker sends one write after another and ends when none
        is left for it, so that a write seldom costs a task of its own."""
        for _ in range(self._queue.sendable(events=events) - self._choosing[events]):
            self._choosing[events] += 1
            worker = asyncio.get_running_loop().create_task(self._work(events=events))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self, *, events: bool) -> None:
        """What to send is decided when the limit allows it, so that the most urgent goes however long others waited."""
        throttle, clock = self._rules.throttle(events=events), asyncio.get_running_loop().time
        while True:
            try:
                if throttle is not None and (delay := throttle.take(clock())):
                    await asyncio.sleep(delay)
            finally:
                self._choosing[events] -= 1
            queued = self._take(events=events)
            if not events and self._queue.events_wait:  # fewer binds wait now, so that more events may go
                self._start_workers(events=True)
            if queued is not None:
                await self._send(queued, clock)
            if (others := self._queue.sendable(events=events) - self._choosing[events] - 1) < 0:
                return
            self._choosing[events] += 1
            if others:
                self._start_workers(events=events)

    def _take(self, *, events: bool) -> Queued | None:
        """The next to send. Patches that have become true meanwhile are answered without a request."""
        while (queued := self._queue.take(events=events)) is not None:
            doc = self._known.says_already(queued.write)
            if doc is None:
                return queued
            self._queue.done(queued, _now(), 0.0, None, sent=False)
            self._deliver(queued.replies(doc, None))
        return None

    async def _send(self, queued: Queued, clock: Callable[[], float]) -> None:
        began = clock()
        if self._rules.may_write():
            reply = await _performed(self._api, queued.write)
        else:
            reply = Reply(queued.write, None, NotSent("this process does not lead (any more)"))
        ended = clock()
        if reply.error is None:
            self._known.answered(queued.write, reply.doc)
        self._queue.done(queued, ended, ended - began, reply.error)
        self._rules.answered(reply)
        self._deliver(queued.replies(reply.doc, reply.error))


def _now() -> float:
    """Seconds, by the clock of the event loop."""
    return asyncio.get_running_loop().time()


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

    def figures(self) -> WriteFigures:
        waiting = Counter(class_of(write) for write in self._queue)
        return WriteFigures(waiting, {}, {})

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
        except ApiError:
            # The disk would not have it: nothing of this turn happened. A deletion by itself may be possible.
            replies = [reply if reply.error else _outcome(self._store.perform, reply.write) for reply in replies]
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
        write.verb.value,
        write.kind.resource,
        write.namespace,
        write.name,
        exc_info=error,
    )
    return Reply(write, None, InternalError(f"{type(error).__name__}: {error}"))
