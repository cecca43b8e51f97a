"""Commits of several schedulers on one table: what conflicts, what is kept, and that nothing is overcommitted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.audit import Audit
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.statement import Statement
from fairlead.lab.omega.transactions import CommitMode, ConflictRule, OptimisticCommit, TableView

TASK = {"cpu": 1000}
FIT, SEQUENCE = ConflictRule.RESOURCE_FIT, ConflictRule.SEQUENCE_NUMBERS
EACH, ALL = CommitMode.INCREMENTAL, CommitMode.ALL_OR_NOTHING


def cluster_of(*cpus: int) -> Cluster:
    cluster = Cluster()
    for number, cpu in enumerate(cpus):
        doc = {"metadata": {"name": f"n{number}", "uid": f"n{number}"}, "status": {"allocatable": {"cpu": str(cpu)}}}
        cluster.apply(Change(Happened.ADDED, kinds.NODE, doc))
    return cluster


def bind(cluster: Cluster, name: str, node: str) -> None:
    metadata = {"name": name, "namespace": "default", "uid": name}
    cluster.apply(Change(Happened.ADDED, kinds.POD, {"metadata": metadata, "spec": {"nodeName": node}}))


def view(cluster: Cluster) -> TableView:
    return TableView(cluster.table, ("cpu",))


def rows(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def taken(cluster: Cluster) -> list[int]:
    return [int(amount) // 1000 for amount in cluster.table.requested_column("cpu")[: cluster.table.high]]


def test_of_two_claims_on_the_last_slot_the_second_conflicts() -> None:
    cluster = cluster_of(1)
    seen = view(cluster).version
    by_fit = OptimisticCommit(FIT, EACH)
    assert by_fit.commit(cluster, seen, rows(0), TASK).conflicted == 0
    assert by_fit.commit(cluster, seen, rows(0), TASK).conflicted == 1
    assert taken(cluster) == [1]


def test_sequence_numbers_conflict_even_where_both_would_fit() -> None:
    cluster = cluster_of(8)
    seen = view(cluster).version
    OptimisticCommit(FIT, EACH).commit(cluster, seen, rows(0), TASK)
    assert OptimisticCommit(FIT, EACH).commit(cluster, seen, rows(0), TASK).conflicted == 0
    assert OptimisticCommit(SEQUENCE, EACH).commit(cluster, seen, rows(0), TASK).conflicted == 1


def test_after_a_conflict_on_a_row_later_claims_there_conflict_too() -> None:
    cluster = cluster_of(4, 4)
    seen = view(cluster).version
    OptimisticCommit().commit(cluster, seen, rows(0), TASK)
    result = OptimisticCommit(SEQUENCE, EACH).commit(cluster, seen, rows(0, 1, 0), TASK)
    assert (result.rows.tolist(), result.conflicted) == ([1], 2)


def test_only_a_pod_that_came_after_the_view_conflicts_with_it() -> None:
    cluster = cluster_of(4, 4)
    bind(cluster, "before", "n0")
    seen = view(cluster).version
    bind(cluster, "after", "n1")
    result = OptimisticCommit(SEQUENCE, EACH).commit(cluster, seen, rows(0, 1), TASK)
    assert (result.rows.tolist(), result.conflicted) == ([0], 1)


def test_one_conflict_undoes_an_all_or_nothing_commit_with_its_versions() -> None:
    cluster = cluster_of(2, 1)
    seen = view(cluster).version
    OptimisticCommit().commit(cluster, seen, rows(1), TASK)
    before = cluster.table.version.copy()
    result = OptimisticCommit(FIT, ALL).commit(cluster, seen, rows(0, 1, 0), TASK)
    assert (len(result.rows), result.conflicted) == (0, 2)
    assert taken(cluster) == [0, 1]
    assert np.array_equal(cluster.table.version, before)


def test_the_original_leaves_versions_of_a_failed_commit_raised() -> None:
    cluster = cluster_of(2, 1)
    seen = view(cluster).version
    OptimisticCommit().commit(cluster, seen, rows(1), TASK)
    OptimisticCommit(FIT, ALL, failures_raise_versions=True).commit(cluster, seen, rows(0, 1, 0), TASK)
    assert cluster.table.version[:2].tolist() == [1, 1]


def test_a_task_that_ends_between_view_and_commit_causes_no_conflict() -> None:
    cluster = cluster_of(2)
    OptimisticCommit().commit(cluster, view(cluster).version, rows(0), TASK)
    seen = view(cluster).version
    cluster.table.release(rows(0), TASK)
    assert OptimisticCommit(SEQUENCE, ALL).commit(cluster, seen, rows(0, 0), TASK).conflicted == 0


def test_a_claim_that_is_rolled_back_leaves_no_trace() -> None:
    cluster = cluster_of(4, 4)
    statement = Statement(cluster)
    statement.claim(rows(0, 1, 1), TASK)
    assert taken(cluster) == [1, 2]
    statement.rollback()
    assert taken(cluster) == [0, 0]
    assert not cluster.table.version.any()


def test_claims_are_part_of_what_checks_and_repairs_count() -> None:
    cluster = cluster_of(4)
    OptimisticCommit().commit(cluster, view(cluster).version, rows(0, 0), TASK)
    cluster.check()
    assert Audit(cluster).look(0.0) == ""
    cluster.table.requested_column("cpu")[0] = 17
    assert "17" in Audit(cluster).look(0.0)
    assert taken(cluster) == [2]


plans = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=16)


@pytest.mark.parametrize("rule", ConflictRule)
@pytest.mark.parametrize("mode", CommitMode)
@given(plans=plans, ended=st.sets(st.integers(0, 15)))
@settings(max_examples=25, deadline=None)
def test_no_row_is_ever_overcommitted(
    rule: ConflictRule, mode: CommitMode, plans: list[list[int]], ended: set[int]
) -> None:
    """Sixteen schedulers plan on views of one moment, or of the moment before the last commit."""
    cluster = cluster_of(3, 2, 1, 4)
    commit = OptimisticCommit(rule, mode)
    stale = view(cluster)
    for turn, plan in enumerate(plans):
        room = stale.times(TASK).tolist()
        chosen = []
        for row in plan:
            if room[row]:
                room[row] -= 1
                chosen.append(row)
        if not chosen:
            continue
        fresh = view(cluster)
        kept = commit.commit(cluster, stale.version, rows(*chosen), TASK).rows
        if turn in ended and len(kept):
            cluster.table.release(kept, TASK)
        assert all(amount <= cpus for amount, cpus in zip(taken(cluster), (3, 2, 1, 4), strict=True))
        cluster.check()
        stale = fresh if turn % 3 else stale
