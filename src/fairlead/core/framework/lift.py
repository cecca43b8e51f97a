"""@node_filter and @node_score: a plain function of a pod and a node becomes a plugin.

    @node_filter(reason="node(s) in maintenance", wakes_on="node-labels")
    def not_in_maintenance(pod, node):
        return node.labels.get("maintenance") != "true"

The function is called for each row of a selection. As it sees one node, its scope is ROW: its answers are cached for
pods that are equal but for their names, and only rows that changed are judged again. It may read everything of the pod
but its name. `reads` narrows that, so that more pods share an answer. `rows_one_by_one` counts the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from difflib import get_close_matches
from typing import TYPE_CHECKING, Self

import numpy as np

from fairlead.core.framework.calls import whole_scores
from fairlead.core.framework.plugin import Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.framework.results.pod_parts import unknown_parts
from fairlead.core.model import events
from fairlead.core.model.events import ActionType, ClusterEvent
from fairlead.core.model.reasons import Reason, Reject, Verdict
from fairlead.core.state.nodes import NodeRow
from fairlead.errors import WrongAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.nodes import Nodes
    from fairlead.core.state.table import NodeTable

READS = frozenset({"spec", "node", "labels", "annotations", "namespace"})
Fits = Callable[["Pod", NodeRow], bool | None]
Rates = Callable[["Pod", NodeRow], float]

WAKE_UPS = {
    "node-added": ClusterEvent(events.NODE, ActionType.ADD),
    "node-labels": ClusterEvent(events.NODE, ActionType.UPDATE_NODE_LABEL),
    "node-annotations": ClusterEvent(events.NODE, ActionType.UPDATE_NODE_ANNOTATION),
    "node-allocatable": ClusterEvent(events.NODE, ActionType.UPDATE_NODE_ALLOCATABLE),
    "node-taints": ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT),
    "node-conditions": ClusterEvent(events.NODE, ActionType.UPDATE_NODE_CONDITION),
    "pod-added": ClusterEvent(events.ASSIGNED_POD, ActionType.ADD),
    "pod-labels": ClusterEvent(events.POD, ActionType.UPDATE_POD_LABEL),
    "pod-gone": ClusterEvent(events.ASSIGNED_POD, ActionType.DELETE),
}
"""The names that `wakes_on` takes, and their events."""


def node_filter(
    *function: Fits,
    reason: str = "",
    wakes_on: str | Sequence[str] | None = None,
    final: bool = True,
    name: str = "",
    reads: Iterable[str] = READS,
) -> Callable[[Fits], NodeFilter]:
    """Make a filter of a function: nodes for which it returns False are refused with `reason`. `wakes_on` names the
    events that may change its answer (WAKE_UPS; a new node always may, and None means any event). `final=False` says
    that evicting pods from the node could change it too."""
    if function or not reason:
        raise TypeError('@node_filter needs parentheses and a reason: @node_filter(reason="node(s) in maintenance")')
    interests = _interests(wakes_on)

    def lift(fits: Fits) -> NodeFilter:
        return NodeFilter(name or fits.__name__, fits, reason=reason, final=final, interests=interests, reads=reads)

    return lift


def node_score(
    *function: Rates, weight: int = 1, name: str = "", reads: Iterable[str] = READS
) -> Callable[[Rates], NodeScore]:
    """Make a score of a function that rates a node from 0 to 100; `weight` applies if the configuration gives none."""
    if function:
        raise TypeError("@node_score needs parentheses: @node_score() or @node_score(weight=2)")

    def lift(rates: Rates) -> NodeScore:
        return NodeScore(name or rates.__name__, rates, weight=weight, reads=reads)

    return lift


class _Lifted(CachedPlugin):
    """The common part of both. A lifted plugin can still be called as the function it was made of."""

    scope = Scope.ROW

    def __init__(self, name: str, reads: Iterable[str], doc: str | None) -> None:
        self.name = name
        self.reads = frozenset(reads)
        self.rows_one_by_one = 0
        self.__doc__ = doc
        if unknown := unknown_parts(self.reads - {"name"}) + sorted(self.reads & {"name"}):
            raise ValueError(f"reads: {', '.join(unknown)} is not one of {', '.join(sorted(READS))}")

    def named(self, name: str) -> Self:
        """The plugin under the name by which a configuration lists it."""
        if name == self.name:
            return self
        other = copy(self)
        other._call_it(name)
        return other

    def _call_it(self, name: str) -> None:
        self.name = name

    def _row(self, table: NodeTable, row: int) -> NodeRow | None:
        """The row for the function to look at; None if no node has it."""
        if table.nodes[row] is None:
            return None
        self.rows_one_by_one += 1
        return NodeRow(table, row)


class NodeFilter(_Lifted):
    def __init__(
        self,
        name: str,
        fits: Fits,
        *,
        reason: str,
        final: bool,
        interests: Sequence[Interest] | None,
        reads: Iterable[str],
    ) -> None:
        super().__init__(name, reads, fits.__doc__)
        self._fits = fits
        self._interests = interests
        self._text, self._final = reason, final
        self._call_it(name)

    def _call_it(self, name: str) -> None:
        super()._call_it(name)
        self._reason = Reason(name, self._text, self._final)
        self._verdict = Verdict(name, (self._text,), self._final)

    def __call__(self, pod: Pod, node: NodeRow) -> bool:
        return bool(self._fits(pod, node))

    def events(self) -> Sequence[Interest] | None:
        return self._interests

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        refused = [self.filter_row(cycle, row) is not None for row in nodes.row_numbers().tolist()]
        return (Reject(self._reason, np.array(refused, dtype=np.bool_)),)

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        node = self._row(cycle.cluster.table, row)
        if node is None:
            return None
        fits = self._fits(cycle.pod, node)
        if fits is None:
            words = "and a filter returns True or False (is a `return` missing?)"
            raise WrongAnswer(f"it returned None for node {node.name}, {words}")
        return None if fits else self._verdict


class NodeScore(_Lifted):
    def __init__(self, name: str, rates: Rates, *, weight: int, reads: Iterable[str]) -> None:
        super().__init__(name, reads, rates.__doc__)
        self._rates = rates
        self.weight = weight

    def __call__(self, pod: Pod, node: NodeRow) -> float:
        return self._rates(pod, node)

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        return np.array([self.score_row(cycle, row) for row in nodes.row_numbers().tolist()], dtype=np.int64)

    def score_row(self, cycle: Cycle, row: int) -> int:
        node = self._row(cycle.cluster.table, row)
        return int(whole_scores(self._rates(cycle.pod, node), 1)) if node is not None else 0


def _interests(wakes_on: str | Sequence[str] | None) -> tuple[Interest, ...] | None:
    if wakes_on is None:
        return None
    return interests(*((wakes_on,) if isinstance(wakes_on, str) else wakes_on))


def interests(*names: str) -> tuple[Interest, ...]:
    """What `Plugin.events` returns, from the names that `wakes_on` takes: `node-labels`, `pod-gone` and so on."""
    for name in names:
        if name not in WAKE_UPS:
            close = get_close_matches(name, WAKE_UPS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(WAKE_UPS)}"
            raise ValueError(f"wakes_on: there is no event {name!r} ({hint})")
    # A new node always wakes: the filter has not judged it yet.
    return tuple(Interest(WAKE_UPS[name]) for name in dict.fromkeys((*names, "node-added")))
