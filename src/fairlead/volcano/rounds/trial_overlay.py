"""TrialOverlay: what a round only tries, shown on the node table while the round runs and hidden while others use it.

A round makes thousands of decisions and is interrupted between them. While it runs, the table shows what it tried: pods
placed or pipelined that are on no node yet, and pods evicted that still are. `hide` takes all that off the table,
`show` puts it back; what is committed becomes part of the table through `keep`.

Why this is not a Statement: a Statement undoes its operations latest first, each by an exact inverse. A round takes
back whichever trial fails, in any order; a trial that is kept may lie below one that is undone; and between `hide` and
`show` the cluster changes, so that an inverse recorded before may not fit any more. A log of all that was tried would
also have to be undone and redone at every interruption, where the difference between what is tried and what is there is
all that counts. So the overlay keeps that difference by pod, and the order of pods on each row that it changes. Only it
and Statement change what pods the table shows (a test says so).

Invariant: after `hide`, the table is as if the overlay had never been, the pods of each row in their old order, and
those committed meanwhile at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


class TrialOverlay:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._placed: dict[str, tuple[Pod, int]] = {}
        self._missing: dict[str, tuple[Pod, int]] = {}
        self._order: dict[int, list[Pod]] = {}
        self._hidden = False

    def place(self, pod: Pod, row: int) -> None:
        """Show a pod on a row; one that was removed before is back."""
        self._remember_order(row)
        if self._missing.pop(pod.uid, None) is None:
            if pod.uid in self._placed:
                return
            self._placed[pod.uid] = (pod, row)
        self._cluster.occupy(pod, row)

    def remove(self, pod: Pod, row: int) -> None:
        """Show a row without a pod, whether it is there or was only placed here."""
        if pod.uid in self._missing:
            return
        self._remember_order(row)
        if self._placed.pop(pod.uid, None) is None:
            self._missing[pod.uid] = (pod, row)
        self._cluster.vacate(pod, row)

    def keep(self, pod: Pod) -> None:
        """A pod placed here stays: it is assumed from now on."""
        _, row = self._placed[pod.uid]
        self._cluster.assume(pod, row, self._cluster.pending(pod))
        del self._placed[pod.uid]
        self._order[row].append(pod)

    def _remember_order(self, row: int) -> None:
        if row not in self._order:
            self._order[row] = list(self._cluster.table.pods[row])

    def hide(self) -> None:
        """Show the cluster as it is. Hiding twice does no harm."""
        if self._hidden:
            return
        self._hidden = True
        for pod, row in self._placed.values():
            self._cluster.vacate(pod, row)
        for pod, row in self._missing.values():
            self._cluster.occupy(pod, row)
        for row, order in self._order.items():
            self._cluster.restore_order(row, order)

    def show(self) -> None:
        """Show what is tried again, as before `hide`, without pods that are gone or that got a node meanwhile."""
        self._hidden = False
        self._order.clear()
        pods = self._cluster.pods
        self._missing = {uid: at for uid, at in self._missing.items() if uid in pods and pods[uid].row == at[1]}
        self._placed = {uid: at for uid, at in self._placed.items() if uid in pods and pods[uid].row < 0}
        for uid, (_, row) in list(self._missing.items()):
            self._remember_order(row)
            pod = pods[uid].pod
            self._missing[uid] = (pod, row)
            self._cluster.vacate(pod, row)
        for pod, row in self._placed.values():
            self._remember_order(row)
            self._cluster.occupy(pod, row)
