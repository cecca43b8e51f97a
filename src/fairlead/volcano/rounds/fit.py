"""FitErrors: why a Volcano task found no node, as arrays of rows per reason, and Volcano's message for it.

A row may have several reasons. Rows are arrays, so that for five thousand refused nodes the message needs only the
lengths of a few of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, islice, product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALL_NODES_UNAVAILABLE = "all nodes are unavailable"
_MANY = 10_000
"""The most messages that `could_say` compares: with many rows and reasons there are too many to try all."""


class OneOf(str):
    """A reason instead of which Volcano may name one of `others`: it walks a Go map, in random order."""

    __slots__ = ("others",)
    others: tuple[str, ...]


def one_of(texts: Sequence[str]) -> str:
    """The first of some texts, marked as one that Volcano chooses at random."""
    if len(texts) == 1:
        return texts[0]
    said = OneOf(texts[0])
    said.others = tuple(texts[1:])
    return said


def insufficient(resources: Sequence[str]) -> str:
    """`Insufficient cpu`; of several resources, any may be named."""
    return one_of([f"Insufficient {resource}" for resource in resources])


@dataclass(slots=True)
class FitErrors:
    """`parts` are (text, final, rows). `text` is an error that stands alone; `hyper_node` is where it was tried, if
    that was not the whole cluster."""

    text: str = ""
    hyper_node: str = ""
    parts: list[tuple[str, bool, NDArray[np.int32]]] = field(default_factory=list)

    def add(self, text: str, rows: NDArray[np.int32], *, final: bool) -> None:
        if len(rows):
            self.parts.append((text, final, rows))

    def rows(self) -> NDArray[np.int32]:
        """The rows that have an error."""
        return _all_of([rows for _, _, rows in self.parts])

    def final_rows(self) -> NDArray[np.int32]:
        """The rows that have a final error: no eviction could help."""
        return _all_of([rows for _, final, rows in self.parts if final])

    def take(self, other: FitErrors, rows: NDArray[np.int32]) -> None:
        """Add the errors that another FitErrors has for some rows."""
        for text, final, refused in other.parts:
            self.add(text, refused[np.isin(refused, rows)], final=final)

    @property
    def message(self) -> str:
        """`0/3 nodes are unavailable: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).`"""
        if self.text or not self.parts:
            return self.text or ALL_NODES_UNAVAILABLE
        histogram: Counter[str] = Counter()
        for text, _, rows in self.parts:
            histogram[text] += len(rows)
        return self._in_words(histogram)

    def could_say(self, message: str) -> bool:
        """Whether Volcano could have written this message, with whichever of the random reasons."""
        if self.message == message:
            return True
        open_to_chance = [(text, len(rows)) for text, _, rows in self.parts if isinstance(text, OneOf)]
        settled = Counter[str]()
        for text, _, rows in self.parts:
            if not isinstance(text, OneOf):
                settled[text] += len(rows)
        draws = product(*(_draws((text, *text.others), count) for text, count in open_to_chance))
        return any(self._in_words(sum(drawn, settled)) == message for drawn in islice(draws, _MANY) if drawn)

    def _in_words(self, histogram: Counter[str]) -> str:
        prefix = f"In hyperNode {self.hyper_node}: " if self.hyper_node else ""
        counted = sorted(f"{count} {text}" for text, count in histogram.items())
        return f"{prefix}0/{len(self.rows())} nodes are unavailable: {', '.join(counted)}."


def _draws(texts: Sequence[str], times: int) -> list[Counter[str]]:
    """All ways to choose one of some texts `times` times, as counts."""
    return [Counter(drawn) for drawn in islice(combinations_with_replacement(texts, times), _MANY)]


def _all_of(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Every row of some arrays once, in ascending order."""
    if not parts:
        return np.zeros(0, dtype=np.int32)
    listed = np.zeros(1 + max(int(rows.max()) for rows in parts), dtype=np.bool_)
    for rows in parts:
        listed[rows] = True
    return np.flatnonzero(listed).astype(np.int32)
