"""`fairlead plugin new`: the package that it writes works as written."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.plugin_new import plugin_group
from fairlead.errors import ConfigError


def new(directory: Path, name: str) -> str:
    result = CliRunner().invoke(plugin_group, ["new", name, "--in", str(directory)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_test_of_a_new_package_passes(tmp_path: Path) -> None:
    told = new(tmp_path, "quiet-nodes")
    made = tmp_path / "quiet-nodes"
    assert f"cd {made} && PYTHONPATH=. pytest" in told
    assert sorted(path.name for path in made.iterdir()) == [
        "pyproject.toml", "quiet_nodes.py", "scheduler.yaml", "test_quiet_nodes.py",
    ]  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        command, cwd=made, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout


def test_its_entry_points_name_what_the_module_has(tmp_path: Path) -> None:
    new(tmp_path, "quiet-nodes")
    project = tomllib.loads((tmp_path / "quiet-nodes" / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["fairlead.plugins"] == {
        "QuietNodesFilter": "quiet_nodes:may_go_there",
        "QuietNodesScore": "quiet_nodes:how_good",
    }


@pytest.mark.parametrize(("name", "words"), [("Quiet Nodes", "is no name of a package"), ("there", "exists already")])
def test_a_name_that_cannot_be_used_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(ConfigError, match=words):
        new(tmp_path, name)
