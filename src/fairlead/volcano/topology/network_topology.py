"""network-topology-aware: jobs that care go into one part of the network, as small a part as has room.

A gradient lists the HyperNodes that could take a job, nearest tier first. Among HyperNodes, and for pods that do not
care among nodes, the fuller one is liked better, so that whole parts stay free for those who do. What HyperNodes have
is summed when a round opens; of that, only what is used follows the round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.amounts import Amounts, total_of
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.arguments import resource_weights
from fairlead.volcano.rounds.tiers import Purpose, TierPlugin
from fairlead.volcano.topology.hyper_node_sums import HyperNodeSums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Job, Round, SubJob, Task

_BEST = 100.0
_FADING = 0.8
_MOST_FOR_EVICTION = 8


class NetworkTopologyAware(TierPlugin):
    """`weights` are what resources weigh in filling HyperNodes. `packs_others`: pods that say nothing of the network
    are placed to fill HyperNodes too, each tier counting `fading` times the one below. `most` HyperNodes are looked at
    when room is to be made."""

    name = "network-topology-aware"

    def __init__(
        self,
        *,
        weight: int = 1,
        weights: Mapping[str, int] | None = None,
        packs_others: bool = True,
        fading: float = _FADING,
        most: int = _MOST_FOR_EVICTION,
    ) -> None:
        self._weight = weight
        self._weights = {"cpu": 1, "memory": 1} if weights is None else weights
        self._packs_others = packs_others
        self._fading = fading
        self._most = most

    @classmethod
    def of(cls, arguments: Arguments) -> NetworkTopologyAware:
        return cls(
            weight=arguments.whole("weight", 1, least=0),
            weights=resource_weights(arguments, "hypernode.binpack"),
            packs_others=arguments.flag("hypernode.binpack.normal-pod.enable", default=True),
            fading=arguments.number("hypernode.binpack.normal-pod.fading", _FADING, least=0),
            most=arguments.whole("hypernode.gradient.evict.max-hypernodes", _MOST_FOR_EVICTION, least=1),
        )

    def open(self, round: Round) -> None:
        self._round = round
        self._network = round.topology
        self._sums = HyperNodeSums(round)

    # ---- which hypernodes ----

    def gradient_for_job(self, job: Job, root: str, purpose: Purpose) -> list[list[str]]:
        if job.topology is None or not job.has_hard_topology or job.topology.highest_tier is None:
            return [[root]]
        return self._gradient(root, job.topology.highest_tier, job.allocated_hyper_node, job.minimum(), purpose)

    def gradient_for_sub_job(self, sub_job: SubJob, root: str, purpose: Purpose) -> list[list[str]]:
        topology = sub_job.topology
        if topology is None or not topology.hard or topology.highest_tier is None:
            return [[root]]
        need = total_of(task.request for task in sub_job.in_status(TaskStatus.PENDING))
        return self._gradient(root, topology.highest_tier, sub_job.allocated_hyper_node, need, purpose)

    def _gradient(self, root: str, limit: int, allocated: str, need: Amounts, purpose: Purpose) -> list[list[str]]:
        by_tier: dict[int, list[str]] = {}
        start = self._search_root(root, limit, allocated)
        queue = [] if start is None else [start]
        for name in queue:
            tier = self._network.tier(name)
            if tier <= limit and (allocated or self._sums.has_room(name, need, purpose)):
                by_tier.setdefault(tier, []).append(name)
            queue += self._network.children(name)
        gradient = [by_tier[tier] for tier in sorted(by_tier)]
        return gradient if purpose is Purpose.ALLOCATE else self._widest_first(gradient)

    def _search_root(self, root: str, limit: int, allocated: str) -> str | None:
        """Where to look: within what is given, and within the widest part around where the job is already."""
        if not allocated:
            return root
        allowed = ""
        for name in self._network.ancestors(allocated):
            if self._network.tier(name) > limit:
                break
            allowed = name
        if not allowed:
            return None
        common = self._network.lowest_common(root, allowed)
        return root if common == allowed else allowed if common == root else None

    def _widest_first(self, gradient: list[list[str]]) -> list[list[str]]:
        widest, left = [], self._most
        for names in reversed(gradient):
            if left > 0:
                widest.append(names[-left:])
                left -= len(widest[-1])
        return widest

    # ---- which hypernode ----

    def hyper_node_order(self, sub_job: SubJob, candidates: Sequence[str]) -> Mapping[str, float]:
        request = Amounts()
        for task in sub_job.tasks.values():
            for name in task.request.names():
                request.set(name, request.get(name) + task.request.get(name))
        filled = self._sums.filled(request, self._weights)
        scores = {name: float(filled[self._sums.index[name]]) for name in candidates}
        best = [name for name, score in scores.items() if score == max(scores.values())]
        if len(best) > 1:
            for name in best:
                scores[name] += self._share_of_tasks(sub_job, name)
        return {name: _BEST * self._weight * score for name, score in scores.items()}

    def _share_of_tasks(self, sub_job: SubJob, hyper_node: str) -> float:
        """How many of a sub-job's tasks are in a HyperNode already."""
        nodes = self._network.nodes_of(hyper_node)
        here = sum(self._node_of(task) in nodes for task in sub_job.tasks.values())
        return here / len(sub_job.tasks) if sub_job.tasks else 0.0

    def _node_of(self, task: Task) -> str:
        return self._round.cluster.table.name(task.row) if task.row >= 0 else task.pod.node_name

    # ---- which node ----

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        rows = nodes.row_numbers()
        if task.sub_job is None:
            scores = np.zeros(len(rows), dtype=np.float64)
        elif task.sub_job.topology is not None:
            scores = self._closeness(task, task.sub_job, rows)
        else:
            scores = self._fullness(task, rows)
        return scores * (_BEST * self._weight)

    def _closeness(self, task: Task, sub_job: SubJob, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """How low the tier is that a row shares with the job's HyperNode; equals are distinguished by how many tasks of
        the sub-job are there."""
        if not task.hyper_node:
            return np.zeros(len(rows), dtype=np.float64)
        leaves = self._sums.leaves[rows]
        by_leaf = np.array([*(self._near(leaf, task.hyper_node) for leaf in self._sums.leaf_names), 0.0])
        scores: NDArray[np.float64] = by_leaf[leaves]
        best = scores == scores.max(initial=-1.0)
        if best.sum() > 1:
            codes = set(leaves[best].tolist()) - {-1}
            here = {code: self._share_of_tasks(sub_job, self._sums.leaf_names[code]) for code in codes}
            scores[best] += np.array([here.get(code, 0.0) for code in leaves[best].tolist()])
        return scores

    def _near(self, leaf: str, hint: str) -> float:
        if leaf == hint:
            return 1.0
        common = self._network.lowest_common(leaf, hint)
        if not common:
            return 0.0
        lowest, highest = self._network.tiers[0], self._network.tiers[-1]
        return 1.0 if lowest == highest else (highest - self._network.tier(common)) / (highest - lowest)

    def _fullness(self, task: Task, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """How full a row's HyperNodes would be, tier by tier; a row that is in none of a tier is as good as full."""
        total = np.zeros(len(rows), dtype=np.float64)
        if not self._packs_others:
            return total
        filled = np.append(self._sums.filled(task.request, self._weights), 1.0)
        weighed = 0.0
        for tier in range(self._network.tiers[0], self._network.tiers[-1] + 1):
            weight = self._tier_weight(tier)
            weighed += weight
            codes = self._sums.in_tier.get(tier)
            total += weight * (filled[codes[rows]] if codes is not None else 1.0)
        return total / weighed if weighed > 0 else total

    def _tier_weight(self, tier: int) -> float:
        if self._fading == 0:
            return 1.0 if tier <= 1 else 0.0
        return float(self._fading ** (tier - 1))

    # ---- what happens ----

    def allocated(self, task: Task) -> None:
        self._sums.use(task, 1.0)

    def deallocated(self, task: Task) -> None:
        self._sums.use(task, -1.0)
