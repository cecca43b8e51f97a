"""One suite, three adapters: the Store behind its port, KubeApi over our own server, KubeApi over a real one.

Each test gets a namespace of its own and names its cluster-scoped objects after it, so that the real server can be
started once for all of them. Where the three differ, the real one is right.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import Connection
from fairlead.client.port import ClusterApi, Query
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import NAMESPACE, NODE, POD, Kind
from tests.contract.serving import serve


class ShiftedClock:
    """The time of day, and more of it on request."""

    def __init__(self) -> None:
        self.shift = 0.0

    def __call__(self) -> float:
        return time.time() + self.shift


class ApiUnderTest:
    """An API to try, a namespace to try it in, and short words for what tests do all the time."""

    def __init__(self, api: ClusterApi, forget: Callable[[], Awaitable[None]]) -> None:
        self.api = api
        self.forget = forget
        """Make the server forget all history up to now."""
        self.namespace = f"t-{uuid.uuid4().hex[:10]}"
        self._count = 0

    def name(self, stem: str = "x") -> str:
        """A name for a cluster-scoped object that no other test uses."""
        self._count += 1
        return f"{stem}-{self.namespace}-{self._count}"

    def _in(self, kind: Kind) -> str:
        return self.namespace if kind.namespaced else ""

    async def _perform(self, write: Write) -> dict[str, Any]:
        # A document that was handed out is nobody's to modify; tests like to.
        return deepcopy(await self.api.perform(write))

    async def create(self, kind: Kind, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        doc = {"apiVersion": kind.api_version, "kind": kind.kind} | body
        name = doc["metadata"].get("name", "")
        return await self._perform(Write(Verb.CREATE, kind, self._in(kind), name, doc, **more))

    async def get(self, kind: Kind, name: str, **more: Any) -> dict[str, Any]:
        return deepcopy(await self.api.get(kind, self._in(kind), name, **more))

    async def update(self, kind: Kind, doc: dict[str, Any], **more: Any) -> dict[str, Any]:
        return await self._perform(Write(Verb.UPDATE, kind, self._in(kind), doc["metadata"]["name"], doc, **more))

    async def patch(
        self, kind: Kind, name: str, patch: Any, type_: PatchType = PatchType.MERGE, **more: Any
    ) -> dict[str, Any]:
        return await self._perform(Write(Verb.PATCH, kind, self._in(kind), name, patch, patch_type=type_, **more))

    async def delete(self, kind: Kind, name: str, options: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return await self._perform(Write(Verb.DELETE, kind, self._in(kind), name, options, **more))

    async def bind(self, pod: str, node: str, **metadata: Any) -> dict[str, Any]:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {
            "apiVersion": "v1", "kind": "Binding", "target": target,
            "metadata": {"name": pod, "namespace": self.namespace} | metadata,
        }  # fmt: skip
        return await self._perform(Write(Verb.CREATE, POD, self.namespace, pod, body, subresource="binding"))

    async def names(self, kind: Kind, **more: Any) -> list[str]:
        page = await self.api.list(kind, Query(namespace=self._in(kind), **more))
        return [item["metadata"]["name"] for item in page.items]

    async def events(self, count: int, kind: Kind, **more: Any) -> list[tuple[str, str]]:
        """The next so many events of a watch (bookmarks left out), as (type, name)."""
        seen: list[tuple[str, str]] = []
        async with asyncio.timeout(180):
            stream = self.api.watch(kind, Query(namespace=self._in(kind), **more), timeout=120)
            async for event in stream:
                if event.type != "BOOKMARK":
                    seen.append((event.type, event.doc["metadata"]["name"]))
                if len(seen) == count:
                    break
            await stream.aclose()  # type: ignore[attr-defined]
        return seen


@pytest.fixture(params=["store", "server", pytest.param("kube", marks=pytest.mark.kube)])
def world(request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[ApiUnderTest]:
    if request.param == "kube":
        made = runner.run(_over_real(request.getfixturevalue("control_plane")))
        yield from _opened(made, runner)
    else:
        yield from _embedded(request.param, runner)


@pytest.fixture(params=["store", "server"])
def own_world(request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[ApiUnderTest]:
    """For what only shows on a server whose memory can be wiped while it runs."""
    yield from _embedded(request.param, runner)


def _embedded(how: str, runner: asyncio.Runner) -> Iterator[ApiUnderTest]:
    clock = ShiftedClock()
    store = Store(clock=clock, rng=random.Random(1))

    async def forget() -> None:
        clock.shift += 3600.0
        store.tick()

    if how == "store":
        yield from _opened(ApiUnderTest(StoreApi(store), forget), runner)
        return
    serving = serve(store)
    api = runner.run(serving.__aenter__())
    try:
        yield from _opened(ApiUnderTest(api, forget), runner)
    finally:
        runner.run(serving.__aexit__(None, None, None))


async def _over_real(plane: Any) -> ApiUnderTest:
    api = KubeApi(Connection.to(plane.server, token=plane.token, ca=plane.ca))

    async def forget() -> None:
        page = await api.list(NAMESPACE, Query(limit=1))
        plane.compact(int(page.resource_version))

    return ApiUnderTest(api, forget)


def _opened(world: ApiUnderTest, runner: asyncio.Runner) -> Iterator[ApiUnderTest]:
    try:
        runner.run(world.create(NAMESPACE, {"metadata": {"name": world.namespace}}))
        yield world
        runner.run(_leave(world))
    finally:
        runner.run(world.api.close())


async def _leave(world: ApiUnderTest) -> None:
    """Nodes are for all: the next test shall not find ours."""
    for name in await world.names(NODE):
        if world.namespace in name:
            await world.delete(NODE, name)
