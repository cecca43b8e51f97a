"""One suite, three adapters: the Store behind its port, KubeApi over our own server, KubeApi over a real one.

Each test gets a namespace of its own and names its cluster-scoped objects after it, so that the real server can be
started once for all of them. Where the three differ, the real one is right.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import Connection
from fairlead.client.port import Query
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.kinds import NAMESPACE, NODE
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.serving import serve


class ShiftedClock:
    """The time of day, and more of it on request."""

    def __init__(self) -> None:
        self.shift = 0.0

    def __call__(self) -> float:
        return time.time() + self.shift


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
