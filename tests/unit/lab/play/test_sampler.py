"""Samples: what is kept of rows that stand still is what would be found by looking at all of them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.cluster.kubelets.simulated_nodes import simulated_node
from fairlead.lab.play.recorder import MEASURED
from fairlead.lab.play.run import LabRun
from fairlead.lab.play.sampler import RowAnswers, RunSampler
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    FitSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    MeasureSpec,
    PolicySpec,
    ShapeSpec,
    constant,
)
from tests.support.lab import KeptRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.lab.play.sampler import RowColumns

COUNT, MILLI, MODEL = (f"alibabacloud.com/gpu-{what}" for what in ("count", "milli", "card-model"))


def _pods(name: str, gpus: dict[str, str], seconds: float) -> JobClassSpec:
    return JobClassSpec(
        name=name,
        arrivals=ArrivalSpec(gap=constant(7), count=12),
        resources={"cpu": "3", "memory": "1Gi"},
        annotations=gpus,
        duration=constant(seconds),
    )


def _scenario() -> LabScenario:
    resources = {"cpu": "16", "memory": "64Gi", COUNT: "4"}
    nodes = [
        ShapeSpec(name=model.lower(), count=3, resources=resources, labels={MODEL: model}) for model in ("T4", "V100")
    ]
    jobs = [
        _pods("part", {MILLI: "300"}, 40), _pods("whole", {COUNT: "2", MODEL: "T4"}, 55), _pods("none", {}, 25),
    ]  # fmt: skip
    fits = [FitSpec("half", {"cpu": "2", "gpu": "0.5"}), FitSpec("two", {"memory": "4Gi", "gpu": "2"}), FitSpec("any")]
    return LabScenario(
        cluster=ClusterSpec(nodes=nodes),
        loads=[LoadSpec(jobs=jobs)],
        policies=[PolicySpec(plugins=["fairlead.lab.scenario.gpu_policies:shared_gpus"])],
        measure=MeasureSpec(every=5.0, fits=fits, fragmentation=True),
    )


def test_samples_of_a_run_are_those_of_a_sampler_that_has_never_looked_before() -> None:
    scenario, kept, anew = _scenario(), KeptRows(), KeptRows()
    run = LabRun(scenario, scenario.policies[0], scenario.loads[0], 1, KeptRows())
    capacity = dict.fromkeys(MEASURED, 1.0)

    def sampler(rows: KeptRows) -> RunSampler:
        return RunSampler(scenario.measure, run.jobs, capacity, rows)

    def ask(question: Callable[[Any], None]) -> object:
        return run.cluster.runtime.ask(run.scheduler, question).result()

    used = sampler(kept)
    run.begin()
    while not run.recorder.is_done:
        run.next_event()
        used.sample(run.time(), run.recorder, ask)
        sampler(anew).sample(run.time(), run.recorder, ask)
        if len(run.cluster.list("nodes")) == 6 and run.time() > 40:
            run.cluster.apply(simulated_node("late", extra={COUNT: "2"}, labels={MODEL: "A100"}))
    assert kept["samples"] == anew["samples"]
    assert len({value for _, _, measure, value in anew["samples"] if measure == "fragmentation"}) > 5
    assert len({value for _, _, measure, value in anew["samples"] if measure == "fits.half"}) > 5


def test_only_rows_of_which_a_column_says_something_else_are_judged_again() -> None:
    judged: list[list[int]] = []

    def total(columns: RowColumns) -> Any:
        judged.append(columns["cpu"].tolist())
        return columns["cpu"] + columns["gpu"].sum(axis=1)

    answers, cpu, gpu = RowAnswers([total]), np.array([10, 20, 30, 40]), np.arange(8).reshape(4, 2)
    assert answers.of({"cpu": cpu, "gpu": gpu})[0].tolist() == [11, 25, 39, 53]
    cpu, gpu = cpu.copy(), gpu.copy()
    cpu[1], gpu[3, 0] = 21, 0
    assert answers.of({"cpu": cpu, "gpu": gpu})[0].tolist() == [11, 26, 39, 47]
    assert answers.of({"cpu": cpu.copy(), "gpu": gpu.copy()})[0].tolist() == [11, 26, 39, 47]
    assert answers.of({"cpu": cpu[1:], "gpu": gpu[1:]})[0].tolist() == [26, 39, 47]
    assert judged == [[10, 20, 30, 40], [21, 40], [], [21, 30, 40]]
