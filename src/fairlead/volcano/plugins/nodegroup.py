"""nodegroup: queues use the groups of nodes that their affinity names. A group is the value of a node label.

A queue's rules give one answer per group, which is gathered over the rows by the label's code. How much of a group a
queue may have is in queues/group_limits.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.reasons import Reason, Reject
from fairlead.volcano.queues.group_limits import GroupLimits
from fairlead.volcano.records.queues import NodeGroupAffinity
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

LABEL = "volcano.sh/nodegroup-name"
_REQUIRED, _PREFERRED, _AVOIDED = 100.0, 50.0, -1.0
_NO_LABEL = Reason("nodegroup", "node group label not found", final=True)
_NO_RULES = Reason("nodegroup", "node group affinity not specified", final=True)
_MISMATCH = Reason("nodegroup", "node does not satisfy the node group affinity", final=True)
_UNREADABLE = Reason("nodegroup", "node group resource limit annotation invalid", final=True)
_EXCEEDED = Reason("nodegroup", "node group resource limit exceeded", final=True)
_NONE = NodeGroupAffinity()


class NodeGroup(TierPlugin):
    """`strict`: nodes without a group are refused. `ordered`: preferred groups score by their order in the list.
    `hierarchy`: a queue without affinity has that of its nearest ancestor with one."""

    name = "nodegroup"

    def __init__(self, *, strict: bool = True, ordered: bool = False, hierarchy: bool = False) -> None:
        self._strict = strict
        self._ordered = ordered
        self._hierarchy = hierarchy

    @classmethod
    def of(cls, arguments: Arguments, *, hierarchy: bool = False) -> NodeGroup:
        return cls(
            strict=arguments.flag("strict", default=True),
            ordered=arguments.flag("enablePreferredOrder", default=False),
            hierarchy=hierarchy,
        )

    def open(self, round: Round) -> None:
        self._round = round
        self._rules: dict[str, NodeGroupAffinity] = {}
        self._limits = None if round.quirks.ignores_group_limits else GroupLimits(round, LABEL)

    # ---- judging ----

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        rules = self._rules_of(task)
        if rules is None:
            return
        assert task.job is not None
        if self._limits is not None and task.job.queue in self._limits.unreadable:
            yield Reject(_UNREADABLE, nodes.all())
            return
        codes = nodes.label(LABEL)
        labelled = codes >= 0
        ruled = rules != _NONE
        if self._strict or ruled:
            yield Reject(_NO_LABEL, ~labelled)
        if not ruled:
            yield Reject(_NO_RULES, labelled)
            return
        allowed = self._by_group(nodes, lambda group: _allows(rules, group), otherwise=True)
        yield Reject(_MISMATCH, labelled & (allowed == 0))
        exceeded = self._limits.exceeded(task.job.queue, task.request) if self._limits is not None else ()
        if exceeded:
            full = self._by_group(nodes, lambda group: group in exceeded, otherwise=False)
            yield Reject(_EXCEEDED, labelled & (allowed > 0) & (full > 0))

    def allocated(self, task: Task) -> None:
        if self._limits is not None:
            self._limits.count(task, 1.0)

    def deallocated(self, task: Task) -> None:
        if self._limits is not None:
            self._limits.count(task, -1.0)

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        rules = self._rules_of(task)
        if rules is None or rules == _NONE:
            return np.zeros(len(nodes), dtype=np.float64)
        return self._by_group(nodes, lambda group: _liking(rules, group, ordered=self._ordered), otherwise=0.0)

    def _by_group(self, nodes: Nodes, value: Callable[[str], float], *, otherwise: float) -> NDArray[np.float64]:
        """A value per group, gathered by the rows' groups; the code -1 of unlabelled rows finds the last entry."""
        groups = self._round.cluster.table.label(LABEL).values
        return np.array([*map(value, groups), otherwise], dtype=np.float64)[nodes.label(LABEL)]

    # ---- rules ----

    def _rules_of(self, task: Task) -> NodeGroupAffinity | None:
        """The rules of a task's queue; None for a task of no queue."""
        if task.job is None:
            return None
        known = self._rules.get(task.job.queue)
        if known is None:
            known = self._rules[task.job.queue] = self._find(task.job.queue)
        return known

    def _find(self, name: str) -> NodeGroupAffinity:
        queues, seen = self._round.queues, set()
        while name in queues and name not in seen:
            seen.add(name)
            queue = queues[name].queue
            if queue.affinity is not None or not self._hierarchy or name == "root":
                return queue.affinity or _NONE
            name = queue.parent or "root"
        return _NONE


def _allows(rules: NodeGroupAffinity, group: str) -> bool:
    """Whether rules allow a group. One under preferred anti-affinity is allowed even if required anti-affinity names
    it."""
    if group in rules.preferred_anti:
        return True
    return group in (*rules.required, *rules.preferred) and group not in rules.required_anti


def _liking(rules: NodeGroupAffinity, group: str, *, ordered: bool) -> float:
    if group in rules.preferred_anti:
        return _AVOIDED
    score = _REQUIRED if group in rules.required else 0.0
    if group in rules.preferred:
        places = {name: place for place, name in enumerate(rules.preferred)}
        score += _PREFERRED * (len(places) - places[group]) / len(places) if ordered else _PREFERRED
    return score
