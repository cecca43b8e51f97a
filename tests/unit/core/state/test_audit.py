"""A look of the audit compares rows with the pods that are on them, whichever resource and row differs."""

from __future__ import annotations

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.audit import EVERY, ROWS_AT_ONCE, Audit
from fairlead.core.state.cluster import Cluster

REQUESTS = ({"cpu": "1"}, {"cpu": "250m", "memory": "1Gi"}, {"memory": "3Mi"}, {})
PODS_ON = (3, 0, 1, 4)


def _cluster() -> Cluster:
    cluster = Cluster()
    for number, pods in enumerate(PODS_ON):
        status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}
        node = {"metadata": {"name": f"n{number}", "uid": f"n{number}"}, "status": status}
        cluster.apply(Change(Happened.ADDED, kinds.NODE, node))
        for at in range(pods):
            name = f"p{number}-{at}"
            spec = {"nodeName": f"n{number}", "containers": [{"name": "c", "resources": {"requests": REQUESTS[at]}}]}
            pod = {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}
            cluster.apply(Change(Happened.ADDED, kinds.POD, pod))
    return cluster


def test_rows_that_count_what_their_pods_ask_for_are_right() -> None:
    cluster = _cluster()
    assert Audit(cluster).look(0.0) == ""


@pytest.mark.parametrize("row", range(len(PODS_ON)))
@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_an_amount_that_no_pod_asks_for_is_found_and_repaired(row: int, resource: str) -> None:
    cluster = _cluster()
    cluster.table.requested_column(resource)[row] += 7
    assert f"row {row} (n{row}) counts" in Audit(cluster).look(0.0)
    cluster.check()


def test_an_amount_that_moved_from_one_row_to_another_is_found() -> None:
    cluster = _cluster()
    column = cluster.table.requested_column("cpu")
    column[0] -= 250
    column[2] += 250
    assert "row 0 (n0) counts" in Audit(cluster).look(0.0)
    cluster.check()


def test_a_pod_that_is_gone_and_still_listed_is_found() -> None:
    cluster = _cluster()
    del cluster.pods["p3-2"]
    assert "lists default/p3-2, which is not there" in Audit(cluster).look(0.0)
    cluster.check()


def test_a_pass_takes_a_look_every_other_second() -> None:
    cluster = Cluster()
    for number in range(5 * ROWS_AT_ONCE):
        node = {"metadata": {"name": f"n{number}", "uid": f"n{number}"}}
        cluster.apply(Change(Happened.ADDED, kinds.NODE, node))
    cluster.table.pod_count[5 * ROWS_AT_ONCE - 1] += 1
    audit = Audit(cluster)
    assert next(second for second in range(1000) if audit.look(second)) == 4 * EVERY
    cluster.table.pod_count[0] += 1
    assert next(second for second in range(9, 1000) if audit.look(second)) == 5 * EVERY
