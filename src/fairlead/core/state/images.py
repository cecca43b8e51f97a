"""Images: which container images lie on which rows, with the two oddities of the original that scores depend on.

The size of an image is what the first node that reported it said, for as long as any node holds it. How many nodes hold
it is, for each row, as of the last time that row was refreshed; `refresh` is called for the rows that changed when a
scheduling cycle begins. Both are kube-scheduler's behaviour, and its decisions follow from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.state.touchlog import TouchLog


class Image:
    """One image name: its size, and for each row that holds it, how many nodes did when the row was last refreshed."""

    __slots__ = ("nodes_seen", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes_seen: dict[int, int] = {}

    def recall(self, row: int, count: int) -> None:
        """Let a row have been refreshed when so many nodes held the image: in recordings it was at any time."""
        self.nodes_seen[row] = count


class Images:
    def __init__(self) -> None:
        self.by_name: dict[str, Image] = {}
        self._names_of_row: dict[int, tuple[str, ...]] = {}
        self._marks = (0, 0)
        """Up to where `catch_up` has read the logs."""

    def __bool__(self) -> bool:
        """Whether any node reports images."""
        return bool(self._names_of_row)

    def put(self, row: int, images: Iterable[tuple[tuple[str, ...], int]]) -> None:
        """What a node now reports: lists of names with their size."""
        before = self._names_of_row.pop(row, ())
        for name in before:
            self._forget(name, row)
        names: dict[str, None] = {}
        for listed, size in images:
            for name in listed:
                names[name] = None
                image = self.by_name.get(name)
                if image is None:
                    image = self.by_name[name] = Image(size)
                image.nodes_seen.setdefault(row, 0)
        if names:
            self._names_of_row[row] = tuple(names)

    def refresh(self, rows: Iterable[int]) -> list[int]:
        """Bring the counts of these rows up to date; which of them changed."""
        return [row for row in rows if self._refresh_row(row)]

    def _refresh_row(self, row: int) -> bool:
        changed = False
        for name in self._names_of_row.get(row, ()):
            seen = self.by_name[name].nodes_seen
            if seen[row] != len(seen):
                seen[row] = len(seen)
                changed = True
        return changed

    def catch_up(self, counted: TouchLog, seen: TouchLog) -> list[int]:
        """Bring the counts of the rows up to date that these logs name; which of them changed."""
        marks, before = (counted.mark, seen.mark), self._marks
        self._marks = marks
        if not self._names_of_row or marks == before:
            return []
        touched = [log.since(mark) for log, mark in zip((counted, seen), before, strict=True)]
        rows = self._names_of_row if None in touched else {row for some in touched for row in some or ()}
        return self.refresh(tuple(rows))

    def _forget(self, name: str, row: int) -> None:
        seen = self.by_name[name].nodes_seen
        del seen[row]
        if not seen:
            del self.by_name[name]
