"""Omega's experiment with pods and profiles: gangs are whole, affinity and devices hold, nothing is overcommitted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fairlead.core.framework.profile import Profile, profile_of
from fairlead.kube.affinity.plugin import InterPodAffinity
from fairlead.kube.resources.plugin import NodeResourcesFit
from fairlead.lab.omega.metrics import measure
from fairlead.lab.omega.real_schedulers import PodsOfJobs, ProfileExperiment, plain_pod
from fairlead.lab.omega.setup import CellSpec, ExperimentSpec, JobSpec, ThinkTime
from fairlead.lab.omega.transactions import CommitMode, ConflictRule, OptimisticCommit

ZONE = "topology.kubernetes.io/zone"
DEVICE = "example.com/device"


def nodes(count: int) -> list[dict[str, Any]]:
    return [
        {
            "metadata": {"name": f"n{number}", "uid": f"n{number}", "labels": {ZONE: f"z{number % 4}"}},
            "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110", DEVICE: "1"}},
        }
        for number in range(count)
    ]


def jobs(count: int, tasks: int = 4) -> list[JobSpec]:
    return [JobSpec(number, "Batch", 1.0 + 0.4 * number, tasks, 6.0, 1.0, 1.0) for number in range(count)]


def spec(schedulers: int, commit: OptimisticCommit, think: float = 2.0) -> ExperimentSpec:
    return ExperimentSpec(
        "omega", 60.0, CellSpec(0, 4, 16), {"Batch": ThinkTime(think, 0.0)}, {"Batch": schedulers}, 0.0, commit
    )


def profile() -> Profile:
    return profile_of("test", (NodeResourcesFit(strategy="MostAllocated"), InterPodAffinity()))


def play(
    schedulers: int,
    *,
    rule: ConflictRule = ConflictRule.RESOURCE_FIT,
    mode: CommitMode = CommitMode.INCREMENTAL,
    tasks: int = 4,
    **more: Any,
) -> tuple[ProfileExperiment, dict[str, float | None]]:
    experiment = ProfileExperiment(
        spec(schedulers, OptimisticCommit(rule, mode)), jobs(30, tasks), profile, nodes=nodes(12), **more
    )
    return experiment, measure(experiment.run())


def test_schedulers_that_pack_the_same_nodes_conflict_and_one_alone_does_not() -> None:
    _, alone = play(1)
    experiment, four = play(4)
    assert alone["batch.tx_failed"] == 0
    assert (four["batch.tx_failed"] or 0) > 0
    experiment.common.cluster.check()


def test_sequence_numbers_conflict_more_often_than_fit() -> None:
    """Jobs of one task leave room on the node that all schedulers like best."""
    _, fit = play(4, tasks=1)
    _, sequence = play(4, tasks=1, rule=ConflictRule.SEQUENCE_NUMBERS)
    assert (sequence["batch.conflict_fraction"] or 0) > (fit["batch.conflict_fraction"] or 0)


def test_shards_keep_schedulers_out_of_each_others_way() -> None:
    _, everywhere = play(4)
    _, sharded = play(4, sharded=True)
    assert (sharded["batch.tx_failed"] or 0) < (everywhere["batch.tx_failed"] or 0)


@pytest.mark.parametrize("rule", ConflictRule)
def test_a_gang_is_placed_whole_or_not_at_all(rule: ConflictRule) -> None:
    experiment, metrics = play(4, rule=rule, pods=PodsOfJobs(gangs=lambda job: True))
    assert all(job.unplaced in (0, job.spec.tasks) for job in experiment.simulation.jobs)
    assert (metrics["batch.tx_failed"] or 0) > 0


def test_anti_affinity_and_devices_hold_though_schedulers_race() -> None:
    def picky_pod(job: JobSpec, number: int) -> dict[str, Any]:
        """No two tasks of a job in one zone, and a device for each."""
        pod = plain_pod(job, number)
        term = {"labelSelector": {"matchLabels": {"job": f"job-{job.id}"}}, "topologyKey": ZONE}
        pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        pod["spec"]["containers"][0]["resources"]["requests"][DEVICE] = "1"
        pod["spec"]["containers"][0]["resources"]["limits"] = {DEVICE: "1"}
        return pod

    experiment, metrics = play(3, pods=PodsOfJobs(new_pod=picky_pod))
    cluster = experiment.common.cluster
    cluster.check()
    seen: Counter[tuple[str, str]] = Counter()
    for pod, row in cluster.seated():
        node = cluster.table.nodes[row]
        assert node is not None
        seen[pod.labels["job"], node.labels[ZONE]] += 1
    assert seen
    assert max(seen.values()) == 1
    assert int(cluster.table.requested_column(DEVICE).max()) <= 1
    assert (metrics["batch.task_ok"] or 0) > 20


def test_the_same_seed_gives_the_same_run() -> None:
    assert play(4, seed=3)[1] == play(4, seed=3)[1]
