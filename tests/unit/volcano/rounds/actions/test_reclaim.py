"""reclaim: queues give back what they have too much of, to those who are owed it, and no more."""

from __future__ import annotations

import pytest

from fairlead.volcano.plugins.conformance import Conformance
from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.nodeorder import NodeOrder
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.queues.capacity import Capacity
from fairlead.volcano.queues.proportion import Proportion
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.tiers import Enabled, TierPlugin
from fairlead.volcano.topology.network_topology import NetworkTopologyAware
from tests.support.rounds import RoundScenario, evicted, promised


def tiers_with(*plugins: TierPlugin) -> list[list[TierPlugin | Enabled]]:
    none = Arguments()
    return [[Priority(), GangTierPlugin(), Conformance()], [Predicates.of(none), *plugins, NodeOrder.of(none)]]


def proportion() -> list[list[TierPlugin | Enabled]]:
    return tiers_with(Proportion())


def greedy_square(**first: object) -> RoundScenario:
    """Queue `greedy` has both nodes, with as many single pods as fit."""
    square = RoundScenario(a="8", b="8").queue("greedy", **first).queue("owed")
    for number, node in enumerate("aaaabbbb"):
        square.job(f"g{number}", queue="greedy", least=0).runs(f"g{number}", node, cpu="2")
    return square


def test_a_queue_gets_its_share_back_and_reclaiming_stops_there() -> None:
    square = greedy_square().job("wants", queue="owed", least=1).waits("wants", 6, cpu="2")
    tiers = proportion()
    tiers[0][1] = Enabled(GangTierPlugin(), {"enableJobStarving": False})
    gone: list[str] = []
    for _ in range(5):
        round = square.act("allocate", "reclaim", tiers=tiers)
        gone += evicted(round)
        square.afterwards(round)
    assert len(gone) == 4  # half of sixteen cores
    assert square.act("allocate", "reclaim", tiers=tiers).outcome.evictions == []


def test_capacity_gives_back_what_is_beyond_the_deserved() -> None:
    square = greedy_square(deserved={"cpu": "10"}).queue("third", deserved={"cpu": "6"})
    square.job("wants", queue="third", least=1).waits("wants", 5, cpu="2")
    tiers = tiers_with(Capacity())
    tiers[0][1] = Enabled(GangTierPlugin(), {"enableJobStarving": False})
    gone: list[str] = []
    for _ in range(5):
        round = square.act("allocate", "reclaim", tiers=tiers)
        gone += evicted(round)
        square.afterwards(round)
    assert len(gone) == 3
    assert [task.name for task, _ in square.act("allocate", tiers=tiers).outcome.binds] == []


def test_a_queue_that_is_not_reclaimable_keeps_what_it_has() -> None:
    square = greedy_square(reclaimable=False).job("wants", queue="owed").waits("wants", 1, cpu="2")
    assert evicted(square.act("reclaim", tiers=proportion())) == []


def test_an_overused_queue_takes_nothing() -> None:
    square = greedy_square().job("more", queue="greedy", priority=100).waits("more", 1, cpu="2")
    assert evicted(square.act("reclaim", tiers=proportion())) == []


def test_a_gang_gets_all_of_its_minimum_or_nothing() -> None:
    square = greedy_square().job("gang", queue="owed", least=4).waits("gang", 4, cpu="2")
    round = square.act("reclaim", tiers=proportion())
    assert len(evicted(round)) == 4
    assert sorted(promised(round)) == [f"gang-{n}" for n in range(4)]
    assert {reason for _, reason in round.outcome.evictions} == {"reclaim"}
    square = greedy_square().job("gang", queue="owed", least=5).waits("gang", 5, cpu="2")
    assert evicted(square.act("reclaim", tiers=proportion())) == []


def test_only_running_pods_are_reclaimed() -> None:
    square = RoundScenario(a="8").queue("greedy").queue("owed")
    square.job("g", queue="greedy", least=0).runs("g", *"aaaa", cpu="2", status={"phase": "Pending"})
    square.job("wants", queue="owed").waits("wants", 1, cpu="2")
    assert evicted(square.act("reclaim", tiers=proportion())) == []


def test_what_is_idle_or_leaving_counts_before_anybody_goes() -> None:
    square = RoundScenario(a="8").queue("greedy").queue("owed")
    square.job("g", queue="greedy", least=0).runs("g", *"aa", cpu="3").runs("g", "a", cpu="1", leaving=True)
    square.job("wants", queue="owed").waits("wants", 1, cpu="2")
    round = square.act("reclaim", tiers=proportion())
    assert len(promised(round)) == 1
    assert len(evicted(round)) == 0


def test_minimums_of_others_are_kept_by_gang() -> None:
    square = RoundScenario(a="8").queue("greedy").queue("owed")
    square.job("g", queue="greedy", least=4).runs("g", *"aaaa", cpu="2")
    square.job("wants", queue="owed").waits("wants", 1, cpu="2")
    tiers = [[Priority(), GangTierPlugin()], [Predicates.of(Arguments()), NodeOrder.of(Arguments())]]
    assert evicted(square.act("reclaim", tiers=tiers)) == []


@pytest.mark.parametrize("compatible", [False, True])
def test_a_job_whose_network_matters_gets_its_room_in_one_hypernode_unless_compatible(compatible: bool) -> None:
    """Node b has most room to make, but the racks are a1, a2 and b; the job must be within one rack."""
    square = RoundScenario(a1="4", b="2", a2="4").queue("greedy").queue("owed", weight=10)
    square.hyper_node("rack-a", 1, "a1", "a2").hyper_node("rack-b", 1, "b")
    for number, node in enumerate(["a1", "b", "a2"]):
        square.job(f"g{number}", queue="greedy", least=0).runs(f"g{number}", node, cpu="2")
    square.job(
        "near",
        queue="owed",
        least=4,
        minResources={"cpu": "8"},
        networkTopology={"mode": "hard", "highestTierAllowed": 1},
    )
    square.waits("near", 4, cpu="2")
    round = square.act("reclaim", tiers=tiers_with(Proportion(), NetworkTopologyAware()), compatible=compatible)
    used = set(promised(round).values())
    assert used == ({"a1", "a2", "b"} if compatible else {"a1", "a2"})
