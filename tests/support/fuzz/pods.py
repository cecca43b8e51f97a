"""Random pods, with wishes of all sorts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.support.fuzz.storage import claims_of, inline_disk

Doc = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("z1", "z2", "z3", "z4")
APPS = ("web", "db", "batch")
TIERS = ("front", "back")
IMAGES = ("reg.example/app:v1", "reg.example/app:v2", "reg.example/tool", "reg.example:5000/big")
NAMESPACES = ("default", "team-a", "team-b")
PRIORITIES = (0, 10, 100, 1000)
PEACEFUL = "peaceful"
"""A class of high priority that evicts nobody."""
CPUS = ("0", "100m", "250m", "500m", "1", "1500m", "2", "0.1", "1e-1", ".5", "333.3m")
MEMORIES = ("64Mi", "500M", "1Gi", "2Gi", "1.5Gi", "123.45M", "100e3", "0.3Gi", "0")


class Pods:
    def __init__(
        self, rng: Random, family: str, leans: Callable[..., bool], objects: list[Doc], nodes: list[str]
    ) -> None:
        self.rng = rng
        self.family = family
        self.leans = leans
        self.nodes = nodes
        self.claims = claims_of(objects)
        self.runtimes = [doc["metadata"]["name"] for doc in objects if doc["kind"] == "RuntimeClass"]
        self.owners = [doc["metadata"]["name"] for doc in objects if doc["kind"] == "ReplicaSet"]

    def existing(self, name: str, on: str) -> Doc:
        return self._pod(name, on=on)

    def waiting(self, name: str) -> Doc:
        made = self._pod(name)
        if self.family in ("most", "ratio"):
            made["spec"]["schedulerName"] = self.family
        return made

    def preemptor(self, name: str) -> Doc:
        rng = self.rng
        made = self._pod(name)
        made["spec"]["priorityClassName"] = rng.choice(["p100", "p1000", "p1000", PEACEFUL])
        requests = made["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})
        requests["cpu"] = rng.choice(["1", "2", "3", "4"])
        return made

    def _pod(self, name: str, *, on: str = "") -> Doc:
        rng = self.rng
        metadata: Doc = {"name": name, "namespace": "default", "labels": self._labels()}
        if self.family in ("podaff", "spread", "mix", "large"):
            metadata["namespace"] = rng.choice(NAMESPACES)
        spec: Doc = {
            "containers": [self._container(i) for i in range(rng.choice([1, 1, 1, 2]))],
            "terminationGracePeriodSeconds": 0,
        }
        if rng.random() < 0.3 or self.family == "preempt":
            spec["priorityClassName"] = f"p{rng.choice([0, 10, 100])}"
        if on:
            spec["nodeName"] = on
        self._wishes(spec, on=on)
        if self.leans("podlevel", otherwise=0.05):
            self._odd_requests(spec)
        if self.leans("volume"):
            self._volumes(spec, metadata, on=on)
        if self.owners and rng.random() < 0.5:
            owner = rng.choice(self.owners)
            metadata["ownerReferences"] = [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
            ]
        return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": metadata}

    def _labels(self) -> dict[str, str]:
        rng = self.rng
        labels = {"app": rng.choice(APPS)} if rng.random() < 0.9 else {}
        if rng.random() < 0.6:
            labels["tier"] = rng.choice(TIERS)
        if rng.random() < 0.5:
            labels["rev"] = rng.choice(["1", "2"])
        return labels

    # ---- what they need ----

    def _container(self, number: int) -> Doc:
        rng = self.rng
        resources = {"requests": self._requests()}
        widgets = ("nvidia.com/gpu", "1"), ("hugepages-2Mi", rng.choice(["2Mi", "4Mi"])), ("example.com/widget", "1")
        if self.leans("fit", "most", "ratio", otherwise=0.05) and rng.random() < 0.4:
            resource, amount = rng.choice(widgets)
            resources["requests"] |= {resource: amount, "memory": "1Gi"}
            resources["limits"] = {resource: amount}
        container: Doc = {"name": f"c{number}", "image": rng.choice(IMAGES), "resources": resources}
        if self.leans("ports", otherwise=0.03):
            port = rng.choice([80, 443, 8080]) + number
            container["ports"] = [
                {"containerPort": port, "hostPort": port, "protocol": rng.choice(["TCP", "UDP", "SCTP"])}
            ]
            if rng.random() < 0.4:
                container["ports"][0]["hostIP"] = rng.choice(["127.0.0.1", "10.0.0.1", "0.0.0.0", "::"])
        if rng.random() < 0.02:
            rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
            container |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
        return container

    def _requests(self) -> Doc:
        rng = self.rng
        requests: Doc = {}
        if rng.random() < 0.8:
            requests["cpu"] = rng.choice(CPUS)
        if rng.random() < 0.7:
            requests["memory"] = rng.choice(MEMORIES)
        if rng.random() < 0.1:
            requests["ephemeral-storage"] = rng.choice(["1Gi", "500.5M", "40Gi"])
        return requests

    def _odd_requests(self, spec: Doc) -> None:
        rng = self.rng
        if rng.random() < 0.5:
            spec["resources"] = {"requests": rng.choice([{"cpu": "4", "memory": "5Gi"}, {"cpu": "3500m"}])}
        if rng.random() < 0.6:
            spec["initContainers"] = []
            for number in range(rng.randint(1, 3)):
                first: Doc = {"name": f"i{number}", "image": rng.choice(IMAGES)}
                first["resources"] = {"requests": {"cpu": rng.choice(["100m", "3", "1"]), "memory": "1Gi"}}
                if rng.random() < 0.5:
                    first["restartPolicy"] = "Always"
                spec["initContainers"].append(first)
        if self.runtimes and rng.random() < 0.4:
            spec["runtimeClassName"] = rng.choice(self.runtimes)

    def _volumes(self, spec: Doc, metadata: Doc, *, on: str) -> None:
        """Pods that run already have volumes that were there before them."""
        rng = self.rng
        claims = [name for name in self.claims if not on or name.startswith("bound")]
        chosen = rng.sample(claims, min(len(claims), rng.choice([0, 1, 1, 2])))
        if not on and rng.random() < 0.05:
            chosen.append("missing")
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in chosen]
        if rng.random() < 0.2:
            volumes.append(inline_disk(rng))
        if volumes:
            spec["volumes"] = volumes
            metadata["namespace"] = "default"

    # ---- what they wish for ----

    def _wishes(self, spec: Doc, *, on: str) -> None:
        rng = self.rng
        if self.leans("taint", otherwise=0.05):
            spec["tolerations"] = [self._toleration() for _ in range(rng.randint(1, 2))]
        affinity: Doc = {}
        if self.leans("nodeaff", otherwise=0.05) and not on:
            affinity["nodeAffinity"] = self._node_affinity()
            if rng.random() < 0.3:
                spec["nodeSelector"] = rng.choice([{"disk": "ssd"}, {"disk": "hdd"}, {"size": ""}, {}])
        if self.leans("podaff", otherwise=0.03):
            affinity |= self._pod_affinity()
        if affinity:
            spec["affinity"] = affinity
        if self.leans("spread", otherwise=0.03):
            spec["topologySpreadConstraints"] = self._spread()

    def _toleration(self) -> Doc:
        return self.rng.choice(
            [
                {"key": "dedicated", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
                {"key": "dedicated", "value": ""},
                {"key": "gpu", "operator": "Exists"},
                {"operator": "Exists", "effect": "PreferNoSchedule"},
                {"operator": "Exists"},
                {"key": "x.io/n", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
                {"key": "leaving", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            ]
        )

    def _node_affinity(self) -> Doc:
        rng = self.rng
        wish: Doc = {}
        if rng.random() < 0.6:
            terms = [self._node_term() for _ in range(rng.randint(1, 2))]
            wish["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if rng.random() < 0.7:
            wish["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.randint(1, 100), "preference": self._node_term()} for _ in range(rng.randint(1, 3))
            ]
        return wish

    def _node_term(self) -> Doc:
        rng = self.rng
        term: Doc = {"matchExpressions": [self._requirement() for _ in range(rng.randint(0, 2))]}
        if rng.random() < 0.15:
            named = {
                "key": "metadata.name",
                "operator": rng.choice(["In", "NotIn"]),
                "values": [rng.choice(self.nodes)],
            }
            term["matchFields"] = [named]
        return term

    def _requirement(self) -> Doc:
        rng = self.rng
        return rng.choice(
            [
                {"key": "disk", "operator": "In", "values": ["ssd"]},
                {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
                {"key": "size", "operator": rng.choice(["Gt", "Lt"]), "values": [rng.choice(["5", "8", "0", "-3"])]},
                {"key": "size", "operator": "Exists"},
                {"key": "disk", "operator": "DoesNotExist"},
                {"key": ZONE, "operator": "In", "values": rng.sample(ZONES, 2)},
            ]
        )

    def _pod_affinity(self) -> Doc:
        rng = self.rng
        wish: Doc = {}
        for kind in rng.sample(["podAffinity", "podAntiAffinity"], rng.randint(1, 2)):
            terms: Doc = {}
            if rng.random() < 0.5:
                required = [self._term() for _ in range(rng.choice([1, 1, 2]))]
                terms["requiredDuringSchedulingIgnoredDuringExecution"] = required
            if rng.random() < 0.7:
                terms["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": rng.randint(1, 100), "podAffinityTerm": self._term()} for _ in range(rng.randint(1, 2))
                ]
            wish[kind] = terms
        return wish

    def _term(self) -> Doc:
        rng = self.rng
        term: Doc = {"topologyKey": rng.choice([HOST, ZONE, "disk"])}
        if rng.random() < 0.95:
            term["labelSelector"] = self._selector()
        if rng.random() < 0.3:
            term["namespaces"] = rng.sample(NAMESPACES, rng.randint(1, 2))
        if rng.random() < 0.3:
            negative = [{"key": "team", "operator": "NotIn", "values": ["a"]}]
            term["namespaceSelector"] = rng.choice([{}, {"matchLabels": {"team": "a"}}, {"matchExpressions": negative}])
        if "labelSelector" in term and rng.random() < 0.2:
            term[rng.choice(["matchLabelKeys", "mismatchLabelKeys"])] = ["rev"]
        return term

    def _selector(self) -> Doc:
        rng = self.rng
        return rng.choice(
            [
                {"matchLabels": {"app": rng.choice(APPS)}},
                {"matchExpressions": [{"key": "app", "operator": "In", "values": rng.sample(APPS, 2)}]},
                {"matchExpressions": [{"key": "tier", "operator": rng.choice(["Exists", "DoesNotExist"])}]},
                {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front"]}]},
                {},
            ]
        )

    def _spread(self) -> list[Doc]:
        rng = self.rng
        kinds = [(key, what) for key in (HOST, ZONE, "disk") for what in ("DoNotSchedule", "ScheduleAnyway")]
        return [self._constraint(key, what) for key, what in rng.sample(kinds, rng.choice([1, 1, 2, 3]))]

    def _constraint(self, key: str, when_unsatisfiable: str) -> Doc:
        rng = self.rng
        constraint: Doc = {"maxSkew": rng.randint(1, 3), "topologyKey": key, "whenUnsatisfiable": when_unsatisfiable}
        if rng.random() < 0.95:
            constraint["labelSelector"] = self._selector()
        if when_unsatisfiable == "DoNotSchedule" and rng.random() < 0.3:
            constraint["minDomains"] = rng.randint(1, 4)
        if rng.random() < 0.3:
            constraint["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
        if rng.random() < 0.2:
            constraint["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
        if "labelSelector" in constraint and rng.random() < 0.2:
            constraint["matchLabelKeys"] = rng.sample(["rev", "tier"], rng.randint(1, 2))
        return constraint
