"""Rights that only some users need: each extra is used in full, and with it nothing that the roles do not grant."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fairlead.cluster.kubelets.refused_pods import REPLACED
from fairlead.core.model import kinds as k
from fairlead.core.model.owner_sizes import OWNERS, owner_kind
from tests.support.real.audited import Lab, fairlead, laboratory, refused, used_rights
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.control_plane import ControlPlane, define_volcano_kinds
from tests.support.real.roles import CONFIG, OURS, VOLCANO, VOLCANO_CONF, extra_rights, has_node, ours

pytestmark = pytest.mark.kube

OWNER_VERSIONS = {"jobset.x-k8s.io": "v1alpha2", "ray.io": "v1", "kubeflow.org": "v1", "batch": "v1"}
CARDS = """\
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.NodeLockEnable: true
"""


async def owners_are_looked_for(lab: Lab) -> None:
    """A pod that belongs to a gang of its owner makes the scheduler read owners of that kind."""
    for group, kind in OWNERS:
        found = owner_kind(f"{group}/{OWNER_VERSIONS[group]}", kind)
        assert found is not None
        if found is not k.JOB:
            await lab.define(found)
        pod = ours(pod_document(f"of-{kind.lower()}", cpu="1m"))
        pod["metadata"]["annotations"] = {"scheduling.fairlead.io/gang": "auto"}
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": found.api_version, "kind": kind, "name": "owner", "uid": "u1", "controller": True}
        ]
        await lab.make(k.POD, pod)
    await lab.until_used(OURS, *(right for right in extra_rights("owners") if right[2] == "list"))


async def a_refused_pod_is_made_again(lab: Lab) -> None:
    await lab.make(k.POD, ours(pod_document("turned-away", cpu="1m")))
    await lab.until(k.POD, "turned-away", has_node)
    status = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
    await lab.patch(k.POD, "turned-away", {"status": status}, subresource="status")
    await lab.until(k.POD, "turned-away", lambda doc: REPLACED in (doc["metadata"].get("annotations") or {}))


async def a_card_is_shared(lab: Lab) -> None:
    node = node_document("shared", cpu="4")
    offered = {"volcano.sh/vgpu-number": "10", "volcano.sh/vgpu-memory": "16000", "volcano.sh/vgpu-cores": "100"}
    node["status"]["allocatable"] = node["status"]["capacity"] = {**node["status"]["capacity"], **offered}
    register = {"volcano.sh/node-vgpu-register": "g0,10,16000,NVIDIA-A100,true,hami-core:"}
    node["metadata"]["annotations"] = register
    await lab.make(k.NODE, node)
    pod = ours(pod_document("sharing", cpu="1m"), scheduler=VOLCANO)
    wanted = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"}
    pod["spec"]["containers"][0]["resources"] = {"limits": wanted}
    await lab.make(k.POD, pod)
    await lab.until(k.POD, "sharing", has_node)


async def test_every_extra_is_used_in_full(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, accounts=(OURS, VOLCANO), audited=True)
    config, conf = tmp_path / "scheduler.yaml", tmp_path / "volcano-scheduler.conf"
    config.write_text(CONFIG)
    conf.write_text(VOLCANO_CONF + CARDS)
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        granted = await lab.bind_roles("second", OURS, lease=("default", "fairlead"), extras=("owners", "replacing"))
        also = await lab.bind_roles("volcano", VOLCANO, lease=("default", "volcano"), extras=("cards",))
        await lab.make(k.NODE, node_document("n0", cpu="4"))
        flags = ("scheduler", "--config", str(config), "--replace-refused-pods", "--secure-port", "0")
        rounds = (
            "scheduler", "--volcano-only", "--volcano-conf", str(conf), "--volcano-controllers", "--schedule-period",
            "200ms", "--secure-port", "0", "--kube-api-qps=-1", "--leader-elect-resource-name", "volcano",
            "--leader-elect-resource-namespace", "default",
        )  # fmt: skip
        with fairlead(lab, VOLCANO, *rounds):
            await a_card_is_shared(lab)
        with fairlead(lab, OURS, *flags):
            await a_refused_pod_is_made_again(lab)
            await owners_are_looked_for(lab)
            await asyncio.sleep(3)  # watches follow the lists, and the log has them when they end
        assert (refused(plane, OURS), refused(plane, VOLCANO)) == (set(), set())
        for account, extras, all_of in ((OURS, ("owners", "replacing"), granted), (VOLCANO, ("cards",), also)):
            wanted = {right for extra in extras for right in extra_rights(extra)}
            used = used_rights(plane, account)
            assert (wanted - used, used - all_of) == (set(), set())
