"""`fairlead lab run`, `experiment` and `report`: what they print before, while and after runs are played."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from fairlead.cli.lab import progress
from fairlead.cli.lab.command import lab_group
from fairlead.cli.lab.progress import time_left
from fairlead.lab.play.experiment import Experiment, RunTimes
from fairlead.lab.play.run import RunKey

JOBS = "submit,duration,gpus\n0,60,1\n1,60,16\n2,60,2\n"
SCENARIO = """\
name: gpus
cluster:
  nodes: [{count: 2, resources: {nvidia.com/gpu: 8}}]
loads:
- name: recorded
  trace: {file: jobs.csv, columns: {arrival: submit}, resources: {nvidia.com/gpu: gpus}}
policies: [{name: kube}, {policy: fifo}]
seeds: [1, 2]
"""
NEVER = (
    "1 of 3 jobs can never fit: they ask for more nvidia.com/gpu in one pod than any node has (8) (line 3 of jobs.csv)"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS)
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    return file


def lab(*arguments: object) -> Result:
    result = CliRunner().invoke(lab_group, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result


def test_a_job_that_can_never_fit_is_named_before_the_run_and_does_not_keep_it_going(
    file: Path, tmp_path: Path
) -> None:
    ran = lab("run", file, "--out", tmp_path / "out")
    assert ran.stderr.splitlines() == [NEVER]
    assert ran.stdout.splitlines() == [
        "2 of 3 jobs ended, makespan 62 s of virtual time",
        "the run stopped at 62 s of virtual time: nothing could happen any more",
        f"written to {tmp_path / 'out'}",
    ]


def test_jobs_that_wait_for_nothing_keep_a_run_going_for_as_long_as_the_scenario_says(
    file: Path, tmp_path: Path
) -> None:
    """First come, first served: the third job waits behind the second, though it would fit."""
    file.write_text(SCENARIO + "stop: {idle: 10m}\n")
    ran = lab("run", file, "--policy", "fifo", "--out", tmp_path / "out")
    assert ran.stdout.splitlines()[0] == "1 of 3 jobs ended, makespan 60 s of virtual time"
    assert "stopped at 660 s" in ran.stdout


def test_a_run_that_is_to_go_on_until_a_time_does(file: Path, tmp_path: Path) -> None:
    file.write_text(SCENARIO + "stop: {when: time, at: 2h}\n")
    assert "stopped at 7200 s of virtual time: that is its stop.at" in lab("run", file, "--out", tmp_path / "o").stdout


def test_an_experiment_names_such_jobs_once(file: Path, tmp_path: Path) -> None:
    ran = lab("experiment", file, "--out", tmp_path / "out", "--workers", 1)
    assert ran.stderr.splitlines() == [NEVER]
    assert ran.stdout.splitlines() == [f"4 of 4 runs played, written to {tmp_path / 'out'}"]


def test_the_report_of_half_an_experiment_says_what_is_missing(file: Path, tmp_path: Path) -> None:
    played = Experiment(file, tmp_path / "out").play()
    for _ in range(3):
        next(played)
    played.close()
    missing = "1 run is missing: fifo+recorded+2"
    assert lab("report", tmp_path / "out").stderr.splitlines() == [f"{missing}; the report is of the others"]
    page = (tmp_path / "out" / "report" / "report.html").read_text()
    assert "3 of 4 runs: 2 policies, 1 load, 2 seeds." in page
    assert missing in page
    assert "The load recorded is the same with all 2 seeds" in page
    for _ in Experiment(file, tmp_path / "out").play():
        pass
    assert not lab("report", tmp_path / "out", "--out", tmp_path / "whole").stderr
    assert "missing" not in (tmp_path / "whole" / "report.html").read_text()


def test_the_time_that_is_left_goes_by_runs_of_the_same_policy() -> None:
    times, slow, fast = RunTimes(), RunKey("slow", "load", 2), RunKey("fast", "load", 2)
    assert times.left([slow], 1) is None
    times.add(RunKey("slow", "load", 1), 30.0)
    assert times.left([fast, slow], 1) == 60
    times.add(RunKey("fast", "load", 1), 10.0)
    assert times.left([fast, slow], 1) == 40
    assert times.left([slow, slow, fast, fast], 2) == 40
    assert times.left([slow], 2) == 30
    assert times.left([RunKey("other", "load", 1)], 1) == 20
    assert (time_left(None), time_left(3725.2)) == ("", "1:02:05 left")


@pytest.mark.parametrize("command", ["run", "experiment"])
def test_progress_is_shown_on_a_terminal(
    command: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr("rich.console.Console", lambda **_: terminal)
    monkeypatch.setattr(progress, "_BETWEEN", 0.0)
    left: list[float | None] = []
    monkeypatch.setattr(progress, "time_left", lambda seconds: left.append(seconds) or time_left(seconds))
    workers = ["--workers", "1"] if command == "experiment" else []
    lab(command, file, "--out", tmp_path / "out", *workers)
    shown = screen.getvalue()
    assert ("2/3" if command == "run" else "4/4") in shown
    assert "0/?" not in shown
    assert [one for one in left if one is not None]
