"""The audit finds what a defect did to the table, also while nothing happens, and makes it what the pods say."""

from __future__ import annotations

import asyncio
import random
import time

from fairlead.assembly.presets import first_profile
from fairlead.cluster.store.store import Store
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.runtime.live import LiveRuntime, RuntimeLimits
from fairlead.runtime.worlds import Embedded
from fairlead.testing.builders import node, pod
from tests.support.patience import until


async def test_an_idle_scheduler_repairs_a_table_that_differs_from_its_pods() -> None:
    store = Store(clock=time.time, rng=random.Random(1))
    store.perform(Write(Verb.CREATE, NODE, "", "a", node("a").doc()))
    store.perform(Write(Verb.CREATE, POD, "default", "p", pod("p").asks(cpu="1").doc()))
    scheduler = Scheduler([first_profile()], Options(seed=1))
    runtime = LiveRuntime(Embedded(store), [scheduler], limits=RuntimeLimits(idle=0.02))
    running = asyncio.ensure_future(runtime.run_until_stopped())

    def add_what_nobody_asked_for(asked: Scheduler) -> None:
        asked.cluster.table.requested["cpu"][0] += 500

    async with asyncio.timeout(180):
        await until(lambda: store.read(POD, "default", "p")["spec"].get("nodeName"), "p has a node")
        await asyncio.wrap_future(runtime.ask(scheduler, add_what_nobody_asked_for))
        await until(lambda: scheduler.guard.audit.found, "the audit found the difference")
        await asyncio.wrap_future(runtime.ask(scheduler, lambda asked: asked.cluster.check()))
        runtime.stop()
        await running
    assert any("the table differed from its pods" in words for words in scheduler.backlog.complaints)
