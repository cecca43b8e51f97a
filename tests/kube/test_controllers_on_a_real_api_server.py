"""The simulated kubelets and the workload controllers against a real kube-apiserver: it accepts all they write."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.cluster.controllers.controller_group import ControllerGroup
from fairlead.cluster.controllers.workloads.batch_job import Jobs
from fairlead.cluster.controllers.workloads.deployment import Deployments
from fairlead.cluster.controllers.workloads.replicaset import ReplicaSets
from fairlead.cluster.kubelets.kubelet import Kubelet
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import DEPLOYMENT, JOB, LEASE, NAMESPACE, NODE, POD, Kind
from fairlead.errors import NotFound
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from fairlead.testing.builders import Builder, deployment, job, namespace, node, pod
from tests.support.real.control_plane import ControlPlane

pytestmark = pytest.mark.kube


class Lab:
    """A namespace and a node of one's own, looked after by our controllers."""

    def __init__(self, api: KubeApi) -> None:
        self.api = api
        self.name = f"lab-{uuid.uuid4().hex[:8]}"

    async def make(self, builder: Builder) -> Doc:
        doc = builder.doc()
        where = doc["metadata"].get("namespace", "")
        return await self.api.perform(Write(Verb.CREATE, builder.kind, where, doc["metadata"]["name"], body=doc))

    async def read(self, kind: Kind, name: str) -> Doc:
        return await self.api.get(kind, self.name if kind.namespaced else "", name)

    async def until(self, kind: Kind, name: str, holds: Callable[[Doc], Any]) -> Doc:
        async with asyncio.timeout(180):
            while True:
                doc = await self.read(kind, name)
                if holds(doc):
                    return doc
                await asyncio.sleep(0.1)

    async def until_gone(self, kind: Kind, name: str) -> None:
        async with asyncio.timeout(180):
            with suppress(NotFound):
                while await self.read(kind, name):  # noqa: ASYNC110 (a real server, another process)
                    await asyncio.sleep(0.1)


@asynccontextmanager
async def opened(plane: ControlPlane) -> AsyncIterator[Lab]:
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    world = Remote(api)
    kubelet = Kubelet(world.view, rng=Random(1))
    workloads = ControllerGroup("workloads", [Deployments(world.view), ReplicaSets(world.view), Jobs(world.view)])
    runtime = LiveRuntime(world, [workloads, kubelet])
    lab = Lab(api)
    try:
        await lab.make(namespace(lab.name))
        await lab.make(node(lab.name))
        running = asyncio.create_task(runtime.run_until_stopped())
        yield lab
        assert [trouble.message for trouble in (*workloads.errors, *kubelet.errors)] == []
        runtime.stop()
        await running
    finally:
        for kind, name in ((NODE, lab.name), (NAMESPACE, lab.name)):
            with suppress(NotFound):
                await api.perform(Write(Verb.DELETE, kind, "", name))
        await api.close()


async def test_a_deployment_rolls_out_and_updates(control_plane: ControlPlane) -> None:
    async with opened(control_plane) as lab:
        template = pod("t").on(lab.name)
        await lab.make(deployment("web", lab.name).replicas(4).of(template))
        done = await lab.until(DEPLOYMENT, "web", lambda doc: (doc.get("status") or {}).get("availableReplicas") == 4)
        assert done["metadata"]["generation"] == 1  # as with the real controller: our annotations change no spec
        change = {"spec": {"template": deployment("web").of(template.from_image("v2")).doc()["spec"]["template"]}}
        await lab.api.perform(Write(Verb.PATCH, DEPLOYMENT, lab.name, "web", body=change))

        def is_updated(doc: Doc) -> bool:
            status = doc["status"]
            counts = [status.get(field) for field in ("updatedReplicas", "availableReplicas", "replicas")]
            return counts == [4, 4, 4] and status["observedGeneration"] == 2

        updated = await lab.until(DEPLOYMENT, "web", is_updated)
        assert updated["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        lease = await lab.api.get(LEASE, "kube-node-lease", lab.name)
        assert lease["spec"]["holderIdentity"] == lab.name


async def test_jobs_complete_and_fail(control_plane: ControlPlane) -> None:
    async with opened(control_plane) as lab:
        await lab.make(job("good", lab.name).times(3, at_once=2).indexed().of(pod("t").on(lab.name).running_for("1s")))
        bad = pod("t").on(lab.name).running_for("1s").exiting(3)
        await lab.make(job("bad", lab.name).having(backoffLimit=0).of(bad))

        def has(type_: str) -> Callable[[Doc], bool]:
            return lambda doc: any(one["type"] == type_ for one in (doc.get("status") or {}).get("conditions") or ())

        good = await lab.until(JOB, "good", has("Complete"))
        assert (good["status"]["succeeded"], good["status"]["completedIndexes"]) == (3, "0-2")
        failed = await lab.until(JOB, "bad", has("Failed"))
        assert failed["status"]["failed"] == 1


async def test_a_crashing_pod_restarts_and_a_deleted_one_goes(control_plane: ControlPlane) -> None:
    async with opened(control_plane) as lab:
        await lab.make(pod("crash", lab.name).on(lab.name).running_for("1s").exiting(1))

        def is_waiting(doc: Doc) -> bool:
            statuses = (doc.get("status") or {}).get("containerStatuses") or ()
            return any("waiting" in one["state"] and one["restartCount"] == 1 for one in statuses)

        await lab.until(POD, "crash", is_waiting)
        await lab.api.perform(Write(Verb.DELETE, POD, lab.name, "crash"))
        await lab.until_gone(POD, "crash")
