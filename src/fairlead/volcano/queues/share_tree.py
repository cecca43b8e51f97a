"""ShareTree: hierarchical dominant resource fairness, the shares of queues along their paths.

Pieces of work (Volcano's jobs) are leaves; an inner node is an element of a path, with a weight. A leaf that has what
it requests, or that requests a resource of which nothing is left, is saturated and counts with all it has; the others
are scaled to the smallest share among them, so that a parent is not charged for what one child has ahead of its
siblings.

Invariant after `update`: a node's share is the dominant share of what it counts for, and it is saturated if all its
children are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlead.volcano.queues.account import share_of
from fairlead.volcano.records.amounts import Amounts, total_of

Path = Sequence[str]
"""The names of a queue and those above it, from the root's, which is not looked at, down."""


@dataclass(slots=True)
class _Node:
    """`children` is None for a leaf."""

    weight: float
    allocated: Amounts
    request: Amounts = field(default_factory=Amounts)
    children: dict[str, _Node] | None = None
    share: float = 0.0
    saturated: bool = False

    def copy(self) -> _Node:
        children = None if self.children is None else {name: child.copy() for name, child in self.children.items()}
        return _Node(self.weight, self.allocated.copy(), self.request, children, self.share, self.saturated)


def _inner(weight: float) -> _Node:
    return _Node(weight, Amounts(), children={})


class ShareTree:
    def __init__(self, total: Amounts, root: _Node | None = None) -> None:
        self._total = total
        self._root = root or _inner(1.0)
        self._leaves: dict[str, _Node] = {}

    def copy(self) -> ShareTree:
        twin = ShareTree(self._total, self._root.copy())
        twin._leaves = dict(_leaves(twin._root))
        return twin

    # ---- leaves ----

    def put(self, uid: str, path: Path, weights: Sequence[float], *, request: Amounts, allocated: Amounts) -> None:
        """Add a leaf under a path. `weights` are those of the path's elements, 1 where there are fewer."""
        node = self._root
        for depth, name in enumerate(path[1:], start=1):
            assert node.children is not None
            child = node.children.get(name)
            if child is None:
                child = node.children[name] = _inner(weights[depth] if depth < len(weights) else 1.0)
            node = child
        assert node.children is not None
        leaf = node.children[uid] = _Node(1.0, allocated.copy(), request)
        self._leaves[uid] = leaf

    def give(self, uid: str, allocated: Amounts) -> None:
        """Set what a leaf has; `update` counts it."""
        self._leaves[uid].allocated = allocated.copy()

    def allocated(self, uid: str) -> Amounts:
        return self._leaves[uid].allocated

    # ---- counting ----

    def update(self) -> None:
        all_of_it = total_of(leaf.allocated for leaf in self._leaves.values())
        demanding = {name for name in self._total.names() if all_of_it.get(name) < self._total.get(name)}
        self._update(self._root, demanding)

    def _update(self, node: _Node, demanding: set[str]) -> None:
        if node.children is None:
            node.share = share_of(node.allocated, self._total)
            node.saturated = _saturated(node, demanding)
            return
        children = list(node.children.values())
        for child in children:
            self._update(child, demanding)
        smallest = min([1.0, *(child.share for child in children if child.share != 0 and not child.saturated)])
        node.allocated = total_of(
            child.allocated if child.saturated else child.allocated * (smallest / child.share)
            for child in children
            if child.share != 0
        )
        node.share = share_of(node.allocated, self._total)
        node.saturated = all(child.saturated for child in children)

    # ---- order ----

    def compare(self, left: Path, right: Path) -> float:
        """Below zero if the left path comes first. Level by level, a node that is not saturated comes before one that
        is, then the smaller weighted share first; the first level at which two nodes differ decides."""
        mine, theirs = self._line(left), self._line(right)
        for one, other in zip(mine, theirs, strict=False):
            if one.saturated != other.saturated:
                return 1 if one.saturated else -1
            gap = one.share / one.weight - other.share / other.weight
            if gap:
                return gap
        return 0

    def _line(self, path: Path) -> list[_Node]:
        line = [self._root]
        for name in path[1:]:
            child = (line[-1].children or {}).get(name)
            if child is None:
                break
            line.append(child)
        return line


def _leaves(node: _Node) -> list[tuple[str, _Node]]:
    found = []
    for name, child in (node.children or {}).items():
        found += [(name, child)] if child.children is None else _leaves(child)
    return found


def _saturated(leaf: _Node, demanding: set[str]) -> bool:
    for name in leaf.allocated.names():
        has, wants = leaf.allocated.get(name), leaf.request.get(name)
        if wants != 0 and (has >= wants or name not in demanding):
            return True
    return False
