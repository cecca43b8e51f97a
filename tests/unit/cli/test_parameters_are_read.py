"""Every parameter of every command is read: one that is only declared would be a switch that does nothing."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import click
import pytest

from fairlead.cli.main import cli
from tests.support.sources import all_sources

RECORD = "leader_elect_"
"""What the parameters of one record of flags begin with and its fields do not (LeaderFlags)."""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


def read_names() -> Counter[str]:
    """Names and attributes that are loaded, keys that are looked up, and texts in tuples of parameters' names."""
    found: Counter[str] = Counter()
    for source in all_sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.id if isinstance(node, ast.Name) else node.attr] += 1
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                found[str(node.slice.value)] += 1
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("pop", "get") and node.args:
                key = node.args[0]
                found[str(key.value) if isinstance(key, ast.Constant) else ""] += 1
    return found


READ = read_names()


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(path, one, id=" ".join(path) or "fairlead") for path, one in commands(cli)]
)
def test_every_parameter_of_a_command_is_read(path: tuple[str, ...], command: click.Command) -> None:
    exposed = [parameter for parameter in command.params if parameter.expose_value]
    idle = [parameter.opts[0] for parameter in exposed if not READ[(parameter.name or "").removeprefix(RECORD)]]
    assert idle == []
