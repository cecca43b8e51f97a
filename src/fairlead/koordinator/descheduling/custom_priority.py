"""CustomPriority: moves pods from expensive nodes to cheaper ones that have room for what they request.

Tiers of nodes are listed from expensive to cheap. With BestEffort every pod that fits some cheaper node goes, small
requests first; with DrainNode the pods of a node go only if all of them find room together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.koordinator.descheduling.settings import DRAIN_NODE, CustomPrioritySettings

if TYPE_CHECKING:
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.descheduling.evictable import Evictor
    from fairlead.koordinator.descheduling.facts import ClusterFacts

_MISSES = 5
"""So many pods in a row that fit nowhere end the search on a node."""
_COUNTED = ("cpu", "memory", "pods")


class CustomPriority:
    name = "CustomPriority"

    def __init__(self, settings: CustomPrioritySettings, facts: ClusterFacts) -> None:
        self._settings, self._facts = settings, facts

    def balance(self, nodes: Sequence[Node], evictor: Evictor, now: float) -> None:
        settings = self._settings
        if settings.paused or len(settings.order) < 2:
            return
        chosen = [node for node in nodes if settings.nodes is None or settings.nodes.matches(node.labels)]
        tiers: dict[str, list[Node]] = {tier.name: [] for tier in settings.order}
        for node in sorted(chosen, key=lambda one: one.name):
            first = next((tier.name for tier in settings.order if tier.selector.matches(node.labels)), None)
            if first is not None:
                tiers[first].append(node)
        filled = [(name, found) for name, found in tiers.items() if found]
        move = self._drain if settings.mode == DRAIN_NODE else self._move
        for at, (name, sources) in enumerate(filled[:-1]):
            move(name, sources, [node for _, more in filled[at + 1 :] for node in more], evictor)

    def _movable(self, node: Node, evictor: Evictor) -> list[Pod]:
        """The pods of a node that may go, small requests first."""
        found = [
            pod for key in self._facts.on_node.get(node.name, ()) if self._may(pod := self._facts.pods[key], evictor)
        ]
        return sorted(found, key=lambda pod: (pod.request["cpu"], pod.request["memory"], pod.namespace, pod.name))

    def _may(self, pod: Pod, evictor: Evictor) -> bool:
        settings = self._settings
        if not settings.namespaces.has(pod.namespace) or not evictor.may_evict(pod):
            return False
        return not settings.selectors or any(one.matches(pod.labels) for one in settings.selectors)

    def _move(self, tier: str, sources: Sequence[Node], targets: Sequence[Node], evictor: Evictor) -> None:
        reason = f"evicting from {tier} priority resource to lower priority resource"
        for source in sources:
            for pod in self._fitting(self._movable(source, evictor), targets):
                evictor.evict(pod, self.name, reason, dry_run=self._settings.dry_run)

    def _fitting(self, pods: Sequence[Pod], targets: Sequence[Node]) -> list[Pod]:
        if not self._settings.node_fit:
            return list(pods)
        found, misses = [], 0
        for pod in pods:
            if any(self._facts.fits(pod, node) for node in targets):
                found.append(pod)
                misses = 0
                continue
            misses += 1
            if misses >= _MISSES:
                break
        return found

    def _drain(self, tier: str, sources: Sequence[Node], targets: Sequence[Node], evictor: Evictor) -> None:
        room = {node.name: self._room(node) for node in targets}
        for source in sources:
            pods = self._movable(source, evictor)
            left = self._placed(pods, targets, room) if pods else None
            if left is None:
                continue
            if self._settings.cordons and not self._settings.dry_run:
                evictor.cordon(source, cordoned=True)
            reason = f"drain node {source.name} (sourcePriority={tier})"
            for pod in pods:
                if not evictor.evict(pod, self.name, reason, dry_run=self._settings.dry_run):
                    if self._settings.cordons:
                        evictor.cordon(source, cordoned=False)
                    break
            room = left

    def _room(self, node: Node) -> dict[str, int]:
        free = self._facts.free(node)
        return {name: free.get(name, 0) for name in _COUNTED}

    def _placed(
        self, pods: Sequence[Pod], targets: Sequence[Node], room: Mapping[str, Mapping[str, int]]
    ) -> dict[str, dict[str, int]] | None:
        """What is left of the targets once all pods are there; None if not all find room."""
        left = {name: dict(amounts) for name, amounts in room.items()}
        for pod in pods:
            target = next((node for node in targets if self._takes(pod, node, left[node.name])), None)
            if target is None:
                return None
            for name in left[target.name]:
                left[target.name][name] -= pod.request.get(name, 0)
        return left

    def _takes(self, pod: Pod, node: Node, left: Mapping[str, int]) -> bool:
        if self._settings.node_fit and not self._facts.fits(pod, node):
            return False
        return all(pod.request.get(name, 0) <= amount for name, amount in left.items())
