"""GivenSinceReserve: what a pod holds before and after its annotations say it."""

from __future__ import annotations

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.model.pod import Pod
from fairlead.core.state.cluster import Cluster
from fairlead.koordinator.given import GivenSinceReserve
from fairlead.testing.builders import PodBuilder


def test_annotations_say_what_a_pod_holds_and_until_then_what_it_was_given() -> None:
    cluster = Cluster()
    given: GivenSinceReserve[str] = GivenSinceReserve(cluster, lambda pod: pod.annotations.get("held"))
    pod, told = _seen(cluster, {}), _seen(Cluster(), {"held": "b"})
    assert given.of(pod) is None
    given.give(pod, "a")
    assert (given.of(pod), given.of_uid(pod.uid), given.of(told)) == ("a", "a", "b")
    assert given.of_uid("nobody") is None
    given.take_back(pod)
    assert given.of(pod) is None


def test_pods_that_are_gone_are_forgotten() -> None:
    cluster = Cluster()
    given: GivenSinceReserve[int] = GivenSinceReserve(cluster, lambda pod: None)
    stays = _seen(cluster, {})
    given.give(stays, -1)
    gone = [_seen(Cluster(), {}, f"gone-{number}") for number in range(1100)]
    for number, pod in enumerate(gone):
        given.give(pod, number)
    assert given.of(gone[0]) is None
    assert given.of(stays) == -1


def _seen(cluster: Cluster, annotations: dict[str, str], name: str = "pod") -> Pod:
    doc = PodBuilder(name).doc()
    doc["metadata"] = {**doc["metadata"], "annotations": annotations, "uid": name}
    cluster.apply(Change(Happened.ADDED, kinds.POD, doc))
    return cluster.pods[name].seen
