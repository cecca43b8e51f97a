"""`fairlead replay`: decide recorded decisions again, and say where we differ from the scheduler that was recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import orjson

from fairlead.assembly.assemble import profiles_of
from fairlead.assembly.loading import read_config
from fairlead.assembly.recorded import recorded_cluster, recorded_profile
from fairlead.assembly.registry import PluginRegistry
from fairlead.console.terminal import bars
from fairlead.errors import FairleadError, ScenarioError
from fairlead.kube.config.extenders import without_what_extenders_manage
from fairlead.kube.config.kube import default_kube_config
from fairlead.kube.replay.recording import ReplayMeans, Scenario, scenarios_in, why_left_out
from fairlead.kube.replay.replay import DecisionDifference, Report

_SHOWN = 20


@click.command("replay")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="The configuration of the recording.")
@click.option("--family", "families", multiple=True, help="Only scenarios of this family; may be repeated.")
@click.option("--skip-family", "skipped", multiple=True, help="No scenarios of this family; may be repeated.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def replay_command(
    files: tuple[Path, ...], config_file: Path | None, families: tuple[str, ...], skipped: tuple[str, ...], output: str
) -> None:
    """Replay recorded decisions of a real scheduler and report where ours differ.

    \b
    FILE is JSON lines, plain or gzipped, as `fairlead record` writes them.
    Stories of Volcano Jobs are lived through again; a step counts as one decision.
    Decisions of Koordinator's scheduler and rounds of Volcano have their own
    configuration with them, which counts before --config; a round counts as one decision.
    Exit code: 0 all decisions agree, 1 some differ, 2 a file cannot be used.
    """
    try:
        report = _replay(files, config_file, wanted=frozenset(families), skipped=frozenset(skipped))
    except FairleadError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    if not report.total:
        chosen = " of the chosen families" if families or skipped else ""
        reasons = "".join(f"; {count} left out: {reason}" for reason, count in report.left_out.items())
        click.echo(f"Error: {', '.join(map(str, files))}: no recorded decision{chosen} in there{reasons}", err=True)
        sys.exit(2)
    if output == "json":
        click.echo(orjson.dumps(report.to_document(), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(report)
    sys.exit(0 if report.agree == report.total else 1)


def _replay(files: tuple[Path, ...], config: Path | None, *, wanted: frozenset[str], skipped: frozenset[str]) -> Report:
    registry = PluginRegistry()
    loaded = (
        read_config(config, capabilities=registry.capabilities)
        if config is not None
        else default_kube_config(capabilities=registry.capabilities)
    )
    extenders, loaded = bool(loaded.extenders), without_what_extenders_manage(loaded)
    theirs, ours = (profiles_of(loaded, registry, compatible=compatible) for compatible in (True, False))
    gangs = frozenset(profile.name for profile in ours if profile.gangs is not None)
    scenarios = [
        scenario
        for path in files
        for scenario in scenarios_in(path)
        if (not wanted or scenario.family in wanted) and scenario.family not in skipped
    ]
    means = ReplayMeans(
        lambda scenario: ours if scenario.doc.get("by") == "fairlead" else theirs, recorded_profile, recorded_cluster
    )
    report = Report()
    with bars(scenarios=len(scenarios)) as shown:
        for done, scenario in enumerate(scenarios, start=1):
            if reason := why_left_out(scenario, gangs, extenders=extenders):
                report.left_out[reason] += 1
                continue
            decisions = list(_decisions(scenario, means))
            for differences in decisions:
                report.add(scenario.family, differences)
            why = scenario.form.left_out
            if why and (missing := len(scenario.doc[scenario.form.mark]) - len(decisions)) > 0:
                report.left_out[why] += missing
            shown["scenarios"].reach(done)
    return report


def _decisions(scenario: Scenario, means: ReplayMeans) -> Iterator[list[DecisionDifference]]:
    try:
        yield from scenario.form.decisions(scenario, means)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Deep inside some object of the recording is something that no API server would have stored.
        place = f"{scenario.file}:{scenario.line}"
        raise ScenarioError(f"{place}: cannot be replayed: {type(error).__name__}: {error}") from error


def _print(report: Report) -> None:
    for difference in report.differences[:_SHOWN]:
        click.echo(f"{difference.file} seed {difference.seed} decision {difference.index}: {difference.field}")
        click.echo(f"  recorded: {difference.expected}")
        click.echo(f"  ours:     {difference.got}")
    if len(report.differences) > _SHOWN:
        click.echo(f"... and {len(report.differences) - _SHOWN} more differences (-o json shows all)")
    width = max((len(name) for name in report.families), default=0)
    for name, tally in sorted(report.families.items()):
        click.echo(f"{name:<{width}}  {tally.agree} of {tally.total}")
    for reason, count in report.left_out.items():
        click.echo(f"{count} left out: {reason}")
    click.echo(f"{report.agree} of {report.total} decisions agree")
