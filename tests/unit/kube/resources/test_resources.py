"""NodeResourcesFit and NodeResourcesBalancedAllocation: what they refuse, how they score, what wakes a pod."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.framework.plugin import Hint, Plugin
from fairlead.core.model import kinds
from fairlead.core.model.events import NODE, POD, ActionType
from fairlead.core.model.flow import Doc
from fairlead.kube.resources.plugin import NodeResourcesBalancedAllocation, NodeResourcesFit
from tests.support.documents import asking, compiled, compiled_node, compiled_pod, node, plain_pod
from tests.support.plugins import PluginScenario, hint

GPU = "example.com/gpu"
FIT = NodeResourcesFit()
BALANCED = NodeResourcesBalancedAllocation()


def street(**allocatable: str) -> PluginScenario:
    made = PluginScenario()
    made.put(kinds.NODE, node("n", allocatable=allocatable))
    return made


def refusal(where: PluginScenario, document: Doc, plugin: Plugin = FIT) -> str:
    return where.refusals(plugin, document).get("n", "")


def score(where: PluginScenario, document: Doc, plugin: Plugin) -> int | None:
    scores = where.scores(plugin, document, "n")
    return None if scores is None else scores["n"]


# ---- the filter ----


def test_a_node_without_a_number_of_pods_takes_none() -> None:
    assert refusal(street(cpu="4"), plain_pod()) == "Too many pods"


def test_a_pod_that_asks_for_nothing_only_needs_a_place() -> None:
    assert refusal(street(pods="1"), plain_pod()) == ""


def test_every_lack_is_said_in_order() -> None:
    where = street(cpu="2", memory="2", **{"ephemeral-storage": "2", GPU: "2"}, pods="1")
    where.put_on(plain_pod("e", requests={"cpu": "1", "memory": "1", "ephemeral-storage": "1", GPU: "1"}), "n")
    wanted = plain_pod(requests={GPU: "2", "ephemeral-storage": "2", "memory": "2", "cpu": "2"})
    assert refusal(where, wanted) == (
        "Too many pods; Insufficient cpu; Insufficient memory; Insufficient ephemeral-storage;"
        " Insufficient example.com/gpu"
    )


def test_more_than_the_node_has_in_all_is_final() -> None:
    where = street(cpu="2", pods="9")
    where.put_on(plain_pod("e", requests={"cpu": "1"}), "n")
    assert refusal(where, plain_pod(requests={"cpu": "2"})) == "Insufficient cpu"
    assert refusal(where, plain_pod(requests={"cpu": "2001m"})) == "Insufficient cpu (final)"


def test_too_many_pods_is_final_only_with_a_request_beyond_the_node() -> None:
    where = street(cpu="2", memory="8Gi", pods="0")
    assert refusal(where, plain_pod(requests={"cpu": "2"})) == "Too many pods"
    assert refusal(where, plain_pod(requests={"cpu": "3"})) == "Too many pods; Insufficient cpu (final)"


def test_one_resource_beyond_the_node_makes_all_of_its_reasons_final() -> None:
    where = street(cpu="2", memory="2", pods="9")
    where.put_on(plain_pod("e", requests={"cpu": "1"}), "n")
    wanted = plain_pod(requests={"cpu": "2", "memory": "3"})
    assert refusal(where, wanted) == "Insufficient cpu; Insufficient memory (final)"


def test_what_asks_for_zero_fits_an_overbooked_node() -> None:
    where = street(cpu="1", pods="9")
    where.put_on(plain_pod("e", requests={"cpu": "3"}), "n")
    assert refusal(where, plain_pod(requests={"cpu": "0"})) == ""
    assert refusal(where, plain_pod(requests={"cpu": "1m"})) == "Insufficient cpu"


def test_a_scalar_that_the_node_does_not_have_counts_as_zero() -> None:
    assert refusal(street(pods="9"), plain_pod(requests={GPU: "1"})) == f"Insufficient {GPU} (final)"
    assert refusal(street(pods="9"), plain_pod(requests={GPU: "0"})) == ""


def test_resources_of_no_known_kind_are_ignored() -> None:
    assert refusal(street(pods="9"), plain_pod(requests={"bananas": "5"})) == ""


@pytest.mark.parametrize("name", ["hugepages-2Mi", "attachable-volumes-x", "pool.kubernetes.io/thing"])
def test_scalars_are_more_than_extended_resources(name: str) -> None:
    assert refusal(street(pods="9"), plain_pod(requests={name: "1"})) == f"Insufficient {name} (final)"


def test_ignored_resources_and_groups_are_not_looked_at() -> None:
    wanted = plain_pod(requests={GPU: "1", "other.io/a": "1", "other.io/b": "1", "cpu": "1"})
    plugin = NodeResourcesFit(ignored_resources=[GPU], ignored_groups=["other.io"])
    assert refusal(street(cpu="1", pods="9"), wanted, plugin) == ""


def test_only_extended_resources_can_be_ignored() -> None:
    plugin = NodeResourcesFit(ignored_resources=["cpu", "hugepages-2Mi"])
    wanted = plain_pod(requests={"cpu": "1", "hugepages-2Mi": "1"})
    assert refusal(street(pods="9"), wanted, plugin) == "Insufficient cpu; Insufficient hugepages-2Mi (final)"


def test_requests_are_rounded_up_once_for_the_pod() -> None:
    halves = [asking({"cpu": "0.5m"}), asking({"cpu": "0.5m"})]
    assert compiled(plain_pod(containers=halves)).shape.fit_request["cpu"] == 1
    thirds = [asking({"cpu": "0.4m"})] * 3
    assert compiled(plain_pod(containers=thirds)).shape.fit_request["cpu"] == 2


def test_pod_level_requests_take_the_place_of_the_sum_and_overhead_comes_on_top() -> None:
    document = plain_pod(requests={"cpu": "1"}, resources={"requests": {"cpu": "2"}}, overhead={"cpu": "250m"})
    assert compiled(document).shape.fit_request["cpu"] == 2250


def test_the_peak_of_init_containers_counts_with_the_sidecars_before_them() -> None:
    document = plain_pod(
        requests={"cpu": "1"},
        initContainers=[asking({"cpu": "1"}, restartPolicy="Always"), asking({"cpu": "3"}), asking({"cpu": "1"})],
    )
    assert compiled(document).shape.fit_request["cpu"] == 4000


def test_the_incoming_pod_is_judged_by_its_spec_but_booked_by_its_status() -> None:
    document = plain_pod(requests={"cpu": "1"})
    status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    shape = compiled({**document, "status": status}).shape
    assert (shape.fit_request["cpu"], shape.request["cpu"]) == (1000, 3000)


# ---- scores, held to what kube-scheduler computes ----

WEIGHTS = (("cpu", 1), ("memory", 1))
HEAVY = (("cpu", 3), ("memory", 2), (GPU, 5))
Vector = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[tuple[str, int], ...], int, int, int]
VECTORS: list[Vector] = [
    ((1100, 1258291200), (1000, 1048576000), (4000, 8589934592), WEIGHTS, 78, 20, 75),
    ((3999, 8589934591), (0, 0), (4000, 8589934592), WEIGHTS, 0, 99, 74),
    ((5000, 100), (4000, 0), (4000, 8589934592), WEIGHTS, 49, 50, 75),
    ((700, 3), (100, 1), (0, 7), WEIGHTS, 57, 42, 75),
    ((333, 667), (1, 2), (1000, 1000), WEIGHTS, 49, 49, 67),
    ((1100, 1258291200, 3), (1000, 1048576000, 1), (4000, 8589934592, 8), HEAVY, 69, 29, 73),
    ((333, 667, 2), (1, 2, 0), (1000, 1000, 3), HEAVY, 42, 56, 67),
]


def amounts(values: tuple[int, ...]) -> dict[str, str]:
    return {r: f"{v}m" if r == "cpu" else str(v) for (r, _), v in zip(HEAVY, values, strict=False)}


def vector_street(allocated: tuple[int, ...], allocatable: tuple[int, ...]) -> PluginScenario:
    made = street(**amounts(allocatable), pods="9")
    made.put_on(plain_pod("e", requests=amounts(allocated)), "n")
    return made


def newcomer(requested: tuple[int, ...], allocated: tuple[int, ...]) -> Doc:
    return plain_pod(requests=amounts(tuple(r - a for r, a in zip(requested, allocated, strict=True))))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v[0]}")
def test_least_most_and_balanced_score_as_the_original_does(vector: Vector) -> None:
    requested, allocated, allocatable, resources, least, most, balanced = vector
    where, document = vector_street(allocated, allocatable), newcomer(requested, allocated)
    assert score(where, document, NodeResourcesFit(resources=resources)) == least
    assert score(where, document, NodeResourcesFit(strategy="MostAllocated", resources=resources)) == most
    assert score(where, document, NodeResourcesBalancedAllocation(resources=resources)) == balanced


def test_a_node_that_has_nothing_scores_nothing() -> None:
    where, document = street(pods="9"), plain_pod(requests={"cpu": "0", "memory": "0"})
    assert score(where, document, FIT) == 0
    assert score(where, document, NodeResourcesFit(strategy="MostAllocated")) == 0
    assert score(where, plain_pod(requests={"cpu": "1"}), BALANCED) == 75


SHAPES: list[tuple[list[tuple[int, int]], int, int, int]] = [
    ([(0, 0), (100, 10)], 21, 29, 100),
    ([(0, 10), (100, 0)], 80, 71, 0),
    ([(10, 3), (40, 10), (77, 1)], 54, 75, 10),
]


@pytest.mark.parametrize(("shape", "first", "seventh", "full"), SHAPES)
def test_requested_to_capacity_ratio_follows_its_shape(
    shape: list[tuple[int, int]], first: int, seventh: int, full: int
) -> None:
    def ratio(requested: tuple[int, ...], vector: Vector) -> int | None:
        _, allocated, allocatable, resources, *_ = vector
        plugin = NodeResourcesFit(strategy="RequestedToCapacityRatio", resources=resources, shape=shape)
        return score(vector_street(allocated, allocatable), newcomer(requested, allocated), plugin)

    assert ratio(VECTORS[0][0], VECTORS[0]) == first
    assert ratio(VECTORS[5][0], VECTORS[5]) == seventh
    assert ratio((4100, 8589934592, 8), VECTORS[5]) == full


def test_a_resource_that_scores_nothing_drops_out_of_the_weights() -> None:
    """cpu is used to 50 % and memory not at all: with memory in the weights it would be 25."""
    plugin = NodeResourcesFit(strategy="RequestedToCapacityRatio", shape=[(0, 0), (100, 10)])
    document = plain_pod(requests={"cpu": "2", "memory": "0"})
    assert score(street(cpu="4", memory="8Gi", pods="9"), document, plugin) == 50


def test_the_weighted_mean_is_rounded_half_up() -> None:
    plugin = NodeResourcesFit(strategy="RequestedToCapacityRatio", shape=[(0, 0), (100, 10)])
    document = plain_pod(requests={"cpu": "50", "memory": "51"})
    assert score(street(cpu="100", memory="100", pods="9"), document, plugin) == 51


# ---- scores: what the pod is taken to use ----


def test_the_fit_score_knows_nothing_of_pod_level_requests() -> None:
    where = street(cpu="4", memory="8Gi", pods="9")
    whole = plain_pod(resources={"requests": {"cpu": "2", "memory": "4Gi"}})
    silent = plain_pod()
    assert compiled(whole).shape.score_request["cpu"] == 100
    assert score(where, whole, FIT) == score(where, silent, FIT) == (97 + 97) // 2
    assert compiled(whole).shape.fit_request["cpu"] == compiled(whole).shape.request["cpu"] == 2000
    assert score(where, silent, BALANCED) is None
    assert score(where, whole, BALANCED) == 75


def test_containers_that_say_nothing_count_a_default_each_init_containers_too() -> None:
    two = compiled(plain_pod(containers=[asking({}), asking({"cpu": "1"})])).shape.score_request
    assert (two["cpu"], two["memory"]) == (1100, 2 * 209715200)
    starting = compiled(plain_pod(requests={"cpu": "50m"}, initContainers=[asking({})])).shape.score_request
    assert starting["cpu"] == 100
    assert compiled(plain_pod(requests={"cpu": "0", "memory": "0"})).shape.score_request["cpu"] == 0


def test_existing_pods_that_say_nothing_count_the_default_in_the_fit_score_only() -> None:
    where = street(cpu="1", memory="1000Mi", pods="9")
    where.put_on(plain_pod("e"), "n")
    document = plain_pod(requests={"cpu": "100m", "memory": "0"})
    assert score(where, document, FIT) == (80 + 80) // 2
    assert score(where, document, BALANCED) == 50 + (50 + 95 - 100) // 2


def test_scalars_count_only_if_asked_for_and_other_names_never() -> None:
    plugin = NodeResourcesFit(resources=[("cpu", 1), (GPU, 1), ("pods", 1)])
    where = street(cpu="4", **{GPU: "4"}, pods="9")
    assert score(where, plain_pod(requests={"cpu": "1"}), plugin) == 75
    assert score(where, plain_pod(requests={"cpu": "1", GPU: "3"}), plugin) == (75 + 25) // 2


def test_a_weight_of_zero_is_one() -> None:
    where, document = street(cpu="4", memory="4", pods="9"), plain_pod(requests={"cpu": "1", "memory": "3"})
    assert score(where, document, NodeResourcesFit(resources=[("cpu", 0), ("memory", 1)])) == 50


def test_balanced_steps_aside_for_pods_that_ask_for_nothing_of_its_resources() -> None:
    where = street(cpu="4", memory="4", **{GPU: "4"}, pods="9")
    assert score(where, plain_pod(), BALANCED) is None
    assert score(where, plain_pod(requests={GPU: "1"}), BALANCED) is None
    assert score(where, plain_pod(requests={GPU: "1"}), NodeResourcesBalancedAllocation(resources=HEAVY)) is not None


def test_balanced_scores_the_improvement_and_no_change_is_75() -> None:
    where = street(cpu="4", memory="4", pods="9")
    assert score(where, plain_pod(requests={"cpu": "2", "memory": "2"}), BALANCED) == 75
    where.put_on(plain_pod("e", requests={"cpu": "2"}), "n")
    assert score(where, plain_pod(requests={"memory": "2"}), BALANCED) == 50 + (50 + 100 - 75) // 2
    assert score(where, plain_pod(requests={"cpu": "2"}), BALANCED) == 50 + (50 + 50 - 75) // 2


def test_fractions_beyond_the_whole_count_as_whole() -> None:
    where = street(cpu="1", memory="1", pods="9")
    where.put_on(plain_pod("e", requests={"cpu": "5", "memory": "1"}), "n")
    assert score(where, plain_pod(requests={"cpu": "1"}), BALANCED) == 75


# ---- hints ----


def fit_pod_hint(waiting: Doc, old: Doc | None, new: Doc | None) -> Hint | None:
    action = ActionType.DELETE if new is None else ActionType.UPDATE_POD_SCALE_DOWN
    before, after = (None if doc is None else compiled(doc) for doc in (old, new))
    return hint(FIT, POD, action, compiled(waiting), old=before, new=after)


def test_a_deleted_pod_wakes_if_it_had_a_node_or_was_promised_one() -> None:
    waiting = plain_pod(requests={"cpu": "1"})
    assert fit_pod_hint(waiting, plain_pod("e", nodeName="n"), None) is Hint.QUEUE
    nominated = {**plain_pod("e"), "status": {"nominatedNodeName": "n"}}
    assert fit_pod_hint(waiting, nominated, None) is Hint.QUEUE
    assert fit_pod_hint(waiting, plain_pod("e"), None) is Hint.SKIP


def test_a_smaller_request_of_its_own_wakes_the_pod() -> None:
    waiting = plain_pod(requests={"cpu": "1"})
    assert fit_pod_hint(waiting, plain_pod(requests={"cpu": "2"}), waiting) is Hint.QUEUE


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"cpu": "2"}, {"cpu": "1"}, Hint.QUEUE),
        ({"cpu": "1"}, {"cpu": "2"}, Hint.SKIP),
        ({"memory": "2"}, {"memory": "1"}, Hint.SKIP),
        ({"cpu": "1.5m"}, {"cpu": "1.2m"}, Hint.SKIP),
        ({GPU: "2"}, {GPU: "1"}, Hint.QUEUE),
    ],
)
def test_another_pods_smaller_request_wakes_if_it_is_bound_and_frees_what_is_wanted(
    before: dict[str, str], after: dict[str, str], expected: Hint
) -> None:
    waiting = plain_pod(requests={"cpu": "1", GPU: "1"})
    old, new = plain_pod("e", requests=before, nodeName="n"), plain_pod("e", requests=after, nodeName="n")
    assert fit_pod_hint(waiting, old, new) is expected
    assert fit_pod_hint(waiting, plain_pod("e", requests=before), plain_pod("e", requests=after)) is Hint.SKIP


def fit_node_hint(waiting: Doc, old: dict[str, str] | None, new: dict[str, str], plugin: Plugin = FIT) -> Hint | None:
    action = ActionType.ADD if old is None else ActionType.UPDATE_NODE_ALLOCATABLE
    before = None if old is None else compiled_node(allocatable=old)
    return hint(plugin, NODE, action, compiled(waiting), old=before, new=compiled_node(allocatable=new))


def test_a_new_node_wakes_if_the_pod_would_fit_it_empty() -> None:
    waiting = plain_pod(requests={"cpu": "2"})
    assert fit_node_hint(waiting, None, {"cpu": "2", "pods": "1"}) is Hint.QUEUE
    assert fit_node_hint(waiting, None, {"cpu": "1", "pods": "1"}) is Hint.SKIP
    assert fit_node_hint(waiting, None, {"cpu": "2"}) is Hint.SKIP


def test_a_changed_node_wakes_if_the_pod_fits_and_something_it_wants_grew() -> None:
    waiting = plain_pod(requests={"cpu": "2", GPU: "1"})
    base = {"cpu": "2", "memory": "1", GPU: "1", "pods": "5"}
    assert fit_node_hint(waiting, base, {**base, "cpu": "3"}) is Hint.QUEUE
    assert fit_node_hint(waiting, base, {**base, GPU: "3"}) is Hint.QUEUE
    assert fit_node_hint(waiting, base, {**base, "pods": "6"}) is Hint.QUEUE
    assert fit_node_hint(waiting, base, {**base, "memory": "3"}) is Hint.SKIP
    assert fit_node_hint(waiting, base, {**base, "cpu": "2"}) is Hint.SKIP
    assert fit_node_hint(waiting, {**base, "cpu": "0"}, {**base, "cpu": "1"}) is Hint.SKIP


def test_the_hint_for_nodes_knows_no_ignored_resources() -> None:
    plugin = NodeResourcesFit(ignored_resources=[GPU])
    assert fit_node_hint(plain_pod(requests={GPU: "1"}), None, {"pods": "1"}, plugin) is Hint.SKIP


def test_fit_is_woken_by_nothing_else_and_balanced_by_nothing_at_all() -> None:
    waiting: Any = compiled_pod(requests={"cpu": "1"})
    assert hint(FIT, POD, ActionType.UPDATE_POD_LABEL, waiting) is None
    assert hint(FIT, NODE, ActionType.UPDATE_NODE_LABEL, waiting) is None
    assert not BALANCED.events()
