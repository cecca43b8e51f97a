"""Locks of nodes: an annotation with the time, set before a pod that gets cards is bound.

The device plugin on the node removes the lock when it has handed out the cards; a lock that is older than five minutes
does not count. For Ascend cards the lock is not needed once the pod has its annotations, so it is respected but not
set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Plugin
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.reasons import SKIP, SUCCESS, Status, failed
from fairlead.core.model.times import seconds_of, timestamp

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Reply
    from fairlead.core.model.node import Node
    from fairlead.core.state.cluster import Cluster
    from fairlead.volcano.rounds.round import Round

_EXPIRES_AFTER = 300.0


class NodeLocks:
    """The locks as a round sees them: those that nodes show, and those that it sets itself."""

    def __init__(self, round: Round) -> None:
        self._round = round
        self._set: set[tuple[int, str]] = set()

    def why_not(self, row: int, lock: str) -> str:
        """Why a node cannot be locked; empty if it can."""
        table = self._round.cluster.table
        if (row, lock) in self._set:
            return f"node {table.name(row)} has been locked within 5 minutes"
        node = table.nodes[row]
        since = node.annotations.get(lock) if node is not None else None
        if since is None:
            return ""
        try:
            expired = self._round.now - seconds_of(since) > _EXPIRES_AFTER
        except ValueError:
            return f'parsing time "{since}" of the lock {lock}'
        return "" if expired else f"node {table.name(row)} has been locked within 5 minutes"

    def set(self, row: int, lock: str) -> None:
        self._set.add((row, lock))

    def give_back(self, row: int, lock: str) -> None:
        self._set.discard((row, lock))


class NodeLock(Plugin):
    """Before a pod is bound: lock its node, if somebody noted under this name with which annotation."""

    name = "NodeLock"

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status:
        return SUCCESS if cycle.notes.get(self.name) else SKIP

    def pre_bind(self, cycle: Cycle, row: int) -> LockNode | None:
        lock, node = cycle.notes.get(self.name), cycle.cluster.table.nodes[row]
        return LockNode(node, lock) if lock and node is not None else None


class LockNode:
    """One write that is refused if the node changed meanwhile: then somebody else may have locked it."""

    def __init__(self, node: Node, lock: str) -> None:
        self._node, self._lock = node, lock

    def start(self, now: float) -> list[Write]:
        annotations, version = {self._lock: timestamp(now)}, self._node.resource_version
        body = {"metadata": {"annotations": annotations, "resourceVersion": version}}
        return [Write(Verb.PATCH, kinds.NODE, "", self._node.name, body=body)]

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | None:
        for reply in replies:
            return SUCCESS if reply.error is None else failed(f"locking node {self._node.name}: {reply.error.message}")
        return None

    def wake_at(self) -> float | None:
        return None
