"""Preemptions: who waits while victims are evicted, and whose room was promised to whom."""

from __future__ import annotations

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.preemptions import Preemptions, preemptions_of
from fairlead.testing.builders import node, pod


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.apply(Change(Happened.ADDED, kinds.NODE, node("n").doc()))
    for name in ("first", "last"):
        tell(cluster, name)
    return cluster


@pytest.fixture
def preemptions(cluster: Cluster) -> Preemptions:
    return preemptions_of(cluster)


def tell(cluster: Cluster, name: str, happened: Happened = Happened.ADDED, **metadata: str) -> None:
    doc = pod(name).asks(cpu="1").doc()
    doc = {**doc, "metadata": {**doc["metadata"], "uid": name, **metadata}, "spec": {**doc["spec"], "nodeName": "n"}}
    cluster.apply(Change(happened, kinds.POD, doc))


def test_a_preemptor_is_gated_until_its_last_victim_terminates(cluster: Cluster, preemptions: Preemptions) -> None:
    assert not preemptions.gates("p")
    preemptions.begin("p")
    assert preemptions.gates("p")
    preemptions.go_on("p", cluster.pods["last"].seen)
    assert preemptions.gates("p")
    tell(cluster, "last", Happened.MODIFIED, deletionTimestamp="2026-01-01T00:00:00Z")
    assert not preemptions.gates("p")
    assert preemptions.is_under_way("p")
    preemptions.end("p")
    assert not preemptions.any_under_way


def test_a_promise_is_kept_when_its_victims_are_gone(cluster: Cluster, preemptions: Preemptions) -> None:
    preemptions.promise("p", "n", [cluster.pods["first"].seen, cluster.pods["last"].seen])
    tell(cluster, "first", Happened.DELETED)
    assert (preemptions.node_of("p"), preemptions.have_left("p")) == ("n", False)
    assert preemptions.victims_on("n") == {"first", "last"}
    preemptions.sweep()
    assert len(preemptions) == 1
    tell(cluster, "last", Happened.DELETED)
    assert preemptions.have_left("p")
    preemptions.sweep()
    assert (len(preemptions), preemptions.node_of("p")) == (0, "")


def test_all_preemptors_of_a_cluster_share_them(cluster: Cluster) -> None:
    preemptions_of(cluster).begin("p")
    assert preemptions_of(cluster).gates("p")
    assert not preemptions_of(Cluster()).any_under_way
