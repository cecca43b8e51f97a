"""Random clusters for the real kube-scheduler and for us: nodes, objects, pods that are there and pods to place.

Everything comes from one seed. A family says what a cluster leans on; the others' features come in too, but rarely.
What the API server would not store need not be avoided: the recorder leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.fuzz.pods import APPS, IMAGES, NAMESPACES, TIERS, ZONES, Pods
from tests.support.fuzz.storage import storage

Doc = dict[str, Any]

FAMILIES = (
    "fit", "taint", "nodeaff", "ports", "image", "podaff", "spread", "services", "most", "ratio", "mix", "preempt",
    "podlevel", "volume", "large",
)  # fmt: skip
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")


@dataclass
class FuzzCluster:
    """What is created before the decisions, in order, and the pods to be decided."""

    seed: int
    family: str
    nodes: list[Doc] = field(default_factory=list)
    objects: list[Doc] = field(default_factory=list)
    existing: list[Doc] = field(default_factory=list)
    pods: list[Doc] = field(default_factory=list)


def make_world(seed: int, family: str) -> FuzzCluster:
    return _Maker(seed, family).world()


class _Maker:
    def __init__(self, seed: int, family: str) -> None:
        self.rng = Random(f"{seed}/{family}")
        self.made = FuzzCluster(seed, family)
        self.family = family

    def world(self) -> FuzzCluster:
        rng, made = self.rng, self.made
        large = self.family == "large"
        count = rng.randint(40, 80) if large else rng.randint(1, 20)
        names = [f"n{i:02}" for i in range(count)]
        made.nodes = [self._node(name) for name in names]
        if self.leans("services"):
            made.objects += [self._service(i) for i in range(rng.randint(1, 3))]
            made.objects += [self._replica_set(i) for i in range(rng.randint(0, 2))]
        if self.leans("volume"):
            made.objects += storage(rng, names)
        if self.leans("podlevel"):
            made.objects += self._runtime_classes()
        pods = Pods(rng, self.family, self.leans, made.objects, names)
        existing = rng.randint(150, 300) if large else rng.randint(0, 4 * count)
        if self.family == "preempt" and rng.random() < 0.4:
            names, existing = names[:1], rng.randint(10, 40)
        made.existing = [pods.existing(f"e{i:03}", rng.choice(names)) for i in range(existing)]
        if self.family == "preempt":
            made.objects += [self._budget(i) for i in range(rng.randint(0, 4))]
            made.pods = [pods.preemptor("p000")]
        else:
            made.pods = [pods.waiting(f"p{i:03}") for i in range(rng.randint(2, 8))]
        return made

    def leans(self, *families: str, otherwise: float = 0.0) -> bool:
        """Whether this world is (partly) about something."""
        if self.family in families:
            return self.rng.random() < 0.85
        return self.rng.random() < (0.3 if self.family in ("mix", "large") else otherwise)

    # ---- nodes ----

    def _node(self, name: str) -> Doc:
        rng = self.rng
        spec: Doc = {}
        if self.leans("taint", otherwise=0.05):
            spec["taints"] = self._taints()
        if rng.random() < 0.05:
            spec["unschedulable"] = True
        offered = self._offered()
        status: Doc = {"capacity": offered, "allocatable": offered}
        if self.leans("image", otherwise=0.1):
            status["images"] = [
                {"names": [image if ":v" in image else image + ":latest"], "sizeBytes": rng.randint(5, 1200) << 20}
                for image in rng.sample(IMAGES, rng.randint(1, 3))
            ]
        if rng.random() < 0.2:
            status["declaredFeatures"] = sorted(rng.sample(FEATURES, rng.randint(0, 2)))
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": self._labels(name)},
            "spec": spec,
            "status": status,
        }

    def _offered(self) -> Doc:
        rng = self.rng
        offered = {
            "cpu": rng.choice(["2", "4", "3703m", "8", "16", "2.0005"]),
            "memory": rng.choice(["4Gi", "8Gi", "16Gi", "7999Mi", "32e8", "4000.5Mi"]),
            "ephemeral-storage": rng.choice(["100Gi", "5G"]),
            "pods": str(rng.choice([0, 3, 10, 30, 110])),
        }
        if rng.random() < 0.4:
            offered["nvidia.com/gpu"] = str(rng.choice([0, 1, 2, 8]))
        if rng.random() < 0.2:
            offered["hugepages-2Mi"] = rng.choice(["0", "4Mi", "16Mi"])
        if rng.random() < 0.2:
            offered["example.com/widget"] = "2"
        return offered

    def _labels(self, name: str) -> dict[str, str]:
        rng = self.rng
        labels = {"kubernetes.io/os": "linux"}
        if rng.random() < 0.95:
            labels["kubernetes.io/hostname"] = name
        if rng.random() < 0.85:
            labels["topology.kubernetes.io/zone"] = rng.choice(ZONES)
        if rng.random() < 0.3:
            labels["topology.kubernetes.io/region"] = rng.choice(["r1", "r2"])
        if rng.random() < 0.6:
            labels["disk"] = rng.choice(["ssd", "hdd"])
        if rng.random() < 0.4:
            labels["size"] = rng.choice(["3", "7", "12", "big", "007", ""])
        return labels

    def _taints(self) -> list[Doc]:
        rng = self.rng
        effects = ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")
        chosen = rng.sample(
            [(key, effect) for key in ("dedicated", "gpu", "x.io/n") for effect in effects[:2]], rng.randint(1, 3)
        )
        taints: list[Doc] = [{"key": key, "value": rng.choice(["a", "b", ""]), "effect": e} for key, e in chosen]
        if rng.random() < 0.1:
            taints.append({"key": "leaving", "effect": "NoExecute"})
        return taints

    # ---- the rest ----

    def _service(self, number: int) -> Doc:
        selector = {"app": self.rng.choice(APPS)}
        if self.rng.random() < 0.4:
            selector["tier"] = self.rng.choice(TIERS)
        namespace = self.rng.choice(NAMESPACES) if self.family in ("mix", "large") else "default"
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"s{number}", "namespace": namespace},
            "spec": {"selector": selector, "ports": [{"port": 80}]},
        }

    def _replica_set(self, number: int) -> Doc:
        """Owner of some pods; nobody runs it."""
        labels = {"app": self.rng.choice(APPS)}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": f"rs{number}", "namespace": "default"},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
        }

    def _runtime_classes(self) -> list[Doc]:
        heavy = {"overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}}
        pinned = {"overhead": {"podFixed": {"memory": "64Mi"}}, "scheduling": {"nodeSelector": {"disk": "ssd"}}}
        return [
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": name},
                "handler": name,
                **said,
            }
            for name, said in (("heavy", heavy), ("pinned", pinned))
        ]

    def _budget(self, number: int) -> Doc:
        rng = self.rng
        selector = rng.choice([
            {"matchLabels": {"app": rng.choice(APPS)}}, {"matchLabels": {"tier": rng.choice(TIERS)}},
            {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, {},
        ])  # fmt: skip
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{number}", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": selector},
            "status": {
                "disruptionsAllowed": rng.randint(0, 3),
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
            },
        }
