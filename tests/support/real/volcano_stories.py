"""Random clusters, queues and gangs in which Volcano leaves nothing to chance, so that two schedulers can be compared.

A story is told under one setting. Its gangs ask for nodes by label, for whole cores and for memory, tolerate taints or
do not, have more members than they need, or name roles; its queues have what the setting looks at. All that is in a
story's documents, the same for a server and for memory. Whether chance decides how it ends is found out in memory
(volcano_chance); then it is not told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fairlead.core.model.kinds import NODE, POD, Kind
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.volcano_settings import SETTINGS, Setting

GROUP = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
PREEMPTABLE = "volcano.sh/preemptable"
"""Nobody is: in evicting, Volcano's versions differ."""
POOL = "example.com/pool"
PRIORITIES = range(1, 20)
"""There is a class `p1` to `p19` for each."""

Doc = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoryNode:
    name: str
    cores: int
    pool: str
    tainted: bool

    def document(self) -> Doc:
        doc = node_document(self.name, cpu=str(self.cores))
        doc["metadata"]["labels"][POOL] = self.pool
        if self.tainted:
            doc["spec"] = {"taints": [{"key": POOL, "value": self.pool, "effect": "NoSchedule"}]}
        return doc


@dataclass(frozen=True, slots=True)
class StoryQueue:
    name: str
    spec: Doc = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    def document(self) -> Doc:
        return _document(VC_QUEUE, self.name, self.spec, self.annotations)


@dataclass(frozen=True, slots=True)
class StoryGang:
    name: str
    queue: str
    minimum: int
    members: int
    priority: int
    cores: int
    memory: int
    """In GiB, each member."""
    pool: str
    tolerates: bool
    needs: bool
    """Whether it says what its minimum needs, so that it has to be let in."""
    leaders: int
    """Members of another role, of which all are needed."""

    def document(self) -> Doc:
        spec: Doc = {"minMember": self.minimum, "queue": self.queue, "priorityClassName": f"p{self.priority}"}
        if self.needs:
            spec["minResources"] = {
                "cpu": str(self.minimum * self.cores),
                **({"memory": f"{self.minimum * self.memory}Gi"} if self.memory else {}),
            }
        if self.leaders:
            spec["minTaskMember"] = {"leader": self.leaders, "worker": self.minimum - self.leaders}
        return _document(VC_POD_GROUP, self.name, spec)

    def pods(self) -> list[Doc]:
        return [self._pod(at) for at in range(self.members)]

    def _pod(self, at: int) -> Doc:
        asks = {"cpu": str(self.cores), **({"memory": f"{self.memory}Gi"} if self.memory else {})}
        pod = pod_document(f"{self.name}-{at}", **asks)
        notes = {ROLE: "leader" if at < self.leaders else "worker"} if self.leaders else {}
        pod["metadata"]["annotations"] = {GROUP: self.name, PREEMPTABLE: "false", **notes}
        pod["spec"] |= {"schedulerName": "volcano", "priorityClassName": f"p{self.priority}"}
        if self.pool:
            pod["spec"]["nodeSelector"] = {POOL: self.pool}
        if self.tolerates:
            pod["spec"]["tolerations"] = [{"key": POOL, "operator": "Exists", "effect": "NoSchedule"}]
        return pod


@dataclass(frozen=True, slots=True)
class Story:
    setting: str
    number: int
    nodes: tuple[StoryNode, ...]
    queues: tuple[StoryQueue, ...]
    gangs: tuple[StoryGang, ...]

    @property
    def conf(self) -> str:
        return SETTINGS[self.setting].conf

    def documents(self) -> Iterator[tuple[Kind, list[Doc]]]:
        """In the order in which they are made."""
        yield NODE, [node.document() for node in self.nodes]
        yield VC_QUEUE, [queue.document() for queue in self.queues]
        yield VC_POD_GROUP, [gang.document() for gang in self.gangs]
        yield POD, [pod for gang in self.gangs for pod in gang.pods()]

    def outcome(self, running: dict[str, int]) -> dict[str, int]:
        """Per gang and per queue, from what runs of each group."""
        found = {gang.name: running.get(gang.name, 0) for gang in self.gangs}
        for queue in self.queues:
            found[queue.name] = sum(found[gang.name] for gang in self.gangs if gang.queue == queue.name)
        return found


def story(setting: str, number: int) -> Story:
    """The same for the same number, always."""
    rng = Random(f"{setting} {number}")
    name = f"{setting}-{number}"
    nodes = _nodes(rng, name)
    queues, leaves = _queues(rng, name, SETTINGS[setting], sum(node.cores for node in nodes))
    return Story(setting, number, nodes, queues, _gangs(rng, name, leaves, SETTINGS[setting]))


def _document(kind: Kind, name: str, spec: Doc, annotations: dict[str, str] | None = None) -> Doc:
    metadata: Doc = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def _nodes(rng: Random, name: str) -> tuple[StoryNode, ...]:
    """Of even sizes, so that pods of one and two cores leave few holes."""
    tainted = rng.random() < 0.5
    found = []
    for at in range(rng.randint(2, 5)):
        pool = rng.choice("aab")
        found.append(StoryNode(f"{name}-n{at}", 2 * rng.randint(1, 3), pool, tainted and pool == "b"))
    return tuple(found)


def _queues(rng: Random, name: str, setting: Setting, cores: int) -> tuple[tuple[StoryQueue, ...], list[str]]:
    """And the names of those that gangs may be in."""
    names = [f"{name}-q{at}" for at in range(rng.randint(1, setting.queues))]
    queues, parents = [], {}
    top = f"{name}-top"
    if setting.tree:
        # What a tree may hold in all is said here: 1.14 takes the cluster for the root's limit, and 1.15 nothing.
        queues.append(StoryQueue(top, {"weight": 1, "capability": {"cpu": str(cores)}}))
    for at, one in enumerate(names):
        spec = _queue_spec(rng, setting)
        if setting.tree:
            spec["parent"] = parents[one] = rng.choice([top, *names[:at]])
        queues.append(StoryQueue(one, spec, _place_in_tree(rng, at) if setting.annotated else {}))
    return tuple(queues), [one for one in names if one not in parents.values()]


def _queue_spec(rng: Random, setting: Setting) -> Doc:
    spec: Doc = {"weight": rng.randint(1, 3) if setting.weighted else 1}
    if setting.deserving and rng.random() < 0.7:
        spec["deserved"] = {"cpu": str(rng.randint(3, 6))}
    if setting.guaranteed and rng.random() < 0.3 and ("deserved" in spec or not setting.deserving):
        spec["guarantee"] = {"resource": {"cpu": str(rng.randint(1, 3))}}
    if setting.limited and rng.random() < 0.4:
        spec["capability"] = {"cpu": str(rng.randint(3, 8))}
    if rng.random() < 0.3:
        spec["priority"] = rng.randint(1, 9)
    return spec


def _place_in_tree(rng: Random, at: int) -> dict[str, str]:
    path, weights = rng.choice([("root/a", "1/2"), ("root/b", "1/3"), ("root/a/c", "1/2/1")])
    return {"volcano.sh/hierarchy": f"{path}/q{at}", "volcano.sh/hierarchy-weights": f"{weights}/1"}


def _gangs(rng: Random, name: str, queues: list[str], setting: Setting) -> tuple[StoryGang, ...]:
    found = []
    for at, priority in enumerate(rng.sample(PRIORITIES, rng.randint(3, 6))):
        minimum = rng.randint(1, 5)
        found.append(
            StoryGang(
                name=f"{name}-g{at}",
                queue=rng.choice(queues),
                minimum=minimum,
                members=minimum + rng.choice([0, 0, 1, 2, 4]),
                priority=priority,
                cores=rng.choice([1, 1, 2]),
                memory=rng.choice([0, 0, 1, 8]),
                pool=rng.choice(["", "a", "b"]),
                tolerates=rng.random() < 0.6,
                needs=setting.overcommitted and rng.random() < 0.6,
                leaders=1 if minimum > 1 and rng.random() < 0.2 else 0,
            )
        )
    return tuple(found)
