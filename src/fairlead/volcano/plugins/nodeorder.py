"""nodeorder: kube-scheduler's scorers, each with its weight, over the candidates of a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.plugin import Plugin, takes_part
from fairlead.core.framework.profile import Profile
from fairlead.kube.affinity.plugin import InterPodAffinity
from fairlead.kube.nodes.images import ImageLocality
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from fairlead.kube.nodes.taints import TaintToleration
from fairlead.kube.resources.plugin import NodeResourcesBalancedAllocation, NodeResourcesFit
from fairlead.kube.spread.plugin import PodTopologySpread
from fairlead.volcano.plugins.predicates import follow_affinity
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task


_SCORING = ("pre_score", "score", "normalize_score")
_BALANCED = (("cpu", 1), ("memory", 1), ("nvidia.com/gpu", 1))


class NodeOrder(TierPlugin):
    """`scorers` with their weights; a weight of 0 leaves one out. Their answers for equal pods are cached, as in any
    other profile."""

    name = "nodeorder"

    def __init__(self, scorers: Sequence[tuple[Plugin, int]]) -> None:
        listed = [(plugin, weight) for plugin, weight in scorers if weight]
        self._plugins = tuple(plugin for plugin, _ in listed)
        points = {point: tuple(p for p in self._plugins if takes_part(p, point)) for point in _SCORING}
        self._profile = Profile("nodeorder", points, weights={plugin.name: weight for plugin, weight in listed})
        self._evaluator = Evaluator(self._profile)

    @classmethod
    def of(cls, arguments: Arguments) -> NodeOrder:
        """The scorers of a configuration, set up as Volcano sets them up: cpu and memory weigh the same, balance is
        scored by its value and not by its gain, and required pod affinity adds no score."""
        return cls([(scorer, arguments.whole(f"{name}.weight", weight)) for name, scorer, weight in _scorers()])

    def open(self, round: Round) -> None:
        self._round = round
        follow_affinity(self._plugins, round)

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        round = self._round
        cycle = Cycle(
            pod=task.pod,
            cluster=round.cluster,
            profile=self._profile,
            now=round.now,
            rng=round.rng,
            effects=round.effects,
        )
        self._evaluator.cache.results_for(cycle).catch_up(cycle)
        self._evaluator.pre_score(cycle, nodes)
        totals, _ = self._evaluator.score(cycle, nodes)
        return totals.astype(np.float64)


def _scorers() -> Iterator[tuple[str, Plugin, int]]:
    """Names in the configuration, scorers and default weights."""
    yield "leastrequested", NodeResourcesFit(resources=(("cpu", 50), ("memory", 50))), 1
    yield "mostrequested", _named(NodeResourcesFit(strategy="MostAllocated"), "NodeResourcesMostAllocated"), 0
    yield "nodeaffinity", NodeAffinityPlugin(), 2
    yield "podaffinity", InterPodAffinity(hard_pod_affinity_weight=0), 2
    yield "balancedresource", NodeResourcesBalancedAllocation(resources=_BALANCED, by_gain=False), 1
    yield "tainttoleration", TaintToleration(), 3
    yield "imagelocality", ImageLocality(), 1
    yield "podtopologyspread", PodTopologySpread(), 2


def _named(plugin: Plugin, name: str) -> Plugin:
    """A scorer under a name of its own: two of the same kind share a round."""
    plugin.name = name
    return plugin
