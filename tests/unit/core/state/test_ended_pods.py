"""Pods that have ended hold nothing; those of a group that counts them are remembered until they are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.volcano.kinds import GROUP_ANNOTATION

IN_GROUP = {GROUP_ANNOTATION: "g"}


def _cluster() -> Cluster:
    cluster = Cluster()
    node = {"metadata": {"name": "n", "uid": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    cluster.apply(Change(Happened.ADDED, kinds.NODE, node))
    return cluster


def _pod(phase: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "default", "uid": "p", "annotations": annotations or {}}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": containers}, "status": {"phase": phase}}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ends_leaves_its_node_and_its_deletion_is_no_news(phase: str) -> None:
    cluster = _cluster()
    running = cluster.apply(Change(Happened.ADDED, kinds.POD, _pod("Running")))
    assert running is not None
    ended = cluster.apply(Change(Happened.MODIFIED, kinds.POD, _pod(phase)))
    assert ended is not None
    assert (ended.old, ended.new) == (running.new, None)
    assert not cluster.pods
    assert not cluster.finished
    cluster.check()
    assert cluster.apply(Change(Happened.DELETED, kinds.POD, _pod(phase))) is None


@pytest.mark.parametrize("before", [IN_GROUP, {}])
def test_a_pod_of_a_group_is_remembered_until_it_is_deleted(before: dict[str, str]) -> None:
    cluster = _cluster()
    cluster.apply(Change(Happened.ADDED, kinds.POD, _pod("Running", before)))
    cluster.apply(Change(Happened.MODIFIED, kinds.POD, _pod("Succeeded", IN_GROUP)))
    assert cluster.finished["p"].phase == "Succeeded"
    cluster.apply(Change(Happened.DELETED, kinds.POD, _pod("Succeeded", IN_GROUP)))
    assert not cluster.finished


def test_a_document_that_cannot_be_read_ends_nothing() -> None:
    cluster = _cluster()
    cluster.apply(Change(Happened.ADDED, kinds.POD, _pod("Running")))
    assert cluster.apply(Change(Happened.MODIFIED, kinds.POD, {**_pod("Failed"), "status": "Failed"})) is None
    assert cluster.pods
