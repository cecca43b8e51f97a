"""numa-aware: which CPUs pods get, and on which nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.volcano.kinds import VC_NUMATOPOLOGY
from fairlead.volcano.numa.hints import assigned, chosen, hints, reserved, take
from fairlead.volcano.numa.plugin import NumaAware
from fairlead.volcano.numa.views import NumaViews
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.records.topology import NumaTopology, compile_numa_topology
from tests.support.rounds import RoundScenario, open_with_cycles, refusals, scores, task

POLICY = "volcano.sh/numa-topology-policy"


def machine(
    name: str, free: str = "0-7", *, policy: str = "best-effort", cpus: int = 8, kept: str = "0"
) -> dict[str, Any]:
    """Two sockets, each a NUMA node, with cores of two threads."""
    detail = {str(n): {"numa": n * 2 // cpus, "socket": n * 2 // cpus, "core": n // 2} for n in range(cpus)}
    return {
        "metadata": {"name": name},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": policy},
            "resReserved": {"cpu": kept},
            "numares": {"cpu": {"allocatable": free, "capacity": cpus}},
            "cpuDetail": detail,
        },
    }


def layout(free: str = "0-7", **more: Any) -> NumaTopology:
    return compile_numa_topology(machine("n", free, **more))


def test_a_hint_is_preferred_if_nothing_smaller_could_ever_do() -> None:
    one = layout("0,4-7")
    found = {tuple(sorted(hint.nodes or ())): hint.preferred for hint in hints(one, one.allocatable["cpu"], 3)}
    assert found == {(1,): True, (0, 1): False}
    spread = layout("0,1,4,5")
    assert [hint.preferred for hint in hints(spread, spread.allocatable["cpu"], 3)] == [False]


@pytest.mark.parametrize(
    ("policy", "free", "count", "nodes"),
    [
        ("best-effort", "0,1,4,5", 3, {0, 1}),
        ("restricted", "0,1,4,5", 3, None),
        ("restricted", "0-7", 6, {0, 1}),
        ("single-numa-node", "0-7", 6, None),
        ("single-numa-node", "0-7", 4, {0}),
    ],
)
def test_policies_admit_or_refuse_merged_hints(policy: str, free: str, count: int, nodes: set[int] | None) -> None:
    one = layout(free)
    assert chosen(policy, one, hints(one, one.allocatable["cpu"], count)) == nodes


def test_cpus_are_taken_in_pieces_as_large_as_possible() -> None:
    cpus = layout().cpus
    assert take(cpus, frozenset(range(8)), 4) == {0, 1, 2, 3}
    assert take(cpus, frozenset(range(8)), 6) == {0, 1, 2, 3, 4, 5}
    assert take(cpus, frozenset({1, 2, 3, 4}), 2) == {2, 3}, "a whole core before threads of two"
    assert take(cpus, frozenset({1, 2, 3, 4}), 3) == {1, 2, 3}
    assert take(cpus, frozenset({1}), 2) is None


def test_cores_of_two_sockets_may_have_the_same_number() -> None:
    same = machine("n")
    for place in same["spec"]["cpuDetail"].values():
        place["core"] %= 2
    one = compile_numa_topology(same)
    assert take(one.cpus, frozenset({0, 4, 5}), 2) == {4, 5}


def test_what_is_reserved_is_kept_and_the_hint_goes_first() -> None:
    one = layout(kept="1500m")
    assert reserved(one) == {0, 1}
    nodes = chosen("best-effort", one, hints(one, one.allocatable["cpu"], 2))
    assert nodes is not None
    assert assigned(one, frozenset({1, 2, 3, 5}), 2, nodes) == {2, 3}


def test_of_equals_the_lower_numbers_are_chosen() -> None:
    square = machine("n", cpus=8)
    for number, place in square["spec"]["cpuDetail"].items():
        place["numa"] = int(number) // 2
    four = compile_numa_topology(square)
    for free, nodes in ((range(8), {0, 1}), (range(1, 8), {1, 2})):
        assert chosen("best-effort", four, hints(four, frozenset(free), 4)) == nodes


def test_a_policy_that_is_not_known_admits_everything() -> None:
    one = layout()
    assert chosen("whatever", one, hints(one, one.allocatable["cpu"], 99)) == frozenset()


# ---- what is free ----


def test_a_report_is_believed_if_it_has_no_less_or_leaves_no_more_than_is_known() -> None:
    views = NumaViews()
    view = views.see(layout("0-7"), set())
    view.given["x"] = frozenset({0, 1})
    same = views.see(view.report, {"x"})
    assert same.left() == frozenset(range(2, 8))
    late = views.see(layout("0-6"), {"x"})
    assert late.left() == frozenset(range(2, 8)), (
        "x is not in it yet: seven would be more than the six known to be left"
    )
    known = views.see(layout("2-6"), {"x"})
    assert known.left() == frozenset(range(2, 7)), "it counts x, and somebody else"
    grown = views.see(layout("0-7"), {"x"})
    assert grown.left() == frozenset(range(8))


def test_what_a_pod_had_is_free_when_it_is_gone() -> None:
    views = NumaViews()
    view = views.see(layout(), set())
    view.given["x"] = frozenset({0, 1})
    assert len(views.see(view.report, set()).left()) == 8


# ---- the plugin ----


def whole(cpus: str) -> dict[str, Any]:
    """Guaranteed: what is asked for is also the limit."""
    return {"asks": {"cpu": cpus, "memory": "1Gi"}, "limits": {"cpu": cpus, "memory": "1Gi"}}


def with_policy(policy: str) -> dict[str, str]:
    return {POLICY: policy}


def yard_of_machines() -> RoundScenario:
    yard = RoundScenario().queue("default").group("job")
    for name in ("best", "strict", "none", "full"):
        yard.node(name)
    yard.put(VC_NUMATOPOLOGY, machine("best"))
    yard.put(VC_NUMATOPOLOGY, machine("strict", "0,1,4,5", policy="restricted"))
    yard.put(VC_NUMATOPOLOGY, machine("full", ""))
    return yard


def test_only_nodes_that_can_do_it_are_used() -> None:
    yard = yard_of_machines().pod("x", "job", **whole("3"), annotations=with_policy("best-effort"))
    yard.pod("y", "job", **whole("3"), annotations=with_policy("restricted"))
    plugin = NumaAware()
    round = yard.open(plugin)
    assert refusals(plugin, round, "x") == {
        "strict": ["task topology policy[best-effort] is different with node[restricted]"],
        "none": ["numa info is empty"],
        "full": ["cpu allocatable map is empty"],
    }
    assert refusals(plugin, round, "y")["strict"] == ["container main cannot be assigned by numa"]


def test_who_has_no_policy_is_judged_where_the_node_has_one() -> None:
    yard = yard_of_machines().pod("x", "job", **whole("3")).pod("y", "job", **whole("3"), annotations={POLICY: "none"})
    yard.pod("part", "job", **whole("2500m")).pod("small", "job", **whole("2"))
    plugin = NumaAware()
    round = yard.open(plugin)
    for name in ("x", "y"):
        assert refusals(plugin, round, name) == {"strict": ["container main cannot be assigned by numa"]}
    assert refusals(plugin, round, "part") == {}, "of parts of a cpu nobody says where they lie"
    assert refusals(plugin, round, "small") == {}
    assert set(scores(plugin, round, "small").values()) == {0}


def test_only_guaranteed_pods_are_looked_at() -> None:
    yard = yard_of_machines().pod("x", "job", asks={"cpu": "3"}, annotations=with_policy("restricted"))
    plugin = NumaAware()
    assert refusals(plugin, yard.open(plugin), "x") == {}


def test_each_container_gets_cpus_of_its_own() -> None:
    yard = RoundScenario().queue("default").group("job").node("a")
    yard.put(VC_NUMATOPOLOGY, machine("a", policy="single-numa-node"))
    amounts = {"cpu": "3", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    for name, count in (("two", 2), ("three", 3)):
        containers = [{"name": f"c{at}", "resources": resources} for at in range(count)]
        yard.pod(name, "job", containers=containers)
    plugin = NumaAware()
    round = yard.open(plugin)
    assert refusals(plugin, round, "two") == {}
    assert refusals(plugin, round, "three") == {"a": ["container c2 cannot be assigned by numa"]}
    assert len(plugin._plans["two"][0]) == 6


def test_fewer_numa_nodes_are_better() -> None:
    yard = RoundScenario().queue("default").group("job").node("a").node("b")
    yard.put(VC_NUMATOPOLOGY, machine("a"))
    yard.put(VC_NUMATOPOLOGY, machine("b", "0,1,4,5"))
    yard.pod("x", "job", **whole("4"), annotations=with_policy("best-effort")).pod("z", "job")
    plugin = NumaAware(weight=3)
    round = yard.open(plugin)
    assert refusals(plugin, round, "x") == {}
    assert scores(plugin, round, "x") == {"a": 150, "b": 0}
    assert set(scores(plugin, round, "z").values()) == {0}


def test_what_a_pod_gets_is_reported_and_taken() -> None:
    yard = RoundScenario().queue("default").group("job").node("a")
    yard.put(VC_NUMATOPOLOGY, machine("a", policy="single-numa-node"))
    for name in ("x", "y", "z"):
        yard.pod(name, "job", **whole("4"), annotations=with_policy("single-numa-node"))
    plugin = NumaAware()
    round = open_with_cycles(yard, plugin)
    for name in ("x", "y"):
        assert refusals(plugin, round, name) == {}
        placed = task(round, name)
        round.jobs["default/job"].move(placed, TaskStatus.ALLOCATED)
        placed.row = 0
        plugin.allocated(placed)
    assert json.loads(round.cycles["y"].notes["DefaultBinder"]["volcano.sh/topology-decision"]) == {
        "numa": {"1": {"cpu": "4"}}
    }
    assert refusals(plugin, round, "z") == {"a": ["cpu allocatable map is empty"]}
    round.jobs["default/job"].move(task(round, "y"), TaskStatus.PENDING)
    plugin.deallocated(task(round, "y"))
    assert refusals(plugin, round, "z") == {}
