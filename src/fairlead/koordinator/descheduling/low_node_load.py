"""LowNodeLoad: moves pods from nodes that are used too much to nodes that are used little, by what they really use.

A pass looks at one pool of nodes after the other. In a pool it finds the overloaded nodes that have been so for long
enough, the most used first, and evicts their pods, the cheapest first, until the node is below its high threshold or
the nodes that are used little have no room left for more. What a pod uses is taken off its node and off that room at
once, because metrics follow a minute later. Prod use has thresholds of its own and is looked at after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.koordinator.descheduling.anomaly import Detectors
from fairlead.koordinator.descheduling.node_load import (
    Amounts,
    LoadClass,
    NodeUse,
    PoolThresholds,
    classify,
    filled,
    measure,
    set_limits,
    weighted_use,
)
from fairlead.koordinator.descheduling.pod_order import covering, in_order

if TYPE_CHECKING:
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.descheduling.evictable import Evictor
    from fairlead.koordinator.descheduling.facts import ClusterFacts
    from fairlead.koordinator.descheduling.settings import LowNodeLoadSettings, NodePool


class LowNodeLoad:
    name = "LowNodeLoad"

    def __init__(self, settings: LowNodeLoadSettings, facts: ClusterFacts) -> None:
        self._settings, self._facts = settings, facts
        self._detectors = {prod: Detectors(settings.detector_timeout) for prod in (False, True)}

    def balance(self, nodes: Sequence[Node], evictor: Evictor, now: float) -> None:
        """One pass over all pools; nodes that a pool looked at are not looked at by those after it that select."""
        if self._settings.paused:
            return
        done: set[str] = set()
        for pool in self._settings.pools:
            selector = pool.selector
            chosen = (
                nodes
                if selector is None
                else [node for node in nodes if node.name not in done and selector.matches(node.labels)]
            )
            done |= self._pool(pool, chosen, evictor, now)

    def _pool(self, pool: NodePool, nodes: Sequence[Node], evictor: Evictor, now: float) -> set[str]:
        """Balance one pool; the overloaded nodes of it."""
        thresholds = filled(pool)
        uses = measure(self._facts, nodes, thresholds.low, now=now, expiration=self._settings.expiration)
        set_limits(uses, thresholds, by_deviation=pool.by_deviation)
        classes: dict[LoadClass, list[NodeUse]] = {one: [] for one in LoadClass}
        for use in uses.values():
            classes[classify(use)].append(use)
        sources = {prod: self._sources(pool, classes, now, prod=prod) for prod in (False, True)}
        if not any(sources.values()) or not self._has_room(classes, len(nodes), now):
            return set()
        balance = _Balance(self, pool, thresholds, uses, evictor, now)
        balance.run(sources, classes)
        for prod, found in sources.items():
            self._detectors[prod].relieved((use.node.name for use in found), now)
        return {use.node.name for use in classes[LoadClass.HIGH]}

    def _sources(
        self, pool: NodePool, classes: Mapping[LoadClass, list[NodeUse]], now: float, *, prod: bool
    ) -> list[NodeUse]:
        """The overloaded nodes that have been so for long enough, the most used first."""
        found = classes[LoadClass.PROD_HIGH if prod else LoadClass.HIGH]
        names = self._detectors[prod].overloaded((use.node.name for use in found), pool.anomaly, now)
        kept = [use for use in found if use.node.name in names]
        return sorted(kept, key=lambda use: (-weighted_use(use, pool.weights, prod=prod), use.node.name))

    def _has_room(self, classes: Mapping[LoadClass, list[NodeUse]], nodes: int, now: float) -> bool:
        """Whether enough nodes are used little, and not all. Nodes that are used little are no longer suspected."""
        low = 0
        for one in (LoadClass.LOW, LoadClass.PROD_LOW, LoadClass.BOTH_LOW):
            low += len(classes[one])
            self._detectors[one is LoadClass.PROD_LOW].reset((use.node.name for use in classes[one]), now)
        return low > self._settings.number_of_nodes and 0 < low < nodes

    def calm(self, node: str, now: float, *, prod: bool) -> None:
        """A node is below its threshold again."""
        self._detectors[prod].reset([node], now)

    def may_move(self, pod: Pod, evictor: Evictor) -> bool:
        settings = self._settings
        if not settings.namespaces.has(pod.namespace) or not evictor.may_evict(pod):
            return False
        return not settings.selectors or any(one.matches(pod.labels) for one in settings.selectors)

    @property
    def settings(self) -> LowNodeLoadSettings:
        return self._settings

    def fits(self, pod: Pod, node: Node) -> bool:
        return self._facts.fits(pod, node)


@dataclass(slots=True)
class _Balance:
    """One pass over one pool."""

    plugin: LowNodeLoad
    pool: NodePool
    thresholds: PoolThresholds
    uses: Mapping[str, NodeUse]
    evictor: Evictor
    now: float

    def run(self, sources: Mapping[bool, list[NodeUse]], classes: Mapping[LoadClass, list[NodeUse]]) -> None:
        low, both, prod_low = classes[LoadClass.LOW], classes[LoadClass.BOTH_LOW], classes[LoadClass.PROD_LOW]
        both_room = self._room(both, prod=False)
        prod_room, prod_both_room = self._room(prod_low, prod=True), self._room(both, prod=True)
        room = _sum(self._room(low, prod=False), both_room)
        self._move(sources[False], [*low, *both], room, prod=False)
        left = {name: min(amount, room[name]) for name, amount in both_room.items()}
        shared = {name: min(amount, left[name]) for name, amount in prod_both_room.items()}
        self._move(sources[True], [*prod_low, *both], _sum(prod_room, shared), prod=True)

    def _room(self, nodes: Iterable[NodeUse], *, prod: bool) -> Amounts:
        """How much more nodes can use before they are over their high thresholds."""
        room = dict.fromkeys(self.thresholds.low, 0)
        for use in nodes:
            top, used = use.limits.top(prod=prod), use.use(prod=prod)
            for name in room:
                room[name] += top.get(name, 0) - used.get(name, 0)
        return room

    def _move(self, sources: Sequence[NodeUse], targets: Sequence[NodeUse], room: Amounts, *, prod: bool) -> None:
        if not targets:
            return
        for source in sources:
            pods = source.prod_pods if prod else source.pods
            removable = [pod for pod in pods if self._is_removable(pod, source, targets, prod=prod)]
            over, top = source.over(prod=prod), source.limits.top(prod=prod)
            excess = {name: amount - top[name] for name, amount in over.items()}
            weights = {name: self.pool.weights.get(name, 0) for name in excess}

            def cover(
                pod: Pod, source: NodeUse = source, excess: Amounts = excess, weights: Amounts = weights
            ) -> float | None:
                used = source.by_pod.get(pod.key)
                return None if used is None else covering(used, excess, weights)

            self._evict(in_order(removable, cover), source, room, prod=prod)

    def _is_removable(self, pod: Pod, source: NodeUse, targets: Sequence[NodeUse], *, prod: bool) -> bool:
        if not self.plugin.may_move(pod, self.evictor):
            return False
        used = source.by_pod.get(pod.key)
        return not self.plugin.settings.node_fit or (
            used is not None and self._takes_room(pod, used, targets, prod=prod)
        )

    def _takes_room(self, pod: Pod, used: Mapping[str, int], targets: Sequence[NodeUse], *, prod: bool) -> bool:
        """Whether a target takes the pod and stays below its high threshold; the first that does is charged."""
        for target in targets:
            if not self.plugin.fits(pod, target.node):
                continue
            there, top = target.use(prod=prod), target.limits.top(prod=prod)
            if all(there[name] + used.get(name, 0) <= top[name] for name in top if name in there):
                for name in top:
                    there[name] = there.get(name, 0) + used.get(name, 0)
                return True
        return False

    def _evict(self, pods: Iterable[Pod], source: NodeUse, room: Amounts, *, prod: bool) -> None:
        for pod in pods:
            if not source.over(prod=prod):
                self.plugin.calm(source.node.name, self.now, prod=prod)
                return
            if any(amount <= 0 for amount in room.values()):
                return
            if not self.plugin.may_move(pod, self.evictor):
                continue
            reason = self._reason(source, prod=prod)
            if not self.evictor.evict(pod, LowNodeLoad.name, reason, dry_run=self.plugin.settings.dry_run):
                continue
            used = source.by_pod.get(pod.key)
            if used is None:
                continue
            for name in room:
                amount = 1 if name == "pods" else used.get(name, 0)
                room[name] -= amount
                source.used[name] = source.used.get(name, 0) - amount
                if prod:
                    source.prod_used[name] = source.prod_used.get(name, 0) - amount

    def _reason(self, source: NodeUse, *, prod: bool) -> str:
        over, word = source.over(prod=prod), "prod" if prod else "node"
        percents = self.thresholds.prod_high if prod else self.thresholds.high
        said = (
            f"{word} {name} usage({source.percent(name, prod=prod):.2f}%)>threshold({percents.get(name, 0.0):.2f}%)"
            for name in sorted(self.thresholds.high)
            if name in over
        )
        return f"node is overutilized, {', '.join(said)}"


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> Amounts:
    return {name: first.get(name, 0) + second.get(name, 0) for name in (*first, *second)}
