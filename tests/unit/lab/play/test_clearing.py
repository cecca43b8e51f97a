"""Ended pods of a run are deleted many at a time, and nothing that is measured shows it."""

from __future__ import annotations

import pytest

from fairlead.core.model.kinds import POD
from fairlead.lab.play import run as playing
from fairlead.lab.play.run import LabRun
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    Distribution,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    ShapeSpec,
    constant,
)
from tests.support.lab import KeptRows

PODS = 80


def _scenario() -> LabScenario:
    """More pods than fit at once, so that the end of one is what another waits for."""
    jobs = JobClassSpec(
        arrivals=ArrivalSpec(gap=constant(1), count=PODS),
        resources={"cpu": "1", "memory": "1Gi"},
        duration=Distribution("exponential", (20.0,)),
    )
    nodes = [ShapeSpec(count=4, resources={"cpu": "4", "memory": "16Gi"})]
    return LabScenario(cluster=ClusterSpec(nodes=nodes), loads=[LoadSpec(jobs=[jobs])])


def _run(rows: KeptRows) -> LabRun:
    scenario = _scenario()
    return LabRun(scenario, scenario.policies[0], scenario.loads[0], 1, rows)


def test_results_are_the_same_whether_ended_pods_go_alone_or_together(monkeypatch: pytest.MonkeyPatch) -> None:
    together, alone = KeptRows(), KeptRows()
    run = _run(together)
    most = 0
    run.begin()
    while not run.recorder.is_done:
        run.next_event()
        most = max(most, len(run.recorder.ended_pods))
    assert 1 < most < PODS
    for rows, count in ((together, 64), (alone, 1)):
        monkeypatch.setattr(playing, "_CLEARED_TOGETHER", count)
        rows.clear()
        _run(rows).play()
    assert len(together["jobs"]) == PODS
    assert together == alone


def test_an_ended_pod_that_somebody_else_deleted_is_not_missed() -> None:
    run = _run(KeptRows())
    run.begin()
    taken = ""
    while not run.recorder.is_done:
        run.next_event()
        for doc in run.cluster.list("pods"):
            if not taken and doc["status"]["phase"] == "Succeeded":
                taken = doc["metadata"]["name"]
                run.cluster.delete(POD, taken)
    assert taken
    assert run.recorder.unended == 0
