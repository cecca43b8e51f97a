"""NodeShards: which nodes are a scheduler's own at the moment, and what it writes about them.

    own = what its NodeShard desires - what any other NodeShard still has in use

A controller elsewhere writes what is desired; the schedulers write what they use. A node that moves is first given up
by its old scheduler and then taken by the new one, so no node has two owners. Nothing is written while a round runs:
the round keeps the nodes with which it began.

If the scheduler's own NodeShard is missing, it reports that and keeps the nodes that it had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.flow import Verb, Write
from fairlead.volcano.kinds import VC_NODE_SHARD
from fairlead.volcano.rounds.partition import Sharding

if TYPE_CHECKING:
    from collections import deque

    from fairlead.core.state.object_index import KindIndex
    from fairlead.volcano.records.topology import NodeShard
    from fairlead.volcano.rounds.partition import Partition

_NO_SHARD = "sharding is enabled but there is no NodeShard {name} for this scheduler"


class NodeShards:
    """`kind_index` has all of them."""

    def __init__(self, kind_index: KindIndex, partition: Partition, complaints: deque[str]) -> None:
        self.partition = partition
        self._kind_index = kind_index
        self._complaints = complaints
        self._seen = -1
        self._written: NodeShard | None = None
        self._own: frozenset[str] = frozenset()

    def own(self) -> frozenset[str]:
        """The names of the nodes that this scheduler may use now."""
        self._catch_up()
        return self._own

    def writes(self) -> list[Write]:
        """Writes that bring our NodeShard's status up to date. To be called between rounds."""
        self._catch_up()
        if self.partition.sharding is Sharding.NONE:
            return []
        shard: NodeShard | None = self._kind_index.get(self.partition.shard)
        if shard is None or shard is self._written:
            return []
        self._written = shard
        status = (self._own, self._own - shard.desired, shard.desired - self._own)
        if status == (shard.in_use, shard.to_remove, shard.to_add):
            return []
        body = dict(zip(("nodesInUse", "nodesToRemove", "nodesToAdd"), map(sorted, status), strict=True))
        return [Write(Verb.PATCH, VC_NODE_SHARD, "", shard.name, {"status": body}, subresource="status")]

    def _catch_up(self) -> None:
        if self._seen == self._kind_index.version or self.partition.sharding is Sharding.NONE:
            return
        self._seen, self._written = self._kind_index.version, None
        shard: NodeShard | None = self._kind_index.get(self.partition.shard)
        if shard is None:
            self._complaints.append(_NO_SHARD.format(name=self.partition.shard))
            return
        others = (one.in_use for name, one in self._kind_index.items() if name != shard.name)
        self._own = shard.desired.difference(*others)
