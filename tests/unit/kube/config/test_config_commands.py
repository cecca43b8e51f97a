"""`fairlead config check|effective|diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fairlead.cli.config_commands import config_group
from fairlead.kube.config.kube import default_kube_config, kube_config_from

HERE = Path(__file__).parent
WRONG = sorted((HERE / "wrong").glob("*.yaml"))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(config_group, [str(argument) for argument in arguments])


def test_check_of_a_right_file_names_its_profiles() -> None:
    file = HERE / "right" / "two-profiles.yaml"
    result = run("check", file)
    assert result.exit_code == 0
    assert result.stdout == f"{file}: fine; 2 profiles: default-scheduler, no-scoring-scheduler\n"


@pytest.mark.parametrize("command", [["check"], ["effective"], ["diff", HERE / "right" / "defaults.yaml"]])
@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_a_wrong_file_ends_with_code_2_and_the_problems_on_standard_error(file: Path, command: list[str]) -> None:
    result = run(*command, file)
    expected, _, _ = file.with_suffix(".txt").read_text().partition("\n---\n")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == expected.replace(file.name, str(file)) + "\n"


def test_a_file_that_is_not_there_is_reported_and_ends_with_code_2() -> None:
    result = run("check", "nowhere.yaml")
    assert (result.exit_code, result.stderr) == (2, "nowhere.yaml: cannot be read: No such file or directory\n")


def test_effective_without_a_file_shows_the_built_in_configuration() -> None:
    result = run("effective")
    assert result.stdout.startswith("# percentageOfNodesToScore: null means that every node is scored")
    assert kube_config_from(yaml.safe_load(result.stdout)) == default_kube_config()


def test_effective_as_json_is_the_same_document() -> None:
    assert json.loads(run("effective", "-o", "json").stdout) == yaml.safe_load(run("effective").stdout)


def test_effective_points_show_who_runs_where_with_weights() -> None:
    shown = run("effective", HERE / "right" / "from-nothing.yaml", "-o", "points").stdout.splitlines()
    assert shown[0] == "profile bare"
    assert "  filter             NodeResourcesFit, NodeName" in shown
    assert "  score              NodeResourcesFit 4" in shown
    assert "  permit             -" in shown


def test_diff_shows_what_changes_in_effect(tmp_path: Path) -> None:
    changed = tmp_path / "changed.yaml"
    changed.write_text(
        (HERE / "right" / "defaults.yaml").read_text() + "parallelism: 4\nprofiles: [{schedulerName: x}]\n"
    )
    result = run("diff", HERE / "right" / "defaults.yaml", changed)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "parallelism: 16 -> 4",
        "profiles[default-scheduler]: removed",
        "profiles[x]: added",
    ]
    listed = json.loads(run("diff", HERE / "right" / "defaults.yaml", changed, "-o", "json").stdout)
    assert listed[0] == {"path": "parallelism", "before": 16, "after": 4}


def test_diff_of_two_spellings_of_the_same_is_empty(tmp_path: Path) -> None:
    spelt = tmp_path / "spelt.yaml"
    spelt.write_text(run("effective").stdout)
    assert run("diff", HERE / "right" / "defaults.yaml", spelt).stdout == "no difference in effect\n"


def test_notices_go_to_standard_error_and_leave_the_document_clean() -> None:
    result = run("effective", HERE / "right" / "score-set.yaml")
    assert "TaintToleration is listed without a weight" in result.stderr
    assert yaml.safe_load(result.stdout)["kind"] == "KubeSchedulerConfiguration"


def test_unknown_feature_gates_are_a_wrong_use() -> None:
    result = run("effective", "--feature-gates", "GangSchedulin=true")
    assert result.exit_code == 2
    assert 'unrecognized feature gate: GangSchedulin (did you mean "GangScheduling"?)' in result.stderr
