"""`python -m papers`: plays what a directory of recordings holds, compares, and reports what it shows."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import click

from fairlead.console.command_group import FairleadGroup
from fairlead.lab.omega.setup import packed_or_not
from fairlead.lab.report.intervals import mean_and_interval
from fairlead.runtime.collecting import ALLOCATIONS_OF_EXPERIMENTS, collect_rarely
from papers.fragmentation.paired import gains, paired_run
from papers.omega.orderings import findings
from papers.reference.checks import CheckOptions, CheckResult, run_checks
from papers.reference.directories import checks_of, matches
from papers.reference.gavel import out_of_order, published_means
from papers.reference.omega import recorded_metrics, run_metrics, setups_of
from papers.reference.openb import FIRST_SEED
from papers.reference.shockwave import static_report

MOST_SHOWN = 5


@click.group(
    "papers", cls=FairleadGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
def papers_group() -> None:
    """Recorded runs of other programs, and published tables, that Fairlead is held to."""
    collect_rarely(ALLOCATIONS_OF_EXPERIMENTS)


@papers_group.command("reference")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--only", multiple=True, metavar="PATTERN", help="Only what matches, or contains it; may be repeated.")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="How many seeds are run.")
@click.option("--all", "everything", is_flag=True, help="Everything that is recorded.")
@click.option(
    "--generator",
    type=click.Choice(["recorded", "own"]),
    default="recorded",
    show_default=True,
    help="Whose random numbers: those of the recording, to compare exactly, or our own, to compare means.",
)
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes; one per core by default.")
def reference_command(
    directory: Path, only: tuple[str, ...], seeds: int | None, everything: bool, generator: str, workers: int | None
) -> None:
    """Play what a directory of recordings holds, and say how much of it agrees.

    The exit code is 0 only if all of it does. Such a directory has the form of one of the four that docs/omega.md
    describes.
    """
    options = CheckOptions(seeds, everything, generator == "own")
    checks = checks_of(directory, options, only)
    if not checks:
        raise _nothing_to_compare(directory, only)
    agreed = 0
    for result in run_checks(checks, min(workers or os.cpu_count() or 1, len(checks))):
        agreed += not result.differences
        _show(result)
    click.echo(f"{agreed} of {len(checks)} agree")
    if agreed < len(checks):
        raise SystemExit(1)


def _nothing_to_compare(directory: Path, only: tuple[str, ...]) -> click.UsageError:
    if only:
        return click.UsageError("nothing in the directory matches --only")
    return click.UsageError(f"{directory} holds no recordings; docs/omega.md says what such a directory looks like")


@papers_group.command("findings")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--only", multiple=True, metavar="PATTERN", help="Only set-ups that match, or contain it.")
@click.option("--recorded", is_flag=True, help="Take the figures from the recording instead of running anything.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes; one per core by default.")
def findings_command(directory: Path, only: tuple[str, ...], recorded: bool, workers: int | None) -> None:
    """Report the Omega paper's findings on the set-ups of a directory: which orderings hold, with the figures.

    The exit code is 0 only if all of them hold.
    """
    setups = {name: setup for name, setup in setups_of(directory).items() if not only or matches(name, only)}
    if not setups:
        raise _nothing_to_compare(directory, only)
    measured = partial(recorded_metrics if recorded else run_metrics, directory)
    if recorded or workers == 1:
        metrics = {name: measured(name) for name in setups}
    else:
        with ProcessPoolExecutor(workers) as pool:
            metrics = dict(zip(setups, pool.map(measured, setups), strict=True))
    found = findings(setups, metrics)
    for finding in found:
        click.echo(f"{'holds' if finding.holds else 'fails'}  {finding.claim}")
        for label, value in finding.figures:
            click.echo(f"         {value:10.4g}  {label}")
    holding = sum(finding.holds for finding in found)
    click.echo(f"{holding} of {len(found)} hold")
    if holding < len(found):
        raise SystemExit(1)


@papers_group.command("paired")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--workload", default="default", show_default=True, metavar="NAME", help="Of openb_pod_list_NAME.csv.")
@click.option("--seeds", type=click.IntRange(min=2), default=10, show_default=True, metavar="N")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes; one per core by default.")
def paired_command(directory: Path, workload: str, seeds: int, workers: int | None) -> None:
    """Compare our own placement of GPU pods with FGD on the same arrivals, with the interval of the difference."""
    nodes = packed_or_not(directory / "openb_node_list_gpu_node.csv")
    one = partial(paired_run, nodes, packed_or_not(directory / f"openb_pod_list_{workload}.csv"))
    numbers = range(FIRST_SEED, FIRST_SEED + seeds)
    if workers == 1:
        runs = [one(seed) for seed in numbers]
    else:
        with ProcessPoolExecutor(workers) as pool:
            runs = list(pool.map(one, numbers))
    for run in runs:
        click.echo(f"seed {run.seed}: FGD leaves {run.fgd:.2f} %, Scarcity {run.own:.2f} %")
    mean, interval = mean_and_interval(gains(runs))
    click.echo(f"gain {mean:.3f} points, 95 % interval {mean - interval:.3f} to {mean + interval:.3f}")


@papers_group.command("shockwave")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--jobs", type=int, default=120, show_default=True, metavar="N", help="The list: of 120, 220, 460 or 900 jobs."
)
def shockwave_command(directory: Path, jobs: int) -> None:
    """Play one of Shockwave's traces as static work with our policies, beside the paper's own figures.

    Jobs of the paper change their batch size while they train, here they do not: compare rows of one kind.
    """
    line = "{:<10} {:<24} {:>10} {:>10} {:>9} {:>8} {:>6}"
    click.echo(line.format("whose", "policy", "makespan s", "mean JCT s", "worst FTF", "unfair %", "util %"))
    for whose, policy, found in static_report(directory, jobs):
        figures = (
            f"{found.makespan:.0f}",
            f"{found.mean_seconds:.0f}",
            f"{found.worst_fairness:.2f}",
            f"{100 * found.unfair:.1f}",
            f"{100 * found.utilisation:.1f}",
        )
        click.echo(line.format(whose, policy, *figures))


@papers_group.command("gavel")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--jobs",
    type=click.Choice(["single", "multi"]),
    default="single",
    show_default=True,
    help="Of one GPU, or of up to 8.",
)
@click.option("--rate", default="2.00", show_default=True, metavar="N", help="Jobs an hour, as the paper writes it.")
def gavel_command(directory: Path, jobs: str, rate: str) -> None:
    """Play Gavel's jobs at one rate of arrivals with our policies, beside the paper's figures.

    The exit code is 0 only if policies that are well apart in the paper are in the same order.
    """
    click.echo(f"{'policy':<24} {'ours h':>8} {'paper h':>8}")
    means = []
    for mean in published_means(directory, jobs, rate):
        means.append(mean)
        click.echo(f"{mean.policy:<24} {mean.ours:8.2f} {mean.published:8.2f}")
    wrong = out_of_order(means)
    for words in wrong:
        click.echo(words)
    click.echo("another order" if wrong else "the same order")
    if wrong:
        raise SystemExit(1)


def _show(result: CheckResult) -> None:
    click.echo(f"{'differs' if result.differences else 'agrees '}  {result.name}")
    for words in result.differences[:MOST_SHOWN]:
        click.echo(f"         {words}")
    if len(result.differences) > MOST_SHOWN:
        click.echo(f"         and {len(result.differences) - MOST_SHOWN} more")
