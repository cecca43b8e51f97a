"""`fairlead lab run`, `experiment`, `report` and `schema`: scenarios on virtual time, and what came of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from fairlead.errors import ConfigError

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.command("run")
@click.argument("scenario", type=_FILE, metavar="SCENARIO")
@click.option("--policy", metavar="NAME", help="Of the scenario's policies; the first by default.")
@click.option("--load", "load_name", metavar="NAME", help="Of the scenario's loads; the first by default.")
@click.option("--seed", type=int, metavar="N", help="The first of the scenario's seeds by default.")
@click.option("--out", type=_DIRECTORY, metavar="DIR", help="Where the tables go; lab-results/NAME/RUN by default.")
def run_command(scenario: Path, policy: str | None, load_name: str | None, seed: int | None, out: Path | None) -> None:
    """Play one run of a scenario on virtual time and write its tables as Parquet."""
    _need_extra()
    from fairlead.lab.play.run import RunKey, play
    from fairlead.lab.results.loading import about_run
    from fairlead.lab.scenario.reading import read_scenario

    read = read_scenario(scenario)
    key = RunKey(
        policy or read.policies[0].name, load_name or read.loads[0].name, read.seeds[0] if seed is None else seed
    )
    directory = play(read, key, out or Path("lab-results", read.name, key.directory), base=scenario.parent)
    about = about_run(directory)
    click.echo(f"{about['jobs']} jobs, makespan {about['makespan']:g} s of virtual time")
    click.echo(f"written to {directory}")


@click.command("experiment")
@click.argument("scenario", type=_FILE, metavar="FILE")
@click.option("--out", type=_DIRECTORY, metavar="DIR", help="Where the runs go; lab-results/NAME by default.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes; one per core by default.")
@click.option("--dask", default="", metavar="ADDRESS", help="A Dask scheduler, such as tcp://10.0.0.1:8786.")
def experiment_command(scenario: Path, out: Path | None, workers: int | None, dask: str) -> None:
    """Play all policies with all loads and seeds.

    Runs that are complete are kept, so an interrupted experiment goes on where it stopped.
    """
    _need_extra()
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from fairlead.lab.play.experiment import Experiment
    from fairlead.lab.scenario.reading import read_scenario

    experiment = Experiment(scenario, out or Path("lab-results", read_scenario(scenario).name))
    all_runs, missing = len(experiment.keys), len(experiment.missing())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("runs", total=all_runs, completed=all_runs - missing)
        for key in experiment.play(workers=workers or os.cpu_count() or 1, dask=dask):
            progress.update(task, advance=1, description=key.directory)
    click.echo(f"{missing} of {all_runs} runs played, written to {experiment.directory}")


@click.command("report")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--out", type=_DIRECTORY, metavar="DIR", help="Where the report goes; DIR/report by default.")
def report_command(directory: Path, out: Path | None) -> None:
    """Write the report of a run or an experiment: one HTML file, and a PNG and a CSV of each figure."""
    _need_extra()
    from fairlead.lab.report.page import write_report

    click.echo(f"written to {write_report(directory, out or directory / 'report')}")


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of scenarios, for editors that complete and check YAML."""
    from fairlead.lab.scenario.decoding import json_schema
    from fairlead.lab.scenario.records import LabScenario

    click.echo(json.dumps({"title": "A scenario of fairlead lab", **json_schema(LabScenario)}, indent=1))


def _need_extra() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ConfigError("results are written with pyarrow", hint="pip install 'fairlead[lab]'") from None
