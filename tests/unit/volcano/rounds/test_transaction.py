"""Transactions of a round: kept, undone, done again; and the table as if nothing had been, once it is lifted."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.state.cluster import PodPlace
from fairlead.testing.builders import pod
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.round import Round
from fairlead.volcano.rounds.transaction import Transaction, allocate_now, unpipeline
from tests.support.documents import GROUP
from tests.support.rounds import cluster_of, gang, round_over, small_node, task


def running(name: str, group: str, on: str, **asks: str) -> object:
    made = pod(name).annotated({GROUP: group}).scheduled_by("volcano").asks(**asks).on(on)
    made._doc["status"] = {"phase": "Running"}
    return made


def books_of(round: Round) -> dict[str, list[float]]:
    resources = round.resources
    return {
        f"{kind}.{name}": column[round.rows].tolist()
        for kind in ("idle", "used", "releasing", "pipelined")
        for name, column in getattr(resources, kind).items()
    }


def test_what_is_committed_is_bound_and_assumed() -> None:
    cluster = cluster_of(small_node("a"), *gang("job", 1, at_least=1, cpu="1"))
    round = round_over(cluster)
    transaction = Transaction(round)
    assert transaction.allocate(task(round, "job-0"), 0)
    transaction.commit()
    assert [(t.name, row) for t, row in round.outcome.binds] == [("job-0", 0)]
    assert task(round, "job-0").status is TaskStatus.BINDING
    assert cluster.pods[task(round, "job-0").uid].place is PodPlace.ASSUMED
    round.overlay.hide()
    cluster.check()


def test_what_is_discarded_leaves_nothing_but_the_memory_of_how_far_it_came() -> None:
    cluster = cluster_of(small_node("a"), *gang("job", 2, at_least=2, cpu="1"))
    round = round_over(cluster)
    before = books_of(round)
    transaction = Transaction(round)
    transaction.allocate(task(round, "job-0"), 0)
    transaction.pipeline(task(round, "job-1"), 0, eviction_occurred=True)
    transaction.discard()
    assert books_of(round) == before
    first, second = task(round, "job-0").last, task(round, "job-1").last
    assert first is not None
    assert second is not None
    assert (first.status, second.status) == (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)
    assert second.eviction_occurred
    cluster.check()


def test_an_eviction_makes_room_that_is_only_releasing() -> None:
    group, *_ = gang("old", 0, at_least=1)
    cluster = cluster_of(small_node("a"), group, running("old-0", "old", "a", cpu="3"))  # type: ignore[arg-type]
    round = round_over(cluster)
    victim = task(round, "old-0")
    transaction = Transaction(round)
    transaction.evict(victim, "preempt")
    assert (round.resources.at(round.resources.idle, 0).cpu, round.resources.future_idle_at(0).cpu) == (1000, 4000)
    transaction.discard()
    assert victim.status is TaskStatus.RUNNING
    assert round.resources.future_idle_at(0).cpu == 1000
    round.overlay.hide()
    cluster.check()


def test_an_undone_eviction_of_a_bound_pod_makes_it_bound_again_unless_compatible() -> None:
    group, *_ = gang("old", 0, at_least=1)
    bound = pod("old-0").annotated({GROUP: "old"}).scheduled_by("volcano").asks(cpu="1").on("a")
    for compatible, status in ((False, TaskStatus.BOUND), (True, TaskStatus.RUNNING)):
        round = round_over(cluster_of(small_node("a"), group, bound), compatible=compatible)
        transaction = Transaction(round)
        transaction.evict(task(round, "old-0"), "preempt")
        transaction.discard()
        assert task(round, "old-0").status is status


def test_a_saved_transaction_can_be_done_again() -> None:
    cluster = cluster_of(small_node("a"), *gang("job", 2, at_least=2, cpu="1"))
    round = round_over(cluster)
    transaction = Transaction(round)
    transaction.allocate(task(round, "job-0"), 0)
    transaction.allocate(task(round, "job-1"), 0)
    saved, done = transaction.save(), books_of(round)
    transaction.discard()
    again = Transaction(round)
    assert again.recover(saved)
    assert books_of(round) == done
    assert len(again) == 2


def test_what_is_done_again_is_remembered_as_it_was_saved() -> None:
    """A saved step is a copy, and with it comes how far the task had come before."""
    round = round_over(cluster_of(small_node("a"), small_node("b"), *gang("job", 1, at_least=1, cpu="1")))
    job_0 = task(round, "job-0")
    saved = []
    for row in (0, 1):
        trial = Transaction(round)
        trial.allocate(job_0, row)
        saved.append(trial.save())
        trial.discard()
    Transaction(round).recover(saved[1])
    assert (job_0.row, job_0.last and job_0.last.row) == (1, 0)


def test_a_pod_that_is_gone_is_not_bound_and_its_siblings_are() -> None:
    cluster = cluster_of(small_node("a"), *gang("job", 2, at_least=1, cpu="1"))
    round = round_over(cluster)
    transaction = Transaction(round)
    transaction.allocate(task(round, "job-0"), 0)
    transaction.allocate(task(round, "job-1"), 0)
    del cluster.pods[task(round, "job-0").uid]
    transaction.commit()
    assert [t.name for t, _ in round.outcome.binds] == ["job-1"]
    assert round.resources.at(round.resources.used, 0).cpu == 1000


def test_backfilled_tasks_are_bound_once_their_job_is_ready() -> None:
    cluster = cluster_of(small_node("a"), *gang("job", 2, at_least=2, cpu="1"))
    round = round_over(cluster)
    allocate_now(round, task(round, "job-0"), 0)
    assert round.outcome.binds == []
    allocate_now(round, task(round, "job-1"), 0)
    assert len(round.outcome.binds) == 2


def test_a_promise_can_be_taken_back() -> None:
    round = round_over(cluster_of(small_node("a"), *gang("job", 1, at_least=1, cpu="1")))
    Transaction(round).pipeline(task(round, "job-0"), 0, eviction_occurred=False)
    unpipeline(round, task(round, "job-0"))
    assert round.resources.future_idle_at(0).cpu == 4000
    assert task(round, "job-0").row == -1


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.sampled_from("apedkl")), max_size=12))
def test_whatever_a_round_tries_the_table_is_as_it_was_when_it_is_lifted(
    steps: list[tuple[int, int, str]],
) -> None:
    old, *_ = gang("old", 0, at_least=0)
    residents = [running(f"old-{i}", "old", "ab"[i % 2], cpu="1") for i in range(3)]
    cluster = cluster_of(small_node("a"), small_node("b"), old, *residents, *gang("new", 4, at_least=4, cpu="1"))  # type: ignore[arg-type]
    round = round_over(cluster)
    before = [[p.uid for p in pods] for pods in cluster.table.pods]
    requested = cluster.table.requested_column("cpu").copy()
    done: list[Transaction] = []
    for number, row, what in steps:
        _perform(round, number, row, what, done)
        if what == "l":
            round.overlay.hide()
            assert [[p.uid for p in pods] for pods in cluster.table.pods] == before
            round.overlay.show()
    round.overlay.hide()
    assert [[p.uid for p in pods] for pods in cluster.table.pods] == before
    assert np.array_equal(cluster.table.requested_column("cpu"), requested)
    cluster.check()


def _perform(round: Round, number: int, row: int, what: str, done: list[Transaction]) -> None:
    candidate = task(round, f"new-{number}")
    transaction = Transaction(round)
    if what in "ap" and candidate.status is TaskStatus.PENDING:
        if what == "a":
            transaction.allocate(candidate, row)
        else:
            transaction.pipeline(candidate, row, eviction_occurred=False)
        done.append(transaction)
    elif what == "e" and (victim := task(round, f"old-{number % 3}")).status is TaskStatus.RUNNING:
        transaction.evict(victim, "preempt")
        done.append(transaction)
    elif what == "d" and done:
        done.pop(number % len(done)).discard()
