"""`fairlead descheduler --check`: what a file would do, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.errors import ConfigError
from fairlead.koordinator.descheduling.command import descheduler_command


def test_a_file_is_said_to_be_good_and_what_it_does() -> None:
    told = CliRunner().invoke(descheduler_command, ["--config", "koordinator", "--check"])
    assert told.exit_code == 0
    assert told.output == "koordinator: LowNodeLoad every 10s, then PodMigrationJobs as they come\n"


def test_a_file_without_plugins_only_carries_out_jobs(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text("apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\n")
    told = CliRunner().invoke(descheduler_command, ["--config", str(file), "--check"])
    assert told.output == f"{file}: no plugin once, then PodMigrationJobs as they come\n"


def test_a_wrong_file_is_refused_with_line_and_field(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text("apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\ndryrun: true\n")
    told = CliRunner().invoke(descheduler_command, ["--config", str(file), "--check"])
    assert isinstance(told.exception, ConfigError)
    assert f"{file}:3" in str(told.exception)
    assert 'unknown field "dryrun"' in str(told.exception)
    assert "dryRun" in str(told.exception)


@pytest.mark.parametrize("arguments", [[], ["--config", "/does/not/exist.yaml"]])
def test_a_file_is_needed(arguments: list[str]) -> None:
    told = CliRunner().invoke(descheduler_command, [*arguments, "--check"])
    assert told.exit_code != 0
