"""In the place of Koordinator's scheduler and descheduler: the audit log against the roles, right by right.

The kinds are Koordinator's own definitions, so that what is written has to pass their schemas too.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cluster.controllers.writes import owner_reference
from fairlead.core.model import kinds as k
from fairlead.core.model.times import timestamp
from fairlead.koordinator.config.preset import KOORDINATOR_PRESET
from fairlead.koordinator.kinds import (
    KOORD_DEVICE,
    KOORD_ELASTIC_QUOTA,
    KOORD_MIGRATION_JOB,
    KOORD_POD_GROUP,
    KOORD_RESERVATION,
)
from tests.support.koordinator import GPU, QUOTA, elastic_quota, gpu_devices, koord_group, koord_reservation
from tests.support.processes.scheduler_process import GANG_GATES
from tests.support.real.audited import Lab, fairlead, laboratory, refused, used_rights
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.control_plane import ControlPlane, define_koordinator_kinds, define_volcano_kinds, free_port
from tests.support.real.roles import CHECKED_WITHIN, CONFIG, OURS, all_that_schedulers_do, has_node, ours

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=40)]

MOVER, KOORDINATOR = "mover", "koord-scheduler"
MIGRATION = "scheduling.koordinator.sh"
POLICY = "koordinator.sh/evict-policy"
DESCHEDULER = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 1s
profiles:
- plugins:
    balance:
      enabled:
      - name: CustomPriority
  pluginConfig:
  - name: CustomPriority
    args:
      mode: DrainNode
      autoCordon: true
      evictionOrder:
      - name: on-demand
        nodeSelector: {matchLabels: {price: high}}
      - name: spot
        nodeSelector: {matchLabels: {price: low}}
  - name: MigrationController
    args:
      evictAllBarePods: true
      maxMigratingPerNode: 0
      maxMigratingPerWorkload: 100%
      maxUnavailablePerWorkload: 100%
      skipCheckExpectedReplicas: true
      objectLimiters:
        workload: {duration: 0s}
"""


def scheduler_config() -> str:
    """Koordinator's profile beside a plain one, in a hurry: quotas are brought back at once, and ended reservations
    go after a second."""
    profile = yaml.safe_load(KOORDINATOR_PRESET)["profiles"][0]
    for entry in profile["pluginConfig"]:
        if entry["name"] == "ElasticQuota":
            entry["args"] |= {"monitorAllQuotas": True, "delayEvictTime": "1s", "revokePodInterval": "1s"}
    hurry = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "ReservationArgs", "gcDurationSeconds": 1}
    profile["pluginConfig"].append({"name": "Reservation", "args": hurry})
    config = yaml.safe_load(CONFIG)
    config["profiles"].append(profile)
    return yaml.safe_dump(config)


def koord_pod(name: str, cpu: str = "1m", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    pod = ours(pod_document(name, cpu=cpu), scheduler=KOORDINATOR, **spec)
    pod["metadata"]["labels"] = dict(labels or {})
    return pod


def without_uid(document: dict[str, Any]) -> dict[str, Any]:
    """For a server, which gives uids and times itself."""
    document["metadata"].pop("uid", None)
    document["metadata"].pop("creationTimestamp", None)
    return document


async def quotas_gangs_and_reservations_are_kept(lab: Lab) -> None:
    whole = {GPU: "200", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"}
    node = node_document("cards", cpu="4")
    node["status"]["allocatable"] = node["status"]["capacity"] = {**node["status"]["capacity"], **whole}
    await lab.make(k.NODE, node)
    await lab.make(KOORD_DEVICE, without_uid(gpu_devices("cards", count=2)))
    half = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}
    room = koord_reservation("room", request=half, owners={"app": "guest"}, allocateOnce=True)
    room["spec"]["template"]["spec"]["schedulerName"] = KOORDINATOR
    room["spec"]["template"]["spec"]["containers"][0] |= {"image": "x"}
    room["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = half
    await lab.make(KOORD_RESERVATION, without_uid(room))
    await lab.until(KOORD_RESERVATION, "room", lambda doc: (doc.get("status") or {}).get("phase") == "Available")
    guest = koord_pod("guest", labels={"app": "guest"})
    guest["spec"]["containers"][0]["resources"] = {"requests": half, "limits": half}
    await lab.make(k.POD, guest)
    await lab.until(k.POD, "guest", has_node)

    await lab.make(KOORD_POD_GROUP, without_uid(koord_group("crew", least=2)))
    for number in range(2):
        member = koord_pod(f"crew-{number}", labels={"pod-group.scheduling.sigs.k8s.io": "crew"})
        await lab.make(k.POD, member)
    await lab.until(k.POD, "crew-1", has_node)

    quota = elastic_quota("team", least={"cpu": "1"}, most={"cpu": "1"})
    await lab.make(KOORD_ELASTIC_QUOTA, without_uid(quota))
    await lab.make(k.POD, koord_pod("spender", cpu="1", labels={QUOTA + "name": "team"}))
    await lab.until(k.POD, "spender", has_node)
    await lab.until(
        KOORD_ELASTIC_QUOTA, "team", lambda doc: QUOTA + "runtime" in doc["metadata"].get("annotations", ())
    )
    await lab.patch(KOORD_ELASTIC_QUOTA, "team", {"spec": {"min": {"cpu": "100m"}, "max": {"cpu": "100m"}}})
    written = [("", "pods/eviction", "create"), (MIGRATION, "reservations", "delete")]
    await lab.until_used(OURS, *written, ("scheduling.sigs.k8s.io", "podgroups", "patch"))


async def a_node_is_drained(lab: Lab) -> None:
    """The pod of a dear node moves into a reservation; two more are moved by the other policies of eviction."""
    for name, price in (("dear", "high"), ("cheap", "low")):
        node = node_document(name, cpu="2")
        node["metadata"]["labels"]["price"] = price
        await lab.make(k.NODE, node)
    for name, policy in (("dismissed", "Delete"), ("asked", "SoftEviction")):
        await lab.make(k.POD, koord_pod(name, labels={POLICY: policy}, nodeName="cheap"))
        named = {"podRef": {"namespace": "default", "name": name}, "mode": "EvictDirectly", "ttl": "5m"}
        await lab.make(KOORD_MIGRATION_JOB, {"metadata": {"name": name}, "spec": named})
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    owner = await lab.make(k.REPLICA_SET, {"metadata": {"name": "web"}, "spec": spec})
    moving = koord_pod("moving", cpu="1", labels={"app": "web"}, nodeName="dear")
    moving["metadata"]["ownerReferences"] = [owner_reference(k.REPLICA_SET, owner)]
    await lab.make(k.POD, moving)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await lab.patch(k.POD, "moving", {"status": ready}, subresource="status")
    await lab.until_used(MOVER, (MIGRATION, "reservations", "create"))
    (made,) = (await lab.api.list(KOORD_RESERVATION)).items
    now = timestamp(time.time())
    scheduled = {"type": "Scheduled", "status": "True", "reason": "Scheduled"}
    conditions = [{**scheduled, "lastProbeTime": now, "lastTransitionTime": now}]
    status = {"phase": "Available", "nodeName": "cheap", "conditions": conditions}
    await lab.patch(KOORD_RESERVATION, made["metadata"]["name"], {"status": status}, subresource="status")
    written = [("", "nodes", "patch"), ("", "pods", "delete"), ("", "pods", "patch"), ("", "pods/eviction", "create")]
    await lab.until_used(MOVER, *written)


async def test_in_koordinators_place_all_that_is_granted_is_used(tmp_path: Path) -> None:
    plane = ControlPlane(
        tmp_path,
        gates=f"{GANG_GATES},DRAExtendedResource=true",
        runtime_config="scheduling.k8s.io/v1alpha2=true",
        accounts=(OURS,),
        audited=True,
    )
    config, port = tmp_path / "scheduler.yaml", free_port()
    config.write_text(scheduler_config())
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        await asyncio.to_thread(define_koordinator_kinds, lab.plane.kubeconfig)
        await lab.define(k.X_POD_GROUP)
        granted = await lab.bind_roles("koordinator", OURS, lease=("default", "fairlead"))
        flags = ("--bind-address", "0.0.0.0", "--secure-port", str(port), "--feature-gates", GANG_GATES)
        with fairlead(lab, OURS, "scheduler", "--config", str(config), *flags) as log:
            await all_that_schedulers_do(lab, port)
            await quotas_gangs_and_reservations_are_kept(lab)
        assert refused(plane, OURS) == set()
        assert "this account may do all that is needed" in log.read_text()
        assert used_rights(plane, OURS) | CHECKED_WITHIN == granted


async def test_the_descheduler_uses_all_that_is_granted(tmp_path: Path) -> None:
    """Alone: an administrator gives the reservation its node, as a scheduler would."""
    plane = ControlPlane(tmp_path, accounts=(MOVER,), audited=True)
    config = tmp_path / "descheduler.yaml"
    config.write_text(DESCHEDULER)
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_koordinator_kinds, lab.plane.kubeconfig)
        granted = await lab.bind_roles("descheduler", MOVER, lease=("default", "koord-descheduler"))
        words = ("descheduler", "--config", str(config), "--leader-elect-resource-namespace", "default", "-v")
        with fairlead(lab, MOVER, *words) as log:
            await a_node_is_drained(lab)
        assert "this account may do all that is needed" in log.read_text()
        with fairlead(lab, MOVER, *words, ahead=7200.0):  # what has ended is deleted after minutes
            done = ((MIGRATION, "podmigrationjobs", "delete"), (MIGRATION, "reservations", "delete"))
            await lab.until_used(MOVER, *done)
        assert refused(plane, MOVER) == set()
        assert used_rights(plane, MOVER) == granted
