"""nodeorder: kube-scheduler's scorers, each with its weight, over the candidates of a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.cycle import Cycle
from fairlead.framework.plugin import Plugin, takes_part
from fairlead.framework.profile import profile_of
from fairlead.framework.tiers import TierPlugin
from fairlead.model.reasons import Code
from fairlead.plugins.images import ImageLocality
from fairlead.plugins.node_affinity import NodeAffinity
from fairlead.plugins.pod_affinity import InterPodAffinity
from fairlead.plugins.resources import NodeResourcesBalancedAllocation, NodeResourcesFit
from fairlead.plugins.spread import PodTopologySpread
from fairlead.plugins.taints import TaintToleration
from fairlead.plugins.volcano.predicates import follow_affinity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Round, Task
    from fairlead.plugins.volcano.arguments import Arguments
    from fairlead.state.nodes import Nodes


_BALANCED = (("cpu", 1), ("memory", 1), ("nvidia.com/gpu", 1))


class NodeOrder(TierPlugin):
    """`scorers` with their weights; a weight of 0 leaves one out."""

    name = "nodeorder"

    def __init__(self, scorers: Sequence[tuple[Plugin, int]]) -> None:
        self._scorers = [(plugin, weight) for plugin, weight in scorers if weight]
        self._profile = profile_of("nodeorder", [plugin for plugin, _ in self._scorers])

    @classmethod
    def of(cls, arguments: Arguments) -> NodeOrder:
        """Where the original differs from kube-scheduler it is in how the scorers are set up: requests weigh half and
        half, balance is judged as it comes out, and what a pod requires of others is no wish."""
        return cls([(scorer, arguments.whole(f"{name}.weight", weight)) for name, scorer, weight in _scorers()])

    def open(self, round: Round) -> None:
        self._round = round
        follow_affinity((plugin for plugin, _ in self._scorers), round)

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        round = self._round
        cycle = Cycle(pod=task.pod, cluster=round.cluster, profile=self._profile, now=round.now, rng=round.rng)
        total = np.zeros(len(nodes), dtype=np.float64)
        for plugin, weight in self._scorers:
            scores = _scores(plugin, cycle, nodes)
            if scores is None:
                continue
            total += scores * weight
        return total


def _scorers() -> Iterator[tuple[str, Plugin, int]]:
    """Names in the configuration, scorers and default weights."""
    yield "leastrequested", NodeResourcesFit(resources=(("cpu", 50), ("memory", 50))), 1
    yield "mostrequested", NodeResourcesFit(strategy="MostAllocated"), 0
    yield "nodeaffinity", NodeAffinity(), 2
    yield "podaffinity", InterPodAffinity(hard_pod_affinity_weight=0), 2
    yield "balancedresource", NodeResourcesBalancedAllocation(resources=_BALANCED, by_gain=False), 1
    yield "tainttoleration", TaintToleration(), 3
    yield "imagelocality", ImageLocality(), 1
    yield "podtopologyspread", PodTopologySpread(), 2


def _scores(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int | None:
    """One scorer's scores; None if it has nothing to say about this pod."""
    if not plugin.concerns(cycle.pod):
        return None
    if takes_part(plugin, "prepare_scores"):
        said = plugin.prepare_scores(cycle, nodes)
        if said is not None and said.code is Code.SKIP:
            return None
    raw = plugin.score(cycle, nodes)
    if isinstance(raw, int) or not takes_part(plugin, "normalise"):
        return raw
    return plugin.normalise(cycle, nodes, raw)
