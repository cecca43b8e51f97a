"""load: the tables of one run, or of all runs of an experiment, as DataFrames.

A run that is not complete is not taken for a result: directories without `run.json`, and those that are still being
written, are passed over in an experiment and refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.errors import ConfigError
from fairlead.lab.results.tables import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "run.json"


@dataclass(frozen=True)
class LabResults:
    """Six DataFrames. Each begins with the columns `policy`, `load` and `seed`; `runs` has one line for each run."""

    runs: pd.DataFrame
    jobs: pd.DataFrame
    pods: pd.DataFrame
    nodes: pd.DataFrame
    queues: pd.DataFrame
    decisions: pd.DataFrame
    samples: pd.DataFrame


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
    """All complete runs in a directory. Of tables that are not named, the DataFrames are empty."""
    import pandas as pd

    directories = run_directories(Path(directory))
    if not directories:
        raise ConfigError(
            "holds no complete run", file=str(directory), hint="fairlead lab run or experiment makes them"
        )
    about = [about_run(one) for one in directories]
    frames = {
        name: pd.concat(
            [_table(one, name, said, empty=name not in tables) for one, said in zip(directories, about, strict=True)],
            ignore_index=True,
        )
        for name in TABLES
    }
    return LabResults(pd.DataFrame(list(about)), **frames)


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
