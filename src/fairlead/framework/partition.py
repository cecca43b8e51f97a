"""Partition: the part of a cluster that a scheduler in rounds answers for, and the nodes it prefers or keeps to.

Three ways to divide a cluster, Volcano's all: nodes by labels; nodes, groups and pods by a ring of replicas; and nodes
by NodeShards, objects that somebody else writes and that move while everything runs. What is outside by the first two
does not exist for the scheduler, except that pods on its nodes take up room, whoever placed them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.model.group import PodGroup
    from fairlead.model.node import Node
    from fairlead.model.pod import Pod
    from fairlead.model.ring import Ring


class Sharding(Enum):
    """What nodes outside of one's NodeShard are: like any other, less preferred, or out of bounds."""

    NONE = "none"
    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True)
class Partition:
    """`labels` are `key:value`; a node needs one of them, if there are any. `replica` is this scheduler's name on the
    ring; `shard` is the NodeShard that is its own."""

    labels: frozenset[str] = frozenset()
    ring: Ring | None = None
    replica: str = ""
    sharding: Sharding = Sharding.NONE
    shard: str = "volcano"

    @property
    def whole(self) -> bool:
        """Whether it is all nodes, groups and pods; NodeShards aside."""
        return self.ring is None and not self.labels

    def has_node(self, node: Node) -> bool:
        if not self._mine(node.name):
            return False
        return not self.labels or any(f"{key}:{value}" in self.labels for key, value in node.labels.items())

    def has_group(self, group: PodGroup) -> bool:
        return self._mine(group.first_owner or group.name)

    def schedules(self, pod: Pod) -> bool:
        """Whether a pod is ours to place, as far as the ring is concerned."""
        return self._mine(pod.first_owner or pod.name)

    def sees(self, pod: Pod) -> bool:
        """Whether a pod exists for us: it is ours, or on a node that is."""
        return self.schedules(pod) or (bool(pod.node_name) and self._mine(pod.node_name))

    def _mine(self, name: str) -> bool:
        return self.ring is None or self.ring.owner(name) == self.replica


WHOLE = Partition()


def node_labels(entries: Iterable[str]) -> frozenset[str]:
    """`--node-selector`: entries `key:value`; what has no colon or nothing after it is left out."""
    found = set()
    for entry in entries:
        key, _, value = entry.partition(":")
        if value:
            found.add(f"{key.strip()}:{value.strip()}")
    return frozenset(found)
