"""allocate and backfill in corners: whose errors count, how trials of sub-groups end, who is not bound after all."""

from __future__ import annotations

from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.queues.capacity import HierarchicalCapacity
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.closing import close_round
from fairlead.volcano.rounds.fit import FitErrors, OneOf, insufficient
from fairlead.volcano.rounds.round import Round
from fairlead.volcano.topology.network_topology import NetworkTopologyAware
from tests.support.rounds import RoundScenario, StepLog, default_tiers

ROLE = "volcano.sh/task-spec"
HALVES = [{"name": "p", "subGroupSize": 1, "labelSelector": {"matchLabels": {"job": "j"}}, "matchLabelKeys": ["part"]}]


def bound(round: Round) -> dict[str, str]:
    return {task.name: round.cluster.table.name(row) for task, row in round.outcome.binds}


def said(round: Round) -> dict[str, str]:
    return {report.task.name: report.message for report in close_round(round).pods}


def test_each_sub_group_of_a_trial_is_taken_off_by_itself() -> None:
    diary = StepLog()
    square = RoundScenario(a="4").queue("default").job("j", least=2, subGroupPolicy=HALVES)
    for part in ("u", "v"):
        square.waits("j", 1, cpu="1", labels={"part": part})
    round = square.act("allocate", witness=diary)
    assert sorted(bound(round)) == ["j-0", "j-1"]
    placed, discards = [line for line in diary.lines if "place" in line], diary.lines.count("discard")
    assert (len(placed), discards) == (6, 4), "tried in the sub-group, placed in the trial of the job, and for good"


def test_a_sub_group_without_room_does_not_end_the_trial_of_a_job_that_is_ready() -> None:
    """Only after a sub-group was placed is it asked whether the job is ready."""
    square = RoundScenario(a="2").queue("default").job("j", least=1, subGroupPolicy=HALVES).runs("j", "a", cpu="1")
    square.waits("j", 1, cpu="2", labels={"part": "0"}).waits("j", 1, cpu="1", labels={"part": "1"})
    assert bound(square.act("allocate")) == {"j-2": "a"}


def test_a_role_without_room_in_one_hypernode_is_tried_in_the_next() -> None:
    """The topology path forgets errors for each hypernode tried."""
    square = RoundScenario(a="2", b="2", c="4").queue("default").hyper_node("h0", 1, "a", "b").hyper_node("h1", 1, "c")
    near = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    square.job("j", least=1, subGroupPolicy=[{**HALVES[0], **near}])
    square.waits("j", 1, cpu="3", annotations={ROLE: "worker"}, labels={"part": "0"})
    tiers = [*default_tiers(), [NetworkTopologyAware.of(Arguments())]]
    assert bound(square.act("allocate", tiers=tiers)) == {"j-0": "c"}


def test_a_role_that_backfill_found_no_node_for_is_not_tried_by_a_later_allocate() -> None:
    """Errors live for the session, whichever action noted them."""
    for actions, expected in ((("allocate", "backfill"), {"j-1": "a"}), (("backfill", "allocate"), {})):
        square = RoundScenario(a="4").queue("default").job("j", least=1)
        square.waits("j", 1, annotations={ROLE: "worker"}, nodeSelector={"no": "where"})
        square.waits("j", 1, cpu="1", annotations={ROLE: "worker"})
        assert bound(square.act(*actions, compatible=True)) == expected


def test_a_pod_that_asks_for_nothing_is_not_bound_to_a_node_that_has_a_negative_amount() -> None:
    """The node is asked again, and what it says is the reason that others of the job give."""
    square = RoundScenario(a="1").queue("default").job("big").runs("big", "a", cpu="4").job("j", least=0)
    square.waits("j", 1).waits("j", 1, cpu="1", annotations={ROLE: "worker"}, preemptionPolicy="Never")
    round = square.act("backfill", compatible=True)
    assert bound(round) == {}
    assert said(round)["j-1"].endswith(
        "Origin reason is j-0: 0/1 nodes are unavailable: 1 node a resources [cpu] are not enough to put task "
        "<default/j-0>, idle: cpu -3000.00, memory 1073741824000.00, pods 999.00, req: cpu 0.00, memory 0.00, "
        "pods 1.00."
    )


def test_of_several_that_a_node_has_a_negative_amount_for_any_may_be_named() -> None:
    """Which of a job's pods is bound first is left to chance, and the first that cannot be ends it."""
    square = RoundScenario(a="1").queue("default").job("big").runs("big", "a", cpu="4").job("j", least=0).waits("j", 2)
    round = square.act("backfill", compatible=True)
    job = round.jobs["default/j"]
    first, second = (job.fit_errors[task.uid] for task in sorted(job.tasks.values(), key=lambda task: task.name))
    about_the_second = first.message.replace("j-0", "j-1")
    assert second.message == first.message
    assert second.could_say(about_the_second)
    assert not first.could_say(about_the_second)


def test_of_several_scarce_things_any_may_be_named() -> None:
    errors = FitErrors()
    said_of_two = insufficient(["pods", "nvidia.com/gpu"])
    assert isinstance(said_of_two, OneOf)
    errors.add(said_of_two, RoundScenario(a="1", b="1").act().rows, final=False)
    expected = "0/2 nodes are unavailable: {}."
    assert errors.message == expected.format("2 Insufficient pods")
    assert errors.could_say(expected.format("1 Insufficient nvidia.com/gpu, 1 Insufficient pods"))
    assert errors.could_say(expected.format("2 Insufficient nvidia.com/gpu"))
    assert not errors.could_say(expected.format("2 Insufficient cpu"))


def test_queues_that_make_no_tree_have_no_order_by_priority() -> None:
    """A plugin that is not ready registers no order."""
    plugin = HierarchicalCapacity()
    square = RoundScenario(a="1").queue("root").queue("low").queue("zhigh", priority=5).queue("lost", parent="nowhere")
    round = square.act(tiers=[[Priority(), GangTierPlugin(), plugin]], compatible=True)
    assert plugin.queue_order(round.queues["low"], round.queues["zhigh"]) == 0
