"""`fairlead lab omega`: a scenario with several schedulers on one shared state, which commit optimistically."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.lab.omega.transactions import CommitMode, ConflictRule, OptimisticCommit

if TYPE_CHECKING:
    from fairlead.lab.omega.metrics import Metrics
    from fairlead.lab.omega.setup import ThinkTime

_LINE = "{:>10} {:<12} {:>5} {:>6} {:>9} {:>11} {:>11} {:>7} {:>6}"


def _numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    try:
        numbers = [int(part) for part in value.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise click.BadParameter(f"{value!r} is no list of numbers, for example 1,2,4")
    return numbers


def _seconds_by_class(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    """Seconds by class of jobs; those that name no class are under the empty name."""
    found = {}
    for value in values:
        name, _, seconds = value.rpartition("=")
        try:
            found[name] = float(seconds)
        except ValueError:
            raise click.BadParameter(f"{value!r} is no number of seconds, for example 0.5 or batch=0.5") from None
    return found


@click.command("omega")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="SCENARIO")
@click.option("--policy", metavar="NAME", help="Of the scenario's policies; the first by default.")
@click.option("--load", "load_name", metavar="NAME", help="Of the scenario's loads; the first by default.")
@click.option("--seed", type=int, metavar="N", help="The first of the scenario's seeds by default.")
@click.option(
    "--schedulers",
    default="1,2,4",
    show_default=True,
    callback=_numbers,
    metavar="N,N,...",
    help="How many schedulers each class of jobs has; one run for each number.",
)
@click.option(
    "--think",
    multiple=True,
    callback=_seconds_by_class,
    metavar="[CLASS=]SECONDS",
    help="How long a decision about a job takes, of a class or of any; 1 by default.",
)
@click.option(
    "--think-pod",
    multiple=True,
    callback=_seconds_by_class,
    metavar="[CLASS=]SECONDS",
    help="How much longer for each of its pods that has no node; 0 by default.",
)
@click.option(
    "--conflict",
    type=click.Choice([str(one.value) for one in ConflictRule]),
    default="resource-fit",
    show_default=True,
    help="When a planned placement conflicts: the pod does not pass the filters any more, or "
    "anything was placed on the node since.",
)
@click.option(
    "--tx",
    type=click.Choice([str(one.value) for one in CommitMode]),
    default="incremental",
    show_default=True,
    help="What a conflict does to the other placements of a job. Gangs are all-or-nothing in any case.",
)
@click.option("--shards", is_flag=True, help="Each scheduler looks first at nodes of its own.")
@click.option("--apart", default="", metavar="LABEL", help="No two pods of a job on nodes with the same value of it.")
@click.option("--until", type=float, metavar="SECONDS", help="When a run ends; when the last job could by default.")
def omega_command(
    file: Path,
    policy: str | None,
    load_name: str | None,
    seed: int | None,
    schedulers: list[int],
    think: dict[str, float],
    think_pod: dict[str, float],
    conflict: str,
    tx: str,
    shards: bool,
    apart: str,
    until: float | None,
) -> None:
    """Play a scenario with several schedulers that plan on copies of the cluster and commit optimistically.

    The schedulers are the policy's profile. Conflicts, waits and how busy they are are listed by class of jobs.
    """
    from fairlead.lab.play.racing import RaceOptions, race
    from fairlead.lab.scenario.reading import read_scenario

    scenario = read_scenario(file)
    chosen = next((one for one in scenario.policies if policy in (None, one.name)), None)
    load = next((one for one in scenario.loads if load_name in (None, one.name)), None)
    if chosen is None or load is None:
        raise click.UsageError(f"{file} has no {'policy' if chosen is None else 'load'} of that name")
    classes = {one.name for one in load.jobs} | set(think) | set(think_pod)
    times = {name: _think_time(name, think, think_pod) for name in classes}
    commit = OptimisticCommit(ConflictRule(conflict), CommitMode(tx))
    heads = ("schedulers", "class", "jobs", "placed", "conflicts", "mean wait s", "p90 wait s", "busy %", "cpu %")
    click.echo(_LINE.format(*heads))
    for count in schedulers:
        options = RaceOptions(count, times, commit, shards, apart, until)
        found = race(scenario, chosen, load, scenario.seeds[0] if seed is None else seed, options, base=file.parent)
        for name, metrics in found.classes.items():
            click.echo(_LINE.format(count, name, *_figures(metrics), f"{100 * found.cpu_in_use:.1f}"))


def _think_time(name: str, think: dict[str, float], think_pod: dict[str, float]) -> ThinkTime:
    from fairlead.lab.omega.setup import ThinkTime

    return ThinkTime(think.get(name, think.get("", 1.0)), think_pod.get(name, think_pod.get("", 0.0)))


def _figures(metrics: Metrics) -> tuple[str, ...]:
    """Jobs, those placed whole, failed for each successful transaction, the wait until placed, and how busy."""
    number = {name: value or 0.0 for name, value in metrics.items()}
    return (
        f"{number['jobs']:.0f}",
        f"{number['fully_scheduled']:.0f}",
        f"{number['conflict_fraction']:.3f}",
        f"{number['wait_full_mean']:.2f}",
        f"{number['wait_full_p90']:.2f}",
        f"{100 * number['busy']:.1f}",
    )
