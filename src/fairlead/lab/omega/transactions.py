"""Optimistic sharing of the node table: a private view to plan on, and a commit that finds out what others took since.

This is Omega's transaction (Schwarzkopf et al., EuroSys 2013). A scheduler copies free amounts and versions, plans at
leisure, and commits. The table decides claim by claim whether the plan still holds, by one of two rules: the row has
the version that the plan saw, or the row still has room. What holds is applied through a Statement, all of it, or
nothing if anything conflicts.

Invariant: a commit never takes more than a row has free, whatever the view said.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.records import record
from fairlead.core.state.statement import Statement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.table import NodeTable


class ConflictRule(Enum):
    """When a claim conflicts with what others did since the view was taken."""

    SEQUENCE_NUMBERS = "sequence-numbers"
    """The row's version is another one. All later claims of the transaction on that row conflict too."""
    RESOURCE_FIT = "resource-fit"
    """The row has no room for it."""


class CommitMode(Enum):
    """What a conflict does to the other claims of its transaction."""

    INCREMENTAL = "incremental"
    ALL_OR_NOTHING = "all-or-nothing"


class TableView:
    """A scheduler's private copy of what it plans with: free amounts and versions of all rows."""

    __slots__ = ("free", "version")

    def __init__(self, table: NodeTable, resources: tuple[str, ...]) -> None:
        self.free: dict[str, NDArray[np.int64]] = {
            name: (table.allocatable_column(name) - table.requested_column(name))[: table.high] for name in resources
        }
        self.version: NDArray[np.int64] = table.version[: table.high].copy()

    def times(self, amounts: Mapping[str, int]) -> NDArray[np.int64]:
        """How many times amounts fit on each row."""
        return _times(self.free, amounts)

    def take(self, rows: NDArray[np.int64], amounts: Mapping[str, int]) -> None:
        """Book a plan in the copy, for the next plan that is made on it."""
        counts = np.bincount(rows, minlength=len(self.version))
        self.version += counts
        for name, amount in amounts.items():
            self.free[name] -= counts * amount


@record(frozen=True, slots=True)
class CommitResult:
    """The rows that were claimed, in order, and how many claims conflicted. Of an all-or-nothing transaction these are
    the first that conflicts and those before it, as in Omega's simulator: nobody looks at the others."""

    rows: NDArray[np.int64]
    conflicted: int


@record(frozen=True, slots=True)
class OptimisticCommit:
    """How transactions are committed. `failures_raise_versions` keeps a bug of Omega's simulator: claims that are
    rolled back leave the versions of their rows raised, so that a failure makes others fail."""

    rule: ConflictRule = ConflictRule.RESOURCE_FIT
    mode: CommitMode = CommitMode.INCREMENTAL
    failures_raise_versions: bool = False

    def commit(
        self, cluster: Cluster, seen: NDArray[np.int64], rows: NDArray[np.int64], amounts: Mapping[str, int]
    ) -> CommitResult:
        """Claim the same amounts once on each of these rows, as far as they do not conflict. `seen` are the versions
        of the view when the plan was begun."""
        conflicts = self._conflicts(cluster.table, seen, rows, amounts)
        if not conflicts.any():
            _claim(cluster, rows, amounts)
            return CommitResult(rows, 0)
        if self.mode is CommitMode.ALL_OR_NOTHING:
            first = int(conflicts.argmax())
            if self.failures_raise_versions:
                cluster.table.raise_versions(rows[:first])
            return CommitResult(rows[:0], first + 1)
        kept = rows[~conflicts]
        if len(kept):
            _claim(cluster, kept, amounts)
        return CommitResult(kept, len(rows) - len(kept))

    def _conflicts(
        self, table: NodeTable, seen: NDArray[np.int64], rows: NDArray[np.int64], amounts: Mapping[str, int]
    ) -> NDArray[np.bool_]:
        """Which claims conflict, if those before them that do not are applied."""
        if self.rule is ConflictRule.SEQUENCE_NUMBERS:
            changed: NDArray[np.bool_] = table.version[: len(seen)] != seen
            return changed[rows]
        free = {name: table.allocatable_column(name)[rows] - table.requested_column(name)[rows] for name in amounts}
        return _turn(rows) >= _times(free, amounts)


def _times(free: Mapping[str, NDArray[np.int64]], amounts: Mapping[str, int]) -> NDArray[np.int64]:
    limits = [free[name] // amount for name, amount in amounts.items() if amount]
    assert limits, "a claim must ask for something"
    fewest: NDArray[np.int64] = np.minimum.reduce(limits)
    return fewest


def _turn(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each claim, how many before it are on the same row."""
    order = rows.argsort(kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.empty(len(rows), dtype=np.int64)
    turn[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(np.r_[starts, len(rows)]))
    return turn


def _claim(cluster: Cluster, rows: NDArray[np.int64], amounts: Mapping[str, int]) -> None:
    statement = Statement(cluster)
    statement.claim(rows, amounts)
    statement.commit()
