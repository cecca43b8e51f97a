"""capacity: what queues deserve, may borrow and must give back, flat and as a tree."""

from __future__ import annotations

import pytest

from fairlead.volcano.queues.capacity import Capacity, HierarchicalCapacity
from fairlead.volcano.rounds.tiers import GangEvictionContext, Vote
from tests.support.rounds import RoundScenario, task

TREE = {"eng": "", "eng-a": "eng", "eng-b": "eng", "ops": ""}


def flat() -> RoundScenario:
    yard = RoundScenario().node("n", cpu="10", memory="10Gi")
    yard.queue("a", deserved={"cpu": "4", "memory": "4Gi"}).queue("b", deserved={"cpu": "4", "memory": "4Gi"})
    return yard.group("one", queue="a").group("two", queue="b")


def test_a_queue_may_borrow_but_not_reclaim_beyond_what_it_deserves() -> None:
    yard = (
        RoundScenario()
        .node("n", cpu="10", memory="10Gi")
        .queue("a", deserved={"cpu": "4", "memory": "4Gi"})
        .group("one", queue="a")
    )
    yard.pod("w", "one", on="n", asks={"cpu": "3"}).pod("x", "one", asks={"cpu": "2"})
    yard.pod("y", "one", asks={"cpu": "2", "memory": "1Gi"})
    plugin = Capacity()
    round = yard.open(plugin)
    queue = round.queues["a"]
    assert plugin.allocatable(queue, task(round, "x"))
    assert not plugin.preemptive(queue, [task(round, "x")])
    assert plugin.preemptive(queue, [task(round, "y")])


def test_a_queue_stops_at_its_capability() -> None:
    yard = RoundScenario().node("n", cpu="10").queue("a", capability={"cpu": "4"}).group("one", queue="a")
    yard.pod("w", "one", on="n", asks={"cpu": "3"}).pod("x", "one", asks={"cpu": "2"}).pod(
        "y", "one", asks={"cpu": "1"}
    )
    plugin = Capacity()
    round = yard.open(plugin)
    assert not plugin.allocatable(round.queues["a"], task(round, "x"))
    assert plugin.allocatable(round.queues["a"], task(round, "y"))


def test_what_others_are_guaranteed_is_out_of_reach() -> None:
    yard = (
        RoundScenario()
        .node("n", cpu="10")
        .queue("a")
        .queue("b", guarantee={"resource": {"cpu": "7"}})
        .group("one", queue="a")
    )
    yard.pod("x", "one", asks={"cpu": "4"})
    plugin = Capacity()
    round = yard.open(plugin)
    assert not plugin.allocatable(round.queues["a"], task(round, "x"))


def test_a_queue_that_deserves_nothing_comes_after_those_that_lack_something() -> None:
    yard = flat().queue("c").group("three", queue="c").pod("w", "one", on="n", asks={"cpu": "3"})
    yard.pod("x", "two", on="n", asks={"cpu": "4"})
    plugin = Capacity()
    round = yard.open(plugin)
    a, b, c = (round.queues[name] for name in "abc")
    assert plugin.queue_order(a, c) < 0
    assert plugin.queue_order(b, c) < 0, "both have a share of 1: who deserves something is first"
    assert plugin.queue_order(a, b) < 0


def test_a_queue_gives_back_what_it_has_too_much_and_keeps_its_guarantee() -> None:
    yard = RoundScenario().node("n", cpu="10", memory="10Gi").queue("b", deserved={"cpu": "4"})
    yard.queue("a", deserved={"cpu": "2"}, guarantee={"resource": {"cpu": "3"}})
    yard.group("one", queue="a").group("two", queue="b").pod("v", "two", asks={"cpu": "4"})
    for name in ("w1", "w2", "w3"):
        yard.pod(name, "one", on="n", asks={"cpu": "2"})
    plugin = Capacity()
    round = yard.open(plugin)
    victims = plugin.reclaimable(task(round, "v"), [task(round, name) for name in ("w1", "w2", "w3")])
    assert len(victims) == 1, "of 6 cores 4 are left; without another 2 the guarantee of 3 would not be kept"


def test_who_shares_no_dimension_with_the_reclaimer_is_left_alone() -> None:
    yard = flat().pod("w", "one", on="n", asks={"memory": "8Gi"}).pod("v", "two", asks={"cpu": "1"})
    plugin = Capacity()
    round = yard.open(plugin)
    assert plugin.reclaimable(task(round, "v"), [task(round, "w")]) == []


def test_whole_gangs_are_preempted_freely_and_reclaimed_by_the_rules() -> None:
    yard = flat().pod("w", "one", on="n", asks={"cpu": "3"}).pod("v", "two", asks={"cpu": "1"})
    plugin = Capacity()
    round = yard.open(plugin)
    job, candidates = round.jobs["default/two"], [task(round, "w")]
    assert plugin.unified_evictable(GangEvictionContext("gangpreempt", job, "root"), candidates) == candidates
    assert plugin.unified_evictable(GangEvictionContext("gangreclaim", job, "root"), candidates) == []


# ---- trees ----


def tree(**specs: dict[str, object]) -> RoundScenario:
    yard = RoundScenario().node("n", cpu="10", memory="10Gi").queue("root")
    for name, parent in TREE.items():
        yard.queue(name, parent=parent or "root", **specs.get(name.replace("-", "_"), {}))
    return yard.group("one", queue="eng-a").group("two", queue="eng-b").group("three", queue="ops")


def test_an_ancestors_limit_counts() -> None:
    yard = (
        tree(eng={"capability": {"cpu": "4"}})
        .pod("w", "one", on="n", asks={"cpu": "3"})
        .pod("x", "two", asks={"cpu": "2"})
    )
    plugin = HierarchicalCapacity()
    round = yard.open(plugin)
    assert not plugin.allocatable(round.queues["eng-b"], task(round, "x"))
    assert plugin.account("eng").allocated.cpu == 3000  # type: ignore[union-attr]


@pytest.mark.parametrize("broken", ["circle", "missing parent", "job in a branch", "no root"])
def test_queues_that_make_no_tree_get_nothing(broken: str) -> None:
    yard = RoundScenario().node("n") if broken == "no root" else RoundScenario().node("n").queue("root")
    yard.queue("leaf", parent="missing" if broken == "missing parent" else "branch")
    yard.queue("branch", parent="leaf" if broken == "circle" else "root")
    yard.group(
        "one", queue="branch" if broken == "job in a branch" else "leaf", phase="Pending", minResources={"cpu": "1"}
    )
    yard.pod("x", "one")
    plugin = HierarchicalCapacity()
    round = yard.open(plugin)
    queue = round.queues[round.jobs["default/one"].queue]
    assert not plugin.allocatable(queue, task(round, "x"))
    assert not plugin.preemptive(queue, [task(round, "x")])
    assert plugin.job_enqueueable(round.jobs["default/one"]) is Vote.REJECT
    assert plugin.reclaimable(task(round, "x"), []) == []


def test_one_queue_that_hangs_nowhere_stops_all_only_where_the_original_is_followed() -> None:
    yard = RoundScenario().node("n").queue("root").queue("fine", parent="root").queue("lost", parent="nowhere")
    yard.queue("below", parent="lost").group("one", queue="fine").pod("x", "one")
    plugin = HierarchicalCapacity()
    round = yard.open(plugin)
    assert plugin.allocatable(round.queues["fine"], task(round, "x"))
    assert plugin.trouble("lost") == "its parent nowhere does not exist"
    assert plugin.trouble("below") == "lost's parent nowhere does not exist"
    round = yard.open(plugin, compatible=True)
    assert not plugin.allocatable(round.queues["fine"], task(round, "x"))


def test_leaves_are_compared_where_their_branches_part() -> None:
    yard = tree(eng={"deserved": {"cpu": "2"}}, eng_a={"deserved": {"cpu": "2"}}, ops={"deserved": {"cpu": "8"}})
    yard.pod("w", "two", on="n", asks={"cpu": "2"}).pod("x", "three", on="n", asks={"cpu": "4"})
    plugin = HierarchicalCapacity()
    round = yard.open(plugin)
    assert plugin.queue_order(round.queues["ops"], round.queues["eng-a"]) < 0, "eng as a whole has all it deserves"


def test_reclaim_takes_from_the_nearest_queues_of_the_tree_first() -> None:
    plugin = HierarchicalCapacity()
    round = tree().open(plugin)
    a, b, ops = (round.queues[name] for name in ("eng-a", "eng-b", "ops"))
    assert plugin.victim_queue_order(b, ops, a) < 0


def test_ancestors_shares_are_refreshed_unless_compatible() -> None:
    for compatible, expected in ((False, 0.5), (True, 0.0)):
        plugin = HierarchicalCapacity()
        yard = tree(eng={"deserved": {"cpu": "4"}}).pod("x", "one", asks={"cpu": "2"})
        round = yard.open(plugin, compatible=compatible)
        plugin.allocated(task(round, "x"))
        assert plugin.account("eng").share == pytest.approx(expected)  # type: ignore[union-attr]


def test_an_ancestor_that_is_owed_something_gives_a_claim_within_the_level() -> None:
    yard = tree(eng={"deserved": {"cpu": "6"}}, ops={"deserved": {"cpu": "2"}}).pod("x", "one", asks={"cpu": "2"})
    for level, expected in ((0, False), (1, True)):
        plugin = HierarchicalCapacity(reclaim_level=level)
        round = yard.open(plugin)
        assert plugin.preemptive(round.queues["eng-a"], [task(round, "x")]) is expected


def test_within_the_level_only_ancestors_with_too_much_give() -> None:
    yard = tree(eng={"deserved": {"cpu": "6"}}, eng_a={"deserved": {"cpu": "1"}}, ops={"deserved": {"cpu": "4"}})
    yard.pod("w", "one", on="n", asks={"cpu": "3"}).pod("v", "three", asks={"cpu": "4"})
    for level, expected in ((0, ["w"]), (1, [])):
        plugin = HierarchicalCapacity(reclaim_level=level)
        round = yard.open(plugin)
        assert [victim.name for victim in plugin.reclaimable(task(round, "v"), [task(round, "w")])] == expected


def test_pods_let_through_their_queues_gate_hold_their_place() -> None:
    gate = {"scheduling.volcano.sh/queue-allocation-gate": "true"}
    yard = RoundScenario().node("n", cpu="10").queue("a", capability={"cpu": "4"}).group("one", queue="a")
    yard.pod("let-through", "one", asks={"cpu": "3"}, annotations=gate).pod("x", "one", asks={"cpu": "2"})
    plugin = Capacity(gated=True)
    round = yard.open(plugin)
    assert not plugin.allocatable(round.queues["a"], task(round, "x"))
    assert plugin.allocatable(round.queues["a"], task(round, "let-through"))
