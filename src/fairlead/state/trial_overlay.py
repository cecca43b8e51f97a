"""TrialOverlay: what a round pretends about the node table, lifted off again whenever somebody else needs the truth.

A round takes minutes of decisions and is interrupted between them. While it runs, the table shows what it tried: pods
placed or pipelined that are not, and pods gone that are there. `lift` takes all that away, `lay` puts it back; what is
committed becomes part of the table through `keep`.

Invariant: after `lift`, the table is as if the overlay had never been, the pods of each row in their old order, and
those committed meanwhile at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.model.pod import Pod
    from fairlead.state.cluster import Cluster


class TrialOverlay:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._placed: dict[str, tuple[Pod, int]] = {}
        self._missing: dict[str, tuple[Pod, int]] = {}
        self._order: dict[int, list[Pod]] = {}
        self._lifted = False

    def occupy(self, pod: Pod, row: int) -> None:
        """Pretend that a pod is on a row (again)."""
        self._remember(row)
        if self._missing.pop(pod.uid, None) is None:
            if pod.uid in self._placed:
                return
            self._placed[pod.uid] = (pod, row)
        self._cluster.occupy(pod, row)

    def vacate(self, pod: Pod, row: int) -> None:
        """Pretend that a pod is not on a row."""
        if pod.uid in self._missing:
            return
        self._remember(row)
        if self._placed.pop(pod.uid, None) is None:
            self._missing[pod.uid] = (pod, row)
        self._cluster.vacate(pod, row)

    def keep(self, pod: Pod) -> None:
        """A pod placed here stays: it is assumed from now on."""
        _, row = self._placed.pop(pod.uid)
        self._cluster.assume(pod, row)
        self._order[row].append(pod)

    def _remember(self, row: int) -> None:
        if row not in self._order:
            self._order[row] = list(self._cluster.table.pods[row])

    def lift(self) -> None:
        """Show the truth. Doing it twice does no harm."""
        if self._lifted:
            return
        self._lifted = True
        for pod, row in self._placed.values():
            self._cluster.vacate(pod, row)
        for pod, row in self._missing.values():
            self._cluster.occupy(pod, row)
        for row, order in self._order.items():
            self._restore_order(row, order)

    def lay(self) -> None:
        """Pretend again, as before `lift`. Pods that are gone or settled meanwhile are left out."""
        self._lifted = False
        self._order.clear()
        pods = self._cluster.pods
        self._missing = {uid: at for uid, at in self._missing.items() if uid in pods and pods[uid].row == at[1]}
        self._placed = {uid: at for uid, at in self._placed.items() if uid in pods and pods[uid].row < 0}
        for uid, (_, row) in list(self._missing.items()):
            self._remember(row)
            pod = pods[uid].pod
            self._missing[uid] = (pod, row)
            self._cluster.vacate(pod, row)
        for pod, row in self._placed.values():
            self._remember(row)
            self._cluster.occupy(pod, row)

    def _restore_order(self, row: int, order: list[Pod]) -> None:
        pods = self._cluster.table.pods[row]
        place = {pod.uid: at for at, pod in enumerate(order)}
        pods.sort(key=lambda pod: place.get(pod.uid, len(order)))
