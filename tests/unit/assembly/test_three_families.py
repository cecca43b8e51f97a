"""kube-scheduler's, Koordinator's and Volcano's profiles over one table: none promises what another has promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from fairlead.assembly.assemble import profiles_of
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.volcano.config.options import VolcanoOptions
from fairlead.volcano.config.setup import VolcanoSetup
from tests.support.documents import GROUP, asking, node, pod
from tests.support.koordinator import (
    GPU,
    KoordScenario,
    elastic_quota,
    given_gpus,
    gpu_node,
    koord_config,
    koord_group,
    koord_pod,
    koord_reservation,
)


class ThreeFamilies(KoordScenario):
    def __init__(self) -> None:
        super().__init__()
        volcano = VolcanoSetup("default", VolcanoOptions())
        profiles = [*profiles_of(koord_config()), volcano.profile(volcano.first_config())]
        self.scheduler = Scheduler(profiles, Options())


def volcano_group(name: str, least: int) -> dict[str, object]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-vc-{name}"},
        "spec": {"minMember": least, "queue": "default"},
        "status": {"phase": "Inqueue"},
    }


def volcano_pod(name: str, group: str, **spec: Any) -> dict[str, object]:
    doc = pod(name, schedulerName="volcano", **spec)
    doc["metadata"]["annotations"] = {GROUP: group}
    return doc


QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
    "metadata": {"name": "default", "uid": "uid-queue"}, "spec": {"weight": 1}, "status": {"state": "Open"},
}  # fmt: skip


def test_pods_of_three_profiles_and_a_reservation_never_share_a_place() -> None:
    for seed in range(6):
        rng = Random(seed)
        scenario = ThreeFamilies()
        scenario.tell(QUEUE, node("n0", cpu=6), node("n1", cpu=6))
        docs = [
            koord_reservation("r", request={"cpu": "2"}, owners={"app": "web"}),
            koord_group("g", least=3),
            *(koord_pod(f"g{i}", gang="g") for i in range(3)),
            volcano_group("v", 3),
            *(volcano_pod(f"v{i}", "v") for i in range(3)),
            *(pod(f"k{i}") for i in range(4)),
        ]
        rng.shuffle(docs)
        _let_come(scenario, docs, _check, pause=5)
        placed = scenario.placed()
        assert sum(name[0] == "g" for name in placed) in (0, 3), "a gang is whole or not at all"
        assert sum(name[0] == "v" for name in placed) in (0, 3)
        assert len(placed) >= 9, (seed, placed)


def test_gpus_and_quotas_of_one_profile_are_never_given_by_another() -> None:
    """Pods of all three ask for GPUs by the node's amounts, Koordinator's also for a share of a card; a quota has two
    cores for Koordinator's pods, which gangs and pods of the others do not use up."""
    for seed in range(6):
        rng = Random(seed)
        scenario = ThreeFamilies()
        scenario.tell(QUEUE, *gpu_node("n0", cpu=8), *gpu_node("n1", cpu=8))
        scenario.tell(elastic_quota("team", least={"cpu": "1"}, most={"cpu": "2"}))
        docs = [
            *(koord_pod(f"q{i}", quota="team") for i in range(4)),
            *(koord_pod(f"s{i}", containers=[asking({GPU: "50"})]) for i in range(4)),
            koord_pod("w", containers=[asking({GPU: "200"})]),
            *(pod(f"k{i}", containers=[asking({GPU: "100"})]) for i in range(2)),
            volcano_group("v", 2),
            *(volcano_pod(f"v{i}", "v", containers=[asking({GPU: "50"})]) for i in range(2)),
        ]
        rng.shuffle(docs)
        _let_come(scenario, docs, _check_gpus, pause=15)
        placed = scenario.placed()
        assert sum(name[0] == "q" for name in placed) == 2, "what the others have placed is not the quota's"
        assert sum(name[0] == "v" for name in placed) in (0, 2)


def _let_come(
    scenario: ThreeFamilies, docs: Sequence[dict[str, object]], check: Callable[[ThreeFamilies], None], *, pause: float
) -> None:
    """Objects come one after the other, then time passes; after each step something must hold."""
    for doc in docs:
        scenario.tell(doc)
        scenario.settle()
        check(scenario)
    for _ in range(4):
        scenario.run(after=pause)
        scenario.settle()
        check(scenario)


def _check_gpus(scenario: ThreeFamilies) -> None:
    scenario.cluster.check()
    asked: Counter[str] = Counter()
    given: Counter[tuple[str, int]] = Counter()
    team = 0
    for key, doc in scenario.docs.items():
        there = doc["spec"].get("nodeName") if key[0] == "pods" else None
        if there:
            wishes = doc["spec"]["containers"][0]["resources"]["requests"]
            asked[there] += int(wishes.get(GPU, 0))
            team += doc["metadata"]["name"][0] == "q"
            for minor, percent in given_gpus(doc).items():
                given[there, minor] += percent
    assert all(amount <= 200 for amount in asked.values()), asked
    assert all(percent <= 100 for percent in given.values()), given
    assert team <= 2


def _check(scenario: ThreeFamilies) -> None:
    scenario.cluster.check()
    table = scenario.cluster.table
    for row in range(table.high):
        assert "cpu" not in table.requested or int(table.requested["cpu"][row]) <= 6000
