"""Partition: the part of a cluster that a Volcano scheduler is responsible for, and the nodes that it prefers or keeps
to.

Volcano has three ways to divide a cluster: nodes by labels; nodes, groups and pods by a ring of replicas; and nodes by
NodeShards, objects that a controller writes and that change while everything runs. What is outside by the first two
does not exist for the scheduler, except that pods on its nodes use resources there, whichever scheduler placed them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.group import PodGroup
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.volcano.records.ring import Ring


class Sharding(Enum):
    """How nodes outside of the scheduler's NodeShard are treated: like any other, less preferred, or never used."""

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
        """Whether it has all nodes, groups and pods; NodeShards are not considered."""
        return self.ring is None and not self.labels

    def has_node(self, node: Node) -> bool:
        if not self._mine(node.name):
            return False
        return not self.labels or any(f"{key}:{value}" in self.labels for key, value in node.labels.items())

    def has_group(self, group: PodGroup) -> bool:
        return self._mine(group.first_owner or group.name)

    def schedules(self, pod: Pod) -> bool:
        """Whether a pod is ours to place, by the ring of replicas."""
        return self._mine(pod.first_owner or pod.name)

    def sees(self, pod: Pod) -> bool:
        """Whether a pod exists for this scheduler: it is its own, or on one of its nodes."""
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
