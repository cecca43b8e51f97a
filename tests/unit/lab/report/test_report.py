"""The report: measures with intervals, paired differences, and one HTML file with a PNG and a CSV of each figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fairlead.lab import load
from fairlead.lab.play.run import RunKey, play
from fairlead.lab.report.figures import figures_of
from fairlead.lab.report.metrics import metrics, paired, summary
from fairlead.lab.report.page import _differences, _with_interval, write_report
from fairlead.lab.report.svg import bounds, ticks
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    MeasureSpec,
    PolicySpec,
    QueueSpec,
    ShapeSpec,
    constant,
)


def scenario() -> LabScenario:
    jobs = JobClassSpec(
        "job", ArrivalSpec(gap=constant(0), count=4), resources={"cpu": "4"}, duration=constant(10), queue="a"
    )
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
    assert page.count('role="img"') == 5
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
    assert (_with_interval(1.5, float("inf")), _with_interval(1.5, 0.25)) == ("1.500", "1.500 ± 0.250")


def test_numbers_have_no_exponents_and_as_many_places_as_their_intervals() -> None:
    assert _with_interval(11_492.3, 13.4) == "11,492 ± 13"
    assert _with_interval(0.041731, 8.2e-5) == "0.04173 ± 0.00008"
    assert _with_interval(1.0, 2.5e-15) == "1.000 ± 0"
    assert _with_interval(0.0, 0.0) == "0 ± 0"


def test_differences_that_are_none_are_left_out_and_certain_ones_are_bold() -> None:
    rows = [("same", "b", 0.0, 0.0), ("certain", "b", 2.0, 0.5), ("unclear", "b", 0.25, 0.5)]
    frame = pd.DataFrame(
        [(measure, "l", policy, value, interval, 3) for measure, policy, value, interval in rows],
        columns=["measure", "load", "policy", "difference", "interval", "seeds"],
    )
    table = _differences(frame)
    assert "<td><b>2.000 ± 0.500</b></td>" in table
    assert "<td>0.2500 ± 0.5000</td>" in table
    assert "same" not in table


def test_an_axis_begins_at_zero_unless_all_values_are_far_from_it() -> None:
    assert bounds(0.1, 0.97) == (0.0, 1.0)
    assert bounds(0.106, 0.129) == (pytest.approx(0.105), pytest.approx(0.13))
    assert bounds(0.0, 0.0) == (0.0, 1.0)


def test_gantt_charts_of_all_policies_show_the_same_nodes_and_pods_beside_each_other(tmp_path: Path) -> None:
    small = replace(scenario().loads[0].jobs[0], resources={"cpu": "2"}, queue="")
    policies = (PolicySpec("kube"), PolicySpec("first", ties="first"))
    two = replace(scenario(), loads=(LoadSpec("four", (small,)),), policies=policies)
    for policy in policies:
        play(two, RunKey(policy.name, "four", 1), tmp_path / policy.name)
    figures = {one.name: one for one in figures_of(load(tmp_path))}
    assert figures["gantt-kube"].rows == figures["gantt-first"].rows == ["node-0", "node-1"]
    assert sorted((bar.row, bar.lane) for bar in figures["gantt-kube"].bars) == [
        ("node-0", 0),
        ("node-0", 1),
        ("node-1", 0),
        ("node-1", 1),
    ]
    assert not [name for name in figures if name.startswith("queues-")]
