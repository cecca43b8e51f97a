"""`fairlead config`: look at scheduler configuration files without running anything.

`check` says whether a file can be used, `effective` shows it with everything filled in, `diff` shows what a change of
files changes in effect. A wrong file is reported with file, line, path of the field and a suggestion, and exit code 2.
Which dialect a file is in, kube-scheduler's or Volcano's, is seen from its keys; what is Volcano's is in
volcano_config.py.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import yaml

from fairlead.assembly.loading import read_config
from fairlead.assembly.registry import PluginRegistry
from fairlead.cli.gate_flags import gates_option
from fairlead.errors import ConfigError
from fairlead.kube.config.document import ConfigDifference, diff, to_document
from fairlead.kube.config.kube import default_kube_config
from fairlead.kube.config.shapes import POINTS
from fairlead.kube.config.without_effect import gates_table
from fairlead.volcano.config.command import check_volcano, diff_volcano, effective_volcano, volcano_source

if TYPE_CHECKING:
    from fairlead.kube.config.gates import Gates
    from fairlead.kube.config.records import KubeConfig, KubeProfile
    from fairlead.volcano.config.objects import Objects

EVERY_NODE = "# percentageOfNodesToScore: null means that every node is scored; 0 is kube-scheduler's adaptive formula."


_gates = gates_option(
    "Feature gates as kube-scheduler takes them (A=true,B=false), over the defaults of Kubernetes 1.36."
)


@click.group("config")
def config_group() -> None:
    """Check, show and compare scheduler configuration files."""


@config_group.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--queues",
    metavar="FILE",
    type=click.Path(),
    multiple=True,
    help="Volcano: Queues (and Nodes and PodGroups), to be checked with the configuration: manifests, a "
    "directory of them, or a file of `fairlead snapshot save`. Repeat for several.",
)
@click.option("--kubeconfig", metavar="FILE", type=click.Path(), help="Volcano: the same, from this cluster.")
@click.option("--context", metavar="NAME", help="Volcano: the same, from the cluster of this context.")
@click.option("--compatible", is_flag=True, help="Volcano: overlook what the original overlooks, and say what it is.")
@click.option("--strict", is_flag=True, help="Volcano: exit code 1 for traps too.")
@_gates
def check_command(
    files: tuple[str, ...],
    queues: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    compatible: bool,
    strict: bool,
    gates: Gates,
) -> None:
    """Say whether each FILE can be used.

    FILE is a KubeSchedulerConfiguration, a legacy Policy, or a volcano-scheduler.conf (or the ConfigMap with one; or
    the name of a preset: default, shipped, kube-batch). For Volcano it also lists the traps in it: what is legal and
    will not do what one would expect. With queues it lists what they promise and cannot keep, and which groups can
    never start.
    """
    worst = 0
    for file in files:
        source = volcano_source(file)
        if source is not None:
            objects = partial(_objects, queues, kubeconfig, context)
            worst = max(worst, check_volcano(source, objects=objects, compatible=compatible, strict=strict))
            continue
        config = _read(file, gates)
        names = ", ".join(profile.scheduler_name for profile in config.profiles)
        click.echo(f"{file}: fine; {len(config.profiles)} profile{'s'[: len(config.profiles) != 1]}: {names}")
    sys.exit(worst)


def _objects(queues: tuple[str, ...], kubeconfig: str | None, context: str | None) -> Objects | None:
    """What is to be checked with a configuration, if anything is named."""
    from fairlead.volcano.config.objects import objects_in, objects_of_cluster

    if kubeconfig is not None or context is not None:
        if queues:
            raise click.UsageError("--queues and --kubeconfig exclude each other")
        return objects_of_cluster(kubeconfig, context)
    return objects_in(queues) if queues else None


@config_group.command("effective")
@click.argument("file", type=click.Path(), required=False)
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json", "points", "gates"]), default="yaml", show_default=True
)
@_gates
def effective_command(file: str | None, output: str, gates: Gates) -> None:
    """Show FILE, or the built-in configuration, with all defaults filled in.

    `-o points` shows which plugins run at which extension point, in order, with the weights of scores. `-o gates` lists
    the feature gates: whether they are on, their stage or family, and whether anything acts on them.
    """
    if output == "gates":
        click.echo(_gates_text(gates))
        return
    source = volcano_source(file) if file else None
    if source is not None:
        sys.exit(effective_volcano(source, output=output))
    config = _read(file, gates) if file else default_kube_config(gates=gates)
    if output == "points":
        click.echo("\n\n".join(_points_text(profile) for profile in config.profiles))
    elif output == "json":
        click.echo(json.dumps(to_document(config), indent=2, sort_keys=True))
    else:
        if config.percentage_of_nodes_to_score is None:
            click.echo(EVERY_NODE)
        click.echo(yaml.safe_dump(to_document(config), sort_keys=True), nl=False)


@config_group.command("diff")
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option("-o", "--output", type=click.Choice(["text", "yaml", "json"]), default="text", show_default=True)
@_gates
def diff_command(before: str, after: str, output: str, gates: Gates) -> None:
    """Show where the effective configurations of two files differ. Exit code 0 either way; 2 for a wrong file."""
    sources = volcano_source(before), volcano_source(after)
    if sources[0] is not None and sources[1] is not None:
        differences = diff_volcano(sources[0], sources[1])
    else:
        differences = diff(_read(before, gates), _read(after, gates))
    if output == "text":
        click.echo("\n".join(map(_difference_text, differences)) if differences else "no difference in effect")
        return
    listed = [{"path": entry.path, "before": entry.before, "after": entry.after} for entry in differences]
    click.echo(json.dumps(listed, indent=2) if output == "json" else yaml.safe_dump(listed, sort_keys=False).rstrip())


def _read(file: str, gates: Gates) -> KubeConfig:
    """Load a file or explain and leave. Notices go to standard error, so that the output stays a document."""
    try:
        config = read_config(file, capabilities=PluginRegistry().capabilities, gates=gates)
    except ConfigError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    for notice in config.notices:
        click.echo(f"{file}: note: {notice}", err=True)
    return config


def _points_text(profile: KubeProfile) -> str:
    width = max(map(len, POINTS))
    lines = [f"profile {profile.scheduler_name}"]
    for point in POINTS:
        names = ", ".join(f"{name} {weight}" if weight else name for name, weight in profile.points[point])
        lines.append(f"  {point:<{width}}  {names or '-'}")
    return "\n".join(lines)


def _gates_text(gates: Gates) -> str:
    rows = gates_table(gates)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
    )


def _difference_text(difference: ConfigDifference) -> str:
    """A whole profile or plugin that came or went is named; `-o yaml` has its contents."""
    before, after = difference.before, difference.after
    if before is None and isinstance(after, dict | list):
        return f"{difference.path}: added"
    if after is None and isinstance(before, dict | list):
        return f"{difference.path}: removed"
    return f"{difference.path}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
