"""Promised: the nominated pods by row, kept up to date instead of being collected for every attempt.

With a thousand pods that wait for their victims to leave, most nominations are the same from one attempt to the next. A
row can have changed if the Nominator names its node, or if the pod that was in flight the last time is nominated there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fairlead.core.state.touchlog import TouchLog

if TYPE_CHECKING:
    from fairlead.core.engine.queue.nominator import Nominator
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.table import NodeTable


class Promised:
    def __init__(self, nominator: Nominator, table: NodeTable) -> None:
        self._nominator = nominator
        self._table = table
        self._by_row: dict[int, list[Pod]] = {}
        self.log = TouchLog()
        """The rows whose nominations have changed."""
        self._mark = -1
        self._in_flight = ""
        """The node to which the pod of the last attempt is nominated; a stub stood for it then."""

    def while_placing(self, pod: Pod) -> Mapping[int, list[Pod]]:
        """Nominated pods by row, for an attempt at one pod."""
        nominator = self._nominator
        own = nominator.node_of(pod.uid)
        stale = nominator.take_changed()
        if own or self._in_flight:
            stale |= {own, self._in_flight}
        if self._mark != self._table.static.mark:
            self._mark = self._table.static.mark
            for known in self._by_row:
                self.log.touch(known)
            self._by_row.clear()
            stale = set(nominator.nodes)
        for name in stale:
            row = self._table.row_of.get(name)
            if row is not None:
                self._refresh(row, name)
        self._in_flight = own
        return self._by_row

    def while_placing_many(self, pods: Iterable[Pod]) -> Mapping[int, list[Pod]]:
        """The same for an attempt at the members of a gang, which are all in flight at once, so that stubs stand for
        them: collected anew, now and the next time."""
        self._mark = -1
        rows, in_flight = self._table.row_of, frozenset(pod.uid for pod in pods)
        return {rows[name]: self._nominator.on_node(name, in_flight) for name in self._nominator.nodes if name in rows}

    def _refresh(self, row: int, name: str) -> None:
        pods = self._nominator.on_node(name)
        if pods == self._by_row.get(row, []):
            return
        self.log.touch(row)
        if pods:
            self._by_row[row] = pods
        else:
            del self._by_row[row]
