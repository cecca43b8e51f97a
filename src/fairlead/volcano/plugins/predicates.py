"""predicates: kube-scheduler's filters, asked in a round.

They are the filters of every other profile. What differs is Volcano's: the number of pods is checked first; a refusal
that evictions could change does not end the questions and one that they could not change does, so a node may have
several reasons; and what a filter counted when the task was last looked at is not updated by later placements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.plugin import Plugin, Scope, takes_part
from fairlead.core.framework.profile import profile_of
from fairlead.core.model.reasons import Code, Reason, Reject, Status
from fairlead.core.state.nodes import Nodes
from fairlead.errors import FairleadError
from fairlead.kube.affinity.plugin import InterPodAffinity
from fairlead.kube.nodes.basics import NodeUnschedulable
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from fairlead.kube.nodes.ports import NodePorts
from fairlead.kube.nodes.taints import TaintToleration
from fairlead.kube.spread.plugin import PodTopologySpread
from fairlead.kube.volumes.binding import VolumeBinding
from fairlead.kube.volumes.limits import NodeVolumeLimits
from fairlead.kube.volumes.zone import VolumeZone
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.shape import PodShape
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

_TOO_MANY = Reason("predicates", "node(s) pod number exceeded")
_UNPREPARED = Reason("predicates", 'reading "PreFilterNodePorts" from cycleState: not found')
"""An error, which is not a refusal for good: this is the answer for a task that was never looked at."""


class Predicates(TierPlugin):
    """`filters` in the order in which they are asked. `volumes` is the one among them that binds volumes, if any; its
    score weighs `volume_weight`."""

    name = "predicates"

    def __init__(
        self, filters: Sequence[Plugin], *, volumes: VolumeBinding | None = None, volume_weight: int = 1
    ) -> None:
        self._volumes = volumes
        self._volume_weight = volume_weight
        self._profile = profile_of("predicates", filters)
        self._stable = [plugin for plugin in filters if plugin.scope is Scope.STATIC]
        self._others = [plugin for plugin in filters if plugin.scope is not Scope.STATIC]

    @classmethod
    def of(
        cls, arguments: Arguments, *, volumes: VolumeBinding | None = None, devices: Plugin | None = None
    ) -> Predicates:
        """`volumes` is what binds volumes, if it is to be another than the usual one; `devices` is what allocates
        resource claims, if anything does."""
        binding = volumes or VolumeBinding()
        listed = [
            plugin for key, plugin in _filters(binding) if not key or arguments.flag(f"predicate.{key}", default=True)
        ]
        if devices is not None:
            listed.append(devices)
        weight = arguments.whole("volumebinding.weight", 1)
        return cls(listed, volumes=binding if binding in listed else None, volume_weight=weight)

    def open(self, round: Round) -> None:
        self._round = round
        self._known: dict[PodShape, list[tuple[Reason, NDArray[np.bool_]]]] = {}
        round.undone_evictions_stay_hidden = round.quirks.undone_evictions_stay_hidden
        follow_affinity(self._others, round)

    # ---- judging ----

    def pre_predicate(self, task: Task) -> Status | None:
        cycle = self._new_cycle(task)
        self._round.cycles[task.uid] = cycle
        for plugin in self._others:
            if not plugin.concerns(task.pod):
                cycle.no_filter.add(plugin.name)
            elif takes_part(plugin, "pre_filter"):
                said = plugin.pre_filter(cycle)
                if isinstance(said, Status) and said.code is Code.SKIP:
                    cycle.no_filter.add(plugin.name)
                elif isinstance(said, Status) and not said.ok:
                    return said.by(plugin.name)
        return None

    def _new_cycle(self, task: Task) -> Cycle:
        round = self._round
        return Cycle(
            pod=task.pod,
            cluster=round.cluster,
            profile=self._profile,
            now=round.now,
            rng=round.rng,
            effects=round.effects,
        )

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        yield Reject(_TOO_MANY, nodes.allocatable("pods") <= nodes.take(nodes.table.pod_count))
        cycle, stable = self._round.cycles.get(task.uid), self._stable_verdicts(task)
        asked = [plugin for plugin in self._others if cycle is not None and plugin.name not in cycle.no_filter]
        if cycle is not None and not stable and not asked:
            return
        left = nodes.all()
        for reason, rows in stable:
            refused = nodes.take(rows) & left
            if refused.any():
                yield Reject(reason, refused)
                left &= ~refused
        if cycle is None:
            yield Reject(_UNPREPARED, left)
            return
        for plugin in asked:
            for reject in _narrowed(plugin.filter(cycle, nodes), left):
                yield reject
                left &= ~(reject.rows & reject.is_final())

    def _stable_verdicts(self, task: Task) -> list[tuple[Reason, NDArray[np.bool_]]]:
        """The answers of filters that depend on the nodes alone, computed once a round for equal pods."""
        known = self._known.get(task.pod.shape)
        if known is None:
            known = self._known[task.pod.shape] = list(self._ask_stable(task))
        return known

    def _ask_stable(self, task: Task) -> Iterator[tuple[Reason, NDArray[np.bool_]]]:
        cycle = self._new_cycle(task)
        every = Nodes(self._round.cluster.table)
        for plugin in self._stable:
            if plugin.concerns(task.pod):
                for reject in plugin.filter(cycle, every):
                    if reject.rows.any():
                        yield reject.reason, reject.rows

    def simulate_predicate(self, task: Task, row: int) -> bool:
        """Whether a task could go to a row as the table is now, with simulated evictions shown in it. The original asks
        only inter-pod affinity (`skips_predicates_after_evictions`)."""
        if self.pre_predicate(task) is not None:
            return False
        nodes = Nodes(self._round.cluster.table, np.array([row], dtype=np.int32))
        only_affinity = self._round.quirks.skips_predicates_after_evictions
        said = self._said_of_neighbours(task, nodes) if only_affinity else self.predicate(task, nodes)
        return not any(reject.rows.any() for reject in said)

    def _said_of_neighbours(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        cycle = self._round.cycles[task.uid]
        for plugin in self._others:
            if isinstance(plugin, InterPodAffinity) and plugin.name not in cycle.no_filter:
                yield from plugin.filter(cycle, nodes)

    # ---- scoring: how full its storage would make a node ----

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        cycle = self._round.cycles.get(task.uid)
        if self._volumes is None or cycle is None or self._volumes.pre_score(cycle, nodes) is not None:
            return np.zeros(len(nodes), dtype=np.float64)
        return self._volumes.score(cycle, nodes).astype(np.float64) * self._volume_weight

    # ---- reserving: volumes are promised with the place ----

    def allocated(self, task: Task) -> Status | None:
        """Reserve for a task. A running task whose eviction is undone was never prepared and has nothing to reserve."""
        cycle = self._round.cycles.get(task.uid)
        if cycle is None:
            return None
        for plugin in self._profile.at("reserve"):
            said = plugin.reserve(cycle, task.row) if plugin.concerns(task.pod) else None
            if said is not None and not said.ok:
                return said.by(plugin.name)
        return None

    def deallocated(self, task: Task) -> None:
        cycle = self._round.cycles.get(task.uid)
        if cycle is not None:
            for plugin in self._profile.at("reserve"):
                if plugin.concerns(task.pod):
                    plugin.unreserve(cycle, task.row)


def _filters(volumes: VolumeBinding) -> Iterator[tuple[str, Plugin]]:
    """The filters in order, each with the argument that can leave it out."""
    yield "", NodeUnschedulable()
    yield "NodeAffinityEnable", NodeAffinityPlugin()
    yield "TaintTolerationEnable", TaintToleration()
    yield "NodePortsEnable", NodePorts()
    yield "PodAffinityEnable", InterPodAffinity()
    yield "NodeVolumeLimitsEnable", NodeVolumeLimits()
    yield "VolumeZoneEnable", VolumeZone()
    yield "PodTopologySpreadEnable", PodTopologySpread()
    yield "VolumeBindingEnable", volumes


def follow_affinity(plugins: Iterable[Plugin], round: Round) -> None:
    """Let inter-pod affinity look at pods' terms as Volcano does: on the nodes that had pods with such terms when the
    round opened (`ignores_affinity_on_new_nodes`), or on all nodes."""
    anti = preferences = None
    if round.quirks.ignores_affinity_on_new_nodes:
        pods = round.cluster.table.pods
        anti = frozenset(row for row, here in enumerate(pods) if any(pod.shape.pod_anti_affinity for pod in here))
        preferences = frozenset(row for row, here in enumerate(pods) if any(pod.shape.has_pod_affinity for pod in here))
    for plugin in plugins:
        if isinstance(plugin, InterPodAffinity):
            plugin.look_only_where(anti, preferences)


def _narrowed(rejects: Iterable[Reject], left: NDArray[np.bool_]) -> Iterator[Reject]:
    for reject in list(rejects):
        if reject.reason.error and reject.rows.any():
            raise FairleadError(f'running "{reject.reason.plugin}" filter plugin: {reject.reason.text}')
        refused = reject.rows & left
        if refused.any():
            final = reject.is_final()
            yield Reject(reject.reason, refused, None if isinstance(final, bool) else final)
