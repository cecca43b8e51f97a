"""The work of a gang's pods waits for the gang in a scenario, however its job is made, and the run knows its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead import ConfigError
from fairlead.lab.play.run import LabRun
from fairlead.lab.scenario.reading import read_scenario
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    PolicySpec,
    ShapeSpec,
    constant,
)
from tests.support.lab import KeptRows

KUBE, VOLCANO = PolicySpec(), PolicySpec(volcano="default")


def job(name: str, pods: int, *, at: float = 0.0, **fields: object) -> JobClassSpec:
    given = {"resources": {"cpu": "1"}, "duration": constant(100.0), **fields}
    return JobClassSpec(name, ArrivalSpec(at=[at]), constant(pods), **given)  # type: ignore[arg-type]


def played(*jobs: JobClassSpec, cpus: int = 4, policy: PolicySpec = KUBE) -> LabRun:
    cluster = ClusterSpec([ShapeSpec(resources={"cpu": str(cpus)})])
    run = LabRun(LabScenario(cluster=cluster), policy, LoadSpec(jobs=jobs), 1, KeptRows())
    run.play()
    return run


@pytest.mark.parametrize(
    ("policy", "made_as"),
    [(KUBE, "pods"), (KUBE, "job"), (VOLCANO, "pods"), (VOLCANO, "job"), (VOLCANO, "volcano-job")],
    ids=["kube pods", "kube job", "volcano pods", "volcano job", "volcano-job"],
)
def test_a_job_without_a_gang_waits_for_its_last_pod(policy: PolicySpec, made_as: str) -> None:
    together = job("half", 4, runs_together=True, made_as=made_as)
    run = played(job("first", 1, duration=constant(300.0)), together, policy=policy)
    assert run.recorder.is_done
    assert 400 <= run.recorder.last_end <= 402
    assert "deadlock" not in run.about
    assert run.about["waiting_cpu_hours"] == pytest.approx(3 * 300 / 3600, abs=0.01)


def test_half_a_gang_that_can_never_be_whole_ends_the_run() -> None:
    run = played(job("large", 5, runs_together=True))
    assert run.about["deadlock"] == [{"job": "large-0", "runs": 4, "needs": 5, "gpus": 0.0}]
    assert 3600 <= run.time() < 4300


def test_a_run_does_not_stop_before_all_pods_are_created() -> None:
    run = played(job("slow", 3, pod_gap=5000.0, runs_together=True))
    assert run.recorder.is_done
    assert run.recorder.last_end == 10100


def test_bare_pods_of_a_gang_that_lost_one_are_deleted() -> None:
    urgent = job("urgent", 1, at=10.0, priority=5, duration=constant(1000.0))
    run = played(job("train", 4, runs_together=True), urgent)
    assert run.recorder.is_done
    assert run.recorder.evictions == 4
    assert "deadlock" not in run.about


def test_a_gang_may_be_one_whose_pods_work_alone() -> None:
    run = played(job("farm", 4, gang=True, runs_together=False, start_delay=constant(5.0)))
    assert run.recorder.last_end == 105
    assert "waiting_cpu_hours" not in run.about


def test_pods_of_a_job_have_no_gap_between_them(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "cluster: {nodes: [{resources: {cpu: 1}}]}\nloads: [{jobs: [{arrivals: {at: [0]}, madeAs: job, podGap: 1s}]}]\n"
    )
    with pytest.raises(ConfigError, match=r"podGap.*has no effect on pods of a job"):
        read_scenario(file)
