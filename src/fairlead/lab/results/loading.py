"""load: the tables of one run, or of all runs of an experiment, as DataFrames.

A run that is not complete is not taken for a result: directories without `run.json`, and those that are still being
written, are passed over in an experiment and refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.errors import ConfigError
from fairlead.lab.results.extra import need_extra
from fairlead.lab.results.tables import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "run.json"
MARK = "experiment.json"
"""In the directory of an experiment: which runs it has."""
_SHOWN = 8


@dataclass(frozen=True, repr=False)
class LabResults:
    """The results of one run or of an experiment, as DataFrames. Each of the six tables begins with the columns
    `policy`, `load` and `seed`; `runs` has one line for each run."""

    runs: pd.DataFrame
    jobs: pd.DataFrame
    pods: pd.DataFrame
    nodes: pd.DataFrame
    queues: pd.DataFrame
    decisions: pd.DataFrame
    samples: pd.DataFrame
    missing: tuple[str, ...] = ()
    """Runs of the experiment that are not complete."""

    def metrics(self) -> pd.DataFrame:
        """One number for each run and measure: columns policy, load, seed, measure and value."""
        from fairlead.lab.report.metrics import metrics

        return metrics(self)

    def summary(self) -> pd.DataFrame:
        """The mean over seeds of each measure, for each policy and load, and half of its 95 % interval."""
        from fairlead.lab.report.metrics import summary

        return summary(self.metrics())

    def report(self, out: str | Path) -> Path:
        """Write the report, report.html with figures and tables beside it, into a directory; returns the HTML file."""
        from fairlead.lab.report.page import write_report

        return write_report(self, out)

    def __repr__(self) -> str:
        ended = int(self.jobs["ended"].notna().sum())
        missing = f", {len(self.missing)} missing" if self.missing else ""
        runs = f"{len(self.runs)} {'run' if len(self.runs) == 1 else 'runs'}"
        return f"<LabResults: {runs}{missing}, {ended} of {len(self.jobs)} jobs ended>"

    def _repr_html_(self) -> str:
        from fairlead.lab.report.page import results_html

        return results_html(self)


def missing_runs(missing: Sequence[str]) -> str:
    """Which runs are missing, in words."""
    shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")
    return f"{len(missing)} {'run is' if len(missing) == 1 else 'runs are'} missing: {shown}"


def run_directories(directory: Path) -> list[Path]:
    """The complete runs in a directory, or the directory itself if it is one."""
    if (directory / ABOUT).is_file():
        return [directory]
    if not directory.is_dir():
        raise ConfigError("is not a directory", file=str(directory))
    return sorted(one.parent for one in directory.glob(f"*/{ABOUT}") if not one.parent.name.startswith("."))


def about_run(directory: Path) -> Mapping[str, Any]:
    """What a run says of itself. Raises ConfigError if that cannot be used."""
    file = directory / ABOUT
    try:
        about: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        schema = about["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError("is not a complete run", file=str(file), hint="run it again") from error
    if schema != SCHEMA_VERSION:
        raise ConfigError(f"has schema {schema}, and this fairlead reads {SCHEMA_VERSION}", file=str(file))
    return about


def load(directory: str | Path, *, tables: tuple[str, ...] = tuple(TABLES)) -> LabResults:
    """All complete runs in a directory, those of an experiment in the order of its scenario. Of tables that are not
    named, the DataFrames are empty."""
    need_extra()
    import pandas as pd

    directories = run_directories(Path(directory))
    if not directories:
        raise ConfigError(
            "holds no complete run", file=str(directory), hint="fairlead lab run or experiment makes them"
        )
    runs = _planned(Path(directory))
    directories.sort(key=lambda one: (runs.index(one.name) if one.name in runs else len(runs), one.name))
    about = [about_run(one) for one in directories]
    frames = {
        name: pd.concat(
            [_table(one, name, said, empty=name not in tables) for one, said in zip(directories, about, strict=True)],
            ignore_index=True,
        )
        for name in TABLES
    }
    there = {one.name for one in directories}
    return LabResults(pd.DataFrame(list(about)), **frames, missing=tuple(one for one in runs if one not in there))


def _planned(directory: Path) -> list[str]:
    """The runs of an experiment in the order of its scenario; none of a directory of runs that are no experiment."""
    mark = directory / MARK
    if not mark.is_file():
        return []
    try:
        runs: list[str] = json.loads(mark.read_text(encoding="utf-8"))["runs"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError("cannot be read", file=str(mark), hint="name another directory") from error
    return runs


def _table(directory: Path, name: str, about: Mapping[str, Any], *, empty: bool) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = directory / f"{name}.parquet"
    try:
        frame: pd.DataFrame = (pq.read_schema(file).empty_table() if empty else pq.read_table(file)).to_pandas()
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(file), hint="run it again") from error
    for at, column in enumerate(("policy", "load", "seed")):
        frame.insert(at, column, about[column])
    return frame
