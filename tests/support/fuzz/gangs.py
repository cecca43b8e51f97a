"""Random small clusters with gangs, for the real kube-scheduler and for us: what is there, and what then happens.

A world is a few nodes, what runs on them, and steps: a group with its members, a pod alone, late members, pods that go.
Everything comes from one seed. Many worlds share a cluster: each has its own namespace, nodes, and topology key, and
its pods go nowhere else. Chance is kept out where it can be:

- members that differ in what they need differ in priority too, because the order of equals is left to chance;
- members are there before their group, so that all of them are seen together;
- what runs has a known age, because age decides who has to go.

So is what we do differently on purpose (docs/gangs.md): pods alone preempt nobody, and members of a group that can lack
some are not less important than their group, or it might have to evict itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

Doc = dict[str, Any]

WORLD, HOST, DISK = "example.com/world", "kubernetes.io/hostname", "example.com/disk"
LEAST, BAIT = -1000, "bait"
"""A pod of the lowest priority is always there, on a node of its own: whether anybody could be evicted at all does not
depend on the other worlds."""
CLASSES = {f"p{value}": value for value in range(0, 100, 5)} | {"least": LEAST, "peaceful": 91, "gentle": 41}
FLAVOURS = ("mixed", "crowded", "racks")
"""What a world leans on: nothing, room that others have, one rack for all."""
NEVER = ("peaceful", "gentle")
"""Classes that evict nobody."""


@dataclass
class Step:
    """What a user does at once: documents to create, in order, pods to delete, and pods whose gates open."""

    create: list[Doc] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    opens: list[str] = field(default_factory=list)


@dataclass
class GangCluster:
    seed: int
    turn: int = 0
    """How often it has been played before; each time it has a namespace and nodes of its own."""
    nodes: list[Doc] = field(default_factory=list)
    existing: list[Doc] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return f"w{self.seed}-{self.turn}"

    @property
    def key(self) -> str:
        return f"example.com/rack-{self.namespace}"


def make_world(seed: int, turn: int = 0) -> GangCluster:
    return _Maker(seed, turn).world()


def shared() -> list[Doc]:
    """What is there once, for all worlds."""
    classes = [
        _object("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
        | ({"preemptionPolicy": "Never"} if name in NEVER else {})
        for name, value in CLASSES.items()
    ]
    bait = _pod("default", BAIT, {"cpu": "1"}, "least")
    bait["spec"]["nodeName"] = BAIT
    return [*classes, _node(BAIT, "1", {}, []), bait]


class _Maker:
    def __init__(self, seed: int, turn: int) -> None:
        self.rng = Random(f"gangs/{seed}")
        self.made = GangCluster(seed, turn)
        self.ages = 0
        self.groups: dict[str, list[Doc]] = {}
        """Of each group that may get more members, an example of each role."""
        self.flavour = self.rng.choice(FLAVOURS)
        self.uniform = self.rng.random() < 0.7
        self.tainted = self.rng.random() < 0.3

    def world(self) -> GangCluster:
        rng, made = self.rng, self.made
        size = rng.choice(["2", "4", "4"])
        for number in range(rng.randint(3, 6) if self.flavour == "racks" else rng.randint(1, 5)):
            cpu = size if self.uniform else rng.choice(["1", "2", "3", "4"])
            made.nodes.append(_node(f"{made.namespace}-n{number}", cpu, self._labels(), self._taints()))
        self._fill()
        for number in range(rng.randint(2, 4)):
            made.steps.append(self._step(number))
        return made

    # ---- what is there ----

    def _labels(self) -> dict[str, str]:
        rng = self.rng
        labels = {WORLD: self.made.namespace, DISK: rng.choice(["ssd", "hdd"])}
        if rng.random() < 0.85:
            labels[self.made.key] = rng.choice(["r0", "r0", "r1", "r2"])
        return labels

    def _taints(self) -> list[Doc]:
        if self.tainted and self.rng.random() < 0.4:
            return [{"key": "example.com/dedicated", "value": "gang", "effect": "NoSchedule"}]
        return []

    def _fill(self) -> None:
        """Pods that run, some of them in groups, and budgets for some."""
        rng, made = self.rng, self.made
        crowded = self.flavour == "crowded"
        full = rng.choice(
            [0.9, 1.0] if crowded else [0.0, 0.5, 0.9] if self.flavour == "racks" else [0.0, 0.5, 0.9, 1.0]
        )
        groups = [f"old{i}" for i in range(rng.choice([0, 1, 2] if crowded else [0, 0, 1, 2]))]
        for name in groups:
            made.existing.append(self._group(name, 0, rng.choice(["p0", "p10", "p20", "p60"])))
        number = 0
        for node in made.nodes:
            left = int(node["status"]["allocatable"]["cpu"])
            while left > 0 and rng.random() < full:
                cpu = rng.randint(1, min(left, 2)) if rng.random() < 0.7 else left
                left -= cpu
                pod = self._running(f"e{number}", str(cpu), node["metadata"]["name"], groups)
                made.existing.append(pod)
                number += 1
        for index in range(rng.choice([0, 0, 1, 2])):
            made.existing.append(self._budget(index))

    def _running(self, name: str, cpu: str, node: str, groups: list[str]) -> Doc:
        rng = self.rng
        priorities = ["p0", "p0", "p10", "p20", "p50"] + ([] if self.flavour == "crowded" else ["p80"])
        pod = _pod(self.made.namespace, name, {"cpu": cpu}, rng.choice(priorities))
        pod["spec"]["nodeName"] = node
        pod["metadata"]["labels"] = {"app": rng.choice(["web", "db"])}
        if groups and rng.random() < 0.6:
            pod["spec"]["schedulingGroup"] = {"podGroupName": rng.choice(groups)}
        if rng.random() < 0.1:
            _opens(pod, 8080)
        self.ages += 1
        started = f"2026-01-01T{self.ages // 60:02}:{self.ages % 60:02}:00Z"
        pod["status"] = {"phase": "Running", "startTime": started}
        return pod

    def _budget(self, number: int) -> Doc:
        rng = self.rng
        budget = _object("policy/v1", "PodDisruptionBudget", f"b{number}", self.made.namespace)
        budget["spec"] = {"minAvailable": 1, "selector": {"matchLabels": {"app": rng.choice(["web", "db"])}}}
        budget["status"] = {"disruptionsAllowed": rng.randint(0, 2), "currentHealthy": 1, "desiredHealthy": 1,
                            "expectedPods": 1}  # fmt: skip
        return budget

    # ---- what happens ----

    def _step(self, number: int) -> Step:
        rng = self.rng
        kind = rng.random()
        if number == 0 or kind < 0.5:
            return self._gang(f"g{number}")
        if kind < 0.65:
            return self._single(f"s{number}")
        if kind < 0.8:
            return self._late(number)
        return self._free()

    def _gang(self, name: str) -> Step:
        rng = self.rng
        roles = [self._role(name, index) for index in range(rng.choice([1, 1, 2, 3]))]
        counts = [rng.choice([1, 1, 2, 2] if self.flavour == "crowded" else [1, 2, 2, 3, 4]) for _ in roles]
        total = sum(counts)
        minimum = rng.choice([0, total, total, total, max(1, total - 1), max(1, total - 2), 1])
        if rng.random() < 0.08:
            minimum = total + 1
        priority = rng.choice(
            ["p30", "p70"] if self.flavour == "crowded" else ["", "p10", "p30", "p50", "p70", "least"]
        )
        if minimum == total and rng.random() < 0.3:
            base = rng.choice([15, 45])  # members may be less important than their group
        else:
            base = max(15, CLASSES.get(priority, 0) + 15)
        members = []
        for index, (role, count) in enumerate(zip(roles, counts, strict=True)):
            role["spec"]["priorityClassName"] = f"p{base + 10 - 5 * index}"
            members += [self._member(role, name, index, number) for number in range(count)]
        if rng.random() < 0.06:
            members[-1]["spec"]["priorityClassName"] = "peaceful"
        if all(CLASSES[doc["spec"]["priorityClassName"]] >= CLASSES.get(priority, 0) for doc in members):
            self.groups[name] = roles
        step = Step(members)
        if rng.random() < 0.08:
            late = members[-1]
            late["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
        step.create.append(self._group(name, minimum, priority))
        return step

    def _role(self, group: str, index: int) -> Doc:
        rng = self.rng
        cpu = rng.choice(["1", "1", "2", "2", "4"] if index == 0 else ["1", "2", "500m"])
        role = _pod(self.made.namespace, f"{group}-{index}", {"cpu": cpu}, "")
        role["metadata"]["labels"] = {"role": f"{group}-{index}"}
        spec = role["spec"]
        spec["nodeSelector"] = {WORLD: self.made.namespace}
        if rng.random() < 0.15:
            spec["nodeSelector"][DISK] = rng.choice(["ssd", "hdd"])
        if self.tainted and rng.random() < 0.5:
            spec["tolerations"] = [{"key": "example.com/dedicated", "operator": "Exists"}]
        if rng.random() < 0.12:
            _opens(role, rng.choice([8080, 9090]))
        if rng.random() < 0.15:
            term = {"labelSelector": {"matchLabels": {"role": f"{group}-{index}"}}, "topologyKey": HOST}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif rng.random() < 0.1:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": HOST,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"role": f"{group}-{index}"}},
                }
            ]
        elif rng.random() < 0.08:
            key = rng.choice([HOST, self.made.key])
            term = {"labelSelector": {"matchLabels": {"role": f"{group}-0"}}, "topologyKey": key}
            spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return role

    def _member(self, role: Doc, group: str, index: int, number: int) -> Doc:
        spec = {**role["spec"], "schedulingGroup": {"podGroupName": group}}
        metadata = {**role["metadata"], "name": f"{group}-{index}-{number}"}
        return {**role, "metadata": metadata, "spec": spec}

    def _group(self, name: str, minimum: int, priority: str) -> Doc:
        rng = self.rng
        spec: Doc = {"schedulingPolicy": {"gang": {"minCount": minimum}} if minimum else {"basic": {}}}
        if priority:
            spec["priorityClassName"] = priority
        if name.startswith("g") and rng.random() < {"mixed": 0.3, "crowded": 0.1, "racks": 0.9}[self.flavour]:
            key = self.made.key if rng.random() < 0.9 else "example.com/nowhere"
            spec["schedulingConstraints"] = {"topology": [{"key": key}]}
        if rng.random() < 0.4:
            spec["disruptionMode"] = rng.choice(["PodGroup", "PodGroup", "Pod"])
        return _object("scheduling.k8s.io/v1alpha2", "PodGroup", name, self.made.namespace, spec=spec)

    def _single(self, name: str) -> Step:
        pod = self._role(name, 0)
        pod["metadata"]["name"] = f"{name}-0-0"
        pod["spec"]["priorityClassName"] = self.rng.choice(NEVER)
        return Step([pod])

    def _late(self, number: int) -> Step:
        """One more member of a group that is there, because a second might come too late; or gates open."""
        rng = self.rng
        gated = [
            doc["metadata"]["name"]
            for step in self.made.steps
            for doc in step.create
            if doc["kind"] == "Pod" and "schedulingGates" in doc["spec"]
        ]
        if gated and rng.random() < 0.7:
            return Step(opens=gated[:1])
        if not self.groups:
            return self._single(f"s{number}")
        name = rng.choice(sorted(self.groups))
        index = rng.randrange(len(self.groups[name]))
        role = self.groups[name][index]
        return Step([self._member(role, name, index, 10 * number)])

    def _free(self) -> Step:
        """Pods that run go; so do all of a role that the steps have made: which of them is where is left to chance."""
        rng = self.rng
        running = [doc["metadata"]["name"] for doc in self.made.existing if doc["kind"] == "Pod"]
        made = [doc["metadata"] for step in self.made.steps for doc in step.create if doc["kind"] == "Pod"]
        chosen = rng.sample(running, min(len(running), rng.randint(1, 3)))
        if made and (not chosen or rng.random() < 0.3):
            role = rng.choice(made)["labels"]["role"]
            chosen += [metadata["name"] for metadata in made if metadata["labels"]["role"] == role]
        return Step(delete=chosen)


def _pod(namespace: str, name: str, requests: dict[str, str], priority: str) -> Doc:
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    pod = _object("v1", "Pod", name, namespace)
    pod["spec"] = {"containers": [container], "terminationGracePeriodSeconds": 0, "priorityClassName": priority}
    return pod


def _opens(pod: Doc, port: int) -> None:
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]


def _node(name: str, cpu: str, labels: dict[str, str], taints: list[Doc]) -> Doc:
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    node = _object("v1", "Node", name)
    node["metadata"]["labels"] = {HOST: name, **labels}
    node["spec"] = {"taints": taints} if taints else {}
    node["status"] = {"capacity": amounts, "allocatable": amounts}
    return node


def _object(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Doc:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
