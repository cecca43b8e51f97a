"""preempt: who is evicted for whom within a queue, and that nothing is evicted for nothing."""

from __future__ import annotations

import pytest

from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.tiers import Enabled
from tests.support.rounds import RoundScenario, StepLog, default_tiers, evicted, promised


def full_square() -> RoundScenario:
    """Two nodes full of a job of low priority."""
    return RoundScenario(a="8", b="8").queue("default").job("low").runs("low", "a", "a", "b", "b", cpu="4")


def test_a_job_of_higher_priority_gets_room_and_is_promised_its_place() -> None:
    round = full_square().job("high", priority=100).waits("high", 1, cpu="4").act("preempt")
    assert evicted(round) == ["low-3"] or evicted(round) == ["low-1"]
    assert list(promised(round)) == ["high-0"]
    assert [reason for _, reason in round.outcome.evictions] == ["preempt"]
    assert round.outcome.binds == []


def test_jobs_of_equal_priority_leave_each_other_alone() -> None:
    round = full_square().job("peer").waits("peer", 1, cpu="4").act("preempt")
    assert evicted(round) == []
    assert promised(round) == {}


def test_the_least_important_task_goes_first_the_highest_index_among_equals() -> None:
    square = (
        RoundScenario(a="8")
        .queue("default")
        .job("low")
        .runs("low", "a", cpu="2", priority=5)
        .runs("low", "a", "a", cpu="2")
    )
    round = square.job("high", priority=100).waits("high", 1, cpu="4").act("preempt")
    assert evicted(round) == ["low-2"]
    square = RoundScenario(a="8").queue("default").job("low").runs("low", "a", cpu="2", priority=5)
    square.runs("low", "a", "a", "a", cpu="2")
    round = square.job("high", priority=100).waits("high", 1, cpu="4").act("preempt")
    assert evicted(round) == ["low-3", "low-2"]


def test_a_gang_that_does_not_get_its_minimum_evicts_nobody() -> None:
    diary = StepLog()
    square = full_square().job("big", priority=100, least=5).waits("big", 5, cpu="4")
    round = square.act("preempt", witness=diary)
    assert evicted(round) == []
    assert promised(round) == {}
    assert diary.lines.count("evict low-0") == 1  # it was tried, and taken back
    assert round.jobs["default/low"].counts.ready == 4


def test_another_queue_is_never_touched() -> None:
    square = full_square().queue("other").job("high", priority=100, queue="other").waits("high", 1, cpu="4")
    assert evicted(square.act("preempt")) == []


def test_pods_that_are_not_preemptable_stay() -> None:
    square = RoundScenario(a="4").queue("default").job("low")
    square.runs("low", "a", cpu="4", annotations={"volcano.sh/preemptable": "false"})
    assert evicted(square.job("high", priority=100).waits("high", 1, cpu="4").act("preempt")) == []


def test_a_pod_that_must_not_preempt_does_not() -> None:
    square = full_square().job("high", priority=100).waits("high", 1, cpu="4", preemptionPolicy="Never")
    assert evicted(square.act("preempt")) == []


def test_gated_pods_evict_nobody() -> None:
    square = full_square().job("high", priority=100)
    square.waits("high", 1, cpu="4", schedulingGates=[{"name": "wait"}])
    assert evicted(square.act("preempt")) == []


def test_who_asks_for_nothing_evicts_nobody_who_asks_for_something() -> None:
    square = RoundScenario().node("a", cpu="8", pods="1").queue("default").job("low").runs("low", "a", cpu="1")
    square.job("high", priority=100).waits("high", 1)
    assert evicted(square.act("preempt")) == []


def test_within_a_job_more_important_tasks_evict_less_important_ones() -> None:
    square = RoundScenario(a="8").queue("default").job("mixed", least=2)
    square.runs("mixed", "a", "a", cpu="4").waits("mixed", 1, cpu="4", priority=50)
    tiers = [[Priority(), Enabled(GangTierPlugin(), {"enablePreemptable": False, "enableJobStarving": False})]]
    tiers += [[Predicates.of(Arguments())]]
    round = square.act("preempt", tiers=tiers)
    assert evicted(round) == ["mixed-1"]
    assert promised(round) == {"mixed-2": "a"}


def test_victims_are_the_fewest_that_make_room_on_the_node_tried() -> None:
    square = RoundScenario(a="8").queue("default").job("low").runs("low", *"aaaaaaaa", cpu="1")
    round = square.job("high", priority=100).waits("high", 1, cpu="3").act("preempt")
    assert evicted(round) == ["low-7", "low-6", "low-5"]


def test_a_job_whose_network_matters_is_passed_over() -> None:
    square = full_square().hyper_node("rack", 1, "a", "b")
    square.job("near", priority=100, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    assert evicted(square.waits("near", 1, cpu="4").act("preempt")) == []


@pytest.mark.parametrize("compatible", [False, True])
def test_predicates_are_asked_again_after_evictions_unless_compatible(compatible: bool) -> None:
    """Both pods of low have the port; evicting the first makes room enough, but not the port free."""
    ports = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    square = (
        RoundScenario(a="8").queue("default").job("low").runs("low", "a", cpu="4", **ports).runs("low", "a", cpu="4")
    )
    square.job("high", priority=100).waits("high", 1, cpu="4", **ports)
    round = square.act("preempt", compatible=compatible)
    assert evicted(round) == (["low-1"] if compatible else ["low-1", "low-0"])
    assert promised(round) == {"high-0": "a"}


@pytest.mark.parametrize("compatible", [False, True])
def test_an_undone_eviction_gives_the_status_back_unless_compatible(compatible: bool) -> None:
    square = RoundScenario(a="8").queue("default").job("low")
    square.runs("low", "a", "a", cpu="4", status={"phase": "Pending"})
    square.job("big", priority=100, least=3).waits("big", 3, cpu="4")
    round = square.act("preempt", compatible=compatible)
    statuses = {task.status.label for task in round.jobs["default/low"].tasks.values()}
    assert statuses == ({"Running"} if compatible else {"Bound"})


def test_a_compatible_round_gives_a_job_that_got_its_room_an_empty_turn() -> None:
    for compatible, commits in ((False, 1), (True, 2)):
        diary = StepLog()
        square = full_square().job("high", priority=100).waits("high", 1, cpu="4")
        square.act("preempt", compatible=compatible, witness=diary)
        assert diary.lines.count("commit") == commits


# ---- over several rounds ----


def test_preempting_ends_once_everybody_who_may_has_room() -> None:
    """Three jobs of three priorities on room for one: each round evicts only for whoever is more important."""
    square = RoundScenario(a="4").queue("default").job("low").runs("low", "a", cpu="4")
    square.job("mid", priority=50).waits("mid", 1, cpu="4").job("high", priority=100).waits("high", 1, cpu="4")
    gone = []
    for _ in range(6):
        round = square.act("allocate", "preempt")
        gone += evicted(round)
        square.afterwards(round)
    assert gone == ["low-0"]


def test_a_pod_whose_victims_are_still_leaving_evicts_nobody_else() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    for leaving in (False, True):
        square = RoundScenario().node("a", cpu="8", pods="2").queue("default").job("low")
        square.runs("low", "a", cpu="4", leaving=leaving, status={"conditions": [condition]}).runs("low", "a", cpu="4")
        square.job("high", priority=100)
        square.waits("high", 1, cpu="8", priority=100, status={"nominatedNodeName": "a"})
        assert evicted(square.act("allocate", "preempt")) == ([] if leaving else ["low-1", "low-0"])


def test_gang_protects_minimums_where_it_has_a_say() -> None:
    tiers = default_tiers()
    tiers[0][1] = GangTierPlugin()
    square = RoundScenario(a="8").queue("default").job("low", least=2).runs("low", "a", "a", cpu="4")
    square.job("high", priority=100).waits("high", 1, cpu="4")
    assert evicted(square.act("preempt", tiers=tiers)) == []
