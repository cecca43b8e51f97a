"""The command line without running anything: help, version, completion, wrong usage."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fairlead import __version__
from fairlead.cli.main import COMMANDS, LazyGroup, cli, program_name, with_commands_of
from fairlead.console.terminal import KeyValues
from fairlead.core.family import CommandEntry, Family
from fairlead.errors import FairleadError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="fairlead")


def test_help_names_every_command_without_importing_any() -> None:
    code = "import sys, fairlead.cli.main as m; m.cli(['-h'], standalone_mode=False); assert 'numpy' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


def test_commands_of_families_stand_where_their_records_say() -> None:
    families = [
        Family("a", commands={"one": CommandEntry("a:one", "", after="up"), "two": CommandEntry("a:two", "")}),
        Family("b", commands={"three": CommandEntry("b:three", "", before="lab")}),
        Family("c", commands={"four": CommandEntry("c:four", "", after="up")}),
    ]
    own = {"up": CommandEntry("up:up", ""), "lab": CommandEntry("lab:lab", "")}
    assert list(with_commands_of(families, own)) == ["up", "one", "four", "three", "lab", "two"]


def test_a_family_cannot_take_the_name_of_a_command_that_exists() -> None:
    families = [
        Family("a", commands={"mine": CommandEntry("a:mine", ""), "up": CommandEntry("a:up", "")}),
        Family("b", commands={"mine": CommandEntry("b:mine", "")}),
    ]
    found = with_commands_of(families, {"up": CommandEntry("up:up", "")})
    assert {name: entry.target for name, entry in found.items()} == {"up": "up:up", "mine": "a:mine"}


def test_a_command_looks_for_cycles_rarely() -> None:
    code = "import sys, fairlead.cli.main as m; sys.argv = ['fairlead', 'version']; m.main()"
    told = f"import atexit, gc; atexit.register(lambda: print(gc.get_threshold()[0])); {code}"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "100000"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "vcctl"])
def test_every_command_has_help_that_begins_as_its_line_in_the_list(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: fairlead {name}")


def test_the_help_of_vcctl_is_the_originals() -> None:
    result = run("vcctl", "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage:\n  vcctl [command]\n")


def test_version_for_people_and_for_programs() -> None:
    assert run("version").output.startswith(f"fairlead {__version__} ")
    assert json.loads(run("version", "-o", "json").output)["fairlead"] == __version__


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_prints_a_script_that_asks_fairlead(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"_FAIRLEAD_COMPLETE={shell}_complete" in result.output


def test_completion_knows_commands_and_options() -> None:
    environment = {"COMP_WORDS": "fairlead up --ku", "COMP_CWORD": "2", "_FAIRLEAD_COMPLETE": "bash_complete"}
    result = CliRunner(env=environment).invoke(cli, [], prog_name="fairlead")
    assert "--kubeconfig" in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--nodes", "-1"], "--nodes"),
        (["--shape", "cpu=x"], "is not a quantity of cpu"),
        (["--nodes", "1", "--shape", "2:cpu=1"], "more than --nodes 1"),
        (["--fsync"], "--fsync needs --data"),
        (["--scheduler", "none", "--config", "x"], "--scheduler none runs none"),
        (["--kubeconfig", str(Path("~/.kube/config").expanduser())], "does not touch ~/.kube/config"),
    ],
)
def test_wrong_usage_of_up_is_exit_code_2(options: list[str], words: str) -> None:
    result = run("up", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


def test_an_error_of_ours_is_one_line_and_exit_code_1() -> None:
    group = LazyGroup("group", invoke_without_command=True, callback=_fail)
    result = CliRunner().invoke(group, [])
    assert (result.exit_code, result.output) == (1, "Error: the well is dry\n")


def _fail() -> None:
    raise FairleadError("the well is dry")


def test_kubectl_users_see_the_name_they_typed() -> None:
    assert program_name("/usr/bin/kubectl-fairlead") == "kubectl fairlead"
    assert program_name("/usr/bin/fairlead") == "fairlead"
    assert isinstance(cli, click.Group)


def test_logs_carry_their_extras_as_keys_and_values() -> None:
    record = logging.makeLogRecord(
        {"name": "fairlead.x", "levelname": "INFO", "msg": "listening on %s", "args": ("a",), "port": 1, "created": 0.0}
    )
    assert KeyValues().format(record).endswith(" info fairlead.x listening on a port=1")


def test_completion_prints_the_short_names_of_vcctl_on_request() -> None:
    assert "vsub" not in run("completion", "bash").stdout
    lines = run("completion", "bash", "--aliases").stdout.splitlines()
    assert "alias vsub='fairlead vcctl --as vsub'" in lines
    assert sum(line.startswith("alias v") for line in lines) == 6
