"""Topology-aware preemption: victims are thought through on many nodes, spared where they can be, and compared."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.volcano.rounds.actions.preempt_dry_run import DryRun
from fairlead.volcano.rounds.round import Round
from tests.support.rounds import RoundScenario, evicted, promised

AWARE = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}


def preempted(square: RoundScenario, **options: Any) -> Round:
    return square.act("preempt", preempt=AWARE, **options)


def test_the_node_whose_victims_matter_least_is_taken() -> None:
    square = RoundScenario(a="4", b="4", c="4").queue("default").job("low")
    square.runs("low", "a", cpu="4", priority=5).runs("low", "b", cpu="4", priority=3).runs(
        "low", "c", cpu="4", priority=4
    )
    round = preempted(square.job("high", priority=100).waits("high", 1, cpu="4"))
    assert evicted(round) == ["low-1"]
    assert promised(round) == {"high-0": "b"}


def test_fewer_victims_are_better_among_equals() -> None:
    square = (
        RoundScenario(a="4", b="4").queue("default").job("low").runs("low", "a", "a", cpu="2").runs("low", "b", cpu="4")
    )
    assert evicted(preempted(square.job("high", priority=100).waits("high", 1, cpu="4"))) == ["low-2"]


def test_who_started_last_goes_among_equals() -> None:
    square = RoundScenario(a="4", b="4").queue("default").job("low")
    square.runs("low", "a", cpu="4", status={"startTime": "2026-01-02T00:00:00Z"})
    square.runs("low", "b", cpu="4", status={"startTime": "2026-01-01T00:00:00Z"})
    assert evicted(preempted(square.job("high", priority=100).waits("high", 1, cpu="4"))) == ["low-0"]


def test_who_need_not_go_is_spared_most_important_first() -> None:
    """One of two cores goes first and is not enough; once the four are gone, it can come back."""
    square = RoundScenario(a="6").queue("default").job("low").runs("low", "a", cpu="4").runs("low", "a", cpu="2")
    round = preempted(square.job("high", priority=100).waits("high", 1, cpu="4"))
    assert evicted(round) == ["low-0"]


@pytest.mark.parametrize(("compatible", "gone"), [(False, ["low-0"]), (True, ["low-1"])])
def test_predicates_are_asked_without_the_victims(compatible: bool, gone: list[str]) -> None:
    """The original asks only what pods say of each other."""
    ports = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    square = (
        RoundScenario(a="8").queue("default").job("low").runs("low", "a", cpu="4", **ports).runs("low", "a", cpu="4")
    )
    round = preempted(square.job("high", priority=100).waits("high", 1, cpu="4", **ports), compatible=compatible)
    assert evicted(round) == gone


def test_thinking_leaves_no_trace() -> None:
    square = RoundScenario(a="8", b="8").queue("default").job("low").runs("low", *"aabb", cpu="4")
    square.job("big", priority=100, least=5).waits("big", 5, cpu="4")
    before = names_by_row(square)
    round = preempted(square)
    assert evicted(round) == []
    assert names_by_row(square) == before
    assert [len(round.resources.tasks_on(row)) for row in range(2)] == [2, 2]
    assert round.resources.idle["cpu"][:2].tolist() == [0.0, 0.0]
    assert round.resources.releasing["cpu"][:2].tolist() == [0.0, 0.0]


def names_by_row(square: RoundScenario) -> list[list[str]]:
    return [sorted(pod.name for pod in pods) for pods in square.cluster.table.pods]


@pytest.mark.parametrize(
    ("rows", "arguments", "wanted"),
    [
        (5, {}, 1),
        (100, {}, 10),
        (5000, {}, 100),
        (50, {"minCandidateNodesAbsolute": 20}, 20),
        (3, {"minCandidateNodesAbsolute": 20}, 3),
        (1000, {"minCandidateNodesPercentage": 50, "maxCandidateNodesAbsolute": 30}, 30),
    ],
)
def test_how_many_candidates_are_enough(rows: int, arguments: dict[str, int], wanted: int) -> None:
    round = RoundScenario(a="1").queue("default").act(preempt=arguments)
    assert DryRun(round).wanted(rows) == wanted
