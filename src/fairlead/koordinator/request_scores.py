"""Three small plugins of Koordinator: NodeResourcesFitPlus, ScarceResourceAvoidance and SchedulingHint.

The first two score by requests alone; the third narrows or orders nodes as an annotation of the pod says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.extended_plugin import ExtendedPlugin
from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.reasons import Status, failed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.extended_plugin import RowTrial
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.nodes import Nodes

HINT_ANNOTATION = "internal.scheduling.koordinator.sh/scheduling-hint"
_MAX_SCORE = 100


def requested_names(pod: Pod) -> list[str]:
    """The resources of which a pod requests more than nothing."""
    return [name for name, amount in pod.shape.fit_request.items() if amount > 0]


@dataclass(frozen=True, slots=True)
class FitPreference:
    """How one resource is scored: `most` prefers full nodes, otherwise empty ones."""

    most: bool
    weight: int


class NodeResourcesFitPlus(CachedPlugin):
    """Scores each resource by a strategy of its own; only resources that the pod requests and that are configured."""

    name = "NodeResourcesFitPlus"
    scope = Scope.ROW
    reads = frozenset({"spec"})

    def __init__(self, preferences: Mapping[str, FitPreference]) -> None:
        self._preferences = dict(preferences)

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        wanted = [name for name in requested_names(cycle.pod) if name in self._preferences]
        weights = sum(self._preferences[name].weight for name in wanted)
        if not weights:
            return _MAX_SCORE
        total = np.zeros(len(nodes), dtype=np.int64)
        for name in wanted:
            preference = self._preferences[name]
            used = self._used(cycle, nodes, name)
            total += preference.weight * _strategy_score(used, nodes.allocatable(name), most=preference.most)
        return total // weights

    def _used(self, cycle: Cycle, nodes: Nodes, name: str) -> NDArray[np.int64]:
        """What is requested of a resource with this pod; of cpu and memory the amounts that scores assume."""
        table, amount = cycle.cluster.table, cycle.pod.shape.score_request.get(name, 0)
        if name == "cpu":
            return nodes.take(table.nonzero_cpu) + amount
        if name == "memory":
            return nodes.take(table.nonzero_memory) + amount
        return nodes.requested(name) + amount


def _strategy_score(used: NDArray[np.int64], capacity: NDArray[np.int64], *, most: bool) -> NDArray[np.int64]:
    divisor = np.maximum(capacity, 1)
    if most:
        return np.where(capacity == 0, 0, np.minimum(used, capacity) * _MAX_SCORE // divisor)
    return np.where((capacity == 0) | (used > capacity), 0, (capacity - used) * _MAX_SCORE // divisor)


class ScarceResourceAvoidance(CachedPlugin):
    """Prefers nodes that have little of what is scarce and what the pod does not request."""

    name = "ScarceResourceAvoidance"
    scope = Scope.STATIC
    reads = frozenset({"spec"})

    def __init__(self, scarce: Sequence[str]) -> None:
        self._scarce = frozenset(scarce)

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        asked = set(requested_names(cycle.pod))
        others = np.zeros(len(nodes), dtype=np.int64)
        avoided = np.zeros(len(nodes), dtype=np.int64)
        for name in nodes.table.allocatable:
            if name in asked or name == "pods":
                continue
            present = nodes.allocatable(name) > 0
            others += present
            if name in self._scarce:
                avoided += present
        share = (others - avoided) * _MAX_SCORE // np.maximum(others, 1)
        return np.where(avoided == 0, _MAX_SCORE, share)


@dataclass(frozen=True, slots=True)
class SchedulingHintRecord:
    """What the annotation says: the only nodes in question, and the nodes to try first, in order."""

    node_names: tuple[str, ...]
    preferred: tuple[str, ...]


def scheduling_hint(pod: Pod) -> SchedulingHintRecord | Status | None:
    """The hint of a pod; a failure if the annotation is not what it should be."""
    text = pod.annotations.get(HINT_ANNOTATION)
    if not text:
        return None
    try:
        hint = json.loads(text)
        return SchedulingHintRecord(tuple(hint.get("nodeNames") or ()), tuple(hint.get("preferredNodeNames") or ()))
    except (ValueError, AttributeError, TypeError) as error:
        return failed(f"annotation {HINT_ANNOTATION} is not readable: {error}")


class SchedulingHintPlugin(ExtendedPlugin):
    """Narrows the search to hinted nodes, and has preferred nodes tried before all others."""

    name = "SchedulingHint"

    def __init__(self, max_nodes: int = 100) -> None:
        self._max_nodes = max_nodes

    def looks_at_pods(self, cycle: Cycle) -> bool:
        return False

    def pre_filter(self, cycle: Cycle) -> Status | frozenset[str] | None:
        hint = scheduling_hint(cycle.pod)
        if hint is None or isinstance(hint, Status):
            return hint
        return frozenset(hint.node_names) if hint.node_names else None

    def preferred_nodes(self, cycle: Cycle, names: frozenset[str] | None, trial: RowTrial) -> Sequence[str]:
        hint = scheduling_hint(cycle.pod)
        if not isinstance(hint, SchedulingHintRecord):
            return ()
        return [name for name in hint.preferred[: self._max_nodes] if names is None or name in names]
