"""AlikeNodes: nodes of the cluster that are alike, and trials with more or fewer of them.

Nodes are alike if they offer the same, have the same taints, and differ in no label but their name. A node that is
added in a trial is a copy of one of them under a new name; devices and volumes that are known by the node's name do not
come with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.model.flow import Happened
from fairlead.core.model.quantity import format_quantity

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.trial import Trial
    from fairlead.core.model.node import Node
    from fairlead.core.state.cluster import Cluster

HOSTNAME = "kubernetes.io/hostname"
_SHAPES = 8
"""How many shapes are looked at, the most common first."""


@dataclass(frozen=True, slots=True)
class AlikeNodes:
    example: Node
    count: int
    differs: tuple[tuple[str, str], ...] = ()
    """Labels and taints by which it is told apart from shapes that offer the same."""

    @property
    def says(self) -> str:
        """What such a node offers, in words."""
        offers = self.example.allocatable
        wanted = [name for name in offers if name in ("cpu", "memory") or ("/" in name and offers[name])]
        return ", ".join(f"{name} {format_quantity(offers[name], name)}" for name in wanted)


def shapes_of(cluster: Cluster) -> list[AlikeNodes]:
    """Shapes of nodes that take pods, the most common first."""
    alike: dict[object, list[Node]] = {}
    for row in cluster.table.row_of.values():
        node = cluster.table.nodes[row]
        if node is None or node.unschedulable:
            continue
        labels = frozenset((key, value) for key, value in node.labels.items() if key != HOSTNAME)
        alike.setdefault((frozenset(node.allocatable.items()), node.taints, labels), []).append(node)
    found = [AlikeNodes(nodes[0], len(nodes)) for nodes in alike.values()]
    most = sorted(found, key=lambda shape: -shape.count)[:_SHAPES]
    return [replace(one, differs=_differs(one, [other for other in most if other.says == one.says])) for one in most]


def _differs(shape: AlikeNodes, others: Sequence[AlikeNodes]) -> tuple[tuple[str, str], ...]:
    labels = {key for one in others for key in one.example.labels if key != HOSTNAME}
    told = [
        (key, shape.example.labels.get(key, ""))
        for key in sorted(labels)
        if len({one.example.labels.get(key) for one in others}) > 1
    ]
    if len({one.example.taints for one in others}) > 1:
        told.append(
            ("taints", " ".join(f"{one.key}={one.value}:{one.effect}" for one in shape.example.taints) or "none")
        )
    return tuple(told)


def add_nodes(trial: Trial, shape: AlikeNodes, count: int) -> None:
    for number in range(count):
        name = f"{shape.example.name}-new-{number}"
        labels = {**shape.example.labels, HOSTNAME: name}
        trial.take_node(Happened.ADDED, replace(shape.example, name=name, uid=f"{name}-uid", labels=labels))
