"""proportion and overcommit: what queues deserve, who is let in, and who gives back."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.queues.filling import fill
from fairlead.volcano.queues.overcommit import Overcommit
from fairlead.volcano.queues.proportion import Proportion
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.round import Choices
from fairlead.volcano.rounds.tiers import Vote
from tests.support.rounds import RoundScenario, binds, task

INF = np.inf


def shared_out(
    total: list[float], *queues: tuple[float, list[float], list[float] | None, list[float] | None]
) -> list[list[float]]:
    """What queues of (weight, request, limit, guarantee) deserve of a total."""
    width = len(total)
    return fill(
        np.array(total, dtype=np.float64),
        weights=np.array([weight for weight, _, _, _ in queues]),
        request=np.array([request for _, request, _, _ in queues], dtype=np.float64),
        limit=np.array([limit or [INF] * width for _, _, limit, _ in queues]),
        guarantee=np.array([guarantee or [0.0] * width for _, _, _, guarantee in queues]),
        counted=np.ones(width, dtype=np.bool_),
    ).tolist()  # type: ignore[no-any-return]


def test_three_queues_share_by_weight_what_the_others_leave() -> None:
    deserved = shared_out(
        [12000, 24],
        (1, [2000, 20], None, None),
        (2, [10000, 10], None, None),
        (3, [9000, 8], None, None),
    )
    assert np.allclose(deserved, [[2000, 6], [4000, 10], [6000, 8]], atol=0.1)


def test_in_which_order_queues_are_summed_up_is_left_to_chance_and_shows_in_the_last_digit() -> None:
    class Backwards(Choices):
        def walk(self, what: str, items: Sequence[Any]) -> Sequence[Any]:
            return list(reversed(items)) if what == "queues" else items

    yard = RoundScenario().node("n", cpu="7", memory="100Gi")
    for name, weight, cpu in (("a", 1, "1"), ("b", 1, "30"), ("c", 3, "2500m"), ("d", 1, "30")):
        yard.queue(name, weight=weight).group(name, queue=name).pod(name, name, asks={"cpu": cpu, "memory": "1Mi"})
    plugin = Proportion()
    deserved = []
    for choices in (Choices(Random(0)), Backwards(Random(0))):
        round = yard.open(plugin)
        round.choices = choices
        plugin.open(round)
        account = plugin.account("b")
        assert account is not None
        deserved.append(account.deserved.cpu)
    assert deserved == [1750.0000000000005, 1750.0]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({}, {"guarantee": {"resource": {"cpu": "6"}}}, (4000, 6000)),
        ({"capability": {"cpu": "3"}}, {}, (3000, 7000)),
    ],
    ids=["guarantee", "capability"],
)
def test_guarantees_and_limits_bend_the_shares(
    a: dict[str, object], b: dict[str, object], expected: tuple[float, float]
) -> None:
    yard = RoundScenario().node("n", cpu="10", memory="100Gi").queue("a", weight=1, **a).queue("b", weight=1, **b)
    yard.group("one", queue="a").group("two", queue="b")
    yard.pod("w", "one", asks={"cpu": "8"}).pod("v", "two", asks={"cpu": "9" if a else "8"})
    plugin = Proportion()
    yard.open(plugin)
    deserved = [account.deserved.cpu for name in "ab" if (account := plugin.account(name)) is not None]
    assert deserved == pytest.approx(expected, abs=0.1)


amounts = st.integers(0, 50).map(float)


@given(
    total=st.tuples(amounts, amounts),
    queues=st.lists(st.tuples(st.integers(1, 5), st.tuples(amounts, amounts)), min_size=1, max_size=5),
)
def test_nobody_deserves_more_than_asked_and_nothing_is_given_out_twice(
    total: tuple[float, float], queues: list[tuple[int, tuple[float, float]]]
) -> None:
    deserved = np.array(
        shared_out(list(total), *[(float(weight), list(request), None, None) for weight, request in queues])
    )
    requests = np.array([request for _, request in queues])
    assert (deserved <= requests + 1e-6).all()
    assert (deserved.sum(axis=0) <= np.array(total) + 1e-6).all()
    if (requests.sum(axis=0) >= np.array(total)).all():
        assert (deserved.sum(axis=0) >= np.array(total) - 0.5).all()


# ---- the plugin ----


def two_queues() -> RoundScenario:
    yard = RoundScenario().node("n", cpu="10", memory="100Gi")
    yard.queue("a", weight=1).queue("b", weight=1)
    yard.group("one", queue="a").group("two", queue="b")
    return yard


def test_a_queue_that_has_what_it_deserves_is_passed_over() -> None:
    yard = two_queues().pod("w1", "one", on="n", asks={"cpu": "5"}).pod("w2", "one", asks={"cpu": "4"})
    yard.pod("v1", "two", asks={"cpu": "5"})
    plugin = Proportion()
    round = yard.open(plugin)
    assert plugin.account("a").deserved.cpu == pytest.approx(5000)  # type: ignore[union-attr]
    assert not plugin.allocatable(round.queues["a"], task(round, "w2"))
    assert plugin.allocatable(round.queues["b"], task(round, "v1"))
    assert plugin.queue_order(round.queues["b"], round.queues["a"]) < 0


def test_overused_means_in_every_dimension() -> None:
    yard = two_queues().pod("w", "one", on="n", asks={"cpu": "8"}).pod("v", "two", asks={"cpu": "8"})
    plugin = Proportion()
    round = yard.open(plugin)
    assert plugin.overused(round.queues["a"])
    assert not plugin.overused(round.queues["b"])


def test_a_higher_priority_of_a_queue_counts_before_its_share() -> None:
    yard = RoundScenario().node("n").queue("a", priority=5).queue("b").group("one", queue="a").group("two", queue="b")
    yard.pod("w", "one", on="n").pod("v", "two")
    plugin = Proportion()
    round = yard.open(plugin)
    assert plugin.queue_order(round.queues["a"], round.queues["b"]) < 0


def test_victims_are_taken_while_their_queue_has_too_much() -> None:
    yard = two_queues()
    for name in ("w1", "w2", "w3"):
        yard.pod(name, "one", on="n", asks={"cpu": "3"})
    yard.pod("v", "two", asks={"cpu": "10"})
    plugin = Proportion()
    round = yard.open(plugin)
    candidates = [task(round, name) for name in ("w1", "w2", "w3")]
    assert [victim.name for victim in plugin.reclaimable(task(round, "v"), candidates)] == ["w1", "w2"]


def test_a_closed_queue_gets_nothing_and_lets_nobody_in() -> None:
    yard = (
        RoundScenario()
        .node("n")
        .queue("a", state="Closed")
        .group("one", queue="a", phase="Pending", minResources={"cpu": "1"})
    )
    yard.pod("w", "one")
    plugin = Proportion()
    round = yard.open(plugin)
    assert not plugin.allocatable(round.queues["a"], task(round, "w"))
    assert plugin.job_enqueueable(round.jobs["default/one"]) is Vote.REJECT


def waiting_groups(*names: str, cpu: str = "3") -> RoundScenario:
    yard = RoundScenario().node("n", cpu="8").queue("default", capability={"cpu": "5"})
    for name in names:
        yard.group(name, phase="Pending", minResources={"cpu": cpu})
    return yard


def test_a_group_beyond_the_queues_limit_is_shown_what_is_insufficient() -> None:
    plugin = Proportion()
    round = waiting_groups("one", cpu="6").open(plugin)
    assert plugin.job_enqueueable(round.jobs["default/one"]) is Vote.REJECT
    assert [note for _, note in round.outcome.notes] == ["queue resource quota insufficient: insufficient cpu"]


def test_room_is_held_by_who_is_let_in_and_not_by_who_is_only_asked_about() -> None:
    plugin = Proportion()
    round = waiting_groups("one", "two").open(plugin)
    one, two = round.jobs["default/one"], round.jobs["default/two"]
    assert plugin.job_enqueueable(one) is Vote.PERMIT
    assert plugin.job_enqueueable(two) is Vote.PERMIT
    plugin.job_enqueued(one)
    assert plugin.job_enqueueable(two) is Vote.REJECT


def test_compatible_rounds_hold_room_for_who_is_asked_about() -> None:
    plugin = Proportion()
    round = waiting_groups("one", "two").open(plugin, compatible=True)
    assert plugin.job_enqueueable(round.jobs["default/one"]) is Vote.PERMIT
    assert plugin.job_enqueueable(round.jobs["default/two"]) is Vote.REJECT


def test_what_if_a_victim_went_its_queue_has_room() -> None:
    yard = two_queues().pod("w", "one", on="n", asks={"cpu": "5"}).pod("w2", "one", asks={"cpu": "4"})
    yard.pod("v", "two", asks={"cpu": "5"})
    plugin = Proportion()
    round = yard.open(plugin)
    waiting, running = task(round, "w2"), task(round, "w")
    plugin.pre_predicate(waiting)
    assert not plugin.simulate_allocatable(round.queues["a"], waiting)
    plugin.simulate_remove_task(waiting, running, running.row)
    assert plugin.simulate_allocatable(round.queues["a"], waiting)
    plugin.simulate_add_task(waiting, running, running.row)
    assert not plugin.simulate_allocatable(round.queues["a"], waiting)


def test_two_queues_end_with_half_the_cluster_each() -> None:
    yard = two_queues()
    for number in range(10):
        yard.pod(f"w{number}", "one", asks={"cpu": "1"}).pod(f"v{number}", "two", asks={"cpu": "1"})
    placed = binds(yard.run(GangTierPlugin(), Proportion()))
    assert sorted(name[0] for name in placed) == ["v"] * 5 + ["w"] * 5


# ---- overcommit ----


def test_the_cluster_is_imagined_larger_by_the_factor() -> None:
    yard = RoundScenario().node("n", cpu="10").queue("default")
    yard.group("fits", phase="Pending", minResources={"cpu": "12"})
    yard.group("not", phase="Pending", minResources={"cpu": "12100m"})
    plugin = Overcommit.of(Arguments({"overcommit-factor": 0.5}))
    round = yard.open(plugin)
    assert plugin.job_enqueueable(round.jobs["default/fits"]) is Vote.PERMIT
    assert plugin.job_enqueueable(round.jobs["default/not"]) is Vote.REJECT
    assert [note for _, note in round.outcome.notes] == ["resource in cluster is overused: overused cpu"]


def test_who_was_let_in_counts_until_it_runs() -> None:
    yard = RoundScenario().node("n", cpu="10").queue("default")
    yard.group("in", phase="Inqueue", minResources={"cpu": "8"})
    yard.group("next", phase="Pending", minResources={"cpu": "5"})
    plugin = Overcommit()
    round = yard.open(plugin)
    assert plugin.job_enqueueable(round.jobs["default/next"]) is Vote.REJECT


def test_only_who_really_enters_counts() -> None:
    yard = RoundScenario().node("n", cpu="10").queue("default")
    for name in ("one", "two"):
        yard.group(name, phase="Pending", minResources={"cpu": "7"})
    plugin = Overcommit()
    round = yard.open(plugin)
    one, two = round.jobs["default/one"], round.jobs["default/two"]
    assert plugin.job_enqueueable(two) is Vote.PERMIT
    plugin.job_enqueued(one)
    assert plugin.job_enqueueable(two) is Vote.REJECT
