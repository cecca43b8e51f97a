"""`fairlead lab run`, `experiment`, `report` and `schema`: scenarios on virtual time, and what came of them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.cli.lab.progress import progress_bar
from fairlead.lab.report.gang_waits import sentences_of
from fairlead.lab.results.extra import need_extra
from fairlead.lab.results.loading import missing_runs

if TYPE_CHECKING:
    from fairlead.lab.play.run import LabRun
    from fairlead.lab.scenario.feasibility import NeverFits
    from fairlead.lab.scenario.records import LabScenario

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.command("run")
@click.argument("scenario", type=_FILE, metavar="SCENARIO")
@click.option("--policy", metavar="NAME", help="Of the scenario's policies; the first by default.")
@click.option("--load", "load_name", metavar="NAME", help="Of the scenario's loads; the first by default.")
@click.option("--seed", type=int, metavar="N", help="The first of the scenario's seeds by default.")
@click.option("--out", type=_DIRECTORY, metavar="DIR", help="Where the tables go; lab-results/NAME/RUN by default.")
def run_command(scenario: Path, policy: str | None, load_name: str | None, seed: int | None, out: Path | None) -> None:
    """Play one run of a scenario on virtual time and write its tables as Parquet.

    Jobs that can never fit are named before the run, and how many jobs ended after it.
    """
    need_extra()
    from fairlead.lab.play.run import RunKey, play
    from fairlead.lab.results.loading import about_run, load
    from fairlead.lab.scenario.reading import read_scenario

    read = read_scenario(scenario)
    key = RunKey(
        policy or read.policies[0].name, load_name or read.loads[0].name, read.seeds[0] if seed is None else seed
    )
    to = out or Path("lab-results", read.name, key.directory)
    with progress_bar() as bar:

        def begun(run: LabRun) -> None:
            _name_misfits(run.never_fit, len(run.jobs), trace_of(read, key.load))
            bar.follow(run)

        directory = play(read, key, to, base=scenario.parent, begun=begun)
    about = about_run(directory)
    ended = int(load(directory, tables=("jobs",)).jobs["ended"].notna().sum())
    click.echo(f"{ended} of {_jobs(about['jobs'])} ended, makespan {about['makespan']:g} s of virtual time")
    if ended < about["jobs"]:
        click.echo(f"the run stopped at {about['ended']:g} s of virtual time: {_why_stopped(read, about['ended'])}")
    for sentence in sentences_of(about):
        click.echo(sentence)
    click.echo(f"written to {directory}")


def trace_of(scenario: LabScenario, load: str) -> Path | None:
    """The file in which jobs of a load are recorded."""
    return next((one.trace.file for one in scenario.loads if one.name == load and one.trace is not None), None)


def _jobs(count: int) -> str:
    return f"{count} job" if count == 1 else f"{count} jobs"


def _why_stopped(scenario: LabScenario, at: float) -> str:
    if at >= scenario.stop.at:
        return "that is its stop.at"
    return "no pod waited any more" if scenario.stop.when == "placed" else "nothing could happen any more"


def _name_misfits(misfits: Sequence[NeverFits], jobs: int, trace: Path | None) -> None:
    """Say which jobs can never fit, on stderr."""
    for one in misfits:
        click.echo(one.sentence(jobs, "" if trace is None else trace.name), err=True)


@click.command("experiment")
@click.argument("scenario", type=_FILE, metavar="FILE")
@click.option("--out", type=_DIRECTORY, metavar="DIR", help="Where the runs go; lab-results/NAME by default.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes; one per core by default.")
@click.option("--dask", default="", metavar="ADDRESS", help="A Dask scheduler, such as tcp://10.0.0.1:8786.")
def experiment_command(scenario: Path, out: Path | None, workers: int | None, dask: str) -> None:
    """Play all policies with all loads and seeds.

    Runs that are complete are kept, so an interrupted experiment goes on where it stopped.
    """
    need_extra()
    from fairlead.lab.play.experiment import Experiment
    from fairlead.lab.results.loading import about_run
    from fairlead.lab.scenario.reading import read_scenario

    read = read_scenario(scenario)
    experiment = Experiment(scenario, out or Path("lab-results", read.name))
    for load in read.loads:
        misfits, jobs = experiment.never_fitting(load)
        _name_misfits(misfits, jobs, trace_of(read, load.name))
    processes = workers or os.cpu_count() or 1
    all_runs, missing = len(experiment.keys), experiment.missing()
    with progress_bar() as bar:
        bar.runs(all_runs, done=all_runs - len(missing))
        left = list(missing)
        for key in experiment.play(workers=processes, dask=dask):
            left.remove(key)
            bar.run_done(key.directory, experiment.times.left(left, processes))
    for key in experiment.keys:
        for sentence in sentences_of(about_run(experiment.directory / key.directory)):
            click.echo(f"{key.directory}: {sentence}")
    click.echo(f"{len(missing)} of {all_runs} runs played, written to {experiment.directory}")


@click.command("report")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--out", type=_DIRECTORY, metavar="DIR", help="Where the report goes; DIR/report by default.")
def report_command(directory: Path, out: Path | None) -> None:
    """Write the report of a run or an experiment: one HTML file, and a PNG, an SVG, a PDF and a CSV of each figure."""
    need_extra()
    from fairlead.lab.results.loading import load

    results = load(directory, tables=("jobs", "pods", "nodes", "queues", "samples"))
    if results.missing:
        click.echo(f"{missing_runs(results.missing)}; the report is of the others", err=True)
    click.echo(f"written to {results.report(out or directory / 'report')}")


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of scenarios, for editors that complete and check YAML."""
    from fairlead.lab.scenario.decoding import json_schema
    from fairlead.lab.scenario.records import LabScenario

    click.echo(json.dumps({"title": "A scenario of fairlead lab", **json_schema(LabScenario)}, indent=1))
