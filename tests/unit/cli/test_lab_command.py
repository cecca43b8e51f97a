"""`fairlead lab reference`: the last line and the exit code say whether everything agrees."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import cli

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


def record(directory: Path, tx_ok: str) -> None:
    columns = {"id": "alone", "variant": "original", "rng": "shared", "seed": "0"}
    with gzip.open(directory / "results_raw.csv.gz", "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "Batch.wait_first_mean", "batch.tx_ok"])
        writer.writerow([*columns.values(), "0", tx_ok])


def run(*arguments: object) -> tuple[int, list[str]]:
    result = CliRunner().invoke(cli, ["lab", "reference", "--workers", "1", *map(str, arguments)])
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


def test_a_setup_that_cannot_be_used_names_the_field(directory: Path) -> None:
    setup = {name: value for name, value in SETUP.items() if name != "nbatch"}
    (directory / "results.json").write_text(json.dumps({"experiments": {"alone": {"setup": setup, "runs": {}}}}))
    code, lines = run(directory)
    assert (code, lines[-1]) == (1, "Error: alone: the setup has no field 'nbatch'")


def test_a_directory_of_no_known_form_is_refused(tmp_path: Path) -> None:
    code, lines = run(tmp_path)
    assert code == 1
    assert "no reference directory" in lines[-1]


def test_findings_compare_runs_that_differ_in_one_thing(directory: Path) -> None:
    """With two modes of commit, one task and no rival, nothing conflicts, and the order holds."""
    setups = {tx: {"setup": {**SETUP, "nbatch": 2, "tx": tx}, "runs": {}} for tx in ("incremental", "all-or-nothing")}
    (directory / "results.json").write_text(json.dumps({"experiments": setups}))
    result = CliRunner().invoke(cli, ["lab", "findings", "--workers", "1", str(directory)])
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "1 of 1 hold"
