from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fairlead.cluster.controllers.pod_facts import PodFact, deletion_order, pod_fact
from fairlead.cluster.controllers.workloads.job_progress import FinishedPods, indexes_of, indexes_text
from fairlead.testing.builders import pod


def fact(name: str, **changes: object) -> PodFact:
    doc = pod(name).doc()
    doc["metadata"]["uid"] = name
    return replace(pod_fact(doc, owner="job"), **changes)  # type: ignore[arg-type]


@given(st.sets(st.integers(0, 60)))
def test_indexes_survive_being_written_and_read(indexes: set[int]) -> None:
    assert indexes_of(indexes_text(indexes)) == indexes


def test_indexes_are_written_as_the_original_does() -> None:
    assert indexes_text({0, 1, 2, 3, 7, 9, 10}) == "0-3,7,9,10"
    assert indexes_text(set()) == ""


def test_a_pod_counts_once_however_often_it_is_seen() -> None:
    tally = FinishedPods()
    for gone in (False, False, True):
        tally.count(fact("a", phase="Succeeded"), 1.0, gone=gone)
        tally.count(fact("b", phase="Failed"), 1.0, gone=gone)
    assert (tally.successes, tally.failures) == (1, 1)


def test_a_pod_that_vanished_counts_as_failed_unless_the_job_dismissed_it() -> None:
    tally = FinishedPods()
    tally.dismissed.add("b")
    for name in ("a", "b"):
        tally.count(fact(name, phase="Running"), 1.0, gone=True)
    assert tally.failures == 1


def test_what_an_earlier_process_counted_is_taken_over_once() -> None:
    tally = FinishedPods()
    tally.count(fact("a", phase="Succeeded", index=4), 1.0, gone=False)
    tally.begin({"succeeded": 3, "failed": 2, "completedIndexes": "0,1,4"})
    tally.begin({"succeeded": 9})
    assert (tally.successes, tally.failures, tally.indexes) == (3, 2, {0, 1, 4})


def test_the_next_attempt_waits_longer_after_each_failure_in_a_row() -> None:
    tally = FinishedPods()
    assert tally.next_attempt() == float("-inf")
    for name, delay in (("a", 10), ("b", 20), ("c", 40)):
        tally.count(fact(name, phase="Failed", finished_at=100.0), 100.0, gone=False)
        assert tally.next_attempt() == 100 + delay
    tally.count(fact("d", phase="Succeeded"), 100.0, gone=False)
    assert tally.next_attempt() == float("-inf")


def test_who_goes_first_when_there_are_too_many() -> None:
    running = {"phase": "Running", "node": "n", "ready_since": 50.0, "created": "2"}
    pods = [
        fact("old-and-ready", **{**running, "created": "1"}),
        fact("young-and-ready", **running),
        fact("just-ready", **{**running, "ready_since": 90.0}),
        fact("crowded", **{**running, "node": "busy"}),
        fact("cheap", **running, deletion_cost=-5),
        fact("unready", **{**running, "ready_since": None}),
        fact("starting", phase="Pending", node="n"),
        fact("unassigned", phase="Pending"),
    ]
    order = [one.name for one in deletion_order(pods, {"n": 1, "busy": 3})]
    assert order == [
        "unassigned",
        "starting",
        "unready",
        "cheap",
        "crowded",
        "just-ready",
        "young-and-ready",
        "old-and-ready",
    ]
