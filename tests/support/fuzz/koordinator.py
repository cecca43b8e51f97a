"""Random clusters for Koordinator's scheduler: quotas, GPUs and CPUs by their layout, and pods that want some of them.

Everything comes from one seed. Pods come one by one, so that the order in which the original learns of them is known.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from fairlead.koordinator.agents.node_topologies import node_topology
from tests.support.fuzz.worlds import FuzzCluster
from tests.support.koordinator import GPU, QUOTA, SCHEDULING, elastic_quota, gpu_devices
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.koordinator_stories import NAME, for_server

Doc = dict[str, Any]

KOORDINATOR_FAMILIES = ("quota", "device", "numa", "mix")
_QUOTAS = ("team-a", "team-b")


def make_koordinator_world(seed: int) -> FuzzCluster:
    return _Maker(seed, KOORDINATOR_FAMILIES[seed % len(KOORDINATOR_FAMILIES)]).world()


class _Maker:
    def __init__(self, seed: int, family: str) -> None:
        self.rng = Random(f"{seed}/koordinator")
        self.family = family
        self.made = FuzzCluster(seed, family)

    def world(self) -> FuzzCluster:
        rng, made = self.rng, self.made
        for at in range(rng.randint(2, 4)):
            self._node(f"n{at:02}")
        if self._leans("quota"):
            self._quotas()
        made.pods = [self._pod(f"p{at:02}") for at in range(rng.randint(6, 10))]
        return made

    def _leans(self, family: str) -> bool:
        return self.family in (family, "mix")

    def _node(self, name: str) -> None:
        rng = self.rng
        node = node_document(name, cpu=str(rng.choice((4, 8, 16))))
        if self._leans("device") and rng.random() < 0.8:
            count = rng.choice((1, 2, 4))
            whole = str(100 * count)
            cards = {GPU: whole, "koordinator.sh/gpu-core": whole, "koordinator.sh/gpu-memory-ratio": whole}
            node["status"]["allocatable"] = node["status"]["capacity"] = {**node["status"]["capacity"], **cards}
            device = gpu_devices(name, count=count)
            for one in device["spec"]["devices"]:
                one["health"] = rng.random() > 0.1
            self.made.objects.append(for_server(device))
        if self._leans("numa"):
            topology = node_topology(node)
            assert topology is not None
            self.made.objects.append(topology)
        self.made.nodes.append({"apiVersion": "v1", "kind": "Node", **node})

    def _quotas(self) -> None:
        rng = self.rng
        total = rng.randint(4, 12)
        parent = elastic_quota("dept", least={"cpu": str(total)}, most={"cpu": str(total)}, is_parent=True)
        quotas = [parent]
        for name in _QUOTAS:
            weight = {QUOTA + "shared-weight": json.dumps({"cpu": str(rng.randint(1, 7))})}
            quotas.append(
                elastic_quota(
                    name,
                    least={"cpu": str(rng.randint(0, total // 2))},
                    most={"cpu": str(rng.randint(total // 2, total))},
                    parent="dept",
                    annotations=weight if rng.random() < 0.6 else {},
                )
            )
        self.made.objects += [for_server(one) for one in quotas]

    def _pod(self, name: str) -> Doc:
        rng = self.rng
        cpu = rng.choice(("500m", "1", "2", "3", "1500m"))
        asks = {"cpu": cpu}
        labels, annotations = {}, {}
        if self._leans("quota"):
            labels[QUOTA + "name"] = rng.choice(_QUOTAS)
        if self._leans("device") and rng.random() < 0.7:
            share = str(rng.choice((25, 50, 75, 100, 200)))
            asks |= {"koordinator.sh/gpu-core": share, "koordinator.sh/gpu-memory-ratio": share}
        if self._leans("numa") and rng.random() < 0.7:
            labels["koordinator.sh/qosClass"] = rng.choice(("LSR", "LS"))
            labels["koordinator.sh/priority-class"] = "koord-prod"
            if rng.random() < 0.5:
                policy = rng.choice(("FullPCPUs", "SpreadByPCPUs"))
                annotations[SCHEDULING + "resource-spec"] = json.dumps({"preferredCPUBindPolicy": policy})
        pod = pod_document(name, **asks)
        resources = pod["spec"]["containers"][0]["resources"]
        resources["limits"] = dict(resources["requests"])
        pod["metadata"] |= {"namespace": "default", "labels": labels, "annotations": annotations}
        pod["spec"]["schedulerName"] = NAME
        return {"apiVersion": "v1", "kind": "Pod", **pod}
