"""LiveScheduler, the scheduler that Python programs run, on a real API server."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from fairlead import LiveScheduler
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import NODE, POD
from tests.support.real import contenders
from tests.support.real.contenders import pod_document
from tests.support.real.control_plane import ControlPlane

NAME = "library"
PATIENCE = 180.0


def served_by_it(name: str, **requests: str) -> dict[str, object]:
    document = pod_document(name, **requests)
    return {**document, "spec": {**document["spec"], "schedulerName": NAME}}


@pytest.mark.kube
async def test_a_program_schedules_the_pods_of_a_real_cluster(control_plane: ControlPlane) -> None:
    api, namespace = KubeApi(load_kubeconfig(control_plane.kubeconfig)), f"library-{uuid.uuid4().hex[:8]}"
    try:
        for other in (await api.list(NODE)).items:
            await api.perform(Write(Verb.DELETE, NODE, "", other["metadata"]["name"]))
        await contenders.make_cluster(api, 2)
        await contenders.make_namespace(api, namespace)
        await contenders.create(api, POD, namespace, [served_by_it("small", cpu="1"), served_by_it("huge", cpu="99")])
        config = {"profiles": [{"schedulerName": NAME}]}
        scheduler = await asyncio.to_thread(LiveScheduler, control_plane.kubeconfig, config=config)
        try:
            async with asyncio.timeout(PATIENCE):
                while not _placed(await api.list(POD, Query(namespace=namespace))):  # noqa: ASYNC110 (a real server)
                    await asyncio.sleep(0.1)
            refused = await asyncio.to_thread(scheduler.explain, "huge", namespace=namespace)
        finally:
            await asyncio.to_thread(scheduler.close)
        assert refused is not None
        assert refused.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
        await contenders.clear(api, namespace)
        for number in range(2):
            await api.perform(Write(Verb.DELETE, NODE, "", f"node-{number}"))
    finally:
        await api.close()


def _placed(listed: object) -> bool:
    """Whether the small pod has a node and the huge one was refused."""
    pods = {pod["metadata"]["name"]: pod for pod in listed.items}  # type: ignore[attr-defined]
    return bool(pods["small"]["spec"].get("nodeName")) and bool(pods["huge"]["status"].get("conditions"))
