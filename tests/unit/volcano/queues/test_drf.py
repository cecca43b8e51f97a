"""drf, flat and hierarchical: who has the smallest share comes first, and who has more gives."""

from __future__ import annotations

import pytest

from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.queues.drf import Drf, HierarchicalDrf
from tests.support.rounds import RoundScenario, binds, task


def yard_of_two() -> RoundScenario:
    return RoundScenario().node("n", cpu="10", memory="10Gi").queue("default").group("one").group("two")


def test_a_job_is_as_greedy_as_its_dominant_resource() -> None:
    yard = yard_of_two().pod("a", "one", on="n", asks={"cpu": "2", "memory": "1Gi"})
    yard.pod("b", "two", on="n", asks={"cpu": "1", "memory": "3Gi"})
    plugin = Drf()
    round = yard.open(plugin)
    one, two = round.jobs["default/one"], round.jobs["default/two"]
    assert plugin.share(one) == pytest.approx(0.2)
    assert plugin.share(two) == pytest.approx(0.3)
    assert plugin.job_order(one, two) < 0


def test_shares_follow_what_the_round_does() -> None:
    yard = yard_of_two().pod("a", "one", asks={"cpu": "4"}).pod("b", "two", asks={"cpu": "1"})
    plugin = Drf()
    round = yard.open(plugin)
    one = round.jobs["default/one"]
    plugin.allocated(task(round, "a"))
    assert plugin.share(one) == pytest.approx(0.4)
    plugin.deallocated(task(round, "a"))
    assert plugin.share(one) == 0


def test_candidates_of_a_job_are_counted_as_lost_one_after_the_other() -> None:
    yard = yard_of_two()
    for name in ("a1", "a2", "a3"):
        yard.pod(name, "one", on="n", asks={"cpu": "2"})
    yard.pod("b", "two", asks={"cpu": "2"})
    plugin = Drf()
    round = yard.open(plugin)
    candidates = [task(round, name) for name in ("a1", "a2", "a3")]
    assert [victim.name for victim in plugin.preemptable(task(round, "b"), candidates)] == ["a1", "a2"]


def test_two_jobs_grow_in_step() -> None:
    yard = RoundScenario().node("n", cpu="4", memory="32Gi").queue("default").group("one").group("two")
    for number in range(4):
        yard.pod(f"a{number}", "one").pod(f"b{number}", "two")
    assert sorted(name[0] for name in binds(yard.run(GangTierPlugin(), Drf()))) == ["a", "a", "b", "b"]


# ---- hierarchy ----


def tree_of_queues(weights: str = "1/1") -> RoundScenario:
    yard = RoundScenario().node("n", cpu="10", memory="100Gi")
    for name, path, weight in (("a", "root/left", weights), ("b", "root/right", "1/1")):
        yard.queue(name, annotations={"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weight})
        yard.group(f"job-{name}", queue=name)
    return yard


def test_the_branch_with_the_smaller_share_comes_first() -> None:
    yard = tree_of_queues().pod("a1", "job-a", on="n", asks={"cpu": "2"}).pod("a2", "job-a", asks={"cpu": "2"})
    yard.pod("b1", "job-b", on="n", asks={"cpu": "1"}).pod("b2", "job-b", asks={"cpu": "1"})
    plugin = HierarchicalDrf()
    round = yard.open(plugin)
    assert plugin.queue_order(round.queues["b"], round.queues["a"]) < 0


def test_a_weight_lets_a_branch_have_more() -> None:
    yard = tree_of_queues("1/4").pod("a1", "job-a", on="n", asks={"cpu": "2"}).pod("a2", "job-a", asks={"cpu": "2"})
    yard.pod("b1", "job-b", on="n", asks={"cpu": "1"}).pod("b2", "job-b", asks={"cpu": "1"})
    plugin = HierarchicalDrf()
    round = yard.open(plugin)
    assert plugin.queue_order(round.queues["a"], round.queues["b"]) < 0


def test_a_branch_that_has_all_it_asked_for_comes_last() -> None:
    yard = tree_of_queues().pod("a1", "job-a", on="n", asks={"cpu": "1"})
    yard.pod("b1", "job-b", on="n", asks={"cpu": "4"}).pod("b2", "job-b", asks={"cpu": "4"})
    plugin = HierarchicalDrf()
    round = yard.open(plugin)
    assert plugin.queue_order(round.queues["b"], round.queues["a"]) < 0


def test_what_is_reclaimed_leaves_its_queue_behind_the_reclaimers() -> None:
    yard = tree_of_queues()
    for name in ("a1", "a2"):
        yard.pod(name, "job-a", on="n", asks={"cpu": "4"})
    yard.pod("a3", "job-a", asks={"cpu": "4"})
    yard.pod("b1", "job-b", asks={"cpu": "2"}).pod("b2", "job-b", asks={"cpu": "8"})
    plugin = HierarchicalDrf()
    round = yard.open(plugin)
    candidates = [task(round, name) for name in ("a1", "a2")]
    assert [victim.name for victim in plugin.reclaimable(task(round, "b1"), candidates)] == ["a1", "a2"]
    assert plugin.reclaimable(task(round, "b2"), candidates) == []
    assert plugin.queue_order(round.queues["b"], round.queues["a"]) < 0


def test_paths_that_differ_in_depth_are_compared_as_far_as_both_go() -> None:
    yard = RoundScenario().node("n", cpu="10").queue("a").queue("b", annotations={"volcano.sh/hierarchy": "root/x/y"})
    yard.group("job-a", queue="a").group("job-b", queue="b")
    yard.pod("a1", "job-a", on="n").pod("b1", "job-b")
    plugin = HierarchicalDrf()
    round = yard.open(plugin)
    assert plugin.queue_order(round.queues["a"], round.queues["b"]) == 0
