"""Core §7 on a real kube-apiserver with the gang features on: the same groups start under both schedulers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.api.client import KubeApi
from fairlead.api.credentials import load_kubeconfig
from fairlead.config.assemble import profiles_of
from fairlead.config.gates import parse_feature_gates
from fairlead.config.kube import default_kube_config
from fairlead.engine.scheduler import Options, Scheduler
from fairlead.model.flow import Verb, Write
from fairlead.model.kinds import NODE, POD, POD_GROUP, Kind
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from tests.kube.control_plane import ControlPlane

pytestmark = pytest.mark.kube

GATES = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true"
RUNTIME_CONFIG = "scheduling.k8s.io/v1alpha2=true"
RACK = "example.com/rack"
SETTLED = 6.0
"""Seconds without a bind after which nobody is expected to start any more."""


class Story:
    """What a user does on a fresh cluster, step by step, and which groups have started after each."""

    def __init__(self, api: KubeApi) -> None:
        self.api = api
        self.chapters: list[dict[str, int]] = []

    async def tell(self) -> list[dict[str, int]]:
        for number in range(3):
            await self._node(f"n{number}", rack="r0" if number < 2 else "r1")
        await self._gang("whole", minimum=3, members=3)
        await self._gang("too-large", minimum=13, members=13)
        await self._gang("lonely", minimum=4, members=2)
        await self._members("groupless", 2)
        await self._gang("basic", minimum=0, members=2)
        await self._look()
        await self._members("lonely", 2, first=2)
        await self._group("groupless", minimum=2)
        await self._look()
        await self._delete_pods("whole", 3)
        await self._delete_pods("lonely", 4)
        await self._gang("elastic", minimum=2, members=9)
        await self._look()
        for name, count in (("elastic", 9), ("basic", 2), ("groupless", 2)):
            await self._delete_pods(name, count)
        await self._gang("racked", minimum=5, members=5, key=RACK)
        await self._gang("no-rack", minimum=9, members=9, key=RACK)
        await self._look()
        return self.chapters

    async def _create(self, kind: Kind, body: dict[str, Any]) -> None:
        namespace = "default" if kind.namespaced else ""
        await self.api.perform(Write(Verb.CREATE, kind, namespace, body["metadata"]["name"], body))

    async def _node(self, name: str, rack: str) -> None:
        labels = {"kubernetes.io/hostname": name, RACK: rack}
        offered = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        await self._create(NODE, {"metadata": {"name": name, "labels": labels}})
        status = {"status": {"capacity": offered, "allocatable": offered}}
        await self.api.perform(Write(Verb.PATCH, NODE, "", name, status, subresource="status"))

    async def _gang(self, name: str, *, minimum: int, members: int, key: str = "") -> None:
        await self._group(name, minimum=minimum, key=key)
        await self._members(name, members)

    async def _group(self, name: str, *, minimum: int, key: str = "") -> None:
        policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
        spec: dict[str, Any] = {"schedulingPolicy": policy}
        if key:
            spec["schedulingConstraints"] = {"topology": [{"key": key}]}
        body = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
        await self._create(POD_GROUP, body)

    async def _members(self, group: str, count: int, *, first: int = 0) -> None:
        for number in range(first, first + count):
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
            spec = {"containers": [container], "schedulingGroup": {"podGroupName": group}}
            await self._create(POD, {"metadata": {"name": f"{group}-{number}"}, "spec": spec})

    async def _delete_pods(self, group: str, count: int) -> None:
        for number in range(count):
            options = {"gracePeriodSeconds": 0}
            await self.api.perform(Write(Verb.DELETE, POD, "default", f"{group}-{number}", options))

    async def _started(self) -> dict[str, int]:
        pods = (await self.api.list(POD, namespace="default")).items
        bound = Counter(p["spec"]["schedulingGroup"]["podGroupName"] for p in pods if p["spec"].get("nodeName"))
        return dict(sorted(bound.items()))

    async def _look(self) -> None:
        """Wait until nothing has started for a while."""
        seen, quiet = await self._started(), 0.0
        while quiet < SETTLED:
            await asyncio.sleep(0.5)
            now = await self._started()
            seen, quiet = now, 0.0 if now != seen else quiet + 0.5
        self.chapters.append(seen)

    async def conditions(self) -> dict[str, tuple[str, str]]:
        groups = (await self.api.list(POD_GROUP, namespace="default")).items
        found = {}
        for doc in groups:
            for condition in doc.get("status", {}).get("conditions", ()):
                if condition["type"] == "PodGroupScheduled":
                    found[doc["metadata"]["name"]] = (condition["status"], condition["reason"])
        return found


async def _on_a_plane(
    directory: Path, schedule: Callable[[ControlPlane, KubeApi], Any]
) -> tuple[list[dict[str, int]], dict[str, tuple[str, str]]]:
    await asyncio.to_thread(directory.mkdir)
    plane = ControlPlane(directory, gates=GATES, runtime_config=RUNTIME_CONFIG)
    try:
        await asyncio.to_thread(plane.start)
        api = KubeApi(load_kubeconfig(plane.kubeconfig))
        try:
            stop = await schedule(plane, api)
            story = Story(api)
            chapters = await story.tell()
            conditions = await story.conditions()
            await stop()
        finally:
            await api.close()
    finally:
        await asyncio.to_thread(plane.stop)
    return chapters, conditions


async def _by_kube_scheduler(plane: ControlPlane, api: KubeApi) -> Any:
    plane.start_scheduler(f"--feature-gates={GATES}")

    async def stop() -> None:
        pass

    return stop


async def _by_us(plane: ControlPlane, api: KubeApi) -> Any:
    own = KubeApi(load_kubeconfig(plane.kubeconfig))
    profiles = profiles_of(default_kube_config(gates=parse_feature_gates(GATES)))
    runtime = LiveRuntime(Remote(own), [Scheduler(profiles, Options(seed=1))])
    running = asyncio.ensure_future(runtime.run_until_stopped())

    async def stop() -> None:
        runtime.stop()
        await running
        await own.close()

    return stop


async def test_the_same_groups_start(tmp_path: Path) -> None:
    theirs = await _on_a_plane(tmp_path / "theirs", _by_kube_scheduler)
    ours = await _on_a_plane(tmp_path / "ours", _by_us)
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
