"""kube-scheduler's, Koordinator's and Volcano's profiles over one table: none promises what another has promised."""

from __future__ import annotations

from random import Random

from fairlead.config.assemble import profiles_of
from fairlead.config.volcano_options import VolcanoOptions
from fairlead.config.volcano_setup import VolcanoSetup
from fairlead.engine.scheduler import Options, Scheduler
from tests.support.documents import GROUP, node, pod
from tests.support.koordinator import KoordScenario, koord_config, koord_group, koord_pod, koord_reservation


class ThreeManners(KoordScenario):
    def __init__(self) -> None:
        super().__init__()
        volcano = VolcanoSetup("default", VolcanoOptions())
        profiles = [*profiles_of(koord_config()), volcano.profile(volcano.first_config())]
        self.scheduler = Scheduler(profiles, Options())


def volcano_group(name: str, least: int) -> dict[str, object]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-vc-{name}"},
        "spec": {"minMember": least, "queue": "default"}, "status": {"phase": "Inqueue"},
    }  # fmt: skip


def volcano_pod(name: str, group: str) -> dict[str, object]:
    doc = pod(name, schedulerName="volcano")
    doc["metadata"]["annotations"] = {GROUP: group}
    return doc


def test_pods_of_three_profiles_and_a_reservation_never_share_a_place() -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "default", "uid": "uid-queue"}, "spec": {"weight": 1}, "status": {"state": "Open"},
    }  # fmt: skip
    for seed in range(6):
        rng = Random(seed)
        scenario = ThreeManners()
        scenario.tell(queue, node("n0", cpu=6), node("n1", cpu=6))
        docs = [
            koord_reservation("r", request={"cpu": "2"}, owners={"app": "web"}),
            koord_group("g", least=3), *(koord_pod(f"g{i}", gang="g") for i in range(3)),
            volcano_group("v", 3), *(volcano_pod(f"v{i}", "v") for i in range(3)),
            *(pod(f"k{i}") for i in range(4)),
        ]  # fmt: skip
        rng.shuffle(docs)
        for doc in docs:
            scenario.tell(doc)
            scenario.settle()
            _check(scenario)
        for _ in range(4):
            scenario.run(after=5)
            scenario.settle()
            _check(scenario)
        placed = scenario.placed()
        assert sum(name[0] == "g" for name in placed) in (0, 3), "a gang is whole or not at all"
        assert sum(name[0] == "v" for name in placed) in (0, 3)
        assert len(placed) >= 9, (seed, placed)


def _check(scenario: ThreeManners) -> None:
    scenario.cluster.check()
    table = scenario.cluster.table
    for row in range(table.high):
        assert "cpu" not in table.requested or int(table.requested["cpu"][row]) <= 6000
