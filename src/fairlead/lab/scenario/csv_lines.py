"""CsvLine: one line of a CSV file, whose values are read with complaints that name file, line and column.

Files may be packed with gzip. A file that breaks off is refused as a whole.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from fairlead.core.model.durations import parse_duration
from fairlead.core.model.quantity import parse_quantity
from fairlead.errors import ConfigError

Row = Mapping[str, str]


class CsvLine:
    """One line of a CSV file, whose values are read with complaints that name it."""

    def __init__(self, file: Path, number: int, row: Row) -> None:
        self._file, self._number, self._row = file, number, row

    @property
    def line(self) -> int:
        """Its number in the file."""
        return self._number

    def text(self, column: str) -> str:
        return self._row[column]

    def whole(self, column: str) -> int:
        return int(self.number(column))

    def number(self, column: str) -> float:
        """A number, or a duration as seconds."""
        text = self._row[column]
        try:
            return float(text)
        except ValueError:
            pass
        try:
            return parse_duration(text)
        except ValueError:
            raise self.error(column, f'"{text}" is neither a number nor a duration') from None

    def instant(self, column: str) -> float:
        """A number, a duration, or a date with a time as seconds since the epoch; UTC where it names no zone."""
        text = self._row[column]
        if not text.replace(".", "").isdigit():  # a row of digits is a number, even where it could be a date
            try:
                stamp = datetime.fromisoformat(text)
            except ValueError:
                pass
            else:
                return (stamp if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC)).timestamp()
        return self.number(column)

    def quantity(self, column: str) -> str:
        text = self._row[column]
        try:
            parse_quantity(text)
        except ValueError:
            raise self.error(column, f'"{text}" is not a quantity') from None
        return text

    def error(self, column: str, words: str) -> ConfigError:
        return ConfigError(words, file=str(self._file), line=self._number, path=column)


def read_lines(file: Path, columns: tuple[str, ...]) -> Iterator[CsvLine]:
    """The lines of a file that has these columns. Raises ConfigError for what cannot be read, with the line."""
    number = 1
    try:
        with open_text(file) as opened:
            reader = csv.DictReader(opened)
            known = reader.fieldnames or ()
            if missing := [name for name in columns if name not in known]:
                raise ConfigError(
                    f"has no column {', '.join(missing)}", file=str(file), line=1, hint=f"it has {', '.join(known)}"
                )
            for row in reader:
                number = reader.line_num
                if None in row or None in row.values():
                    hint = f"{len(known)} values, as in the line of headings"
                    raise ConfigError("the line breaks off, or is too long", file=str(file), line=number, hint=hint)
                yield CsvLine(file, number, row)
    except UNREADABLE as error:
        raise unreadable(file, number, error) from None


def open_text(file: Path) -> IO[str]:
    """A file as text, unpacked if its name ends in `.gz`."""
    return gzip.open(file, "rt", newline="") if file.suffix == ".gz" else file.open(newline="")


UNREADABLE = (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error)
"""What reading a file that is cut off or damaged raises."""


def unreadable(file: Path, number: int, error: Exception) -> ConfigError:
    """The complaint about a file that cannot be read further."""
    words = f"cannot be read after line {number}: {error}"
    return ConfigError(words, file=str(file), hint="is the file complete?")
