"""PodTransaction: commits what a scheduler planned for pods on a view of its own to a cluster that others change too.

It is lab/omega/transactions.py for whole pods. Resource fit means more here: all filters of the profile are asked
again, on the cluster as it is, so that ports, affinity, devices and volumes conflict as amounts do. Placements go
through one Statement, which an all-or-nothing transaction rolls back as if it had never been.

Invariant: after a commit every claim that was kept passes the filters, in the order of the claims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.model.records import record
from fairlead.core.state.statement import Statement
from fairlead.lab.omega.transactions import CommitMode, ConflictRule, OptimisticCommit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from numpy.typing import NDArray

    from fairlead.core.framework.evaluate import Evaluator
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


@record(frozen=True, slots=True)
class PodClaim:
    """A pending pod and the node that it was planned for."""

    pod: Pod
    node: str


@record(frozen=True, slots=True)
class PodCommitResult:
    """Claims that were kept, which are assumed now, and claims that conflicted."""

    kept: tuple[PodClaim, ...]
    conflicted: tuple[PodClaim, ...]


class PodTransaction:
    """Commits to one cluster. `evaluator` asks the filters of the profile on that cluster."""

    def __init__(self, cluster: Cluster, evaluator: Evaluator, options: OptimisticCommit, rng: Random) -> None:
        self._cluster = cluster
        self._evaluator = evaluator
        self._options = options
        self._rng = rng

    def commit(self, claims: Sequence[PodClaim], seen: NDArray[np.int64]) -> PodCommitResult:
        """Assume the pods on their nodes, as far as they do not conflict. `seen` are the versions of the rows when the
        plan was begun."""
        statement = Statement(self._cluster)
        changed = self._changed(seen)
        kept: list[PodClaim] = []
        conflicted: list[PodClaim] = []
        for claim in claims:
            row = self._cluster.table.row_of.get(claim.node)
            if row is None or not self._holds(claim.pod, row, changed):
                conflicted.append(claim)
                if self._options.mode is CommitMode.ALL_OR_NOTHING:
                    statement.rollback()
                    return PodCommitResult((), (*kept, *conflicted))
                continue
            statement.assign(claim.pod, row)
            kept.append(claim)
        statement.commit()
        return PodCommitResult(tuple(kept), tuple(conflicted))

    def _changed(self, seen: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Rows on which others took room since; rows that are new count as changed."""
        version = self._cluster.table.version[: self._cluster.table.high]
        changed = np.ones(len(version), dtype=np.bool_)
        changed[: len(seen)] = version[: len(seen)] != seen
        return changed

    def _holds(self, pod: Pod, row: int, changed: NDArray[np.bool_]) -> bool:
        if self._options.rule is ConflictRule.SEQUENCE_NUMBERS:
            return not changed[row]
        profile = self._evaluator.profile
        cycle = Cycle(pod=pod, cluster=self._cluster, profile=profile, now=0.0, rng=self._rng, effects=Effects())
        preparation = self._evaluator.pre_filter(cycle)
        if preparation.status is not None:
            return False
        if preparation.names is not None and self._cluster.table.name(row) not in preparation.names:
            return False
        return bool(self._evaluator.judge(cycle).ok[row])
