"""A placement that is kept at once (`assume_on`); property/core/test_statement.py shows what Statements undo."""

from __future__ import annotations

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster, PodPlace
from fairlead.core.state.statement import Statement, assume_on


def cluster_with_a_pod() -> Cluster:
    cluster = Cluster()
    for name in ("n0", "n1"):
        node = {"metadata": {"name": name, "uid": name}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
        cluster.apply(Change(Happened.ADDED, kinds.NODE, node))
    requests = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    metadata = {"name": "pod", "namespace": "default", "uid": "pod"}
    cluster.apply(Change(Happened.ADDED, kinds.POD, {"metadata": metadata, "spec": requests}))
    return cluster


def test_a_placement_that_is_kept_at_once_is_that_of_a_committed_statement() -> None:
    at_once, by_statement = cluster_with_a_pod(), cluster_with_a_pod()
    assume_on(at_once, at_once.pods["pod"].pod, 1)
    statement = Statement(by_statement)
    statement.assign(by_statement.pods["pod"].pod, 1)
    statement.commit()
    for cluster in (at_once, by_statement):
        cluster.check()
        assert (cluster.pods["pod"].place, cluster.pods["pod"].row) == (PodPlace.ASSUMED, 1)
        assert cluster.table.requested_column("cpu")[:2].tolist() == [0, 1000]


def test_a_pod_that_has_a_place_gets_no_second_one() -> None:
    cluster = cluster_with_a_pod()
    pod = cluster.pods["pod"].pod
    assume_on(cluster, pod, 1)
    with pytest.raises(AssertionError, match="assumed"):
        assume_on(cluster, pod, 0)
    cluster.check()
    assert cluster.table.pod_count[:2].tolist() == [0, 1]
