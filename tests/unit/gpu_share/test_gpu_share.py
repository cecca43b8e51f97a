"""Pods that share GPUs: who is refused, which GPU is given, and the scores of the FGD paper, against plain loops."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from fairlead.core.engine.cycle.attempt import Committed, attempt
from fairlead.core.engine.cycle.placement import Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.plugin import Hint
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.gpu_share.fgd import FgdScore
from fairlead.gpu_share.fragmentation import FragmentationMeasure, TypicalPod, typical_pods
from fairlead.gpu_share.gpu_shares import COUNT, INDEX, MILLI, MODEL, NO_GPU, GpuRequest, gpu_shares_of
from fairlead.gpu_share.share import GpuShare, after_pod_with_gpus
from fairlead.kube.binder import DefaultBinder
from papers.fragmentation.policies import POLICY_NAMES, SCARCITY, policy_profile
from papers.fragmentation.run import FirstOfEquals
from papers.fragmentation.trace import TraceNode, TracePod, arrivals, read_pods

ANY: tuple[str, ...] = ()
HALF, TWO = GpuRequest(1, 500, ANY), GpuRequest(2, 1000, ANY)
TYPICAL = (
    TypicalPod(8000, GpuRequest(1, 300, ANY), 0.4),
    TypicalPod(4000, GpuRequest(1, 1000, ("T4",)), 0.2),
    TypicalPod(16000, GpuRequest(2, 1000, ANY), 0.3),
    TypicalPod(1000, NO_GPU, 0.1),
)


class GpuCluster:
    """A cluster and a policy that places pods on it."""

    def __init__(self, *nodes: TraceNode, policy: str = "06-FGD") -> None:
        self.cluster = Cluster()
        for node in nodes:
            self.add(kinds.NODE, node.document())
        self.profile = policy_profile(policy, TYPICAL)
        self.evaluator = Evaluator(self.profile)
        self.count = 0

    def add(self, kind: kinds.Kind, document: dict[str, Any]) -> Any:
        applied = self.cluster.apply(Change(Happened.ADDED, kind, document))
        assert applied is not None
        return applied.new

    def place(self, gpu: GpuRequest, *, cpu: int = 1000, annotations: dict[str, str] | None = None) -> Any:
        self.count += 1
        document = TracePod("p", cpu, 1, gpu).document(self.count)
        document["metadata"]["annotations"].update(annotations or {})
        pod = self.add(kinds.POD, document)
        self.last_cycle = Cycle(
            pod=pod, cluster=self.cluster, profile=self.profile, now=0.0, rng=FirstOfEquals(), effects=Effects()
        )
        return attempt(self.last_cycle, self.evaluator, Search())

    def node_of(self, gpu: GpuRequest, **more: Any) -> str:
        answer = self.place(gpu, **more)
        return self.cluster.table.name(answer.placed.row) if isinstance(answer, Committed) else ""

    def free(self, row: int = 0) -> list[int]:
        shares = gpu_shares_of(self.cluster)
        free: list[int] = shares.free[row, : shares.gpus[row]].tolist()
        return free


def node(name: str, *, gpus: int = 4, cpu: int = 64000, model: str = "T4") -> TraceNode:
    return TraceNode(name, cpu, 1 << 18, gpus, model)


def test_whole_gpus_are_the_first_that_are_free() -> None:
    world = GpuCluster(node("a"))
    world.node_of(HALF)
    world.node_of(TWO)
    assert world.free() == [500, 0, 0, 1000]


@pytest.mark.parametrize(("policy", "free"), [("05-BestFit", [1000, 200, 1000]), ("06-FGD", [1000, 200, 1000])])
def test_a_shared_gpu_is_used_up_before_another_is_begun(policy: str, free: list[int]) -> None:
    world = GpuCluster(node("a", gpus=3), policy=policy)
    bound = TracePod("p", 1000, 1, HALF).document(0)
    bound["metadata"]["annotations"][INDEX] = "1"
    bound["spec"]["nodeName"] = "a"
    world.add(kinds.POD, bound)
    world.node_of(GpuRequest(1, 300, ANY))
    assert world.free() == free


def test_gpus_of_a_pod_that_goes_are_free_again() -> None:
    world = GpuCluster(node("a"))
    world.node_of(TWO)
    world.cluster.apply(Change(Happened.DELETED, kinds.POD, TracePod("p", 1000, 1, TWO).document(1)))
    assert world.free() == [1000] * 4


def test_a_pod_that_goes_wakes_those_that_wait_for_gpus_only_if_it_had_some() -> None:
    cluster = GpuCluster(node("a"))
    waiting, with_gpus, without = (
        cluster.add(kinds.POD, TracePod("p", 1000, 1, gpu).document(number))
        for number, gpu in enumerate((TWO, HALF, NO_GPU))
    )
    assert after_pod_with_gpus(waiting, with_gpus, None) is Hint.QUEUE
    assert after_pod_with_gpus(waiting, without, None) is Hint.SKIP
    assert after_pod_with_gpus(waiting, with_gpus, with_gpus) is Hint.SKIP
    assert after_pod_with_gpus(waiting, waiting, waiting) is Hint.QUEUE


def test_a_node_of_another_model_is_refused() -> None:
    world = GpuCluster(node("a", model="P100"), node("b", model="T4"))
    assert world.node_of(GpuRequest(1, 1000, ("T4", "V100"))) == "b"
    assert world.node_of(GpuRequest(1, 1000, ("A100",))) == ""


def test_an_annotation_that_cannot_be_understood_is_named() -> None:
    failure = GpuCluster(node("a")).place(NO_GPU, annotations={COUNT: "2", MILLI: "500"})
    assert "parts can be had of one GPU only" in failure.message
    failure = GpuCluster(node("a")).place(NO_GPU, annotations={COUNT: "many"})
    assert f"annotation {COUNT}: 'many' is no number from 0 to 8" in failure.message


def test_packing_prefers_used_gpus_then_used_nodes() -> None:
    world = GpuCluster(node("a"), node("b"), policy="04-GpuPacking")
    world.node_of(GpuRequest(1, 1000, ("T4",)))
    world.add(kinds.NODE, node("0").document())
    assert world.node_of(HALF) == "a"
    assert world.node_of(HALF) == "a"
    assert world.free() == [0, 0, 1000, 1000]


def test_clustering_prefers_nodes_with_pods_of_the_same_kind() -> None:
    world = GpuCluster(node("a"), node("b"), policy="03-GpuClustering")
    assert world.node_of(TWO) == "a"
    assert world.node_of(HALF) == "b"
    assert world.node_of(TWO) == "a"
    assert world.node_of(HALF) == "b"


def test_typical_pods_are_the_most_common_ones() -> None:
    pods = [(1, HALF)] * 60 + [(2, TWO)] * 36 + [(3, NO_GPU)] * 4
    assert [(pod.cpu, pod.weight) for pod in typical_pods(pods)] == [(1, 60 / 96), (2, 36 / 96)]


def test_typical_pods_that_list_models_differently_are_two_classes() -> None:
    once, twice = GpuRequest(1, 1000, ("T4", "V100")), GpuRequest(1, 1000, ("T4", "V100", "V100"))
    assert [pod.weight for pod in typical_pods([(1, once)] * 6 + [(1, twice)] * 4)] == [0.6, 0.4]


def test_arrivals_ask_for_1_3_times_the_gpus() -> None:
    nodes, pods = [node("a"), node("b")], [TracePod(f"p{i}", 1, 1, HALF) for i in range(4)]
    coming = arrivals(pods, nodes, 1)
    assert sum(pod.gpu.total for pod in coming.pods) == 10_000
    assert {pod.name for pod in coming.pods[:4]} == {pod.name for pod in pods}
    assert {node.name for node in coming.nodes} == {"a", "b"}


def test_a_trace_that_asks_for_too_much_loses_pods_and_gets_no_copies() -> None:
    pods = [TracePod(f"p{i}", 1, 1, TWO) for i in range(9)]
    assert len(arrivals(pods, [node("a"), node("b")], 1).pods) == 5


# ---- the measure and the score, against loops ----


def plain_fragmentation(free: list[int], cpu: int, model: str) -> float:
    waste = 0.0
    for pod in TYPICAL:
        fitting = sum(left >= pod.gpu.milli for left in free)
        hosts = pod.gpu.count > 0 and cpu >= pod.cpu and fitting >= pod.gpu.count
        if hosts and (not pod.gpu.models or model in pod.gpu.models):
            waste += pod.weight * sum(left for left in free if left < pod.gpu.milli)
        else:
            waste += pod.weight * sum(free)
    return waste


def plain_score(free: list[int], cpu: int, model: str, request: GpuRequest) -> int:
    before, best = plain_fragmentation(free, cpu + 1000, model), -1
    whole = [gpu for gpu, left in enumerate(free) if left == 1000]
    ways = (
        [[gpu] for gpu, left in enumerate(free) if left >= request.milli]
        if request.shared
        else [whole[: request.count]]
    )
    for way in ways:
        after = [left - request.milli * (gpu in way) for gpu, left in enumerate(free)]
        fall = before - plain_fragmentation(after, cpu, model)
        best = max(best, int(100 / (1 + np.exp(-fall / 1000))))
    return best


@pytest.mark.parametrize("request_", [HALF, TWO, GpuRequest(1, 1000, ANY), NO_GPU, GpuRequest(1, 70, ANY)])
def test_scores_in_columns_are_those_of_a_plain_loop(request_: GpuRequest) -> None:
    rng = Random(7)
    models = ["T4", "P100"]
    world = GpuCluster(*(node(f"n{i}", model=models[i % 2]) for i in range(60)))
    shares = gpu_shares_of(world.cluster)
    table = world.cluster.table
    for row in range(60):
        for gpu in range(4):
            shares.take(f"{row}/{gpu}", row, (gpu,), 1000 - rng.choice([0, 70, 250, 300, 500, 999, 1000, 1000]))
        table.requested_column("cpu")[row] = rng.choice([0, 48000, 50000, 57000, 62000])
    measure = FragmentationMeasure(TYPICAL, shares)
    cpu = Nodes(table).free("cpu")
    found = measure.of(shares.free[:60], cpu, shares.model[:60]).tolist()
    plain = [plain_fragmentation(shares.free[row, :4].tolist(), int(cpu[row]), models[row % 2]) for row in range(60)]
    assert found == pytest.approx(plain)
    pod = world.add(kinds.POD, TracePod("p", 1000, 1, request_).document(1))
    cycle = Cycle(pod=pod, cluster=world.cluster, profile=world.profile, now=0.0, rng=Random(), effects=Effects())
    scores = FgdScore(TYPICAL).score(cycle, Nodes(table)).tolist()
    for row in range(60):
        free = shares.free[row, :4].tolist()
        if sum(left >= request_.milli for left in free) >= request_.count:
            assert scores[row] == plain_score(free, int(cpu[row]) - 1000, models[row % 2], request_)


def test_the_sums_of_many_rows_are_those_of_each_by_itself() -> None:
    rng = Random(3)
    world = GpuCluster(node("n", model="T4"))
    measure = FragmentationMeasure(TYPICAL, gpu_shares_of(world.cluster))
    free = np.array([[rng.choice([-70, 0, 299, 300, 999, 1000]) for _ in range(8)] for _ in range(400)])
    many, each = measure.sums(free), [measure.sums(free[row : row + 1]) for row in range(400)]
    assert many.small.tolist() == [one.small[0].tolist() for one in each]
    assert many.enough.tolist() == [one.enough[0].tolist() for one in each]


@pytest.mark.parametrize("request_", [HALF, TWO, GpuRequest(1, 1000, ("T4",)), NO_GPU, GpuRequest(1, 70, ("V100",))])
def test_a_single_row_is_judged_as_in_columns(request_: GpuRequest) -> None:
    rng = Random(5)
    models = [rng.choice(["T4", "P100"]) for _ in range(40)]
    world = GpuCluster(*(node(f"n{i}", model=models[i], gpus=rng.choice([1, 2, 4])) for i in range(40)))
    table, shares = world.cluster.table, gpu_shares_of(world.cluster)
    for number in range(120):
        row = rng.randrange(40)
        shares.take(f"pod-{number % 50}", row, (rng.randrange(int(shares.gpus[row])),), rng.choice([70, 500, 930]))
    pod = world.add(kinds.POD, TracePod("p", 1000, 1, request_).document(1))
    cycle = Cycle(pod=pod, cluster=world.cluster, profile=world.profile, now=0.0, rng=Random(), effects=Effects())
    plugin = GpuShare()
    refused = np.zeros(40, dtype=np.bool_)
    for reject in plugin.filter(cycle, Nodes(table)):
        refused |= reject.rows
    lacking = [
        sum(left >= request_.milli for left in shares.free[row].tolist()) < request_.count
        or bool(request_.models and models[row] not in request_.models)
        for row in range(40)
    ]
    assert refused.tolist() == lacking
    assert [plugin.filter_row(cycle, row) is not None for row in range(40)] == lacking


@pytest.mark.parametrize("policy", [*POLICY_NAMES, SCARCITY])
def test_no_gpu_is_given_twice(policy: str) -> None:
    rng = Random(3)
    world = GpuCluster(*(node(f"n{i}", gpus=rng.choice([1, 2, 4]), cpu=32000) for i in range(6)), policy=policy)
    for _ in range(80):
        world.node_of(rng.choice([HALF, TWO, GpuRequest(1, 1000, ANY), GpuRequest(1, 130, ANY), NO_GPU]))
    shares = gpu_shares_of(world.cluster)
    assert shares.free.min() >= 0
    assert shares.free.sum() < shares.gpus.sum() * 1000 / 4
    world.cluster.check()


def test_pods_without_gpus_go_where_cpu_is_plentiful() -> None:
    """FGD sees no difference while one more typical pod fits; room for many has a price."""
    nodes = (node("a", cpu=40000), node("b", cpu=200000))
    assert GpuCluster(*nodes).node_of(NO_GPU, cpu=24000) == "a"
    assert GpuCluster(*nodes, policy=SCARCITY).node_of(NO_GPU, cpu=24000) == "b"


def test_pods_that_can_run_anywhere_leave_scarce_models_to_others() -> None:
    nodes = (node("a", model="T4", gpus=4), node("b", model="G2", gpus=4), node("c", model="G2", gpus=4))
    assert GpuCluster(*nodes, policy=SCARCITY).node_of(GpuRequest(1, 1000, ANY)) == "b"


def test_the_gpus_of_a_pod_are_written_with_its_binding() -> None:
    world = GpuCluster(node("a"))
    answer = world.place(TWO)
    assert isinstance(answer, Committed)
    binding = DefaultBinder().bind(world.last_cycle, answer.placed.row).body
    assert binding["metadata"]["annotations"] == {INDEX: "0-1"}


def test_the_model_of_a_node_is_its_label() -> None:
    assert node("a", model="T4").document()["metadata"]["labels"] == {MODEL: "T4"}


def test_pods_that_differ_in_annotations_of_others_are_judged_together() -> None:
    cluster = GpuCluster(TraceNode("a", 64_000, 1, 2, "T4"))
    cluster.place(HALF, annotations={"fairlead.io/run-time": "1s"})
    first = cluster.last_cycle.results
    cluster.place(HALF, annotations={"fairlead.io/run-time": "2s"})
    assert cluster.last_cycle.results is first
    cluster.place(TWO)
    assert cluster.last_cycle.results is not first


def test_pods_of_a_list_without_models_take_any(tmp_path: Path) -> None:
    file = tmp_path / "pods.csv"
    file.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,12000,16384,2,1000\n")
    assert read_pods(file) == [TracePod("p", 12000, 16384, TWO)]


@pytest.mark.parametrize("request_", [HALF, TWO, GpuRequest(1, 800, ("T4",)), GpuRequest(8, 1000, ANY)])
def test_the_filter_for_one_row_says_what_the_filter_says(request_: GpuRequest) -> None:
    world = GpuCluster(*(TraceNode(f"n{i}", 64000, 1 << 20, i, "T4" if i % 2 else "P100") for i in range(9)))
    for _ in range(9):
        world.place(HALF)
    world.place(request_)
    nodes = Nodes(world.cluster.table, np.arange(9, dtype=np.int32))
    plugin = GpuShare()
    refused = np.logical_or.reduce([reject.rows for reject in plugin.filter(world.last_cycle, nodes)])
    assert refused.tolist() == [plugin.filter_row(world.last_cycle, row) is not None for row in range(9)]
    assert 0 < int(refused.sum()) < 9 or request_.count == 8


def test_pods_that_say_nothing_about_gpus_do_not_concern_the_filter() -> None:
    world = GpuCluster(TraceNode("n", 8000, 1 << 20, 0, ""))
    assert world.node_of(NO_GPU) == "n"
    assert GpuShare.name in world.last_cycle.no_filter
    assert world.node_of(NO_GPU, annotations={COUNT: "many"}) == ""
