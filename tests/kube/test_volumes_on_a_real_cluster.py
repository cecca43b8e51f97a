"""Claims that wait for their first consumer, with the real volume controller at the other end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.storage import compile_claim, compile_volume
from fairlead.errors import Conflict
from fairlead.kube.binder import DefaultBinder
from fairlead.kube.nodes.basics import PrioritySort, SchedulingGates
from fairlead.kube.volumes.binding import VolumeBinding
from fairlead.kube.volumes.errand import volume_patch
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from tests.support.real.connected import connected
from tests.support.real.control_plane import ControlPlane

pytestmark = pytest.mark.kube

HOST = "kubernetes.io/hostname"
Doc = dict[str, Any]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own, with the real controllers."""
    plane = ControlPlane(tmp_path_factory.mktemp("volumes"))
    try:
        plane.start()
        plane.start_controllers()
        yield plane
    finally:
        plane.stop()


def claim(name: str) -> Doc:
    spec = {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}},
    }  # fmt: skip
    return {"metadata": {"name": name}, "spec": spec}


def disk(name: str, node: str, size: str) -> Doc:
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
    spec = {
        "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "local": {"path": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "persistentVolumeReclaimPolicy": "Retain",
    }  # fmt: skip
    return {"metadata": {"name": name}, "spec": spec}


def pod(name: str, *claims: str) -> Doc:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}}


def is_in(phase: str) -> Callable[[Doc], bool]:
    return lambda doc: bool(doc["status"].get("phase") == phase)


async def test_a_pod_gets_the_disks_that_the_real_controller_then_binds(plane: ControlPlane) -> None:
    async with connected(plane) as cluster:
        for name in ("left", "right"):
            await cluster.make(kinds.NODE, {"metadata": {"name": name, "labels": {HOST: name}}})
        local = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
        await cluster.make(kinds.STORAGE_CLASS, {"metadata": {"name": "local"}, **local})
        for name, node, size in (("small", "right", "1Gi"), ("large", "right", "5Gi"), ("lonely", "left", "1Gi")):
            await cluster.make(kinds.PERSISTENT_VOLUME, disk(name, node, size))
            await cluster.until(kinds.PERSISTENT_VOLUME, name, is_in("Available"))
        for name in ("one", "two"):
            await cluster.make(kinds.PERSISTENT_VOLUME_CLAIM, claim(name))
        plugins = [PrioritySort(), SchedulingGates(), VolumeBinding(), DefaultBinder()]
        scheduler = Scheduler([profile_of("default-scheduler", plugins)])
        # Pods without groups are all this is about, and a plain server has no kinds for groups and queues.
        scheduler.watches = [watch for watch in scheduler.watches if watch.kind.plural not in ("podgroups", "queues")]
        runtime = LiveRuntime(Remote(cluster.api), [scheduler])
        running = asyncio.ensure_future(runtime.run_until_stopped())
        await cluster.make(kinds.POD, pod("db", "one", "two"))
        placed = await cluster.until(kinds.POD, "db", lambda doc: bool(doc["spec"].get("nodeName")))
        runtime.stop()
        await running
        assert placed["spec"]["nodeName"] == "right"
        for name, volume in (("one", "small"), ("two", "large")):
            bound = await cluster.until(kinds.PERSISTENT_VOLUME_CLAIM, name, is_in("Bound"))
            assert bound["spec"]["volumeName"] == volume


async def test_a_volume_that_changed_meanwhile_is_a_conflict(plane: ControlPlane) -> None:
    async with connected(plane) as cluster:
        await cluster.make(kinds.PERSISTENT_VOLUME, disk("disk", "left", "1Gi"))
        await cluster.make(kinds.PERSISTENT_VOLUME_CLAIM, claim("late"))
        stale = compile_volume(await cluster.until(kinds.PERSISTENT_VOLUME, "disk", is_in("Available")))
        wanting = compile_claim(await cluster.read(kinds.PERSISTENT_VOLUME_CLAIM, "late"))
        label = {"metadata": {"labels": {"seen": "yes"}}}
        await cluster.api.perform(Write(Verb.PATCH, kinds.PERSISTENT_VOLUME, "", "disk", body=label))
        with pytest.raises(Conflict) as conflict:
            await cluster.api.perform(volume_patch(wanting, stale))
        assert str(conflict.value.message) == (
            'Operation cannot be fulfilled on persistentvolumes "disk": the object has been modified;'
            " please apply your changes to the latest version and try again"
        )
