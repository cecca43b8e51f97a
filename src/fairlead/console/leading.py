"""What `fairlead scheduler` and `fairlead controllers` do with a lease: stand by, lead, and end.

    stand by ──elected──▶ schedule ──signal──▶ finish writes ──▶ release
                              └──lost──▶ FairleadError

A process that stands by watches the cluster already, as kube-scheduler does unless `delayCacheUntilActive` is set, so
that taking over needs no lists, however large the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from fairlead.errors import FairleadError
from fairlead.runtime.collecting import collect_rarely
from fairlead.runtime.leader import LeadershipLost

if TYPE_CHECKING:
    from fairlead.runtime.lease_chain import Candidate
    from fairlead.runtime.live import LiveRuntime

log = logging.getLogger("fairlead.scheduler")


async def lead(elector: Candidate | None, runtime: LiveRuntime, stopping: asyncio.Event, *, stands_by: bool) -> None:
    """Run until `stopping` is set or the runtime ends by itself. Without an elector it runs at once."""
    if elector is None:
        await _until(stopping, asyncio.create_task(_work(runtime, None)), unelected=lambda: False)
        return
    async with _standing_by(runtime if stands_by else None) as watching:
        leading = asyncio.create_task(elector.run(lambda: _work(runtime, watching)))
        await _until(stopping, leading, unelected=lambda: not elector.leading)


async def _work(runtime: LiveRuntime, watching: asyncio.Task[None] | None) -> None:
    collect_rarely()
    await runtime.run_until_stopped(watching)


async def _until(stopping: asyncio.Event, leading: asyncio.Task[None], *, unelected: Callable[[], bool]) -> None:
    ending = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([leading, ending], return_when=asyncio.FIRST_COMPLETED)
        if not leading.done() and unelected():
            leading.cancel()
        await asyncio.wait([leading])
        if not leading.cancelled():
            leading.result()
    except LeadershipLost as error:
        log.error("leaderelection lost")
        raise FairleadError("leaderelection lost") from error
    finally:
        ending.cancel()


@asynccontextmanager
async def _standing_by(runtime: LiveRuntime | None) -> AsyncIterator[asyncio.Task[None] | None]:
    """A task that watches the cluster until the block ends; the leader takes it over."""
    watching = None if runtime is None else asyncio.create_task(runtime.stand_by())
    try:
        yield watching
    finally:
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])


def stop_on_signals(runtime: LiveRuntime) -> asyncio.Event:
    """Set, and the runtime stopped, at the first SIGINT or SIGTERM."""
    stopping = asyncio.Event()

    def stop() -> None:
        log.info("stopping")
        stopping.set()
        runtime.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    return stopping


def may_write_of(elector: Candidate | None) -> Callable[[], bool]:
    """Whether this process may write at this moment; without an election it always may."""
    return (lambda: True) if elector is None else (lambda: elector.may_write)


def in_background(opened: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run a task until the end of the process."""
    task = asyncio.create_task(work)
    opened.push_async_callback(asyncio.wait, [task])
    opened.callback(task.cancel)
