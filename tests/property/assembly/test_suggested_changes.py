"""What `simulate` says is what then happens, and every change that is suggested lets the workload run when it is made
as a person would make it, by the command or in the file; on random clusters, in all three scheduling modes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from fairlead.testing import Harness, deployment, job, node, pod, podgroup, priority_class, queue, stateful_set
from fairlead.testing.asking import answer_of
from fairlead.testing.builders import NodeBuilder, PodBuilder
from fairlead.volcano.kinds import VC_POD_GROUP
from tests.support.koordinator import elastic_quota, koord_group

Doc = dict[str, Any]
CLUSTERS = int(os.environ.get("FAIRLEAD_QUESTION_CLUSTERS", "2"))
"""How many random clusters in each mode; `FAIRLEAD_QUESTION_CLUSTERS=300` for a long search."""
QUOTA = "quota.scheduling.koordinator.sh/name"
GANG = "pod-group.scheduling.sigs.k8s.io"


# ---- clusters and workloads ----


def random_nodes(rng: Random) -> list[NodeBuilder]:
    made = []
    for number in range(rng.randint(2, 4)):
        one = node(f"n{number}").offers(cpu=str(rng.randint(2, 6))).in_zone(f"z{number % 2}")
        if rng.random() < 0.3:
            one = one.labelled(disk="ssd")
        if rng.random() < 0.25:
            one = one.tainted("team", value="a")
        made.append(one)
    return made


def random_pod(rng: Random, name: str) -> PodBuilder:
    one = pod(name).labelled(app="w").asks(cpu=str(rng.randint(1, 4)))
    if rng.random() < 0.3:
        one = one.selects(disk="ssd")
    if rng.random() < 0.2:
        one = one.spread({"app": "w"}, over="topology.kubernetes.io/zone")
    if rng.random() < 0.2:
        one = one.apart_from({"app": "w"})
    return one


def kube(seed: int) -> tuple[Harness, list[Doc]]:
    rng = Random(seed)
    cluster = Harness(nodes=random_nodes(rng), seed=seed)
    cluster.apply(priority_class("high", 1000))
    cluster.apply(*(pod(f"p{at}").asks(cpu=str(rng.randint(1, 2))) for at in range(rng.randint(0, 4))))
    cluster.apply(job("before").times(1).of(pod("before").asks(cpu="1").running_for("3600s").restarting("Never")))
    cluster.run(5)
    template, count = random_pod(rng, "w"), rng.randint(1, 6)
    if rng.random() < 0.2:
        template = template.of_priority("high")
    made = rng.choice(
        [
            lambda: deployment("w").replicas(count).of(template),
            lambda: stateful_set("w").replicas(count).of(template).having(podManagementPolicy="Parallel"),
            lambda: job("w").times(count, at_once=count).of(template.restarting("Never").running_for("3600s")),
            lambda: template,
        ]
    )()
    return cluster, [made.doc()]


def volcano(seed: int) -> tuple[Harness, list[Doc]]:
    rng = Random(seed)
    cluster = Harness(nodes=random_nodes(rng), volcano="default", seed=seed)
    cluster.run(3)
    cluster.apply(queue("team").capped_at(cpu=str(rng.randint(3, 8))), queue("others"))
    cluster.run(3)
    there = [pod(f"p{at}").asks(cpu="1").in_group("there").scheduled_by("volcano") for at in range(rng.randint(1, 3))]
    cluster.apply(podgroup("there", 1).in_queue("team"), *there)
    cluster.run(5)
    members, least = rng.randint(2, 6), rng.randint(1, 6)
    if rng.random() < 0.5:
        pods = [random_pod(rng, "w").doc()["spec"]] * members
        pods = [{**spec, "schedulerName": "volcano"} for spec in pods]
        documents = [
            podgroup("w", members).in_queue("team").doc(),
            *(
                {**pod(f"w-{at}").labelled(app="w").in_group("w").doc(), "spec": deepcopy(spec)}
                for at, spec in enumerate(pods)
            ),
        ]
        return cluster, documents
    task = {"name": "worker", "replicas": members, "template": {"spec": random_pod(rng, "w").doc()["spec"]}}
    spec = {"schedulerName": "volcano", "queue": "team", "minAvailable": min(least, members), "tasks": [task]}
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return cluster, [kind | {"metadata": {"name": "w", "namespace": "default"}, "spec": spec}]


def koordinator(seed: int) -> tuple[Harness, list[Doc]]:
    rng = Random(seed)
    cluster = Harness(nodes=random_nodes(rng), config="koordinator", seed=seed)
    above, own = rng.randint(3, 10), rng.randint(2, 8)
    cluster.apply(
        elastic_quota("dept", least={"cpu": "1"}, most={"cpu": str(above)}, is_parent=True),
        elastic_quota("team", least={"cpu": "1"}, most={"cpu": str(min(own, above))}, parent="dept"),
        elastic_quota("others", least={"cpu": "0"}, most={"cpu": str(above)}, parent="dept"),
    )
    cluster.run(3)
    for at in range(rng.randint(0, 3)):
        quota = {QUOTA: rng.choice(["team", "others"])}
        cluster.apply(pod(f"p{at}").asks(cpu="1").labelled(quota).scheduled_by("koord-scheduler"))
    cluster.run(5)
    members = rng.randint(1, 5)
    labels = {QUOTA: "team"}
    if rng.random() < 0.5:
        template = random_pod(rng, "w").labelled(labels).scheduled_by("koord-scheduler")
        return cluster, [deployment("w").replicas(members).of(template).doc()]
    template = random_pod(rng, "w").labelled({**labels, GANG: "w"}).scheduled_by("koord-scheduler")
    named = [template.doc() for _ in range(members)]
    for at, one in enumerate(named):
        one["metadata"]["name"] = f"w-{at}"
    return cluster, [koord_group("w", least=members), *named]


MODES: dict[str, Callable[[int], tuple[Harness, list[Doc]]]] = {
    "kube": kube, "volcano": volcano, "koordinator": koordinator,
}  # fmt: skip


def placed(cluster: Harness) -> dict[str, str]:
    return {name: where for name, where in cluster.bindings().items() if name.partition("-")[0] == "w"}


def others_wait(cluster: Harness) -> bool:
    """Whether pods of the cluster have no node: what the workload needs, they may take first."""
    return any(not one["spec"].get("nodeName") for one in cluster.list("pods"))


def per_node(nodes: dict[str, str]) -> list[str]:
    return sorted(nodes.values())


# ---- a person who follows a suggestion ----


class Follower:
    """Does what a change says, to the cluster or to the file with the workload's objects."""

    def __init__(self, cluster: Harness, documents: Sequence[Doc], change: Doc) -> None:
        self.cluster, self.documents, self.change = cluster, [deepcopy(one) for one in documents], change

    def follow(self) -> list[Doc]:
        """The documents to apply afterwards."""
        if command := self.change.get("command"):
            for one in command.split("; "):
                self._kubectl(shlex.split(one)[1:])
        elif "patch" in self.change:
            self._in_file(self.change["target"], self.change["patch"])
        else:
            getattr(self, f"_{self.change['kind']}")(self.change["says"])
        self.cluster.run(5)
        return self.documents

    def _kubectl(self, words: list[str]) -> None:
        verb, *rest = words
        namespace = rest.pop(at + 1) if "-n" in rest and (at := rest.index("-n")) >= 0 else ""
        options = dict(word.lstrip("-").split("=", 1) for word in rest if word.startswith("--") and "=" in word)
        text = rest.pop(rest.index("-p") + 1) if "-p" in rest else "{}"
        named = [word for word in rest if not word.startswith("-")]
        match verb:
            case "label":
                key, value = named[-1].split("=")
                for name in named[1:-1]:
                    self.cluster.patch("node", name, {"metadata": {"labels": {key: value}}})
            case "scale":
                self._in_file(named[0], {"spec": {"replicas": int(options["replicas"])}})
            case "delete":
                self.cluster.delete(named[0], named[1], namespace=namespace or "default")
            case "patch":
                target = "/".join(named)
                if any(self._is(one, target) for one in self.documents):
                    self._in_file(target, json.loads(text))
                else:
                    kind, name = target.split("/")
                    self.cluster.patch(kind.partition(".")[0], name, json.loads(text))
            case _:
                raise AssertionError(f"kubectl {verb}")

    @staticmethod
    def _is(document: Doc, target: str) -> bool:
        kind, _, name = target.partition("/")
        words = kind.partition(".")[0].removesuffix("s")
        return document["kind"].lower() == words and document["metadata"]["name"] == name

    def _in_file(self, target: str, patch: Doc) -> None:
        found = [at for at, one in enumerate(self.documents) if self._is(one, target)]
        if target.startswith("pod/"):  # the first of pods that are alike stands for all of them
            found = [at for at, one in enumerate(self.documents) if one["kind"] == "Pod"]
        assert found, f"{target} is not in the file"
        for at in found:
            self.documents[at] = _merge(self.documents[at], patch)

    def _pods(self) -> list[Doc]:
        return [one for one in self.documents if one["kind"] == "Pod"]

    def _replicas(self, says: str) -> None:
        count = int(says.split()[1])
        gone = self._pods()[count:]
        self.documents = [one for one in self.documents if one not in gone]
        for one in self.documents:
            if one["kind"] == "PodGroup":
                one["spec"]["minMember"] = count

    def _request(self, says: str) -> None:
        amount = says.split()[5]
        for one in self._pods():
            one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = amount

    def _nodes(self, says: str) -> None:
        words = says.split()
        like = self.cluster.get("node", words[5])
        assert like is not None
        for at in range(int(words[1])):
            labels = {**like["metadata"]["labels"], "kubernetes.io/hostname": f"new-{at}"}
            made = {"name": f"new-{at}", "labels": labels}
            status = {"allocatable": like["status"]["allocatable"], "capacity": like["status"]["capacity"]}
            spec = {key: value for key, value in like["spec"].items() if key == "taints"}
            self.cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": made, "spec": spec, "status": status})

    def _end(self, says: str) -> None:
        found = re.match(r"when (?:(\w+) )?(?:the group )?default/([\w-]+) has ended", says)
        assert found is not None, says
        if found[1] == "Job":
            self.cluster.delete("job", found[2], propagation="Background")
        elif self.cluster.get("pod", found[2]) is not None:
            self.cluster.delete("pod", found[2])
        else:
            for name in [*self.cluster.bindings()]:
                if name.startswith("p"):
                    self.cluster.delete("pod", name)
            self.cluster.delete(VC_POD_GROUP, found[2])


def _merge(document: Any, patch: Any) -> Any:
    """As a person edits a file: what has a name is looked for by its name."""
    if isinstance(document, list) and isinstance(patch, list) and all("name" in one for one in patch):
        changed = {one["name"]: one for one in patch}
        return [_merge(one, changed.get(one["name"], {})) for one in document]
    if not isinstance(patch, dict) or not isinstance(document, dict):
        return patch
    merged = {**document, **{key: _merge(document.get(key), value) for key, value in patch.items()}}
    return {key: value for key, value in merged.items() if value is not None}


# ---- the two properties ----


@pytest.mark.parametrize("seed", range(CLUSTERS))
@pytest.mark.parametrize("mode", MODES)
def test_what_is_said_happens(mode: str, seed: int) -> None:
    cluster, documents = MODES[mode](seed)
    said = cluster.would(*documents)
    cluster.apply(*documents)
    cluster.run(60)
    if said.runs:
        assert len(placed(cluster)) == len(said.pods)
    if said.verdict == "Runs":
        assert per_node(placed(cluster)) == per_node(said.nodes)
    if said.verdict == "Waits":
        assert len(placed(cluster)) == len(said.nodes)


@pytest.mark.parametrize("seed", range(CLUSTERS))
@pytest.mark.parametrize("mode", MODES)
def test_every_suggested_change_helps_when_it_is_made(mode: str, seed: int) -> None:
    cluster, documents = MODES[mode](seed)
    if others_wait(cluster):
        return
    answer = answer_of(cluster, {"kind": "SimulateQuestion", "changes": True}, documents)
    for change in answer.get("changes", ()):
        fresh, _ = MODES[mode](seed)
        follower = Follower(fresh, documents, change)
        changed = follower.follow()
        said = fresh.would(*changed)
        assert said.runs, (change, said)
        fresh.apply(*changed)
        fresh.run(60)
        assert len(placed(fresh)) == len(said.pods), change
