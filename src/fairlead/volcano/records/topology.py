"""The network as Volcano describes it: HyperNodes and the tree they make, NUMA layouts of nodes, and shards of nodes.

A HyperNode is a part of the network with a tier: the lower, the closer its members. Members are nodes, by name, pattern
or labels, or other HyperNodes by name. All of them hang from a virtual root, one tier above the highest, that has every
node; so there is always a tree, if only of one.

Invariant of HyperNodeTree: while it is `ready`, every HyperNode has one parent, parents lead to the root, and the nodes
of one contain those of its children. A HyperNode with two parents, or a circle, makes it not ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.cel.patterns import BadPattern, Pattern, pattern
from fairlead.core.model.documents import compiler, read_units
from fairlead.core.model.number_sets import parse_number_set
from fairlead.core.model.selectors import NOTHING, LabelSelector, SelectorError, selector_from_document

ROOT = "<cluster-top-hypernode>"


@dataclass(frozen=True, slots=True)
class HyperNodeMember:
    """Who belongs to a HyperNode: a HyperNode by name, or nodes by name, by pattern (found anywhere in the name) or by
    labels."""

    is_node: bool
    name: str = ""
    pattern: Pattern | None = None
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class HyperNode:
    name: str
    tier: int
    tier_name: str
    members: tuple[HyperNodeMember, ...]


@compiler("HyperNode")
def compile_hyper_node(document: Mapping[str, Any]) -> HyperNode:
    spec = document.get("spec") or {}
    return HyperNode(
        name=document["metadata"]["name"],
        tier=spec.get("tier") or 0,
        tier_name=spec.get("tierName") or "",
        members=tuple(_member(member) for member in spec.get("members") or ()),
    )


def _member(document: Mapping[str, Any]) -> HyperNodeMember:
    """Patterns and selectors that cannot be read have no members, as for the original."""
    selector = document.get("selector") or {}
    pattern = (selector.get("regexMatch") or {}).get("pattern")
    return HyperNodeMember(
        is_node=document.get("type") == "Node",
        name=(selector.get("exactMatch") or {}).get("name") or "",
        pattern=None if pattern is None else _pattern(pattern),
        selector=_labels(selector.get("labelMatch")),
    )


def _pattern(text: str) -> Pattern | None:
    try:
        return pattern(text)
    except BadPattern:
        return None


def _labels(document: Mapping[str, Any] | None) -> LabelSelector | None:
    if not document or not (document.get("matchLabels") or document.get("matchExpressions")):
        return None
    try:
        return selector_from_document(document)
    except SelectorError:
        return NOTHING


class HyperNodeTree:
    """All HyperNodes under the virtual root. `nodes` are the nodes there are, with their labels."""

    root = ROOT

    def __init__(self, hyper_nodes: Iterable[HyperNode], nodes: Mapping[str, Mapping[str, str]]) -> None:
        self._known = {one.name: one for one in hyper_nodes}
        self._parents: dict[str, str] = {}
        self._children: dict[str, list[str]] = {name: [] for name in (*sorted(self._known), ROOT)}
        self.ready = True
        self._link()
        tiers = [one.tier for one in self._known.values()]
        self._root_tier = max([1, *(tier + 1 for tier in tiers)])
        self.tiers: tuple[int, ...] = tuple(sorted({*tiers, self._root_tier}))
        """All tiers there are, the root's last."""
        self._nodes: dict[str, frozenset[str]] = {ROOT: frozenset(nodes)}
        for name in self._known:
            self._gather(name, nodes, frozenset())
        self._leaves = {node: name for name in reversed(self.in_tier(self.tiers[0])) for node in self.nodes_of(name)}
        self._tier_names = {one.tier_name: one.tier for one in self._known.values() if one.tier_name}

    # ---- building ----

    def _link(self) -> None:
        for parent, child in self._claims():
            if self._parents.setdefault(child, parent) != parent:
                self.ready = False
        for name in self._known:
            self._parents.setdefault(name, ROOT)
        for name in sorted(self._known):
            self._children[self._parents[name]].append(name)
            if self.ancestors(name)[-1] != ROOT:
                self.ready = False

    def _claims(self) -> Iterator[tuple[str, str]]:
        """The HyperNodes that name each HyperNode as a member. Members that do not exist are left out."""
        for name in sorted(self._known):
            for member in self._known[name].members:
                if not member.is_node and member.name in self._known:
                    yield name, member.name

    def _gather(self, name: str, nodes: Mapping[str, Mapping[str, str]], above: frozenset[str]) -> frozenset[str]:
        """The nodes of a HyperNode, those of its children first."""
        found = self._nodes.get(name)
        if found is None:
            own = {node for member in self._known[name].members if member.is_node for node in _nodes_of(member, nodes)}
            for child in self._children[name]:
                if child not in above:
                    own |= self._gather(child, nodes, above | {name})
            found = self._nodes[name] = frozenset(own)
        return found

    # ---- reading ----

    def __contains__(self, name: object) -> bool:
        return name in self._children

    def __iter__(self) -> Iterator[str]:
        """All of them by name, the root last."""
        return iter(self._children)

    def nodes_of(self, name: str) -> frozenset[str]:
        return self._nodes.get(name, frozenset())

    def children(self, name: str) -> tuple[str, ...]:
        return tuple(self._children.get(name, ()))

    def tier(self, name: str) -> int:
        known = self._known.get(name)
        return self._root_tier if known is None else known.tier

    def tier_title(self, name: str) -> str:
        """What a HyperNode's tier is called, where it is called anything."""
        known = self._known.get(name)
        return (known.tier_name if known is not None else "") or f"HyperNode of tier {self.tier(name)}"

    def tier_named(self, tier_name: str) -> int | None:
        return self._tier_names.get(tier_name)

    def in_tier(self, tier: int) -> list[str]:
        return [name for name in self._children if self.tier(name) == tier]

    def ancestors(self, name: str) -> list[str]:
        """It, its parent, and so on."""
        line = [name]
        while (parent := self._parents.get(line[-1])) is not None and parent not in line:
            line.append(parent)
        return line

    def lowest_common(self, one: str, other: str) -> str:
        """The first of the other's line that is in the first one's. An empty argument gives the other one; where there
        is none, the empty text."""
        if not one or not other:
            return one or other
        line = set(self.ancestors(one))
        return next((name for name in self.ancestors(other) if name in line), "")

    def lowest_containing(self, nodes: Iterable[str]) -> str:
        """The HyperNode of the lowest tier that has all these nodes; empty if some node is not even below the root."""
        wanted = frozenset(nodes)
        holding = [name for name in self._children if wanted <= self._nodes[name]]
        return min(holding, key=self.tier, default="")

    def leaf_of(self, node: str) -> str:
        """The HyperNode of the very lowest tier there is that has a node; empty if none does."""
        return self._leaves.get(node, "")


def _nodes_of(member: HyperNodeMember, nodes: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    if member.name in nodes:
        yield member.name
    if member.pattern is not None:
        yield from (name for name in nodes if member.pattern.matches(name))
    if member.selector is not None:
        yield from (name for name, labels in nodes.items() if member.selector.matches(labels))


@dataclass(frozen=True, slots=True)
class Cpu:
    """Where a CPU sits."""

    numa: int
    socket: int
    core: int


@dataclass(frozen=True, slots=True)
class NumaTopology:
    """A node's NUMA layout: its kubelet's policies, its CPUs, which of them can be had, and how many are reserved (in
    thousandths)."""

    node: str
    cpu_policy: str
    topology_policy: str
    cpus: Mapping[int, Cpu]
    allocatable: Mapping[str, frozenset[int]]
    reserved: Mapping[str, int]


@compiler("Numatopology")
def compile_numa_topology(document: Mapping[str, Any]) -> NumaTopology:
    spec = document.get("spec") or {}
    policies, reserved = spec.get("policies") or {}, spec.get("resReserved") or {}
    return NumaTopology(
        node=document["metadata"]["name"],
        cpu_policy=policies.get("CPUManagerPolicy") or "",
        topology_policy=policies.get("TopologyManagerPolicy") or "",
        cpus={int(cpu): _cpu(place) for cpu, place in (spec.get("cpuDetail") or {}).items()},
        allocatable={
            resource: parse_number_set(held.get("allocatable") or "")
            for resource, held in (spec.get("numares") or {}).items()
        },
        reserved=read_units(reserved, "spec.resReserved"),
    )


def _cpu(place: Mapping[str, Any]) -> Cpu:
    return Cpu(place.get("numa") or 0, place.get("socket") or 0, place.get("core") or 0)


@dataclass(frozen=True, slots=True)
class NodeShard:
    """Nodes that one scheduler should have, and those it has, will give up and waits for, as it says."""

    name: str
    desired: frozenset[str]
    in_use: frozenset[str]
    to_remove: frozenset[str] = frozenset()
    to_add: frozenset[str] = frozenset()


@compiler("NodeShard")
def compile_node_shard(document: Mapping[str, Any]) -> NodeShard:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    return NodeShard(
        name=document["metadata"]["name"],
        desired=frozenset(spec.get("nodesDesired") or ()),
        in_use=frozenset(status.get("nodesInUse") or ()),
        to_remove=frozenset(status.get("nodesToRemove") or ()),
        to_add=frozenset(status.get("nodesToAdd") or ()),
    )
