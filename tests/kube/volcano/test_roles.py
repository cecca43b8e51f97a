"""In Volcano's place: the API server's audit log against the roles, right by right."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from fairlead.core.model import kinds as k
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import Conflict, NotFound
from fairlead.volcano.kinds import (
    VC_COMMAND,
    VC_CRON_JOB,
    VC_JOB,
    VC_JOB_FLOW,
    VC_JOB_TEMPLATE,
    VC_NODE_SHARD,
    VC_NUMATOPOLOGY,
    VC_POD_GROUP,
    VC_QUEUE,
)
from tests.support.processes.scheduler_process import GANG_GATES
from tests.support.real.audited import Lab, fairlead, laboratory, refused, used_rights
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.control_plane import ControlPlane, define_volcano_kinds, free_port
from tests.support.real.roles import (
    CHECKED_WITHIN,
    VOLCANO,
    VOLCANO_CONF,
    devices_are_given,
    has_node,
    ours,
    the_port_asks,
    volumes_are_chosen,
)

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=70)]

CONTROLLERS = "controllers"


def batch_job(name: str, replicas: int = 1, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "w", "replicas": replicas, "template": template}
    queue = {"schedulerName": VOLCANO, "queue": "default", "minAvailable": replicas}
    return {"metadata": {"name": name}, "spec": {"tasks": [task], **queue, **spec}}


async def finish(lab: Lab, *pods: str) -> None:
    """What a kubelet does when all has gone well."""
    for name in pods:
        await lab.until(k.POD, name, has_node)
        await lab.patch(k.POD, name, {"status": {"phase": "Succeeded"}}, subresource="status")


async def command(lab: Lab, kind: Kind, name: str, action: str) -> None:
    found = await lab.api.get(kind, "default" if kind.namespaced else "", name)
    target = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": found["metadata"]["uid"]}
    await lab.make(VC_COMMAND, {"metadata": {"name": f"{name}-{action.lower()}"}, "action": action, "target": target})


async def batch_work_is_placed_and_preempted(lab: Lab) -> None:
    for name, cpu in (("n0", "4"), ("n1", "4"), ("n2", "2")):  # there is room for three, and no node has it
        await lab.make(k.NODE, node_document(name, cpu=cpu))
    await lab.make(k.PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 1000})
    await lab.make(k.PRIORITY_CLASS, {"metadata": {"name": "low"}, "value": 10})
    replaceable = {"volcano.sh/preemptable": "true"}
    for number in range(2):
        low = ours(pod_document(f"low-{number}", cpu="3"), scheduler=VOLCANO, priorityClassName="low")
        low["metadata"]["annotations"] = dict(replaceable)
        await lab.make_in_time(k.POD, low)
        await lab.until(k.POD, low["metadata"]["name"], has_node)
        await lab.patch(k.POD, low["metadata"]["name"], {"status": {"phase": "Running"}}, subresource="status")
    await lab.make_in_time(k.POD, ours(pod_document("urgent", cpu="3"), scheduler=VOLCANO, priorityClassName="high"))
    await lab.until(k.POD, "urgent", has_node)
    await a_group_is_told_something_else(lab)


async def a_group_is_told_something_else(lab: Lab) -> None:
    """A group that does not fit into its queue is told what it lacks there. Another lack is another event about the
    same version of the group, so that both become a series, which is patched."""
    narrow = {"weight": 1, "capability": {"cpu": "1", "memory": "1Gi"}}
    await lab.make(VC_QUEUE, {"metadata": {"name": "narrow"}, "spec": narrow})
    await lab.until(VC_QUEUE, "narrow", lambda doc: (doc.get("status") or {}).get("state") == "Open")
    spec = {"minMember": 1, "queue": "narrow", "minResources": {"cpu": "2", "memory": "2Gi"}}
    await lab.make(VC_POD_GROUP, {"metadata": {"name": "wide"}, "spec": spec})
    tries = 0

    async def told_twice() -> bool:
        nonlocal tries
        tries += 1
        capability = {"cpu": "1", "memory": "4Gi" if tries % 2 else "1Gi"}
        await asyncio.sleep(1)
        await lab.patch(VC_QUEUE, "narrow", {"spec": {"capability": capability}})
        return ("events.k8s.io", "events", "patch") in used_rights(lab.plane, VOLCANO)

    await lab.until_true(told_twice, "an event was repeated")
    await lab.delete(VC_POD_GROUP, "wide")


async def gates_open_and_layouts_go(lab: Lab) -> None:
    spec = {"minMember": 1, "queue": "default"}
    await lab.make(VC_POD_GROUP, {"metadata": {"name": "gated"}, "spec": spec})
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    pod = ours(pod_document("gated", cpu="1m"), scheduler=VOLCANO, schedulingGates=[{"name": gate}])
    pod["metadata"]["annotations"] = {gate: "true", "scheduling.k8s.io/group-name": "gated"}
    await lab.make(k.POD, pod)
    await lab.until(k.POD, "gated", has_node)
    await lab.make(k.NODE, node_document("numa", cpu="1"))
    policies = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "none"}
    layout = {"policies": policies, "numares": {"cpu": {"allocatable": "0", "capacity": 1}}, "cpuDetail": {}}
    await lab.make(VC_NUMATOPOLOGY, {"metadata": {"name": "numa"}, "spec": layout})
    await asyncio.sleep(1)
    await lab.delete(k.NODE, "numa")
    await lab.until_used(VOLCANO, ("nodeinfo.volcano.sh", "numatopologies", "delete"))


async def jobs_run_and_are_cleared_away(lab: Lab, account: str = VOLCANO) -> None:
    claim = {
        "mountPath": "/data",
        "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    plugins = {"svc": [], "ssh": [], "env": []}
    await lab.make(VC_JOB, batch_job("train", 2, plugins=plugins, volumes=[claim], ttlSecondsAfterFinished=1))
    await lab.until(VC_POD_GROUP, (await group_of(lab, "train")), lambda doc: True)
    resized = batch_job("train", 3)["spec"]["tasks"]
    await lab.patch(VC_JOB, "train", {"spec": {"tasks": resized, "minAvailable": 2}})
    await lab.until_used(account, ("", "configmaps", "patch"), ("", "pods", "create"))
    await command(lab, VC_JOB, "train", "AbortJob")
    await lab.until_used(account, ("", "secrets", "delete"), ("bus.volcano.sh", "commands", "delete"))
    await lab.make(VC_JOB, batch_job("short", ttlSecondsAfterFinished=0))
    await finish(lab, "short-w-0")
    await lab.until_used(account, ("batch.volcano.sh", "jobs", "delete"))


async def group_of(lab: Lab, job: str) -> str:
    found = await lab.api.get(VC_JOB, "default", job)
    return f"{job}-{found['metadata']['uid']}"


async def flows_and_timetables_make_jobs(lab: Lab, account: str = VOLCANO) -> None:
    await lab.make(VC_JOB_TEMPLATE, {"metadata": {"name": "step"}, "spec": batch_job("step")["spec"]})
    flow = {"flows": [{"name": "step"}], "jobRetainPolicy": "delete"}
    await lab.make(VC_JOB_FLOW, {"metadata": {"name": "flow"}, "spec": flow})
    await finish(lab, "flow-step-w-0")
    cron = {"schedule": "@every 5s", "jobTemplate": {"spec": batch_job("tick")["spec"]}}
    await lab.make(VC_CRON_JOB, {"metadata": {"name": "tick"}, "spec": cron})
    await lab.make(VC_QUEUE, {"metadata": {"name": "closing"}, "spec": {"weight": 1}})
    await lab.until(VC_QUEUE, "closing", lambda doc: (doc.get("status") or {}).get("state") == "Open")
    await command(lab, VC_QUEUE, "closing", "CloseQueue")
    await lab.until(VC_QUEUE, "closing", lambda doc: doc["status"]["state"] == "Closed")
    wanted = [("flow.volcano.sh", "jobtemplates/status"), ("flow.volcano.sh", "jobflows/status")]
    wanted += [("batch.volcano.sh", "cronjobs/status")]
    await lab.until_used(account, *((group, resource, "patch") for group, resource in wanted))
    await lab.delete(VC_CRON_JOB, "tick")


async def nodes_are_described_and_divided(lab: Lab, account: str = VOLCANO) -> None:
    """The HyperNodes of racks and the shards of schedulers follow a node that comes, moves and goes."""
    space = "volcano-system"
    await lab.make(k.NAMESPACE, {"metadata": {"name": space}})
    topology = {"networkTopologyTypes": {"net": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}}
    source = {"networkTopologyDiscovery": [{"source": "label", "enabled": True, "config": topology}]}
    data = {"volcano-controller.conf": json.dumps(source)}
    await lab.make(k.CONFIG_MAP, {"metadata": {"name": "volcano-controller-configmap"}, "data": data}, namespace=space)
    shards = {"schedulerConfigs": [{"name": "all", "policies": []}]}
    config = {"metadata": {"name": "volcano-sharding-configmap"}, "data": {"sharding.yaml": json.dumps(shards)}}
    await lab.make(k.CONFIG_MAP, config, namespace=space)
    await lab.until(VC_NODE_SHARD, "all", lambda doc: True)
    for name in ("racked", "racked-too"):
        node = node_document(name, cpu="1m")
        node["metadata"]["labels"] = {"rack": "r1"}
        await lab.make(k.NODE, node)
        await lab.until(VC_NODE_SHARD, "all", lambda doc, name=name: name in doc["spec"]["nodesDesired"])
    await lab.until_used(account, ("topology.volcano.sh", "hypernodes", "patch"))
    for name in ("racked", "racked-too"):
        await lab.delete(k.NODE, name)
    await lab.until_used(account, ("topology.volcano.sh", "hypernodes", "delete"))


async def test_in_volcanos_place_all_that_is_granted_is_used(tmp_path: Path) -> None:
    plane = ControlPlane(
        tmp_path, gates=GANG_GATES, runtime_config="scheduling.k8s.io/v1alpha2=true", accounts=(VOLCANO,), audited=True
    )
    conf, port = tmp_path / "volcano-scheduler.conf", free_port()
    conf.write_text(VOLCANO_CONF)
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        await lab.define(k.X_POD_GROUP)
        granted = await lab.bind_roles("volcano", VOLCANO, lease=("default", "fairlead"))
        flags = (
            "--volcano-only", "--volcano-conf", str(conf), "--volcano-controllers", "--schedule-period", "200ms",
            "--feature-gates", "SchedulingGatesQueueAdmission=true", "--bind-address", "0.0.0.0",
            "--secure-port", str(port), "--leader-elect-resource-name", "fairlead",
            "--leader-elect-resource-namespace", "default", "--kube-api-qps=-1",
            "--leader-elect-lease-duration", "120s", "--leader-elect-renew-deadline", "100s",
        )  # fmt: skip
        with fairlead(lab, VOLCANO, "scheduler", *flags) as log:
            await batch_work_is_placed_and_preempted(lab)
            await gates_open_and_layouts_go(lab)
            await jobs_run_and_are_cleared_away(lab)
            await flows_and_timetables_make_jobs(lab)
            await nodes_are_described_and_divided(lab)
            await volumes_are_chosen(lab, VOLCANO)
            await devices_are_given(lab, VOLCANO)
            await the_port_asks(lab, port, VOLCANO)
        assert refused(plane, VOLCANO) == set()
        assert "this account may do all that is needed" in log.read_text()
        assert used_rights(plane, VOLCANO) | CHECKED_WITHIN == granted


async def stand_in_for_a_scheduler(lab: Lab) -> None:
    """Let every group in and give every pod the node n0, as an administrator."""
    while True:
        for group in (await lab.api.list(VC_POD_GROUP)).items:
            if (group.get("status") or {}).get("phase") in (None, "", "Pending"):
                with suppress(NotFound):
                    await lab.patch(VC_POD_GROUP, group["metadata"]["name"], {"status": {"phase": "Inqueue"}})
        for pod in (await lab.api.list(k.POD)).items:
            if not has_node(pod) and not pod["metadata"].get("deletionTimestamp"):
                name, target = pod["metadata"]["name"], {"apiVersion": "v1", "kind": "Node", "name": "n0"}
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
                with suppress(NotFound, Conflict):
                    await lab.api.perform(Write(Verb.CREATE, k.POD, "default", name, body, subresource="binding"))
        await asyncio.sleep(0.2)


async def a_plain_pod_gets_a_group(lab: Lab) -> None:
    await lab.make(k.POD, ours(pod_document("plain", cpu="1m"), scheduler=VOLCANO))
    await lab.until(
        k.POD, "plain", lambda doc: "scheduling.k8s.io/group-name" in doc["metadata"].get("annotations", ())
    )


async def test_controllers_alone_use_all_that_is_granted(tmp_path: Path) -> None:
    """`fairlead controllers` with all its controllers, and no scheduler of ours beside it."""
    plane = ControlPlane(tmp_path, accounts=(CONTROLLERS,), audited=True)
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        granted = await lab.bind_roles("controllers", CONTROLLERS, lease=("default", "vc-controller-manager"))
        await lab.make(k.NODE, node_document("n0", cpu="4"))
        flags = ("controllers", "--controllers", "*", "--leader-elect-resource-namespace", "default", "-v")
        with fairlead(lab, CONTROLLERS, *flags) as log:
            placing = asyncio.create_task(stand_in_for_a_scheduler(lab))
            try:
                await a_plain_pod_gets_a_group(lab)
                await jobs_run_and_are_cleared_away(lab, CONTROLLERS)
                await flows_and_timetables_make_jobs(lab, CONTROLLERS)
                await nodes_are_described_and_divided(lab, CONTROLLERS)
            finally:
                placing.cancel()
        assert refused(plane, CONTROLLERS) == set()
        assert "this account may do all that is needed" in log.read_text()
        assert used_rights(plane, CONTROLLERS) == granted


async def test_active_replicas_use_all_that_is_granted_with_controllers_beside_them(tmp_path: Path) -> None:
    """The way `shards`, with a NodeShard, and `fairlead controllers` in a process beside it, each with roles of its
    own."""
    plane = ControlPlane(
        tmp_path,
        gates=GANG_GATES,
        runtime_config="scheduling.k8s.io/v1alpha2=true",
        accounts=(VOLCANO, CONTROLLERS),
        audited=True,
    )
    conf, port = tmp_path / "volcano-scheduler.conf", free_port()
    conf.write_text(VOLCANO_CONF)
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        await lab.define(k.X_POD_GROUP)
        granted = await lab.bind_roles("shards", VOLCANO, lease=("default", "fairlead"))
        also = await lab.bind_roles("controllers", CONTROLLERS, lease=("default", "vc-controller-manager"))
        own = {"nodesDesired": ["n0", "n1", "n2"]}
        await lab.make(VC_NODE_SHARD, {"metadata": {"name": "ours"}, "spec": own})
        flags = (
            "--volcano-only", "--volcano-conf", str(conf), "--schedule-period", "200ms", "--leader-elect=false",
            "--feature-gates", "SchedulingGatesQueueAdmission=true", "--bind-address", "0.0.0.0",
            "--secure-port", str(port), "--kube-api-qps=-1", "--scheduler-sharding-mode", "soft",
            "--scheduler-sharding-name", "ours",
        )  # fmt: skip
        controllers = ("controllers", "--leader-elect-resource-namespace", "default", "-v")
        with fairlead(lab, VOLCANO, "scheduler", *flags) as log, ExitStack() as beside:
            await lab.until(VC_QUEUE, "default", lambda doc: True)  # made by the scheduler, which may
            other = beside.enter_context(fairlead(lab, CONTROLLERS, *controllers))
            await batch_work_is_placed_and_preempted(lab)
            await gates_open_and_layouts_go(lab)
            await jobs_run_and_are_cleared_away(lab, CONTROLLERS)
            await flows_and_timetables_make_jobs(lab, CONTROLLERS)
            await volumes_are_chosen(lab, VOLCANO)
            await devices_are_given(lab, VOLCANO)
            await the_port_asks(lab, port, VOLCANO)
        assert (refused(plane, VOLCANO), refused(plane, CONTROLLERS)) == (set(), set())
        assert "this account may do all that is needed" in log.read_text()
        assert used_rights(plane, VOLCANO) | CHECKED_WITHIN == granted
        assert used_rights(plane, CONTROLLERS) <= also, other.read_text()[-2000:]
