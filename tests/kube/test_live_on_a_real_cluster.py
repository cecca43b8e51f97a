"""The live runtime, the reflector and leader election against a real kube-apiserver."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.reflector import Reflector
from fairlead.client.retries import Retries
from fairlead.client.retry import RetryDelays
from fairlead.core.model.flow import Change, Happened, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, LEASE, NAMESPACE, NODE, POD
from fairlead.runtime.leader import Election, Elector
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from tests.support.patience import until
from tests.support.real.control_plane import ControlPlane

pytestmark = pytest.mark.kube

PODS = 60


@asynccontextmanager
async def connected(plane: ControlPlane) -> AsyncIterator[KubeApi]:
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        yield api
    finally:
        await api.close()


async def make(api: KubeApi, kind: Any, namespace: str, body: dict[str, Any]) -> None:
    await api.perform(Write(Verb.CREATE, kind, namespace, body["metadata"]["name"], body))


class Binder:
    """Binds every pod it sees to one node, and reads what it binds from the view."""

    name = "binder"

    def __init__(self, view: Any, namespace: str, node: str) -> None:
        self.watches = [Watch(POD, namespace=namespace), Watch(NODE)]
        self._view, self._namespace, self._node = view, namespace, node
        self.bound: set[str] = set()
        self.replies: list[Reply] = []

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        self.replies += replies
        writes = []
        for change in changes:
            if change.kind is not POD:
                continue
            name = change.doc["metadata"]["name"]
            assert self._view.get(POD, self._namespace, name) is not None
            if change.doc["spec"].get("nodeName"):
                self.bound.add(name)
            elif change.happened is Happened.ADDED:
                body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": self._node}}
                writes.append(Write(Verb.CREATE, POD, self._namespace, name, body, subresource="binding"))
        return writes

    def wake_at(self) -> float | None:
        return None


async def test_a_controller_binds_pods_with_one_call_each(control_plane: ControlPlane) -> None:
    namespace = f"live-{uuid.uuid4().hex[:8]}"
    async with connected(control_plane) as api:
        await make(api, NAMESPACE, "", {"metadata": {"name": namespace}})
        await make(api, NODE, "", {"metadata": {"name": namespace}})
        world = Remote(api)
        binder = Binder(world.view, namespace, namespace)
        runtime = LiveRuntime(world, [binder])
        running = asyncio.ensure_future(runtime.run_until_stopped())
        spec = {"containers": [{"name": "c", "image": "i"}]}
        for index in range(PODS):
            await make(api, POD, namespace, {"metadata": {"name": f"p{index}"}, "spec": spec})
        await until(lambda: len(binder.bound) == PODS)
        runtime.stop()
        await running
        assert [reply.error for reply in binder.replies if reply.error] == []
        assert api.requests["create", "pods/binding"] == PODS
        assert api.requests["list", "pods"] == api.requests["watch", "pods"] == 1
        for index in range(PODS):
            options = {"gracePeriodSeconds": 0}
            await api.perform(Write(Verb.DELETE, POD, namespace, f"p{index}", options))
        await api.perform(Write(Verb.DELETE, NODE, "", namespace))


async def test_a_leader_hands_over_to_the_next(control_plane: ControlPlane) -> None:
    async with connected(control_plane) as first, connected(control_plane) as second:
        name = f"lease-{uuid.uuid4().hex[:8]}"
        working: list[str] = []
        ends = {"a": asyncio.Event(), "b": asyncio.Event()}

        def candidate(who: str, api: KubeApi) -> asyncio.Task[None]:
            async def work() -> None:
                working.append(who)
                await ends[who].wait()

            election = Election(name, identity=who, lease=4.0, renew=2.0, retry=0.2)
            return asyncio.ensure_future(Elector(api, election).run(work))

        one = candidate("a", first)
        await until(lambda: working == ["a"])
        other = candidate("b", second)
        await asyncio.sleep(1.0)
        assert working == ["a"]
        lease = await first.get(LEASE, "kube-system", name)
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("a", 0)
        ends["a"].set()
        await one
        await until(lambda: working == ["a", "b"])
        ends["b"].set()
        await other


async def test_a_reflector_outlives_the_server(tmp_path: Path) -> None:
    """The watch breaks, connections are refused, and the new server has an empty cache: nothing is missed."""
    plane = ControlPlane(tmp_path)
    told: list[tuple[str, str]] = []
    try:
        plane.start()
        async with connected(plane) as api:
            watch = Watch(CONFIG_MAP, namespace="default")
            reflector = Reflector(api, watch, retries=Retries(RetryDelays(first=0.2, most=1.0)))
            reflector.listen(
                lambda changes: told.extend((c.happened.value, c.doc["metadata"]["name"]) for c in changes)
            )
            running = asyncio.ensure_future(reflector.run())
            await make(api, CONFIG_MAP, "default", {"metadata": {"name": "before"}})
            await until(lambda: ("ADDED", "before") in told)
            await asyncio.to_thread(plane.restart_api_server)
            await make(api, CONFIG_MAP, "default", {"metadata": {"name": "after"}})
            await api.perform(Write(Verb.DELETE, CONFIG_MAP, "default", "before"))
            await until(lambda: ("ADDED", "after") in told and ("DELETED", "before") in told)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        plane.stop()
    assert told.count(("ADDED", "before")) == 1
    assert [doc["metadata"]["name"] for doc in reflector.list()] == ["after"]
