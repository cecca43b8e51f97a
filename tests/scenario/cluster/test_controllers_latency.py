"""Controllers that hear late do nothing twice for it. And: the same seed, the same bytes."""

from __future__ import annotations

import json
from random import Random

import pytest

from fairlead.core.model.flow import Change, DocView, Happened, Reply, Watch, Write
from fairlead.core.model.kinds import DEPLOYMENT, JOB, POD, served_kinds
from fairlead.runtime.virtual import Latencies
from fairlead.testing.builders import deployment, job, pod
from fairlead.testing.harness import Harness
from tests.support.binder import TurnBinder

SLOW = Latencies(
    write=lambda rng: rng.uniform(0.001, 0.05),
    watch=lambda rng: rng.choice([0.0, rng.uniform(0.0, 0.3)]),
)


class Births:
    """Counts the pods that were ever created."""

    name, watches = "births", (Watch(POD),)

    def __init__(self, view: DocView) -> None:
        self.uids: set[str] = set()

    def step(self, now: float, changes: list[Change], replies: list[Reply]) -> list[Write]:
        self.uids |= {change.doc["metadata"]["uid"] for change in changes if change.happened is Happened.ADDED}
        return []

    def wake_at(self) -> float | None:
        return None


def slow_cluster(seed: int) -> tuple[Harness, Births]:
    cluster = Harness(nodes=3, schedulers=[TurnBinder], controllers=[Births], latencies=SLOW, seed=seed)
    births = next(one for one in cluster.runtime.controllers if isinstance(one, Births))
    return cluster, births


@pytest.mark.parametrize("seed", range(5))
def test_late_news_never_make_a_replica_set_create_or_delete_too_much(seed: int) -> None:
    cluster, births = slow_cluster(seed)
    cluster.apply(deployment("web").replicas(20))
    cluster.run(30)
    assert len(births.uids) == 20
    cluster.apply(deployment("web").replicas(7))
    cluster.run(30)
    assert len(births.uids) == 20
    assert sorted(cluster.phases().values()) == ["Running"] * 7
    cluster.apply(deployment("web").replicas(12))
    cluster.run(30)
    assert len(births.uids) == 25
    assert cluster.get(DEPLOYMENT, "web")["status"]["availableReplicas"] == 12  # type: ignore[index]


@pytest.mark.parametrize("seed", range(5))
def test_late_news_never_make_a_job_run_too_often(seed: int) -> None:
    cluster, births = slow_cluster(seed)
    cluster.apply(job("sum").times(12, at_once=5).of(pod("t").running_for("2s")))
    cluster.run(60)
    assert cluster.get(JOB, "sum")["status"]["succeeded"] == 12  # type: ignore[index]
    assert len(births.uids) == 12


def digest(seed: int, latencies: Latencies | None) -> str:
    cluster = Harness(nodes=4, schedulers=[TurnBinder], latencies=latencies, seed=seed)
    rng = Random(seed)
    for index in range(10):
        kwok = {"pod-complete.stage.kwok.x-k8s.io/delay": "1s", "pod-complete.stage.kwok.x-k8s.io/jitter-delay": "9s"}
        cluster.apply(job(f"job-{index}").times(3, at_once=2).of(pod("t").annotated(kwok)))
        cluster.apply(deployment("web").replicas(rng.randrange(8)))
        cluster.run(rng.uniform(0, 5))
    cluster.run(60)
    everything = [list(cluster.list(kind)) for kind in served_kinds() if kind.stored_as is None]
    return json.dumps([cluster.store.resource_version, everything])


@pytest.mark.parametrize("latencies", [None, SLOW])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(latencies: Latencies | None) -> None:
    assert digest(7, latencies) == digest(7, latencies)
    assert digest(7, latencies) != digest(8, latencies)
