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
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import ApiError
from tests.e2e.kubectl_suite import Kubectl
from tests.kube.control_plane import ControlPlane, define_volcano_kinds, real_binary
from tests.kube.volcano_runner import served

pytestmark = pytest.mark.kube

POLICIES = Path(__file__).parents[2] / "deploy" / "volcano-admission.yaml"
ENFORCED_WITHIN = 60


def task(name: str = "w", replicas: int = 1, **more: Any) -> Doc:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def job(*tasks: Doc, **spec: Any) -> tuple[Kind, Doc]:
    return k.VC_JOB, {"tasks": list(tasks) or [task()], **spec}


def policies(*listed: Doc) -> tuple[Kind, Doc]:
    return job(task(policies=list(listed)))


def queue(**spec: Any) -> tuple[Kind, Doc]:
    return k.VC_QUEUE, spec


def cron(schedule: str, **spec: Any) -> tuple[Kind, Doc]:
    return k.VC_CRON_JOB, {"schedule": schedule, "jobTemplate": {"spec": job()[1]}, **spec}


def flow(**depends: list[str]) -> tuple[Kind, Doc]:
    return k.VC_JOB_FLOW, {"flows": [{"name": name, "dependsOn": {"targets": on}} for name, on in depends.items()]}


def hyper_node(*patterns: str) -> tuple[Kind, Doc]:
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}} for pattern in patterns]
    return k.VC_HYPER_NODE, {"tier": 1, "members": members}


def waiting(**depends: list[str]) -> tuple[Kind, Doc]:
    return job(*(task(name, dependsOn={"name": on}) for name, on in depends.items()))


TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}
PARTS = {"totalPartitions": 2, "partitionSize": 2}
CODE = {"exitCode": 3, "action": "AbortJob"}
NUMA = {"topologyPolicy": "single-numa-node"}
DAG = "doesn't form a directed acyclic graph(DAG)"
REFUSED: tuple[tuple[tuple[Kind, Doc], str], ...] = (
    ((k.VC_JOB, {"minAvailable": 1}), "No task specified in job spec"),
    (job(plugins={"mpi": []}), "The specified mpi master task was not found"),
    (job(task("m"), plugins={"mpi": ["--master=n"]}), "The specified mpi master task was not found"),
    (job(task(minAvailable=2)), "'minAvailable' is greater than 'replicas' in task: w, job: it"),
    (job(minAvailable=2), "job 'minAvailable' should not be greater than total replicas in tasks"),
    (job(task(), task()), "duplicated task name w"),
    (job(networkTopology=TIERS), "must not specify 'highestTierAllowed' and 'highestTierName'"),
    (job(task(replicas=3, partitionPolicy=PARTS)), "'Replicas' are not equal to TotalPartitions*PartitionSize"),
    (job(task(replicas=4, minAvailable=4, partitionPolicy={**PARTS, "minPartitions": 1})),
     "'MinAvailable' is not equal to MinPartitions*PartitionSize"),
    (policies({"event": "PodFailed", "exitCode": 3, "action": "RestartJob"}), "must not specify event and exitCode"),
    (policies({"action": "RestartJob"}), "either event and exitCode should be specified"),
    (policies({"event": "PodRunning", "action": "RestartJob"}), "invalid policy event"),
    (policies({"event": "PodFailed", "action": "SyncJob"}), "invalid policy action"),
    (policies({"exitCode": 3, "action": "Again"}), "invalid policy action"),
    (policies({"exitCode": 0, "action": "RestartJob"}), "0 is not a valid error code"),
    (policies({"exitCode": 3, "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}), "duplicate exitCode"),
    (policies({"event": "PodFailed", "action": "RestartJob"}, {"events": ["PodFailed"], "action": "AbortJob"}),
     "duplicate event"),
    (policies({"event": "*", "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}),
     "if there's * here, no other policy should be here"),
    (job(task("w" * 61)), "no more than 63 characters"),
    (job(plugins={"teleport": []}), "unable to find job plugin: teleport"),
    (job(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName must be specified"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "x"}] * 2), "duplicated mountPath: /a"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "x", "volumeClaim": {}}]), "conflict: If you want to use"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "A_b"}]), "invalid VolumeClaimName"),
    (job(task(**NUMA)), "the cpu request isn't an integer"),
    (waiting(a=["b"], b=["a"]), DAG),
    (waiting(a=["c"]), DAG),
    (job(queue="root"), "can not submit job to root queue"),
    (job(queue="shut"), "queue `shut` status is `Closed`"),
    (job(queue="inner"), "can only submit job to leaf queue, queue `inner` has child queues"),
    ((k.VC_POD_GROUP, {"queue": "shut"}), "can only submit PodGroup to queue with state `Open`, queue `shut`"),
    ((k.VC_POD_GROUP, {"queue": "inner"}), "can not submit PodGroup to queue `inner`"),
    ((k.VC_POD_GROUP, {"networkTopology": TIERS}), "must not specify 'highestTierAllowed' and 'highestTierName'"),
    (queue(capability={"cpu": "-1"}), "capability must be greater than or equal to 0"),
    (queue(guarantee={"resource": {"cpu": 1}}), "deserved must be >= guarantee"),
    (queue(deserved={"cpu": "2"}, guarantee={"resource": {"cpu": "3"}}), "deserved must be >= guarantee"),
    (queue(deserved={"memory": "2Gi"}, capability={"memory": "1Gi"}), "deserved must be <= capability"),
    (queue(parent="it"), "queue it cannot use itself as parent"),
    (queue(parent="inner", capability={"cpu": "9"}), "capability exceeds that of its parent inner"),
    (cron(""), "schedule is required"),
    (cron("CRON_TZ=UTC * * * * *"), "schedule should not contain TZ or CRON_TZ"),
    (cron("every day"), "schedule is not a valid cron expression"),
    (cron("* * * * *", timeZone="Local"), "timeZone can't be Local"),
    (cron("* * * * *", timeZone="Europe/../x"), "unknown timeZone"),
    (flow(a=["b"], b=["a"]), "jobflow Flow is not DAG"),
    (flow(a=["x"]), "jobflow Flow is not DAG: vertex is not defined"),
    (hyper_node("a(b"), "missing closing )"),
)  # fmt: skip
ACCEPTED: tuple[tuple[Kind, Doc], ...] = (
    job(),
    job(task("m"), task("n", 4, minAvailable=2, partitionPolicy={**PARTS, "minPartitions": 1}), minAvailable=3,
        plugins={"mpi": ["--master=m", "--worker=n"], "svc": []}, queue="leaf", minSuccess=9,
        policies=[{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}, CODE],
        volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]),
    policies({"event": "*", "action": "RestartJob", "timeout": "10s"}),
    waiting(a=[], b=["a"], c=["a", "b"]),
    waiting(t0=[], **{f"t{index}": [f"t{index - 1}"] for index in range(1, 20)}),
    (k.VC_POD_GROUP, {"minMember": 1, "queue": "leaf"}),
    queue(parent="inner", capability={"cpu": 2}, deserved={"cpu": "1500m"}, guarantee={"resource": {"cpu": "1"}}),
    cron("*/5 2-4 * JAN,FEB mon", timeZone="Europe/Berlin"), cron("@daily"), cron("@every 1h30m"),
    flow(a=[], b=["a"]), hyper_node("node-[0-9]+", ".*"),
)  # fmt: skip


def _write(kind: Kind, spec: Doc, *, name: str = "it", dry: bool = True, **metadata: Any) -> Write:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **metadata}, "spec": spec}
    params = {"dryRun": "All"} if dry else {}
    return Write(Verb.CREATE, kind, "default" if kind.namespaced else "", name, body, params=params)


async def _refusal(api: KubeApi, write: Write) -> str:
    try:
        await api.perform(write)
    except ApiError as error:
        return error.message
    return ""


async def _until_enforced(api: KubeApi) -> None:
    wrong = [_write(*job(queue="shut")), _write(*hyper_node("(")), _write(*queue(parent="it"))]
    wrong += [_write(*flow(a=["x"])), _write(*cron("")), _write(k.VC_POD_GROUP, {"queue": "shut"})]
    for _ in range(ENFORCED_WITHIN * 4):
        if all([await _refusal(api, write) for write in wrong]):
            return
        await asyncio.sleep(0.25)
    raise AssertionError("the policies are not enforced")


async def _furnish(api: KubeApi) -> None:
    """Queues before the policies; they would refuse a child of what is not there yet no less."""
    for name, spec, state in (
        ("root", {}, "Open"), ("default", {}, "Open"), ("shut", {}, "Closed"),
        ("inner", {"capability": {"cpu": "4"}}, "Open"), ("leaf", {"parent": "inner"}, "Open"),
    ):  # fmt: skip
        await api.perform(_write(k.VC_QUEUE, spec, name=name, dry=False))
        body = {"status": {"state": state, "allocated": {}}}
        await api.perform(Write(Verb.PATCH, k.VC_QUEUE, "", name, body, subresource="status"))


async def _check_updates(api: KubeApi) -> None:
    volume = {"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    kind, spec = job(task("a", 2), task("b"), minAvailable=2, volumes=[volume])
    await api.perform(_write(kind, spec, name="lives", dry=False))

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
        told = await _refusal(api, _write(k.POD, spec, annotations=notes))
        assert said in told if said else not told, told
    for name, said in (("root", "`root` queue can not be deleted"), ("inner", "because it has child queues")):
        assert said in await _refusal(api, Write(Verb.DELETE, k.VC_QUEUE, "", name))
    assert await _refusal(api, Write(Verb.DELETE, k.VC_QUEUE, "", "shut")) == ""


async def test_policies_refuse_what_webhooks_refuse_and_nothing_else(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path)
    plane.start()
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        await asyncio.to_thread(define_volcano_kinds, plane.kubeconfig)
        for kind in (k.VC_JOB, k.VC_QUEUE, k.VC_POD_GROUP, k.VC_CRON_JOB, k.VC_JOB_FLOW, k.VC_HYPER_NODE):
            await served(api, kind)
        await _furnish(api)
        kubectl = Kubectl(real_binary("kubectl"), plane.kubeconfig, "default")
        await asyncio.to_thread(kubectl, "apply", "--server-side", "-f", str(POLICIES))
        await _until_enforced(api)
        for what, said in REFUSED:
            told = await _refusal(api, _write(*what))
            assert said in told, (what, told)
            assert "ValidatingAdmissionPolicy" in told
        for what in ACCEPTED:
            assert await _refusal(api, _write(*what)) == "", what
        await _check_updates(api)
        await _check_pods_and_deletions(api)
    finally:
        await api.close()
        plane.stop()
