"""Random small clusters for the real kube-scheduler and for us: nodes, objects, pods that are there and pods to place.

Everything comes from one seed. A family says what a cluster leans on; the others' features come in too, but rarely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

Doc = dict[str, Any]

FAMILIES = (
    "fit", "taint", "nodeaff", "ports", "image", "podaff", "spread", "services", "most", "ratio", "mix", "preempt",
    "podlevel", "volume", "large",
)  # fmt: skip
ZONES = ("z1", "z2", "z3", "z4")
APPS = ("web", "db", "batch")
TIERS = ("front", "back")
IMAGES = ("reg.example/app:v1", "reg.example/app:v2", "reg.example/tool", "reg.example/big:v1")
PRIORITIES = (0, 10, 100, 1000)
NAMESPACES = ("default", "team-a", "team-b")


@dataclass
class World:
    """What is created before the decisions, in order, and the pods to be decided."""

    seed: int
    family: str
    nodes: list[Doc] = field(default_factory=list)
    objects: list[Doc] = field(default_factory=list)
    existing: list[Doc] = field(default_factory=list)
    pods: list[Doc] = field(default_factory=list)


def make_world(seed: int, family: str) -> World:
    return _Maker(seed, family).world()


class _Maker:
    def __init__(self, seed: int, family: str) -> None:
        self.rng = Random(f"{seed}/{family}")
        self.made = World(seed, family)
        self.family = family

    def world(self) -> World:
        rng, made = self.rng, self.made
        large = self.family == "large"
        count = rng.randint(40, 80) if large else rng.randint(1, 20)
        made.nodes = [self._node(f"n{i:02}") for i in range(count)]
        if self._leans("services"):
            made.objects += [self._service(i) for i in range(rng.randint(1, 3))]
        if self._leans("volume"):
            self._storage()
        existing = rng.randint(150, 300) if large else rng.randint(0, 4 * count)
        made.existing = [self._pod(f"e{i:03}", on=rng.choice(made.nodes)["metadata"]["name"]) for i in range(existing)]
        if self.family == "preempt":
            made.objects += [self._budget(i) for i in range(rng.randint(0, 3))]
            made.pods = [self._preemptor()]
        else:
            made.pods = [self._pod(f"p{i:03}") for i in range(rng.randint(2, 8))]
        return made

    def _leans(self, *families: str, otherwise: float = 0.0) -> bool:
        """Whether this world is (partly) about something."""
        if self.family in families:
            return self.rng.random() < 0.85
        return self.rng.random() < (0.3 if self.family in ("mix", "large") else otherwise)

    # ---- nodes ----

    def _node(self, name: str) -> Doc:
        rng = self.rng
        offered = {
            "cpu": rng.choice(["2", "4", "3703m", "8", "16"]),
            "memory": rng.choice(["4Gi", "8Gi", "16Gi", "7999Mi"]),
            "ephemeral-storage": "100Gi",
            "pods": str(rng.choice([3, 10, 30, 110])),
        }
        if rng.random() < 0.4:
            offered["nvidia.com/gpu"] = str(rng.choice([1, 2, 8]))
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        if rng.random() < 0.85:
            labels["topology.kubernetes.io/zone"] = rng.choice(ZONES)
        if rng.random() < 0.6:
            labels["disk"] = rng.choice(["ssd", "hdd"])
        if rng.random() < 0.4:
            labels["size"] = rng.choice(["3", "7", "12", "big"])
        spec: Doc = {}
        if self._leans("taint", otherwise=0.05):
            spec["taints"] = [
                {"key": key, "value": rng.choice(["a", "b"]), "effect": rng.choice(["NoSchedule", "PreferNoSchedule"])}
                for key in rng.sample(["dedicated", "gpu"], rng.randint(1, 2))
            ]
        if rng.random() < 0.05:
            spec["unschedulable"] = True
        status: Doc = {"capacity": offered, "allocatable": offered}
        if self._leans("image", otherwise=0.1):
            status["images"] = [
                {"names": [image if ":" in image else image + ":latest"], "sizeBytes": rng.randint(5, 1200) << 20}
                for image in rng.sample(IMAGES, rng.randint(1, 3))
            ]
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec,
                "status": status}  # fmt: skip

    # ---- pods ----

    def _pod(self, name: str, *, on: str = "") -> Doc:
        rng = self.rng
        namespace = rng.choice(NAMESPACES) if self.family in ("podaff", "spread", "mix") else "default"
        labels = {"app": rng.choice(APPS)} | ({"tier": rng.choice(TIERS)} if rng.random() < 0.6 else {})
        spec: Doc = {
            "containers": [self._container(i) for i in range(rng.choice([1, 1, 1, 2]))],
            "terminationGracePeriodSeconds": 0,
        }
        if self.family in ("most", "ratio") and not on:
            spec["schedulerName"] = self.family
        if rng.random() < 0.3 or self.family == "preempt":
            spec["priorityClassName"] = f"p{rng.choice(PRIORITIES[:3])}"
        if on:
            spec["nodeName"] = on
        self._wishes(spec, on=on)
        if self._leans("podlevel"):
            self._odd_requests(spec)
        if self._leans("volume") and self.made.objects and not on:
            claims = [doc["metadata"]["name"] for doc in self.made.objects if doc["kind"] == "PersistentVolumeClaim"]
            if claims:
                spec["volumes"] = [{"name": "v0", "persistentVolumeClaim": {"claimName": rng.choice(claims)}}]
                namespace = "default"
        return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
                "metadata": {"name": name, "namespace": namespace, "labels": labels}}  # fmt: skip

    def _container(self, number: int) -> Doc:
        rng = self.rng
        requests: Doc = {}
        if rng.random() < 0.8:
            requests["cpu"] = rng.choice(["0", "100m", "250m", "500m", "1", "1500m", "2"])
        if rng.random() < 0.7:
            requests["memory"] = rng.choice(["64Mi", "500M", "1Gi", "2Gi"])
        if self._leans("fit", "most", "ratio", otherwise=0.05) and rng.random() < 0.4:
            requests["nvidia.com/gpu"] = "1"
        container: Doc = {"name": f"c{number}", "image": rng.choice(IMAGES)}
        if requests:
            container["resources"] = {"requests": requests}
            if "nvidia.com/gpu" in requests:
                container["resources"]["limits"] = {"nvidia.com/gpu": requests["nvidia.com/gpu"]}
        if self._leans("ports", otherwise=0.03):
            port = rng.choice([80, 443, 8080]) + number
            container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": rng.choice(["TCP", "UDP"])}]
            if rng.random() < 0.3:
                container["ports"][0]["hostIP"] = rng.choice(["127.0.0.1", "10.0.0.1"])
        return container

    def _odd_requests(self, spec: Doc) -> None:
        rng = self.rng
        if rng.random() < 0.5:
            spec["resources"] = {"requests": {"cpu": "2", "memory": "2Gi"}}
        if rng.random() < 0.6:
            first: Doc = {
                "name": "i0",
                "image": IMAGES[0],
                "resources": {"requests": {"cpu": rng.choice(["100m", "3"])}},
            }
            if rng.random() < 0.5:
                first["restartPolicy"] = "Always"
            spec["initContainers"] = [first]

    def _wishes(self, spec: Doc, *, on: str) -> None:
        rng = self.rng
        if self._leans("taint", otherwise=0.05):
            spec["tolerations"] = [rng.choice([
                {"key": "dedicated", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
                {"key": "gpu", "operator": "Exists"},
                {"operator": "Exists", "effect": "PreferNoSchedule"},
            ])]  # fmt: skip
        affinity: Doc = {}
        if self._leans("nodeaff", otherwise=0.05) and not on:
            affinity["nodeAffinity"] = self._node_affinity()
            if rng.random() < 0.3:
                spec["nodeSelector"] = {"disk": rng.choice(["ssd", "hdd"])}
        if self._leans("podaff", otherwise=0.03):
            affinity |= self._pod_affinity()
        if affinity:
            spec["affinity"] = affinity
        if self._leans("spread", otherwise=0.03):
            spec["topologySpreadConstraints"] = self._spread()

    def _node_affinity(self) -> Doc:
        rng = self.rng
        terms = [{"matchExpressions": [self._requirement() for _ in range(rng.randint(1, 2))]}
                 for _ in range(rng.randint(1, 2))]  # fmt: skip
        wish: Doc = {}
        if rng.random() < 0.6:
            wish["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if rng.random() < 0.7:
            wish["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.randint(1, 100), "preference": {"matchExpressions": [self._requirement()]}}
                for _ in range(rng.randint(1, 3))
            ]
        return wish

    def _requirement(self) -> Doc:
        rng = self.rng
        return rng.choice([
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
            {"key": "size", "operator": "Gt", "values": ["5"]},
            {"key": "size", "operator": "Lt", "values": ["8"]},
            {"key": "size", "operator": "Exists"},
            {"key": "disk", "operator": "DoesNotExist"},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": rng.sample(ZONES, 2)},
        ])  # fmt: skip

    def _pod_affinity(self) -> Doc:
        rng = self.rng
        wish: Doc = {}
        for kind in rng.sample(["podAffinity", "podAntiAffinity"], rng.randint(1, 2)):
            terms: Doc = {}
            if rng.random() < 0.5:
                terms["requiredDuringSchedulingIgnoredDuringExecution"] = [self._term()]
            if rng.random() < 0.7:
                terms["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": rng.randint(1, 100), "podAffinityTerm": self._term()} for _ in range(rng.randint(1, 2))
                ]
            wish[kind] = terms
        return wish

    def _term(self) -> Doc:
        rng = self.rng
        key = rng.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk"])
        term: Doc = {"topologyKey": key, "labelSelector": self._selector()}
        if rng.random() < 0.3:
            term["namespaces"] = rng.sample(NAMESPACES, rng.randint(1, 2))
        elif rng.random() < 0.3:
            term["namespaceSelector"] = rng.choice([{}, {"matchLabels": {"team": "a"}}])
        return term

    def _selector(self) -> Doc:
        rng = self.rng
        return rng.choice([
            {"matchLabels": {"app": rng.choice(APPS)}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": rng.sample(APPS, 2)}]},
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
        ])  # fmt: skip

    def _spread(self) -> list[Doc]:
        rng = self.rng
        keys = rng.sample(["kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk"], rng.randint(1, 2))
        constraints = []
        for key in keys:
            hard = rng.random() < 0.5
            constraint: Doc = {
                "maxSkew": rng.randint(1, 3), "topologyKey": key, "labelSelector": self._selector(),
                "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            }  # fmt: skip
            if hard and rng.random() < 0.3:
                constraint["minDomains"] = rng.randint(1, 4)
            if rng.random() < 0.3:
                constraint["nodeTaintsPolicy"] = "Honor"
            if rng.random() < 0.2:
                constraint["nodeAffinityPolicy"] = "Ignore"
            if rng.random() < 0.2:
                constraint["matchLabelKeys"] = ["tier"]
            constraints.append(constraint)
        return constraints

    def _preemptor(self) -> Doc:
        rng = self.rng
        preemptor = self._pod("p000")
        preemptor["spec"]["priorityClassName"] = f"p{rng.choice(PRIORITIES[2:])}"
        resources = preemptor["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})
        resources["cpu"] = rng.choice(["1", "2", "3", "4"])
        preemptor["spec"].pop("nodeName", None)
        return preemptor

    # ---- the rest ----

    def _service(self, number: int) -> Doc:
        selector = {"app": self.rng.choice(APPS)}
        if self.rng.random() < 0.4:
            selector["tier"] = self.rng.choice(TIERS)
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{number}", "namespace": "default"},
                "spec": {"selector": selector, "ports": [{"port": 80}]}}  # fmt: skip

    def _budget(self, number: int) -> Doc:
        rng = self.rng
        return {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{number}", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": rng.choice(APPS)}}},
            "status": {"disruptionsAllowed": rng.randint(0, 2), "currentHealthy": 1, "desiredHealthy": 1,
                       "expectedPods": 1},
        }  # fmt: skip

    def _storage(self) -> None:
        rng = self.rng
        mode = rng.choice(["WaitForFirstConsumer", "Immediate"])
        self.made.objects.append({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode,
        })  # fmt: skip
        names = [node["metadata"]["name"] for node in self.made.nodes]
        for number in range(rng.randint(1, 6)):
            on = rng.sample(names, min(len(names), rng.randint(1, 3)))
            self.made.objects.append({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv{number}"},
                "spec": {
                    "capacity": {"storage": f"{rng.choice([1, 2, 5])}Gi"}, "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "local",
                    "local": {"path": "/mnt"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                        {"key": "kubernetes.io/hostname", "operator": "In", "values": on}]}]}},
                },
            })  # fmt: skip
        for number in range(rng.randint(1, 3)):
            self.made.objects.append({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"c{number}", "namespace": "default"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                         "resources": {"requests": {"storage": f"{rng.choice([1, 2])}Gi"}}},
            })  # fmt: skip
