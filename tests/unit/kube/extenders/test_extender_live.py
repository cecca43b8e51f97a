"""A slow extender holds up scheduling and nothing else: the API, watches and other controllers go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from fairlead.assembly.presets import first_profile
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.model.flow import Change, Doc, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, NODE, POD
from fairlead.kube.extenders.http_extender import ExtenderSpec, HttpExtender
from fairlead.runtime.live import Clock, LiveRuntime
from fairlead.runtime.worlds import Embedded
from fairlead.testing.builders import node, pod
from tests.support.extender_server import ExtenderServer
from tests.support.patience import until


class Listener:
    """Another controller, which only listens."""

    name = "listener"
    watches = (Watch(CONFIG_MAP),)

    def __init__(self) -> None:
        self.heard: list[str] = []

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        self.heard += [change.doc["metadata"]["name"] for change in changes]
        return []

    def wake_at(self) -> float | None:
        return None


async def test_the_api_and_other_controllers_go_on_while_an_extender_thinks() -> None:
    asked, answer = threading.Event(), threading.Event()

    def think(body: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        answer.wait(30)
        return {"NodeNames": body["NodeNames"]}

    clock = Clock()
    store = Store(clock=clock.now, rng=Random(0))
    api = StoreApi(store)
    with ExtenderServer(filter=think) as server:
        extender = HttpExtender(
            ExtenderSpec(server.url, filter_verb="filter", node_cache_capable=True, timeout=30), store
        )
        scheduler = Scheduler([replace(first_profile(), extenders=(extender,))])
        listener = Listener()
        runtime = LiveRuntime(Embedded(store), [scheduler, listener], clock=clock)
        running = asyncio.ensure_future(runtime.run_until_stopped())
        try:
            await create(api, NODE, node("n").doc())
            await create(api, POD, pod("p").doc())
            await until(asked.is_set)
            await create(api, CONFIG_MAP, {"metadata": {"name": "meanwhile", "namespace": "default"}})
            await until(lambda: "meanwhile" in listener.heard)
            assert not (await api.get(POD, "default", "p"))["spec"].get("nodeName"), "the scheduler still waits"
            answer.set()
            await until(lambda: bool(store.read(POD, "default", "p")["spec"].get("nodeName")))
        finally:
            answer.set()
            runtime.stop()
            await running
            extender.close()


async def create(api: StoreApi, kind: Any, doc: Doc) -> None:
    await api.perform(Write(Verb.CREATE, kind, "default" if kind.namespaced else "", doc["metadata"]["name"], doc))
