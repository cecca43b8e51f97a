"""One ledger: what a queue holds never exceeds its limit, by any path, at any moment; guarantee <= deserved <= limit.

Held is what pods on nodes hold, whether they are being bound, run, or are on their way out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.cluster.kubelets.kubelet import PodScript
from fairlead.core.model import kinds
from fairlead.testing.builders import nodes, queue
from fairlead.volcano.kinds import VC_QUEUE
from fairlead.volcano.records.amounts import EPSILON, Amounts
from tests.support.volcano import VolcanoHarness, conf, round_drivers

BASICS = "priority; gang; conformance"
PROPORTION = conf("enqueue, allocate, backfill, reclaim", BASICS, "overcommit; drf; predicates; proportion")
CAPACITY = conf("enqueue, allocate, backfill, reclaim", BASICS, "overcommit; predicates; capacity")
LEDGERS = {"proportion": PROPORTION, "capacity": CAPACITY}


def over_the_limit(world: VolcanoHarness) -> list[str]:
    """Queues that hold more than their capability in a resource that it names."""
    found = []
    for queue_ in world.scheduler.cluster.object_index.of(VC_QUEUE).values():
        held = world.held().get(queue_.name, Amounts())
        for name, limit in Amounts.of(queue_.capability).items():
            if queue_.capability and name in queue_.capability and held.get(name) >= limit + EPSILON:
                found.append(f"{queue_.name} holds {held.get(name)} of {limit} {name}")
    return found


@pytest.mark.parametrize("ledger", LEDGERS)
def test_pods_that_ask_for_nothing_count_against_a_limit_on_pods(ledger: str) -> None:
    """Backfill asks the ledger too; the original does not."""
    world = VolcanoHarness(LEDGERS[ledger], nodes(1), queues=[queue("q").capped_at(pods="3")])
    for at in range(6):
        world.gang(f"idle{at}", 1, queue="q")
    world.run(20)
    assert sum(world.running("idle").values()) == 3


@pytest.mark.parametrize("ledger", LEDGERS)
def test_the_original_lets_pods_that_ask_for_nothing_pass(ledger: str) -> None:
    world = VolcanoHarness(LEDGERS[ledger], nodes(1), queues=[queue("q").capped_at(pods="3")], compatible=True)
    for at in range(6):
        world.gang(f"idle{at}", 1, queue="q")
    world.run(20)
    assert sum(world.running("idle").values()) == 6


def _slowly_ending(ledger: str, *, compatible: bool) -> VolcanoHarness:
    """A queue at its limit whose pod takes a minute to end, and another that waits for its place."""
    world = VolcanoHarness(
        LEDGERS[ledger],
        nodes(2),
        queues=[queue("q").capped_at(cpu="2")],
        compatible=compatible,
        script=PodScript(terminate_delay=60.0),
    )
    world.gang("first", 1, queue="q", asks={"cpu": "2"})
    world.run(10)
    world.gang("second", 1, queue="q", asks={"cpu": "2"})
    world.run(10)
    assert world.running() == {"first": 1}
    world.delete(kinds.POD, "first-w-0")
    world.run(20)
    return world


@pytest.mark.parametrize("ledger", LEDGERS)
def test_a_pod_that_is_still_ending_counts(ledger: str) -> None:
    world = _slowly_ending(ledger, compatible=False)
    assert world.running() == {}
    assert over_the_limit(world) == []
    world.run(120)
    assert world.running() == {"second": 1}


@pytest.mark.parametrize("ledger", LEDGERS)
def test_the_original_frees_the_quota_of_a_pod_that_is_still_ending(ledger: str) -> None:
    world = _slowly_ending(ledger, compatible=True)
    assert world.running() == {"second": 1}
    assert over_the_limit(world) == ["q holds 4000.0 of 2000.0 cpu"]


# ---- under random load ----

AMOUNTS = st.integers(1, 8)


@st.composite
def queues_of(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        limit = draw(st.one_of(st.none(), AMOUNTS))
        deserved = draw(st.integers(1, min(4, limit or 4)))
        guarantee = draw(st.one_of(st.none(), st.integers(1, deserved)))
        made.append(
            {
                "name": name,
                "weight": draw(st.integers(1, 4)),
                "limit": limit,
                "guarantee": guarantee,
                "deserved": deserved,
                "pods": draw(st.one_of(st.none(), st.integers(1, 4))),
            }
        )
    return made


@st.composite
def loads(draw: st.DrawFn) -> list[dict[str, Any]]:
    return draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "queue": st.sampled_from("aaabc"),
                    "minimum": st.integers(1, 3),
                    "more": st.integers(0, 2),
                    "cpu": st.integers(0, 3),
                    "needs": st.booleans(),
                    "after": st.integers(0, 6),
                    "lasts": st.sampled_from(["", "5s", "20s"]),
                    "deleted": st.one_of(st.none(), st.integers(5, 15)),
                }
            ),
            min_size=1,
            max_size=10,
        )
    )


def _built(spec: dict[str, Any], *, deserving: bool) -> Any:
    built = queue(spec["name"]).weighing(spec["weight"])
    limits = {name: str(spec[key]) for name, key in (("cpu", "limit"), ("pods", "pods")) if spec[key] is not None}
    built = built.capped_at(limits) if limits else built
    built = built.deserving(cpu=str(spec["deserved"])) if deserving or spec["guarantee"] else built
    return built.having(guarantee={"resource": {"cpu": str(spec["guarantee"])}}) if spec["guarantee"] else built


def _check_ledger(world: VolcanoHarness, name: str) -> None:
    """What the plugin believes: a guarantee is deserved, and no more than the limit is."""
    tiers = round_drivers(world.scheduler)[0].rounds.tiers
    plugin: Any = next(one.plugin for tier in tiers for one in tier if one.plugin.name == name)
    for queue_ in world.scheduler.cluster.object_index.of(VC_QUEUE).values():
        account = plugin.account(queue_.name)
        if account is None:
            continue
        assert account.guarantee.less_equal(account.deserved), f"{queue_.name}: {account.guarantee} {account.deserved}"
        for resource, amount in account.deserved.items():
            if resource in (queue_.capability or {}):
                assert amount < account.limit.get(resource) + EPSILON
        for resource, amount in Amounts.of(queue_.capability).items():
            if resource in (queue_.capability or {}):
                assert account.limit.get(resource) < amount + EPSILON


@pytest.mark.parametrize("ledger", LEDGERS)
@given(specs=queues_of(), load=loads())
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
def test_limits_hold_at_every_moment_under_random_load(
    ledger: str, specs: list[dict[str, Any]], load: list[dict[str, Any]]
) -> None:
    made = [_built(spec, deserving=ledger == "capacity") for spec in specs]
    world = VolcanoHarness(LEDGERS[ledger], nodes(3), queues=made, script=PodScript(terminate_delay=3.0))
    there = {spec["name"] for spec in specs}
    for second in range(20):
        for at, job in enumerate(load):
            if job["after"] == second and job["queue"] in there:
                asks = {"cpu": str(job["cpu"])} if job["cpu"] else None
                needs = {"cpu": str(job["cpu"] * job["minimum"])} if job["needs"] else None
                world.gang(
                    f"j{at}",
                    job["minimum"],
                    queue=job["queue"],
                    members=job["minimum"] + job["more"],
                    asks=asks,
                    needs=needs,
                    run_time=job["lasts"],
                )
            if job["deleted"] == second and world.get(kinds.POD, f"j{at}-w-0") is not None:
                world.delete(kinds.POD, f"j{at}-w-0")
        world.run(1)
        assert over_the_limit(world) == []
        _check_ledger(world, ledger)
    world.scheduler.cluster.check()
