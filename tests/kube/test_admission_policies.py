"""The ValidatingAdmissionPolicies of deploy/volcano-admission.yaml on a real kube-apiserver: accepted, without warnings
about their expressions, and refusing what Volcano's webhooks refuse."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import Verb, Write
from fairlead.errors import ApiError
from fairlead.volcano.kinds import VC_CRON_JOB, VC_HYPER_NODE, VC_JOB, VC_JOB_FLOW, VC_POD_GROUP, VC_QUEUE
from tests.support.admission_vectors import ACCEPTED, REFUSED, creation, cron, flow, hyper_node, job, queue, task
from tests.support.processes.kubectl_suite import Kubectl
from tests.support.real.control_plane import ControlPlane, define_volcano_kinds, real_binary
from tests.support.real.volcano_runner import served

pytestmark = pytest.mark.kube

POLICIES = Path(__file__).parents[2] / "deploy" / "volcano-admission.yaml"
ENFORCED_WITHIN = 60


async def _refusal(api: KubeApi, write: Write) -> str:
    try:
        await api.perform(write)
    except ApiError as error:
        return error.message
    return ""


async def _until_enforced(api: KubeApi) -> None:
    wrong = [creation(*job(queue="shut")), creation(*hyper_node("(")), creation(*queue(parent="it"))]
    wrong += [creation(*flow(a=["x"])), creation(*cron("")), creation(VC_POD_GROUP, {"queue": "shut"})]
    for _ in range(ENFORCED_WITHIN * 4):
        if all([await _refusal(api, write) for write in wrong]):
            return
        await asyncio.sleep(0.25)
    raise AssertionError("the policies are not enforced")


async def _furnish(api: KubeApi) -> None:
    """Queues before the policies; they would refuse a child of what is not there yet no less."""
    for name, spec, state in (
        ("root", {}, "Open"),
        ("default", {}, "Open"),
        ("shut", {}, "Closed"),
        ("inner", {"capability": {"cpu": "4"}}, "Open"),
        ("leaf", {"parent": "inner"}, "Open"),
    ):
        await api.perform(creation(VC_QUEUE, spec, name=name, dry=False))
        body = {"status": {"state": state, "allocated": {}}}
        await api.perform(Write(Verb.PATCH, VC_QUEUE, "", name, body, subresource="status"))


async def _check_updates(api: KubeApi) -> None:
    volume = {"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    kind, spec = job(task("a", 2), task("b"), minAvailable=2, volumes=[volume])
    await api.perform(creation(kind, spec, name="lives", dry=False))

    async def changed(**changes: Any) -> str:
        body = {"spec": {**spec, **changes}}
        return await _refusal(api, Write(Verb.PATCH, kind, "default", "lives", body, params={"dryRun": "All"}))

    others = "job updates may not change fields other than"
    assert await changed(tasks=[task("a", 5, minAvailable=1), task("b")], minAvailable=3, priorityClassName="x") == ""
    assert await changed(volumes=[{**volume, "volumeClaimName": "lives-pvc-abc"}]) == ""
    assert others in await changed(volumes=[{**volume, "mountPath": "/b"}])
    assert others in await changed(queue="leaf")
    assert others in await changed(tasks=[task("a", 2, maxRetry=7), task("b")])
    image = task("a", 2)
    image["template"] = {"spec": {"containers": [{"name": "main", "image": "y"}]}}
    assert others in await changed(tasks=[image, task("b")])
    assert "may not add or remove tasks" in await changed(tasks=[task("a", 2)])
    assert "must not be greater than total replicas" in await changed(minAvailable=4)


async def _check_pods_and_deletions(api: KubeApi) -> None:
    spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "x"}]}
    for notes, said in (
        ({"volcano.sh/jdb-min-available": "0"}, "it must be a positive integer"),
        ({"volcano.sh/jdb-min-available": "100%"}, "it must be a positive integer"),
        ({"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "1"}, "not allow configure multiple"),
        ({"volcano.sh/jdb-max-unavailable": "20%"}, ""),
    ):
        told = await _refusal(api, creation(k.POD, spec, annotations=notes))
        assert said in told if said else not told, told
    for name, said in (("root", "`root` queue can not be deleted"), ("inner", "because it has child queues")):
        assert said in await _refusal(api, Write(Verb.DELETE, VC_QUEUE, "", name))
    assert await _refusal(api, Write(Verb.DELETE, VC_QUEUE, "", "shut")) == ""


async def test_policies_refuse_what_webhooks_refuse_and_nothing_else(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path)
    plane.start()
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        await asyncio.to_thread(define_volcano_kinds, plane.kubeconfig)
        for kind in (VC_JOB, VC_QUEUE, VC_POD_GROUP, VC_CRON_JOB, VC_JOB_FLOW, VC_HYPER_NODE):
            await served(api, kind)
        await _furnish(api)
        kubectl = Kubectl(real_binary("kubectl"), plane.kubeconfig, "default")
        await asyncio.to_thread(kubectl, "apply", "--server-side", "-f", str(POLICIES))
        await _until_enforced(api)
        for what, said in REFUSED:
            told = await _refusal(api, creation(*what))
            assert said in told, (what, told)
            assert "ValidatingAdmissionPolicy" in told
        for what in ACCEPTED:
            assert await _refusal(api, creation(*what)) == "", what
        await _check_updates(api)
        await _check_pods_and_deletions(api)
    finally:
        await api.close()
        plane.stop()
