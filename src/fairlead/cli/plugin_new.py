"""`fairlead plugin new NAME`: a package with a filter, a score, a configuration that names them, and a test of both."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import click

from fairlead.errors import ConfigError

_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{project}"
version = "0.1.0"
description = "Plugins for fairlead."
requires-python = ">=3.11"
dependencies = ["fairlead"]

[project.entry-points."fairlead.plugins"]
{title}Filter = "{module}:may_go_there"
{title}Score = "{module}:how_good"

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]
"""
_MODULE = '''\
"""Pods go to nodes that are open to all, and rather to those with a high label `{project}/rank`."""

from fairlead import node_filter, node_score


@node_filter(reason="node(s) closed by {title}Filter", wakes_on="node-labels")
def may_go_there(pod, node):
    """True lets the pod go to the node, False refuses it with the reason above."""
    return node.labels.get("{project}/closed") != "true"


@node_score()
def how_good(pod, node):
    """From 0 to 100, the more the better."""
    return min(100, int(node.labels.get("{project}/rank", 0)))
'''
_CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: {module}:may_go_there
      - name: {module}:how_good
        weight: 2
"""
_TEST = """\
from pathlib import Path

from fairlead.testing import Harness, node, pod

CONFIG = Path(__file__).parent / "scheduler.yaml"


def test_closed_nodes_are_refused_until_they_are_open():
    cluster = Harness(nodes=[node("a").labelled({{"{project}/closed": "true"}})], config=CONFIG)
    cluster.apply(pod("web"))
    cluster.run(5)
    assert "node(s) closed by {title}Filter" in cluster.explain("web").message
    cluster.patch("node", "a", {{"metadata": {{"labels": {{"{project}/closed": None}}}}}})
    cluster.until(lambda: cluster.bindings() == {{"web": "a"}}, limit=60)


def test_the_node_of_higher_rank_is_taken():
    ranks = {{"low": "10", "high": "90"}}
    nodes = [node(name).labelled({{"{project}/rank": rank}}) for name, rank in ranks.items()]
    cluster = Harness(nodes=nodes, config=CONFIG)
    cluster.apply(pod("web"))
    cluster.run(5)
    assert cluster.bindings() == {{"web": "high"}}
"""
_FILES = {
    "pyproject.toml": _PROJECT,
    "{module}.py": _MODULE,
    "scheduler.yaml": _CONFIG,
    "test_{module}.py": _TEST,
}


@click.group("plugin")
def plugin_group() -> None:
    """Begin a scheduling plugin."""


@plugin_group.command("new")
@click.argument("name")
@click.option(
    "--in",
    "parent",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    metavar="DIR",
    help="Where to make the directory NAME.  [default: here]",
)
def new_command(name: str, parent: Path) -> None:
    """Write a package NAME with a filter, a score, a configuration and a test that passes.

    \b
      fairlead plugin new quiet-nodes
      cd quiet-nodes && PYTHONPATH=. pytest && PYTHONPATH=. fairlead up --config scheduler.yaml
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*[a-z0-9]", name) or keyword.iskeyword(name):
        hint = "small letters, digits and dashes, as in quiet-nodes"
        raise ConfigError(f'"{name}" is no name of a package', hint=hint)
    directory = parent / name
    try:
        directory.mkdir()
    except FileExistsError:
        raise ConfigError(f"{directory} exists already", hint="choose another name, or remove it") from None
    words = {"project": name, "module": name.replace("-", "_"), "title": name.title().replace("-", "")}
    for file, text in _FILES.items():
        (directory / file.format(**words)).write_text(text.format(**words))
    module = words["module"]
    click.echo(f"{directory}: {module}.py with a filter and a score, scheduler.yaml that names them, test_{module}.py")
    click.echo(f"cd {directory} && PYTHONPATH=. pytest && PYTHONPATH=. fairlead up --config scheduler.yaml")
