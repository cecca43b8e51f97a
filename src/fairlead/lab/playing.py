"""run and experiment: scenarios from Python programs and notebooks, with the results as DataFrames.

Both do what the commands `fairlead lab run` and `fairlead lab experiment` do. Without a directory the tables are
written to a temporary one, read, and removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fairlead.lab.results.extra import need_extra
from fairlead.lab.results.loading import LabResults
from fairlead.lab.results.loading import load as load_results
from fairlead.lab.scenario.records import LabScenario

Scenario = str | Path | LabScenario


def run(
    scenario: Scenario,
    *,
    policy: str | None = None,
    load: str | None = None,
    seed: int | None = None,
    directory: str | Path | None = None,
) -> LabResults:
    """Play one run of a scenario and return its tables.

    Args:
        scenario: The path of a scenario file, or a LabScenario.
        policy: Which of its policies; the first unless given.
        load: Which of its loads; the first unless given.
        seed: The first of its seeds unless given.
        directory: Where the tables are kept. They are not kept unless it is given.

    Raises:
        ConfigError: The scenario cannot be used, or the directory is there already.
    """
    need_extra()
    from fairlead.lab.play.experiment import scenario_of
    from fairlead.lab.play.run import RunKey, play

    source = Path(scenario).resolve() if isinstance(scenario, str | Path) else scenario
    read = scenario_of(source)
    key = RunKey(policy or read.policies[0].name, load or read.loads[0].name, read.seeds[0] if seed is None else seed)
    base = source.parent if isinstance(source, Path) else Path.cwd()
    with _directory(directory) as kept:
        return load_results(play(read, key, kept / "run" if directory is None else kept, base=base))


def experiment(scenario: Scenario, *, directory: str | Path | None = None, workers: int = 1) -> LabResults:
    """Play all policies of a scenario with all its loads and seeds, and return the tables of all runs.

    Args:
        scenario: The path of a scenario file, or a LabScenario.
        directory: Where the tables are kept. Runs that are complete there are not played again.
        workers: How many processes play. More than one import the main module again, so a script that gives a number
            has to keep its own work behind `if __name__ == "__main__":`; notebooks need nothing.

    Raises:
        ConfigError: The scenario cannot be used, or the directory holds results of another one.
    """
    need_extra()
    from fairlead.lab.play.experiment import Experiment

    source = Path(scenario) if isinstance(scenario, str | Path) else scenario
    with _directory(directory) as kept:
        planned = Experiment(source, kept)
        for _ in planned.play(workers=workers):
            pass
        return load_results(kept)


@contextmanager
def _directory(named: str | Path | None) -> Iterator[Path]:
    if named is not None:
        yield Path(named)
        return
    with TemporaryDirectory(prefix="fairlead-lab-") as made:
        yield Path(made)
