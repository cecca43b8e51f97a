"""What `fairlead scheduler` does with a lease: stand by, lead, and end.

    stand by ──elected──▶ schedule ──signal──▶ finish writes ──▶ release
                              └──lost──▶ FairleadError

Who stands by watches already, as kube-scheduler does unless `delayCacheUntilActive` is set: taking over then lists
nothing, however large the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError
from fairlead.runtime.collecting import collect_rarely
from fairlead.runtime.leader import Elector, LeadershipLost

if TYPE_CHECKING:
    from fairlead.runtime.live import LiveRuntime

log = logging.getLogger("fairlead.scheduler")

StandDown = Callable[[], Awaitable[object]]


async def lead(elector: Elector | None, runtime: LiveRuntime, stopping: asyncio.Event, *, stands_by: bool) -> None:
    """Until `stopping`, or until the runtime ends by itself. Without an elector there is nothing to wait for."""
    if elector is None:
        await _until(stopping, asyncio.create_task(_work(runtime)), unelected=lambda: False)
        return
    async with _standing_by(runtime if stands_by else None) as stand_down:

        async def work() -> None:
            await stand_down()
            await _work(runtime)

        await _until(stopping, asyncio.create_task(elector.run(work)), unelected=lambda: not elector.leading)


async def _work(runtime: LiveRuntime) -> None:
    collect_rarely()
    await runtime.run_until_stopped()


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
async def _standing_by(runtime: LiveRuntime | None) -> AsyncIterator[StandDown]:
    """Watching, until the block ends or what it is given is called."""
    watching = asyncio.create_task(asyncio.sleep(0) if runtime is None else runtime.stand_by())

    async def stand_down() -> None:
        watching.cancel()
        for outcome in await asyncio.gather(watching, return_exceptions=True):
            if isinstance(outcome, Exception):
                log.error("standing by failed", exc_info=outcome)

    try:
        yield stand_down
    finally:
        await stand_down()
