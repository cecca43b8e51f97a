"""`python -m papers reference`: the last line and the exit code say whether everything agrees."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.runtime.collecting import ALLOCATIONS_OF_EXPERIMENTS
from papers.commands import papers_group
from papers.reference import omega

SETUP = {
    "arch": "omega", "bj": 1, "bt": 0, "sj": 1, "st": 0, "cpus": 1, "mem": 1, "machines": 1, "jobs": "one",
    "nbatch": 1, "nservice": 1, "runtime": 100, "conflict": "resource-fit", "tx": "incremental",
}  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One machine and one task: what comes of it needs no recording."""
    (tmp_path / "results.json").write_text(json.dumps({"experiments": {"alone": {"setup": SETUP, "runs": {}}}}))
    with gzip.open(tmp_path / "jobs_one.csv.gz", "wt") as file:
        file.write("job,workload,submitted,tasks,duration,cpus,mem\n0,Batch,10,1,5,1,1\n")
    record(tmp_path, tx_ok="1")
    return tmp_path


def record(directory: Path, tx_ok: str, *names: str) -> None:
    columns = {"variant": "original", "rng": "shared", "seed": "0"}
    with gzip.open(directory / "results_raw.csv.gz", "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *columns, "Batch.wait_first_mean", "batch.tx_ok"])
        for name in names or ("alone",):
            writer.writerow([name, *columns.values(), "0", tx_ok])


def run(*arguments: object) -> tuple[int, list[str]]:
    result = CliRunner().invoke(papers_group, ["reference", "--workers", "1", *map(str, arguments)])
    return result.exit_code, result.output.splitlines()


def test_exit_code_0_says_that_all_agree(directory: Path) -> None:
    assert run(directory) == (0, ["agrees   alone", "1 of 1 agree"])


def test_a_difference_is_shown_and_fails(directory: Path) -> None:
    record(directory, tx_ok="2")
    code, lines = run(directory)
    assert code == 1
    assert lines == ["differs  alone", "         batch.tx_ok is 1, recorded 2", "0 of 1 agree"]


def test_a_setup_without_a_recorded_run_does_not_agree(directory: Path) -> None:
    setups = {"alone": {"setup": SETUP, "runs": {}}, "mesos": {"setup": {**SETUP, "arch": "mesos"}, "runs": {}}}
    (directory / "results.json").write_text(json.dumps({"experiments": setups}))
    code, lines = run(directory)
    assert code == 1
    assert lines[1:] == ["differs  mesos", "         results_raw.csv.gz has no run of the variant fifo", "1 of 2 agree"]


def test_a_pattern_that_matches_nothing_is_wrong_usage(directory: Path) -> None:
    assert run(directory, "--only", "together")[0] == 2


def test_a_directory_without_recordings_is_said_to_have_none(directory: Path) -> None:
    (directory / "results.json").write_text(json.dumps({"experiments": {}}))
    for command in ("reference", "findings"):
        result = CliRunner().invoke(papers_group, [command, str(directory)])
        assert result.exit_code == 2
        assert f"{directory} holds no recordings" in result.output.replace("\n", " ")


def test_findings_of_a_directory_that_is_none_of_omegas_name_the_file(tmp_path: Path) -> None:
    result = CliRunner().invoke(papers_group, ["findings", str(tmp_path)])
    assert result.exit_code == 1
    assert "results.json: cannot be read: No such file or directory" in result.output


def test_a_setup_that_cannot_be_used_names_the_field(directory: Path) -> None:
    setup = {name: value for name, value in SETUP.items() if name != "nbatch"}
    (directory / "results.json").write_text(json.dumps({"experiments": {"alone": {"setup": setup, "runs": {}}}}))
    code, lines = run(directory)
    assert (code, lines[1:]) == (1, ["         alone: the setup has no field 'nbatch'", "0 of 1 agree"])


def test_a_file_that_cannot_be_used_fails_its_own_checks_alone(directory: Path) -> None:
    setups = {"lost": {"setup": {**SETUP, "jobs": "two"}, "runs": {}}, "alone": {"setup": SETUP, "runs": {}}}
    (directory / "results.json").write_text(json.dumps({"experiments": setups}))
    record(directory, "1", "lost", "alone")
    with gzip.open(directory / "jobs_two.csv.gz", "wt") as file:
        file.write("job,workload\n0,Batch\n")
    code, lines = run(directory)
    assert code == 1
    assert (lines[0], lines[2:]) == ("differs  lost", ["agrees   alone", "1 of 2 agree"])
    assert "no column submitted" in lines[1]


@pytest.mark.parametrize(("later", "agrees", "played"), [(0.0, True, 30), (3.0, False, 30), (None, True, 10)])
def test_means_of_ten_seeds_that_differ_are_judged_after_twenty_more(
    directory: Path, monkeypatch: pytest.MonkeyPatch, later: float | None, agrees: bool, played: int
) -> None:
    """Ten seeds that are far off by chance agree with the others' help; those of another distribution do not."""
    first, seen = (1.0 if later is None else 3.0), list[int]()

    def run_one(directory: Path, name: str, seed: int, **_: bool) -> int:
        seen.append(seed)
        return seed

    def waited(seed: int) -> dict[str, float]:
        return {"Batch.wait_first_mean": (first if seed < 10 else later or 0.0) + 0.1 * (seed % 2)}

    monkeypatch.setattr(omega, "run_setup", run_one)
    monkeypatch.setattr(omega, "measure", waited)
    wait = {"mean": 1.05, "ci95": 0.01, "min": 1.0, "max": 1.1}
    runs = {"original/independent": {"metrics": {"Batch.wait_first_mean": wait}}}
    (directory / "results.json").write_text(json.dumps({"experiments": {"alone": {"setup": SETUP, "runs": runs}}}))
    code, lines = run(directory, "--generator", "own")
    assert (code == 0, lines[-1]) == (agrees, f"{agrees:d} of 1 agree")
    assert seen == list(range(played))


@pytest.mark.parametrize(("recorded", "agrees"), [(1.4, True), (2.0, False)])
def test_a_single_recorded_run_may_be_as_far_from_our_mean_as_single_runs_of_ours(
    directory: Path, monkeypatch: pytest.MonkeyPatch, recorded: float, agrees: bool
) -> None:
    monkeypatch.setattr(omega, "run_setup", lambda directory, name, seed, **_: seed)
    monkeypatch.setattr(omega, "measure", lambda seed: {"Batch.wait_first_mean": 0.8 + 0.4 * (seed % 2)})
    runs = {"original/shared": {"seeds": 1, "metrics": {"Batch.wait_first_mean": recorded}}}
    (directory / "results.json").write_text(json.dumps({"experiments": {"alone": {"setup": SETUP, "runs": runs}}}))
    assert run(directory, "--generator", "own")[1][-1] == f"{agrees:d} of 1 agree"


def test_a_directory_of_no_known_form_is_refused(tmp_path: Path) -> None:
    code, lines = run(tmp_path)
    assert code == 1
    assert "no reference directory" in lines[-1]


def test_findings_compare_runs_that_differ_in_one_thing(directory: Path) -> None:
    """With two modes of commit, one task and no rival, nothing conflicts, and the order holds."""
    setups = {tx: {"setup": {**SETUP, "nbatch": 2, "tx": tx}, "runs": {}} for tx in ("incremental", "all-or-nothing")}
    (directory / "results.json").write_text(json.dumps({"experiments": setups}))
    result = CliRunner().invoke(papers_group, ["findings", "--workers", "1", str(directory)])
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "1 of 1 hold"


def test_findings_compare_architectures_that_have_the_same_slow_scheduler(directory: Path) -> None:
    """A Service job makes the next Batch job wait where one scheduler has both."""
    with gzip.open(directory / "jobs_one.csv.gz", "wt") as file:
        file.write("job,workload,submitted,tasks,duration,cpus,mem\n0,Batch,10,1,5,0.5,0.5\n1,Service,9,1,5,0.5,0.5\n")
    setups = {arch: {"setup": {**SETUP, "arch": arch, "sj": 5}, "runs": {}} for arch in ("monolithic", "omega")}
    (directory / "results.json").write_text(json.dumps({"experiments": setups}))
    result = CliRunner().invoke(papers_group, ["findings", "--workers", "1", str(directory)])
    lines = result.output.splitlines()
    assert lines[0] == "holds  one, 1 machines, Service thinks 5 s: Batch waits least with shared state (s)"
    assert [line.split()[0] for line in lines[1:3]] == ["4", "0"]


@pytest.mark.parametrize(("paper", "code", "last"), [(0.2, 0, "the same order"), (0.9, 1, "another order")])
def test_gavels_policies_are_shown_beside_the_paper(tmp_path: Path, paper: float, code: int, last: str) -> None:
    """Every job takes 720 s on the first type and 360 s on the last, and finds its GPU free at once."""
    (tmp_path / "throughputs.csv").write_text("job_type,gpus,v100,p100,k80\nslow,1,1,1,2\n")
    lines = "".join(f"{number},{number},slow,1,720\n" for number in range(5001))
    with gzip.open(tmp_path / "jobs_single_seed0.csv.gz", "wt") as file:
        file.write(f"job,unit_arrival,job_type,gpus,steps\n{lines}")
    hours = {"fifo": {"1.00": 0.4}, "fifo_perf": {"1.00": paper}}
    (tmp_path / "published.json").write_text(json.dumps({"single": {"avg_jct_hours": hours}}))
    result = CliRunner().invoke(papers_group, ["gavel", str(tmp_path), "--rate", "1.00"])
    shown = [line.split() for line in result.output.splitlines()]
    assert shown[1:3] == [["fifo", "0.20", "0.40"], ["fifo_perf", "0.10", f"{paper:.2f}"]]
    assert (result.exit_code, result.output.splitlines()[-1]) == (code, last)


def test_a_rate_that_the_paper_has_not_is_named(tmp_path: Path) -> None:
    hours = {"fifo": {"1.00": 0.4, "2.00": 0.5}}
    (tmp_path / "published.json").write_text(json.dumps({"single": {"avg_jct_hours": hours}}))
    result = CliRunner().invoke(papers_group, ["gavel", str(tmp_path), "--rate", "3"])
    assert result.exit_code == 1
    assert "no rate 3 for single; there are 1.00, 2.00" in result.output


def test_commands_of_the_laboratory_look_for_cycles_as_rarely_as_experiments_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr("fairlead.cli.lab.command.collect_rarely", chosen.append)
    assert CliRunner().invoke(cli, ["lab", "schema"]).exit_code == 0
    assert chosen == [ALLOCATIONS_OF_EXPERIMENTS]
