"""A pod on a node that is seen again: which of the table's logs tells of it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.statement import Statement
from fairlead.testing.builders import node, pod


def shown(**more: Any) -> Doc:
    doc = pod("p").asks(cpu="1").doc()
    metadata = {**doc["metadata"], "uid": "p", "resourceVersion": "1", **more.pop("metadata", {})}
    return {**doc, "metadata": metadata, "status": {"phase": "Pending"}, **more}


def assumed() -> Cluster:
    """A cluster with a pod that was put on a node and is not confirmed yet."""
    cluster = Cluster()
    cluster.apply(Change(Happened.ADDED, kinds.NODE, node("n").doc()))
    cluster.apply(Change(Happened.ADDED, kinds.POD, shown()))
    statement = Statement(cluster)
    statement.assign(cluster.pods["p"].pod, 0)
    statement.commit()
    return cluster


def on_node(doc: Doc) -> Change:
    return Change(Happened.MODIFIED, kinds.POD, {**doc, "spec": {**doc["spec"], "nodeName": "n"}})


def marks(cluster: Cluster) -> tuple[int, int]:
    return cluster.table.counted.mark, cluster.table.seen.mark


def test_a_confirmed_binding_changes_nothing_that_is_counted() -> None:
    cluster = assumed()
    content, seen = marks(cluster)
    condition = {"type": "PodScheduled", "status": "True"}
    status = {"phase": "Pending", "conditions": [condition]}
    cluster.apply(on_node(shown(metadata={"resourceVersion": "2"}, status=status)))
    assert marks(cluster) == (content, seen + 1)
    cluster.check()


ONLY_READ: list[Doc] = [
    {"status": {"phase": "Running"}},
    {"status": {"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"}},
    {"metadata": {"annotations": {"a": "b"}}},
]
COUNTED: list[Doc] = [
    {"metadata": {"labels": {"a": "b"}}},
    {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
]


@pytest.mark.parametrize("change", ONLY_READ)
def test_what_only_some_policies_read_of_it_does_not_unless_one_of_them_is_there(change: Doc) -> None:
    cluster = assumed()
    counted, seen = marks(cluster)
    cluster.apply(on_node(shown(**change)))
    assert marks(cluster) == (counted, seen + 1)
    cluster.check()


@pytest.mark.parametrize("change", [*ONLY_READ, *COUNTED])
def test_what_a_policy_reads_of_it_does(change: Doc) -> None:
    cluster = assumed()
    content, seen = cluster.table.content.mark, cluster.table.seen.mark
    cluster.apply(on_node(shown(**change)))
    assert cluster.table.content.mark > content
    assert cluster.table.seen.mark == seen
    cluster.check()


@pytest.mark.parametrize("change", COUNTED)
def test_what_is_counted_of_it_always_does(change: Doc) -> None:
    cluster = assumed()
    counted, seen = marks(cluster)
    cluster.apply(on_node(shown(**change)))
    assert cluster.table.counted.mark > counted
    assert cluster.table.seen.mark == seen
    cluster.check()


def test_a_confirmed_binding_refreshes_the_image_counts_of_its_node() -> None:
    cluster = assumed()
    images = {"images": [{"names": ["i:1"], "sizeBytes": 1}]}
    for name in ("n", "m"):
        doc = node(name).doc()
        cluster.apply(Change(Happened.MODIFIED, kinds.NODE, {**doc, "status": {**doc["status"], **images}}))
        cluster.begin_cycle()
    seen = cluster.table.images.by_name["i:1"].nodes_seen
    assert seen == {0: 1, 1: 2}
    static = cluster.table.static.mark
    cluster.apply(on_node(shown()))
    cluster.begin_cycle()
    assert seen == {0: 2, 1: 2}
    assert cluster.table.static.mark == static + 1
