"""Resource claims with a real kube-apiserver and kube-controller-manager at the other end: given, and given back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from fairlead.api.port import Query
from fairlead.config.schedulers import default_scheduler
from fairlead.errors import NotFound
from fairlead.model import kinds
from fairlead.model.flow import Verb, Write
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from tests.kube.control_plane import ControlPlane
from tests.kube.test_volumes_on_a_real_cluster import Cluster, connected
from tests.scenario.test_resource_claims import DRIVER, claim, device_class, devices, gpus, pod, template

pytestmark = pytest.mark.kube


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    plane = ControlPlane(tmp_path_factory.mktemp("claims"))
    try:
        plane.start()
        plane.start_controllers()
        yield plane
    finally:
        plane.stop()


@asynccontextmanager
async def scheduling(cluster: Cluster) -> AsyncIterator[None]:
    runtime = LiveRuntime(Remote(cluster.api), [default_scheduler()])
    running = asyncio.ensure_future(runtime.run_until_stopped())
    try:
        yield
    finally:
        runtime.stop()
        await running


def has_node(doc: dict[str, Any]) -> bool:
    return bool(doc["spec"].get("nodeName"))


async def remove(cluster: Cluster, *pods: str) -> None:
    for name in pods:
        with suppress(NotFound):
            body = {"gracePeriodSeconds": 0}
            await cluster.api.perform(Write(Verb.DELETE, kinds.POD, "default", name, body=body))


async def held(cluster: Cluster) -> list[str]:
    listed = await cluster.api.list(kinds.RESOURCE_CLAIM, Query(namespace="default"))
    allocations = [(doc.get("status") or {}).get("allocation") or {} for doc in listed.items]
    return sorted(
        result["device"] for allocation in allocations for result in allocation.get("devices", {}).get("results", ())
    )


async def until_free(cluster: Cluster) -> None:
    async with asyncio.timeout(60):
        while True:
            if not await held(cluster):
                return
            await asyncio.sleep(0.2)


async def test_upstreams_example_shapes_run_and_give_their_devices_back(plane: ControlPlane) -> None:
    everything = {
        "devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}]}
    }
    constraints = [{"matchAttribute": f"{DRIVER}/numa"}]
    async with connected(plane) as cluster, scheduling(cluster):
        capacity = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        status = {"capacity": capacity, "allocatable": capacity}
        await cluster.make(kinds.NODE, {"metadata": {"name": "n0"}, "status": status})
        await cluster.make(kinds.DEVICE_CLASS, device_class())
        await cluster.make(kinds.RESOURCE_SLICE, gpus("n0", 4))
        await cluster.make(kinds.RESOURCE_CLAIM_TEMPLATE, template("one", devices()))
        for name in ("each-0", "each-1"):
            await cluster.make(kinds.POD, pod(name, of="one"))
        for name in ("each-0", "each-1"):
            await cluster.until(kinds.POD, name, has_node)
        assert await held(cluster) == ["gpu-0", "gpu-1"]
        await remove(cluster, "each-0", "each-1")
        await until_free(cluster)
        for name, spec, expected in (
            ("shared", devices(), ["gpu-0"]),
            ("all", everything, ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]),
            ("pair", devices(2, constraints=constraints), ["gpu-0", "gpu-2"]),
        ):
            await cluster.make(kinds.RESOURCE_CLAIM, claim(name, spec))
            for user in (f"{name}-a", f"{name}-b"):
                await cluster.make(kinds.POD, pod(user, shared=name))
                await cluster.until(kinds.POD, user, has_node)
            assert await held(cluster) == expected
            await remove(cluster, f"{name}-a", f"{name}-b")
            await until_free(cluster)
