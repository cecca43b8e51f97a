"""nodeorder: kube-scheduler's scorers, each with its weight, over the candidates of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.cycle import Cycle
from fairlead.framework.plugin import Plugin, takes_part
from fairlead.framework.profile import profile_of
from fairlead.framework.tiers import TierPlugin
from fairlead.model.reasons import Code
from fairlead.plugins.volcano.predicates import follow_affinity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Round, Task
    from fairlead.state.nodes import Nodes


class NodeOrder(TierPlugin):
    """`scorers` with their weights; a weight of 0 leaves one out."""

    name = "nodeorder"

    def __init__(self, scorers: Sequence[tuple[Plugin, int]]) -> None:
        self._scorers = [(plugin, weight) for plugin, weight in scorers if weight]
        self._profile = profile_of("nodeorder", [plugin for plugin, _ in self._scorers])

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
