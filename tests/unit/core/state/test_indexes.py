"""Indexes of a Cluster: which of them are called for what."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.testing.builders import node, pod


@dataclass
class PodsSeen:
    """An index of pods, wherever they are: each pod that changed, and whether it was there."""

    cluster: Cluster
    changed: list[tuple[str, bool]] = field(default_factory=list)

    def pod_changed(self, uid: str) -> None:
        self.changed.append((uid, uid in self.cluster.pods))


@dataclass
class RowsSeen:
    """An index of rows: the pods on each."""

    cluster: Cluster
    pods: dict[int, list[str]] = field(default_factory=dict)

    def occupied(self, pod: object, row: int) -> None:
        self.pods.setdefault(row, []).append(getattr(pod, "uid", ""))

    def vacated(self, pod: object, row: int) -> None:
        self.pods[row].remove(getattr(pod, "uid", ""))

    def node_changed(self, row: int) -> None:
        self.pods.setdefault(row, [])


def shown(uid: str, phase: str = "Pending", node_name: str = "") -> Doc:
    doc = pod(uid).asks(cpu="1").doc()
    spec = {**doc["spec"], "nodeName": node_name} if node_name else doc["spec"]
    return {**doc, "metadata": {**doc["metadata"], "uid": uid}, "spec": spec, "status": {"phase": phase}}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.apply(Change(Happened.ADDED, kinds.NODE, node("n").doc()))
    return cluster


def test_an_index_of_pods_is_called_for_each_change_of_a_pod(cluster: Cluster) -> None:
    seen = cluster.index(PodsSeen, PodsSeen)
    cluster.apply(Change(Happened.ADDED, kinds.POD, shown("p")))
    cluster.apply(Change(Happened.MODIFIED, kinds.POD, shown("p", "Running", "n")))
    cluster.apply(Change(Happened.MODIFIED, kinds.POD, shown("p", "Succeeded", "n")))
    cluster.apply(Change(Happened.DELETED, kinds.POD, shown("p", "Succeeded", "n")))
    cluster.apply(Change(Happened.MODIFIED, kinds.NODE, node("n").offers(cpu="9").doc()))
    assert seen.changed == [("p", True), ("p", True), ("p", False), ("p", False)]


def test_an_index_of_rows_begins_with_the_pods_that_are_there(cluster: Cluster) -> None:
    cluster.apply(Change(Happened.ADDED, kinds.POD, shown("p", "Running", "n")))
    rows = cluster.index(RowsSeen, RowsSeen)
    cluster.apply(Change(Happened.ADDED, kinds.POD, shown("q", "Running", "n")))
    assert rows.pods == {0: ["p", "q"]}
    cluster.apply(Change(Happened.DELETED, kinds.POD, shown("p", "Running", "n")))
    assert rows.pods == {0: ["q"]}
    assert cluster.index(RowsSeen, RowsSeen) is rows


def test_an_index_is_kept_for_each_of_the_settings_that_it_depends_on() -> None:
    cluster = Cluster()
    made = [cluster.index(RowsSeen, RowsSeen, settings) for settings in (None, "most", "least", "most", None)]
    assert made[0] is made[4]
    assert made[1] is made[3]
    assert len({id(one) for one in made}) == 3
