"""Resource claims with a real kube-apiserver and kube-controller-manager at the other end: given, and given back."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from fairlead.assembly.schedulers import default_scheduler
from fairlead.client.port import Query
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.errors import NotFound
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from tests.support.claims import DRIVER, claim, device_class, devices, gpus, pod, template
from tests.support.real.connected import Cluster, connected
from tests.support.real.control_plane import ControlPlane

pytestmark = pytest.mark.kube
MIG = "mig.example.com"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    plane = ControlPlane(tmp_path_factory.mktemp("claims"))
    try:
        plane.start()
        plane.start_controllers("--controllers=*,-node-lifecycle-controller")  # there are no kubelets to report
        asyncio.run(make_class(plane))
        yield plane
    finally:
        plane.stop()


async def make_class(plane: ControlPlane) -> None:
    async with connected(plane) as cluster:
        await cluster.make(kinds.DEVICE_CLASS, device_class())


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


def is_refused(doc: dict[str, Any]) -> bool:
    return any(condition["status"] == "False" for condition in doc["status"].get("conditions") or ())


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


async def make_node(cluster: Cluster, name: str, *slices: dict[str, Any]) -> None:
    capacity = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    await cluster.make(
        kinds.NODE, {"metadata": {"name": name}, "status": {"capacity": capacity, "allocatable": capacity}}
    )
    for one in slices:
        await cluster.make(kinds.RESOURCE_SLICE, one)


async def until_free(cluster: Cluster) -> None:
    async with asyncio.timeout(180):
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
        await make_node(cluster, "n0", gpus("n0", 4))
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


def partitions(node: str) -> list[dict[str, Any]]:
    """One card of which the whole or two halves can be had."""
    pool = {"name": f"{node}-mig", "generation": 1, "resourceSliceCount": 2}
    head = {"driver": MIG, "nodeName": node, "pool": pool}
    counters = [{"name": "card", "counters": {"slices": {"value": "7"}}}]
    devices = [
        {
            "name": name,
            "attributes": {"slices": {"int": slices}},
            "consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": str(slices)}}}],
        }
        for name, slices in (("whole", 7), ("half-0", 3), ("half-1", 3))
    ]
    return [
        {"metadata": {"name": f"{node}-counters"}, "spec": {**head, "sharedCounters": counters}},
        {"metadata": {"name": f"{node}-partitions"}, "spec": {**head, "devices": devices}},
    ]


def partition(slices: int) -> dict[str, Any]:
    selectors = [{"cel": {"expression": f'device.attributes["{MIG}"].slices == {slices}'}}]
    exactly = {"deviceClassName": "mig", "count": 1, "selectors": selectors}
    return {"devices": {"requests": [{"name": "a", "exactly": exactly}]}}


async def test_a_card_is_given_whole_or_in_partitions_but_not_both(plane: ControlPlane) -> None:
    async with connected(plane) as cluster, scheduling(cluster):
        await make_node(cluster, "n1", *partitions("n1"))
        selectors = [{"cel": {"expression": f'device.driver == "{MIG}"'}}]
        await cluster.make(kinds.DEVICE_CLASS, {"metadata": {"name": "mig"}, "spec": {"selectors": selectors}})
        for slices in (3, 7):
            await cluster.make(kinds.RESOURCE_CLAIM_TEMPLATE, template(f"mig-{slices}", partition(slices)))
        await cluster.make(kinds.POD, pod("half", of="mig-3"))
        await cluster.until(kinds.POD, "half", has_node)
        await cluster.make(kinds.POD, pod("whole", of="mig-7"))
        await cluster.until(kinds.POD, "whole", is_refused)
        assert await held(cluster) == ["half-0"]
        await remove(cluster, "half")
        await cluster.until(kinds.POD, "whole", has_node)
        assert await held(cluster) == ["whole"]
        await remove(cluster, "whole")
        await until_free(cluster)


async def killed_before_its_bind(plane: ControlPlane) -> None:
    """Run a scheduler that is killed when it has written the claim of the next pod and is about to bind it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.real.doomed_scheduler", str(plane.kubeconfig)
    )
    try:
        async with asyncio.timeout(180):
            assert await process.wait() == -signal.SIGKILL
    finally:
        with suppress(ProcessLookupError):
            process.kill()


async def test_a_scheduler_killed_between_claim_and_bind_leaves_no_device_held_by_nobody(plane: ControlPlane) -> None:
    async with connected(plane) as cluster:
        await make_node(cluster, "n2", gpus("n2", 2))
        on_n2 = {"nodeSelector": {"kubernetes.io/hostname": "n2"}}
        await cluster.api.perform(
            Write(Verb.PATCH, kinds.NODE, "", "n2", {"metadata": {"labels": {"kubernetes.io/hostname": "n2"}}})
        )
        names = ("one", "two")
        for name in names:
            await cluster.make(kinds.RESOURCE_CLAIM, claim(name, devices()))
            await cluster.make(kinds.POD, pod(f"pod-{name}", shared=name, **on_n2))
        await killed_before_its_bind(plane)
        status = {name: (await cluster.read(kinds.RESOURCE_CLAIM, name)).get("status") or {} for name in names}
        given = [name for name in names if status[name].get("allocation")]
        assert given
        lost, left = given[0], next(name for name in names if name != given[0])
        assert not has_node(await cluster.read(kinds.POD, f"pod-{lost}"))
        assert [user["name"] for user in status[lost]["reservedFor"]] == [f"pod-{lost}"]
        await remove(cluster, f"pod-{lost}")  # nobody has taken over yet, and the device is given back with the pod
        await cluster.until(kinds.RESOURCE_CLAIM, lost, lambda doc: not (doc.get("status") or {}).get("allocation"))
        async with scheduling(cluster):  # the other pod gets the device that is written down, if one is
            await cluster.until(kinds.POD, f"pod-{left}", has_node)
        after = (await cluster.read(kinds.RESOURCE_CLAIM, left))["status"]
        assert after == (status[left] or after)
        assert len(await held(cluster)) == 1
        await remove(cluster, f"pod-{left}")
        await until_free(cluster)
