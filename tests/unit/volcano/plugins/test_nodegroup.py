"""nodegroup: queues and the groups of nodes that they use."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairlead.volcano.plugins.conformance import Conformance
from fairlead.volcano.plugins.nodegroup import NodeGroup
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.tiers import GangEvictionContext
from tests.support.rounds import RoundScenario, refusals, scores, task

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NO_LABEL = "node group label not found"
NO_RULES = "node group affinity not specified"
MISMATCH = "node does not satisfy the node group affinity"


def groups(
    *,
    required: Sequence[str] = (),
    preferred: Sequence[str] = (),
    never: Sequence[str] = (),
    rather_not: Sequence[str] = (),
) -> dict[str, object]:
    return {
        "nodeGroupAffinity": {REQUIRED: list(required), PREFERRED: list(preferred)},
        "nodeGroupAntiAffinity": {REQUIRED: list(never), PREFERRED: list(rather_not)},
    }


def yard_with(affinity: dict[str, object] | None, *, parent: str = "") -> RoundScenario:
    yard = RoundScenario().node("bare")
    for name in ("red", "blue", "green"):
        yard.node(name, {"volcano.sh/nodegroup-name": name})
    spec: dict[str, object] = {} if affinity is None else {"affinity": affinity}
    yard.queue("a", **spec, **({"parent": parent} if parent else {})).group("job", queue="a").pod("x", "job")
    return yard


@pytest.mark.parametrize(
    ("affinity", "allowed"),
    [
        (groups(required=["red"]), {"red"}),
        (groups(required=["red"], preferred=["blue"]), {"red", "blue"}),
        (groups(required=["red", "blue"], never=["blue"]), {"red"}),
        (groups(required=["red"], never=["blue"], rather_not=["blue"]), {"red", "blue"}),
    ],
)
def test_affinity_says_which_node_groups_a_queue_may_use(affinity: dict[str, object], allowed: set[str]) -> None:
    plugin = NodeGroup()
    round = yard_with(affinity).open(plugin)
    refused = refusals(plugin, round, "x")
    assert {"red", "blue", "green"} - refused.keys() == allowed
    assert refused["bare"] == [NO_LABEL]
    assert all(refused[name] == [MISMATCH] for name in refused if name != "bare")


@pytest.mark.parametrize("affinity", [None, groups()])
def test_a_queue_without_rules_gets_no_grouped_nodes(affinity: dict[str, object] | None) -> None:
    for strict, bare in ((True, [NO_LABEL]), (False, [])):
        plugin = NodeGroup.of(Arguments({"strict": strict}))
        refused = refusals(plugin, yard_with(affinity).open(plugin), "x")
        assert refused["red"] == [NO_RULES]
        assert refused.get("bare", []) == bare


def test_preferred_node_groups_score_higher() -> None:
    affinity = groups(required=["red"], preferred=["red", "blue"], rather_not=["green"])
    for ordered, expected in ((False, {"red": 150, "blue": 50}), (True, {"red": 150, "blue": 25})):
        plugin = NodeGroup(ordered=ordered)
        round = yard_with(affinity).open(plugin)
        assert scores(plugin, round, "x") == {"bare": 0, "green": -1} | expected


def test_with_hierarchy_a_queue_has_its_ancestors_rules() -> None:
    for hierarchy, allowed in ((False, set()), (True, {"red"})):
        yard = yard_with(None, parent="middle").queue("middle", parent="top").queue("root")
        yard.queue("top", affinity=groups(required=["red"]))
        plugin = NodeGroup(hierarchy=hierarchy)
        refused = refusals(plugin, yard.open(plugin), "x")
        assert {"red", "blue", "green", "bare"} - refused.keys() == allowed


def test_conformance_protects_what_the_cluster_needs() -> None:
    """By the name of its class, whatever its number."""
    yard = RoundScenario().node("n").queue("default").group("job")
    yard.pod("plain", "job", on="n").pod("dns", on="n", namespace="kube-system")
    yard.pod("high", "job", on="n", priority=2_000_000_000)
    yard.pod("cluster", "job", on="n", priorityClassName="system-cluster-critical")
    yard.pod("node", "job", on="n", priorityClassName="system-node-critical").pod("x", "job")
    plugin = Conformance()
    round = yard.open(plugin)
    candidates = [task(round, name) for name in ("plain", "dns", "high", "cluster", "node")]
    for ask in (plugin.preemptable, plugin.reclaimable):
        assert [victim.name for victim in ask(task(round, "x"), candidates)] == ["plain", "high"]
    eviction = GangEvictionContext("gangpreempt", round.jobs["default/job"], "")
    assert [victim.name for victim in plugin.unified_evictable(eviction, candidates)] == ["plain", "high"]
