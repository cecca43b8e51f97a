"""What answers print holds when somebody does it: every suggestion, every count and every victim, on random clusters of
all families. `make fuzz WHAT=answers` tries forty clusters, `N=300` more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from fairlead.assembly.applying import as_written
from fairlead.cli.what_if.text import show_drain, show_simulation
from fairlead.core.model.flow import Doc
from fairlead.testing import Harness
from fairlead.testing.asking import answer_of
from tests.support.answers.follower import Follower, printed, suggestions
from tests.support.answers.worlds import world

FIRST = int(os.environ.get("FAIRLEAD_FUZZ_SEED") or 0)
CLUSTERS = range(FIRST, FIRST + int(os.environ.get("FAIRLEAD_ANSWERS", "6")))
LONG = 240.0
"""Seconds of virtual time in which what an answer said has come true: longer than any backoff."""


def own_pods(cluster: Harness) -> list[Doc]:
    """The workload's pods that have not ended and are not about to."""
    return [
        one
        for one in cluster.list("pods")
        if (one["metadata"].get("labels") or {}).get("app") == "w"
        and not one["metadata"].get("deletionTimestamp")
        and one["status"]["phase"] not in ("Succeeded", "Failed")
    ]


def placed(cluster: Harness) -> int:
    return sum(bool(one["spec"].get("nodeName")) for one in own_pods(cluster))


def others_wait(cluster: Harness) -> bool:
    """Whether pods of the cluster have no node: what the workload needs, they may take first."""
    return any(not one["spec"].get("nodeName") for one in cluster.list("pods"))


def asked(cluster: Harness, file: Sequence[Doc], kind: str = "SimulateQuestion", **more: object) -> Doc:
    return answer_of(cluster, {"kind": kind, **more}, file)


def there(seed: int) -> tuple[Follower, list[Doc]]:
    """A cluster to which the file was applied some time ago."""
    cluster, file = world(seed)
    follower = Follower(cluster, file)
    follower.apply()
    cluster.run(LONG)
    return follower, file


def runs(follower: Follower, wanted: int, about: object) -> None:
    follower.cluster.run(LONG)
    pods = own_pods(follower.cluster)
    states = [(one["metadata"]["name"], one["spec"].get("nodeName"), one["status"].get("conditions")) for one in pods]
    assert (len(pods), placed(follower.cluster)) == (wanted, wanted), (about, wanted, states)


def each_holds(seed: int, answer: Doc, fresh: object) -> None:
    lines = printed(show_simulation, answer)
    for suggestion in suggestions(lines):
        follower = fresh(seed)  # type: ignore[operator]
        follower.follow(suggestion)
        wanted = len(answer["pods"]) if suggestion.pods is None else suggestion.pods
        runs(follower, wanted, suggestion)


@pytest.mark.parametrize("seed", CLUSTERS)
def test_suggestions_for_what_is_not_there_yet(seed: int) -> None:
    cluster, file = world(seed)
    if others_wait(cluster):
        return

    each_holds(seed, asked(cluster, file, changes=True), lambda seed: Follower(*world(seed)))


@pytest.mark.parametrize("seed", CLUSTERS)
@pytest.mark.parametrize("commands", [False, True], ids=["in the file", "by commands"])
def test_suggestions_for_what_is_there_and_waits(seed: int, commands: bool) -> None:
    follower, file = there(seed)
    if not own_pods(follower.cluster) or others_wait(world(seed)[0]):
        return
    documents = [as_written(doc) for doc in live(follower, file)] if commands else file
    answer = answer_of(follower.cluster, {"kind": "SimulateQuestion", "changes": True, "commands": commands}, documents)
    each_holds(seed, answer, lambda seed: there(seed)[0])


def live(follower: Follower, file: Sequence[Doc]) -> list[Doc]:
    found = [follower.cluster.get(follower._resource(doc), doc["metadata"]["name"]) for doc in file]
    return [doc for doc in found if doc is not None]


@pytest.mark.parametrize("seed", CLUSTERS)
def test_what_is_said_happens(seed: int) -> None:
    cluster, file = world(seed)
    said = asked(cluster, file)
    before = {one["metadata"]["name"] for one in cluster.list("pods")}
    Follower(cluster, file).apply()
    cluster.run(LONG)
    if said["verdict"] != "Waits":
        assert placed(cluster) == len(said["pods"])
    if said["verdict"] == "Waits":
        assert placed(cluster) == said["placed"], said
    gone = before - {one["metadata"]["name"] for one in cluster.list("pods")}
    assert gone == {one["name"] for one in said.get("victims", ())}, said


@pytest.mark.parametrize("seed", CLUSTERS)
def test_nodes_that_are_needed_for_what_is_there(seed: int) -> None:
    follower, file = there(seed)
    if not own_pods(follower.cluster) or others_wait(world(seed)[0]):
        return
    answer = asked(follower.cluster, file, "NeedQuestion")
    wanted = len(asked(follower.cluster, file)["pods"])
    assert answer["runs"] == (placed(follower.cluster) == wanted)
    for shape in answer["shapes"]:
        for number in {shape["nodes"], shape["nodes"] - 1} - {0}:
            fresh, _ = there(seed)
            fresh.add_nodes(number, shape["like"])
            fresh.cluster.run(LONG)
            assert (placed(fresh.cluster) == wanted) == (number == shape["nodes"]), (shape, number)


@pytest.mark.parametrize("seed", CLUSTERS)
def test_as_many_copies_fit(seed: int) -> None:
    cluster, file = world(seed)
    if others_wait(cluster):
        return
    said = asked(cluster, file, "FitQuestion", most=6)
    size = len(asked(cluster, file)["pods"])
    number = 0
    for number in range(said["fits"] + (not said["more"])):
        before = {one["metadata"]["name"] for one in cluster.list("pods")}
        Follower(cluster, copies(file, number)).apply()
        cluster.run(LONG)
        own = [one for one in cluster.list("pods") if one["metadata"]["name"] not in before]
        bound = sum(bool(one["spec"].get("nodeName")) for one in own)
        assert (bound == size) == (number < said["fits"]), (said, number)


def copies(file: Sequence[Doc], number: int) -> list[Doc]:
    """The file under other names: names of objects are changed wherever they stand, of pods only in the pods."""
    names = {doc["metadata"]["name"] for doc in file if doc["kind"] != "Pod"}
    made = [renamed(doc, names, number) for doc in file]
    for doc in made:
        if doc["kind"] == "Pod":
            doc["metadata"]["name"] += f"-{number}"
    return made


def renamed(value: Any, names: set[str], number: int) -> Any:
    if isinstance(value, dict):
        return {key: renamed(one, names, number) for key, one in value.items()}
    if isinstance(value, list):
        return [renamed(one, names, number) for one in value]
    return f"{value}-{number}" if isinstance(value, str) and value in names else value


@pytest.mark.parametrize("seed", CLUSTERS)
def test_nodes_that_can_go(seed: int) -> None:
    follower, _ = there(seed)
    if others_wait(follower.cluster):
        return
    answer = answer_of(follower.cluster, {"kind": "DrainQuestion", "nodes": []}, [])
    assert printed(show_drain, answer)
    for one in answer["nodes"]:
        fresh, _ = there(seed)
        cluster = fresh.cluster
        controlled = {doc["metadata"]["uid"] for doc in cluster.list("pods") if doc["metadata"].get("ownerReferences")}
        gone = [doc for doc in cluster.list("pods") if doc["spec"].get("nodeName") == one["name"]]
        assert len(gone) == len(one["pods"]), one
        cluster.patch("node", one["name"], {"spec": {"unschedulable": True}})
        for doc in gone:
            cluster.delete("pod", doc["metadata"]["name"])
        cluster.run(LONG)
        waiting = sum(not doc["spec"].get("nodeName") for doc in cluster.list("pods"))
        lost = sum(doc["metadata"]["uid"] not in controlled for doc in gone)
        assert one["canGo"] == (waiting + lost == 0), (one, waiting, lost)
