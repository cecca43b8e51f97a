"""Statement: a list of placements and evictions that is tried on the table, and kept or undone.

Assuming a pod, a dry run, a preemption trial and the rollback of a gang are this one mechanism: ordered operations with
their inverses. A checkpoint is a length; rolling back to it undoes the later operations in reverse, and leaves the
table, the indexes and the order of pods on each node exactly as they were (a property test says so). A mode that
decides in rounds keeps or undoes what it tries in any order, and across interruptions: it has a TrialOverlay for that,
whose module says why. Nobody else changes which pods the table shows.

`added` and `removed` are called for every pod that comes to a row or leaves it, also by an undo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster, Removal
    from fairlead.core.state.table import ClaimAmounts


@record(frozen=True, slots=True)
class Assigned:
    pod: Pod
    row: int
    fresh_ports: tuple[tuple[str, str, int], ...]


@record(frozen=True, slots=True)
class Claimed:
    """Amounts taken on rows without a pod, once for every time that a row is named."""

    rows: NDArray[np.int64]
    amounts: ClaimAmounts


@record(frozen=True, slots=True)
class Evicted:
    pod: Pod
    removal: Removal


def assume_on(cluster: Cluster, pod: Pod, row: int) -> None:
    """A Statement of one placement that is kept at once, as most are: what `assign` and `commit` do together."""
    pod_state = cluster.pending(pod)
    cluster.occupy(pod, row)
    cluster.assume(pod, row, pod_state)


class Statement:
    def __init__(
        self,
        cluster: Cluster,
        *,
        added: Callable[[Pod, int], None] | None = None,
        removed: Callable[[Pod, int], None] | None = None,
    ) -> None:
        self._cluster = cluster
        self._added = added
        self._removed = removed
        self._operations: list[Assigned | Claimed | Evicted] = []

    def assign(self, pod: Pod, row: int) -> None:
        """Put a pod on a row."""
        fresh = self._cluster.occupy(pod, row)
        self._operations.append(Assigned(pod, row, fresh))
        if self._added is not None:
            self._added(pod, row)

    def claim(self, rows: NDArray[np.int64], amounts: ClaimAmounts) -> None:
        """Take amounts on rows without a pod."""
        self._cluster.table.claim(rows, amounts)
        self._operations.append(Claimed(rows, amounts))

    def evict(self, pod: Pod, row: int) -> None:
        """Take a pod away from its row."""
        removal = self._cluster.vacate(pod, row)
        self._operations.append(Evicted(pod, removal))
        if self._removed is not None:
            self._removed(pod, row)

    def checkpoint(self) -> int:
        return len(self._operations)

    def rollback(self, checkpoint: int = 0) -> None:
        """Undo everything after a checkpoint, latest first."""
        while len(self._operations) > checkpoint:
            operation = self._operations.pop()
            if isinstance(operation, Assigned):
                self._cluster.undo_occupy(operation.pod, operation.row, operation.fresh_ports)
                if self._removed is not None:
                    self._removed(operation.pod, operation.row)
            elif isinstance(operation, Claimed):
                self._cluster.table.undo_claim(operation.rows, operation.amounts)
            else:
                self._cluster.undo_vacate(operation.pod, operation.removal)
                if self._added is not None:
                    self._added(operation.pod, operation.removal.row)

    def commit(self) -> tuple[Assigned | Claimed | Evicted, ...]:
        """Keep what was done: assigned pods become ASSUMED, claims stay. Evictions are the API's to carry out, so the
        pods stay where they are until it says that they are gone."""
        done, cluster = tuple(self._operations), self._cluster
        try:
            assigned = [(one.pod, one.row, cluster.pending(one.pod)) for one in done if isinstance(one, Assigned)]
        except AssertionError:
            self.rollback()
            raise
        for operation in reversed(done) if len(assigned) < len(done) else ():
            if isinstance(operation, Evicted):
                cluster.undo_vacate(operation.pod, operation.removal)
        for pod, row, pod_state in assigned:
            cluster.assume(pod, row, pod_state)
        self._operations.clear()
        return done
