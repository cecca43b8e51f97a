"""A plan for a gang by the layers of the network: the smallest part of the cluster that can hold all of it.

Every node offers as many slots as pods of the gang fit on it one after the other; a part of the network offers the sum
of its nodes, in multiples where the gang wants them. Parts with more pods of the same selector come first, then those
that offer less (the gang fills them), then names. Inside a part, those that offer more come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import TYPE_CHECKING

from fairlead.koordinator.records.gangs import SELECTOR
from fairlead.koordinator.records.network import CLUSTER_LAYER, NODE_LAYER

if TYPE_CHECKING:
    from fairlead.core.state.table import NodeTable
    from fairlead.koordinator.records.gangs import GatherRule
    from fairlead.koordinator.records.network import ClusterNetwork


@dataclass(slots=True, eq=False)
class NetworkPart:
    """A part of the network: the cluster, a switch, or a node. `pods` are those with the gang's selector."""

    layer: str
    name: str
    above: NetworkPart | None = None
    inner: dict[str, NetworkPart] = field(default_factory=dict)
    slots: int = 0
    pods: int = 0
    score: int = 0

    def upward(self) -> Iterator[NetworkPart]:
        part: NetworkPart | None = self
        while part is not None:
            yield part
            part = part.above


def network_tree(network: ClusterNetwork, table: NodeTable) -> tuple[NetworkPart, dict[int, NetworkPart]]:
    """The parts of a network with all nodes that say where they are, and the nodes' own parts by row."""
    root = NetworkPart(CLUSTER_LAYER, "")
    leaves: dict[int, NetworkPart] = {}
    for row, node in table.alive_rows():
        at: NetworkPart | None = root
        for layer in network.layers:
            if layer.name == NODE_LAYER:
                name: str | None = node.name
            else:
                name = next((node.labels[label] for label in layer.labels if label in node.labels), None)
            if name is None or at is None:
                at = None
                break
            at = at.inner.setdefault(name, NetworkPart(layer.name, name, at))
        if at is not None:
            leaves[row] = at
    return root, leaves


def count_pods(leaves: Mapping[int, NetworkPart], table: NodeTable, selector: str) -> None:
    """Count the pods with a selector in every part."""
    if not selector:
        return
    for row, leaf in leaves.items():
        here = sum(pod.annotations.get(SELECTOR) == selector for pod in table.pods[row])
        for part in leaf.upward():
            part.pods += here


def add_slots(leaves: Mapping[int, NetworkPart], slots: Mapping[int, int]) -> None:
    for row, count in slots.items():
        if row in leaves:
            for part in leaves[row].upward():
                part.slots += count


def is_before(one: NetworkPart, other: NetworkPart, *, small: bool) -> bool:
    """Whether a part comes before another; `small` prefers those that offer less."""
    pairs = list(zip(one.upward(), other.upward(), strict=False))
    for a, b in pairs:
        if a.pods != b.pods:
            return a.pods > b.pods
    for a, b in pairs:
        if a.slots != b.slots:
            return (a.slots < b.slots) == small
    if one.score != other.score:
        return one.score > other.score
    return one.name < other.name


def ordered(parts: Sequence[NetworkPart], *, small: bool) -> list[NetworkPart]:
    def compare(one: NetworkPart, other: NetworkPart) -> int:
        return -1 if is_before(one, other, small=small) else 1

    return sorted(parts, key=cmp_to_key(compare))


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """Node names by pod name, or the parts that were looked at if there is no plan."""

    nodes: Mapping[str, str]
    looked_at: Sequence[NetworkPart] = ()


class NetworkSearch:
    """The search for a part of the network that can hold so many pods."""

    def __init__(self, root: NetworkPart, layers: Sequence[str], rules: Sequence[GatherRule]) -> None:
        self._root = root
        self.multiples = {rule.layer: rule.multiple for rule in rules if rule.multiple > 1}
        must = [rule.layer for rule in rules if rule.must]
        self._must = max(must, key=lambda layer: layers.index(layer) if layer in layers else -1, default="")
        """The lowest layer on which the gang must be together."""

    def plan(self, pods: Sequence[str]) -> NetworkPlan:
        if self.multiples:
            self._constrain(self._root)
        start = list(self._start())
        for candidate in ordered(self._candidates(start, len(pods)), small=True):
            given: dict[str, int] = {}
            if self._distribute(len(pods), candidate, given) >= len(pods):
                return NetworkPlan(_lay_out(sorted(pods), given))
        return NetworkPlan({}, start)

    def _constrain(self, part: NetworkPart) -> None:
        """Round the slots of every part down to its multiple, from the nodes up."""
        if part.layer != NODE_LAYER:
            for inner in part.inner.values():
                self._constrain(inner)
            part.slots = sum(inner.slots for inner in part.inner.values())
        part.slots = self._rounded(part, part.slots)

    def _rounded(self, part: NetworkPart, slots: int) -> int:
        multiple = self.multiples.get(part.layer, 1)
        return slots // multiple * multiple

    def _start(self) -> Iterator[NetworkPart]:
        """All parts of the layer on which the gang must be together, or the whole cluster."""
        if not self._must:
            yield self._root
            return
        layer = [self._root]
        while layer and not any(part.layer == self._must for part in layer):
            layer = [inner for part in layer for inner in part.inner.values()]
        yield from (part for part in layer if part.layer == self._must)

    def _candidates(self, start: Sequence[NetworkPart], wanted: int) -> list[NetworkPart]:
        """The parts with enough slots on the deepest layer that has any."""
        found: list[NetworkPart] = []
        layer = list(start)
        while layer:
            enough = [part for part in layer if part.slots >= wanted]
            found = enough or found
            layer = [inner for part in enough for inner in part.inner.values()]
        return found

    def _distribute(self, wanted: int, part: NetworkPart, given: dict[str, int]) -> int:
        """Hand out so many slots of a part to its nodes; returns how many it came to."""
        most = self._rounded(part, min(part.slots, wanted))
        if part.layer == NODE_LAYER:
            given[part.name] = most
            return most
        left = most
        for inner in ordered(list(part.inner.values()), small=False):
            left -= self._distribute(left, inner, given)
        return most - left


def _lay_out(pods: Sequence[str], given: Mapping[str, int]) -> dict[str, str]:
    """Pods in the order of names on nodes in their order."""
    places = [node for node, count in given.items() for _ in range(count)]
    return dict(zip(pods, places, strict=False))


Trial = Callable[[int, int], int]
"""The code of the verdict on a row for one more pod of the gang, if so many of it are there already."""


def slots_of(rows: Sequence[int], most: int, trial: Trial) -> tuple[dict[int, int], dict[int, int]]:
    """How many pods fit on each row one after the other, and the codes of the refusals that ended it."""
    slots: dict[int, int] = {}
    refused: dict[int, int] = {}
    for row in rows:
        slots[row] = most
        for count in range(most):
            code = trial(row, count)
            if code:
                slots[row], refused[row] = count, code
                break
    return slots, refused
