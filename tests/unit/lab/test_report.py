"""The report: measures with intervals, paired differences, and one HTML file with a PNG and a CSV of each figure."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fairlead.lab import load
from fairlead.lab.play.run import RunKey, play
from fairlead.lab.report.metrics import metrics, paired, summary
from fairlead.lab.report.page import _with_interval, write_report
from fairlead.lab.report.svg import ticks
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    MeasureSpec,
    QueueSpec,
    ShapeSpec,
    constant,
)  # fmt: skip


def scenario() -> LabScenario:
    jobs = JobClassSpec(
        "job", ArrivalSpec(gap=constant(0), count=4), resources={"cpu": "4"}, duration=constant(10), queue="a"
    )  # fmt: skip
    cluster = ClusterSpec(nodes=(ShapeSpec(2, resources={"cpu": "4"}),), queues=(QueueSpec("a"),))
    return LabScenario("tiny", cluster, (LoadSpec("four", (jobs,)),), measure=MeasureSpec(every=5))


def test_two_rounds_of_two_jobs_are_measured_and_drawn(tmp_path: Path) -> None:
    play(scenario(), RunKey("default", "four", 1), tmp_path / "runs" / "one")
    found = metrics(load(tmp_path / "runs")).set_index("measure")["value"]
    assert found["makespan"] > 19.9
    assert found["wait p50"] >= 0
    assert found["completion p99"] > 19.9
    assert found["goodput"] == 1
    assert found["fairness, Jain"] == 1
    page = write_report(tmp_path / "runs", tmp_path / "report").read_text()
    assert page.count("<svg") == 5
    assert "src=" not in page
    assert "prefers-color-scheme: dark" in page
    for name in ("utilisation-cpu", "pending", "queues-default", "waits", "gantt-default"):
        assert (tmp_path / "report" / f"{name}.csv").stat().st_size > 20
        assert (tmp_path / "report" / f"{name}.png").stat().st_size > 5000
    assert len((tmp_path / "report" / "gantt-default.csv").read_text().splitlines()) == 5


def test_intervals_are_students_and_differences_are_paired() -> None:
    rows = [("a", "l", seed, "m", value) for seed, value in enumerate((1.0, 2.0, 3.0))]
    rows += [("b", "l", seed, "m", value) for seed, value in enumerate((2.0, 3.0, 4.0))]
    measured = pd.DataFrame(rows, columns=["policy", "load", "seed", "measure", "value"])
    mean = summary(measured).set_index("policy")
    assert mean.loc["a", "mean"] == 2
    assert mean.loc["a", "interval"] == pytest.approx(4.303 / 3**0.5)
    difference = paired(measured, "a").iloc[0]
    assert (difference["policy"], difference["difference"], difference["interval"]) == ("b", 1, 0)


def test_ticks_are_round_numbers() -> None:
    assert ticks(0, 97) == [0, 20, 40, 60, 80]
    assert ticks(0, 0.95)[1] == pytest.approx(0.2)


def test_a_single_run_is_shown_without_an_interval() -> None:
    assert (_with_interval(1.5, float("inf")), _with_interval(1.5, 0.25)) == ("1.5", "1.5 ± 0.25")
