"""Clusters with a gang that is short of quota, of a rack, of a device or of reserved room.

There is one of each with a kube profile, in Volcano's and in Koordinator's; the gang is named g.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairlead.config.source import parse_source
from fairlead.core.model.flow import Doc
from fairlead.koordinator.config.preset import KOORDINATOR_PRESET
from fairlead.testing import Harness, job, node, pod, podgroup, queue
from fairlead.testing.builders import Builder
from tests.support.claims import device_class, devices, gpus, template
from tests.support.koordinator import (
    GANG,
    QUOTA,
    SCHEDULING,
    elastic_quota,
    gpu_devices,
    koord_group,
    koord_reservation,
)

RACK = "example.com/rack"
VOLCANO = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: overcommit}
  - {name: predicates}
  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}
  - {name: capacity}
  - {name: nodeorder}
  - {name: network-topology-aware}
"""
VGPU = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "10000"}


def racks() -> list[Builder]:
    """Four nodes of four cores in two racks."""
    return [node(f"n{at}").offers(cpu="4").labelled({RACK: f"r{at // 2}"}) for at in range(4)]


def one(**offers: str) -> list[Builder]:
    return [node("n0").offers(offers)]


# ---- with a kube profile ----


def native(members: int, **spec: Any) -> Doc:
    metadata = {"name": "g", "namespace": "default"}
    policy = {"schedulingPolicy": {"gang": {"minCount": members}}, **spec}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": policy}


def kube_members(count: int, cpu: str) -> list[Any]:
    return [pod(f"g-{at}").asks(cpu=cpu).having(schedulingGroup={"podGroupName": "g"}) for at in range(count)]


def kube_quota(_: Path) -> Harness:
    cluster = Harness(nodes=one(cpu="8"))
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"}}
    cluster.apply(quota | {"spec": {"hard": {"requests.cpu": "3"}}})
    cluster.run(2)
    together = pod("g").asks(cpu="2").annotated({"scheduling.fairlead.io/gang": "auto"}).restarting("Never")
    cluster.apply(job("g").times(3, at_once=3).of(together))
    return cluster


def kube_rack(_: Path) -> Harness:
    cluster = Harness(nodes=racks())
    cluster.apply(native(5, schedulingConstraints={"topology": [{"key": RACK}]}), *kube_members(5, "2"))
    return cluster


def kube_device(_: Path) -> Harness:
    cluster = Harness(nodes=[node("n0"), node("n1")])
    cluster.apply(device_class(), gpus("n0", 2), gpus("n1", 2), template("one", devices()))
    claims = [{"name": "g", "resourceClaimTemplateName": "one"}]
    members = [member.having(resourceClaims=claims).doc() for member in kube_members(5, "1")]
    for member in members:
        member["spec"]["containers"][0]["resources"]["claims"] = [{"name": "g"}]
    cluster.apply(native(5), *members)
    return cluster


def kube_reservation(_: Path) -> Harness:
    """The room is promised to a pod of high priority, which waits until its victim is gone."""
    cluster = Harness(nodes=one(cpu="4"))
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    cluster.apply(priority | {"value": 1000}, pod("low").asks(cpu="4").ending_after("300s"))
    cluster.run(2)
    cluster.apply(pod("vip").asks(cpu="3").of_priority("high"))
    cluster.run(2)
    cluster.apply(native(2), *kube_members(2, "1"))
    return cluster


# ---- with the Volcano profile ----


def volcano(directory: Path, nodes: list[Builder]) -> Harness:
    file = directory / "volcano.conf"
    file.write_text(VOLCANO)
    cluster = Harness(nodes=nodes, volcano=file)
    cluster.run(3)
    return cluster


def volcano_gang(members: int, asks: Doc, **spec: Any) -> list[Builder]:
    made = [pod(f"g-{at}").asks(asks).in_group("g").scheduled_by("volcano") for at in range(members)]
    made = [one.limited_to(asks) if "cpu" not in asks else one for one in made]
    return [podgroup("g", members).in_queue("default").having(**spec), *made]


def volcano_quota(directory: Path) -> Harness:
    cluster = volcano(directory, one(cpu="8"))
    cluster.apply(queue("team").capped_at(cpu="3"))
    cluster.run(3)
    cluster.apply(*volcano_gang(4, {"cpu": "1"}, queue="team"))
    return cluster


def volcano_rack(directory: Path) -> Harness:
    cluster = volcano(directory, racks())
    for name in ("r0", "r1"):
        members = [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {RACK: name}}}}]
        spec = {"tier": 1, "tierName": "rack", "members": members}
        kind = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode"}
        cluster.apply(kind | {"metadata": {"name": name}, "spec": spec})
    cluster.run(3)
    near = {"mode": "hard", "highestTierAllowed": 1}
    cluster.apply(*volcano_gang(5, {"cpu": "2"}, networkTopology=near))
    return cluster


def volcano_device(directory: Path) -> Harness:
    register = "".join(f"n0-{card},4,16000,NVIDIA-A100,true,hami-core:" for card in "ab")
    offers = {"volcano.sh/vgpu-number": "8", "volcano.sh/vgpu-memory": "32000", "volcano.sh/vgpu-cores": "200"}
    cards = node("n0").offers(offers).annotated({"volcano.sh/node-vgpu-register": register})
    cluster = volcano(directory, [cards])
    cluster.apply(*volcano_gang(3, VGPU))
    return cluster


def volcano_reservation(directory: Path) -> Harness:
    """The room is kept for a group that was let in and has no pods yet."""
    cluster = volcano(directory, one(cpu="4"))
    cluster.apply(podgroup("held", 1).in_queue("default").having(minResources={"cpu": "4"}))
    cluster.run(3)
    cluster.apply(*volcano_gang(2, {"cpu": "1"}, minResources={"cpu": "2"}))
    return cluster


# ---- with the Koordinator profile ----


def koordinator(nodes: list[Builder]) -> Harness:
    document = parse_source(KOORDINATOR_PRESET, "koordinator").value
    listed = document["profiles"][0]["pluginConfig"]
    listed.append({"name": "Coscheduling", "args": {"awareNetworkTopology": True}})
    return Harness(nodes=nodes, config=document)


def koord_gang(members: int, asks: Doc, *, annotations: Doc | None = None, **labels: str) -> list[Any]:
    own = {"pod-group.scheduling.sigs.k8s.io": "g", **labels}
    made = [pod(f"g-{at}").asks(asks).labelled(own).scheduled_by("koord-scheduler") for at in range(members)]
    return [koord_group("g", least=members, annotations=annotations), *made]


def koord_quota(_: Path) -> Harness:
    cluster = koordinator(one(cpu="8"))
    cluster.apply(elastic_quota("team", least={"cpu": "1"}, most={"cpu": "2"}))
    cluster.run(3)
    cluster.apply(*koord_gang(3, {"cpu": "1"}, **{QUOTA + "name": "team"}))
    return cluster


def koord_rack(_: Path) -> Harness:
    cluster = koordinator(racks())
    layers = [
        {"topologyLayer": "rack", "labelKey": [RACK], "parentTopologyLayer": "ClusterTopologyLayer"},
        {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "rack"},
    ]
    kind = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "ClusterNetworkTopology"}
    cluster.apply(kind | {"metadata": {"name": "default"}, "spec": {"networkTopologySpec": layers}})
    cluster.run(3)
    gather = json.dumps({"gatherStrategy": [{"layer": "rack", "strategy": "MustGather"}]})
    cluster.apply(*koord_gang(5, {"cpu": "2"}, annotations={GANG + "network-topology-spec": gather}))
    return cluster


def koord_device(_: Path) -> Harness:
    shares = {"koordinator.sh/gpu": "200", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"}
    cluster = koordinator(one(cpu="8", **shares))
    cluster.apply(gpu_devices("n0", count=2))
    cluster.run(3)
    cluster.apply(*koord_gang(4, {"koordinator.sh/gpu": "60"}))
    return cluster


def koord_reserved(_: Path) -> Harness:
    cluster = koordinator(one(cpu="8"))
    cluster.apply(koord_reservation("r", request={"cpu": "6"}, owners={"app": "web"}, ttl="24h"))
    cluster.run(3)
    wish = {SCHEDULING + "reservation-affinity": json.dumps({"reservationSelector": {}})}
    group, *members = koord_gang(3, {"cpu": "3"}, app="web")
    cluster.apply(group, *(member.annotated(wish) for member in members))
    return cluster
