"""RunWriter: writes the tables of a run into a directory that gets its name only when all of it is there.

Rows are kept in columns and written in groups, so that memory does not grow with the number of rows. The bytes depend
on the rows alone: no times, no paths and no versions of libraries but the one that writes Parquet.

Invariant: a directory whose name does not begin with a dot and that has a `run.json` is a complete run.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from fairlead.errors import ConfigError
from fairlead.lab.results.tables import SCHEMA_VERSION, TABLES

ROWS_PER_GROUP = 50_000
ABOUT = "run.json"
_TYPES = {"string": pa.string(), "float64": pa.float64(), "int64": pa.int64()}


def arrow_schema(table: str) -> pa.Schema:
    """The schema of one table."""
    return pa.schema([(name, _TYPES[type_]) for name, type_ in TABLES[table].items()])


class _TableWriter:
    def __init__(self, directory: Path, table: str) -> None:
        self._schema = arrow_schema(table)
        self._columns: list[list[Any]] = [[] for _ in self._schema]
        self._file = pq.ParquetWriter(directory / f"{table}.parquet", self._schema, compression="zstd")

    def add(self, row: tuple[Any, ...]) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        if len(self._columns[0]) >= ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._columns[0]:
            arrays = [
                pa.array(column, type=field.type) for column, field in zip(self._columns, self._schema, strict=True)
            ]
            self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
            self._columns = [[] for _ in self._schema]

    def close(self) -> None:
        self._flush()
        self._file.close()


class RowSink(Protocol):
    """What rows of tables are given to."""

    def add(self, table: str, *row: Any) -> None: ...


class RunWriter:
    """Used in a `with` statement; if the block raises, nothing is left."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._draft = directory.with_name(f".{directory.name}.{os.getpid()}")
        if directory.exists():
            raise ConfigError("is there already", file=str(directory), hint="name another directory, or remove it")
        try:
            self._draft.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(f"cannot be made: {error.strerror}", file=str(self._draft)) from error
        self._tables = {name: _TableWriter(self._draft, name) for name in TABLES}

    def add(self, table: str, *row: Any) -> None:
        """One row, with its values in the order of the columns."""
        self._tables[table].add(row)

    def finish(self, about: Mapping[str, Any]) -> None:
        """Write the rest, and what the run was, and give the directory its name."""
        for table in self._tables.values():
            table.close()
        text = json.dumps({"schema": SCHEMA_VERSION, **about}, indent=1, sort_keys=True) + "\n"
        (self._draft / ABOUT).write_text(text, encoding="utf-8")
        self._draft.rename(self._directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._draft.exists():
            shutil.rmtree(self._draft, ignore_errors=True)
