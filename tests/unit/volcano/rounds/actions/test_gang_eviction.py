"""gangpreempt and gangreclaim: gangs go as a whole or lose only what they can spare, for whole gangs."""

from __future__ import annotations

from typing import Any

from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.nodeorder import NodeOrder
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.queues.proportion import Proportion
from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.rounds.actions.bundles import bundles_of, in_order
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.round import Round
from fairlead.volcano.rounds.tiers import Enabled, TierPlugin
from fairlead.volcano.topology.network_topology import NetworkTopologyAware
from tests.support.rounds import RoundScenario, StepLog, evicted, promised


def tiers(*plugins: TierPlugin) -> list[list[TierPlugin | Enabled]]:
    none = Arguments()
    return [[Priority(), GangTierPlugin()], [Predicates.of(none), *plugins, NodeOrder.of(none)]]


def gangpreempt(square: RoundScenario, *plugins: TierPlugin, **configurations: Any) -> Round:
    return square.act("gangpreempt", tiers=tiers(*plugins), **configurations)


# ---- bundles ----


def bundled(square: RoundScenario) -> list[tuple[bool, list[str]]]:
    job = square.act(tiers=tiers()).jobs["default/j"]
    return [(bundle.safe, [task.name for task in bundle.tasks]) for bundle in bundles_of(job, job.tasks.values())]


def test_what_a_job_can_lose_is_safe_and_the_rest_goes_together() -> None:
    square = (
        RoundScenario(a="8")
        .queue("default")
        .job("j", least=2)
        .runs("j", "a", "a", cpu="1", priority=5)
        .runs("j", "a", cpu="1")
    )
    assert bundled(square) == [(True, ["j-2"]), (False, ["j-0", "j-1"])]


def test_a_job_that_is_not_ready_has_nothing_to_lose() -> None:
    square = RoundScenario(a="8").queue("default").job("j", least=5).runs("j", "a", "a", cpu="1")
    assert bundled(square) == [(True, ["j-0", "j-1"])]


def test_a_role_keeps_its_minimum() -> None:
    square = RoundScenario(a="8").queue("default").job("j", least=3, minTaskMember={"master": 1, "worker": 2})
    square.runs("j", "a", cpu="1", annotations={"volcano.sh/task-spec": "master"})
    square.runs("j", "a", "a", "a", "a", cpu="1", annotations={"volcano.sh/task-spec": "worker"})
    assert bundled(square) == [(True, ["j-1", "j-2"]), (False, ["j-0", "j-3", "j-4"])]


def test_a_policy_keeps_its_sub_groups_and_what_is_broken_may_go_wholly() -> None:
    policy = {"name": "pair", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"],
              "labelSelector": {"matchLabels": {"job": "j"}}}  # fmt: skip
    square = RoundScenario(a="8").queue("default").job("j", least=1, subGroupPolicy=[policy])
    for part in "01":
        square.runs("j", "a", "a", cpu="1", labels={"part": part})
    assert bundled(square) == [(True, ["j-0", "j-1"]), (False, ["j-2", "j-3"])]


def test_the_better_bargain_goes_first() -> None:
    """Both gangs free four cores here; one of them loses as much again elsewhere."""
    square = RoundScenario(a="8", b="8").queue("default").job("costly", least=2).runs("costly", "a", "b", cpu="4")
    square.job("cheap", least=1).runs("cheap", "a", cpu="4")
    jobs = square.act(tiers=tiers()).jobs
    here = [task for job in jobs.values() for task in job.tasks.values() if task.row == 0]
    made = [b for job in jobs.values() for b in bundles_of(job, [task for task in here if task.job is job])]
    ordered = in_order(made, Amounts(cpu=4000.0), lambda left, right: False)
    assert [bundle.job.name for bundle in ordered] == ["cheap", "costly"]


# ---- gangpreempt ----


def test_a_gang_is_evicted_whole_for_a_gang_of_higher_priority() -> None:
    square = RoundScenario(a="4", b="4").queue("default").job("old", least=2).runs("old", "a", "b", cpu="4")
    round = gangpreempt(square.job("new", priority=10, least=2).waits("new", 2, cpu="3"))
    assert sorted(evicted(round)) == ["old-0", "old-1"]
    assert sorted(promised(round)) == ["new-0", "new-1"]
    assert {reason for _, reason in round.outcome.evictions} == {"gangpreempt"}


def test_spare_tasks_go_before_any_gang_is_broken() -> None:
    square = RoundScenario(a="4", b="4").queue("default").job("gang", least=1).runs("gang", "a", cpu="4")
    square.job("elastic", least=0).runs("elastic", "b", cpu="4")
    assert evicted(gangpreempt(square.job("new", priority=10).waits("new", 1, cpu="4"))) == ["elastic-0"]


def test_whole_bundles_can_be_ruled_out() -> None:
    square = RoundScenario(a="4", b="4").queue("default").job("old", least=2).runs("old", "a", "b", cpu="4")
    square.job("new", priority=10).waits("new", 1, cpu="4")
    assert evicted(gangpreempt(square, gangpreempt={"allowWholeBundle": False})) == []


def test_nobody_goes_for_a_gang_that_does_not_fit() -> None:
    square = RoundScenario(a="4", b="4").queue("default").job("old", least=2).runs("old", "a", "b", cpu="4")
    round = gangpreempt(square.job("new", priority=10, least=3).waits("new", 3, cpu="3"))
    assert evicted(round) == []
    assert promised(round) == {}
    assert round.jobs["default/old"].counts.ready == 2


def test_equal_priorities_and_groups_that_say_no_are_left_alone() -> None:
    peer = (
        RoundScenario(a="4").queue("default").job("old").runs("old", "a", cpu="4").job("new").waits("new", 1, cpu="4")
    )
    assert evicted(gangpreempt(peer)) == []
    said = {"volcano.sh/preemptable": "false"}
    no = RoundScenario(a="4").queue("default").job("old", annotations=said).runs("old", "a", cpu="4")
    assert evicted(gangpreempt(no.job("new", priority=10).waits("new", 1, cpu="4"))) == []


def test_a_gang_whose_network_matters_gets_its_room_in_one_rack() -> None:
    square = RoundScenario(a="4", b="4", c="4", d="4").queue("default")
    square.hyper_node("left", 1, "a", "c").hyper_node("right", 1, "b", "d")
    square.job("old", least=0).runs("old", *"abcd", cpu="4")
    square.job(
        "new",
        priority=10,
        least=2,
        minResources={"cpu": "8"},
        networkTopology={"mode": "hard", "highestTierAllowed": 1},
    )
    round = gangpreempt(square.waits("new", 2, cpu="4"), NetworkTopologyAware())
    assert set(promised(round).values()) in ({"a", "c"}, {"b", "d"})
    rack = round.jobs["default/new"].sub_jobs["default/new"].nominated_hyper_node
    assert rack == ("left" if "a" in promised(round).values() else "right")


def test_a_trial_is_taken_back_and_then_done_for_good() -> None:
    """A scratch run, evictions and each sub-job in a statement of its own, and the plan replayed."""
    square = RoundScenario(a="4", b="4").queue("default").job("old", least=2).runs("old", "a", "b", cpu="4")
    square.job("new", priority=10, least=2).waits("new", 2, cpu="3")
    diary = StepLog()
    square.act("gangpreempt", tiers=tiers(), witness=diary)
    trial = ["evict old-0", "evict old-1", "place new-0", "place new-1"]
    assert diary.lines == [*trial, "discard", "discard", *trial, "commit"]


def test_a_sub_group_whose_network_matters_gets_its_room_in_one_rack() -> None:
    """Also where only a sub-group, and not its job, wants to be close together."""
    policy = {"name": "pair", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"],
              "labelSelector": {"matchLabels": {"job": "new"}},
              "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}  # fmt: skip
    square = RoundScenario(a="4", b="6", c="4", d="6").queue("default")
    square.hyper_node("left", 1, "a", "b").hyper_node("right", 1, "c", "d")
    square.job("old", least=0).runs("old", *"abcd", cpu="4")
    square.job("new", priority=10, least=2, subGroupPolicy=[policy]).waits("new", 2, cpu="4", labels={"part": "0"})
    round = gangpreempt(square, NetworkTopologyAware())
    assert set(promised(round).values()) in ({"a", "b"}, {"c", "d"})
    (pair,) = (sub for sub in round.jobs["default/new"].sub_jobs.values() if sub.policy == "pair")
    assert pair.nominated_hyper_node in ("left", "right")


# ---- gangreclaim ----


def test_a_gang_gets_back_what_its_queue_is_owed() -> None:
    square = RoundScenario(a="4", b="4").queue("greedy").queue("owed")
    square.job("old", queue="greedy", least=1).runs("old", "a", "b", cpu="4")
    square.job("new", queue="owed", least=1).waits("new", 1, cpu="4")
    round = square.act("gangreclaim", tiers=tiers(Proportion()))
    assert len(evicted(round)) == 1
    assert list(promised(round)) == ["new-0"]
    assert {reason for _, reason in round.outcome.evictions} == {"gangreclaim"}


def test_a_queue_that_may_not_take_or_does_not_give_changes_nothing() -> None:
    for giver, taker in (({"reclaimable": False}, {}), ({}, {"capability": {"cpu": "2"}})):
        square = RoundScenario(a="4", b="4").queue("greedy", **giver).queue("owed", **taker)
        square.job("old", queue="greedy", least=1).runs("old", "a", "b", cpu="4")
        square.job("new", queue="owed", least=1).waits("new", 1, cpu="4")
        assert evicted(square.act("gangreclaim", tiers=tiers(Proportion()))) == []
