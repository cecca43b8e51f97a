"""numa-aware: pods that need their CPUs on certain NUMA nodes go only where the kubelet will be able to give them so.

Only pods of class Guaranteed are considered. A pod that names a policy in `volcano.sh/numa-topology-policy` goes to
nodes with the same policy; one that names none is still checked on nodes that have one, because the kubelet there will
check it. CPUs are given container by container, in whole ones, and count as taken until the node reports its CPUs anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.quality import GUARANTEED
from fairlead.core.model.reasons import Reason, Reject
from fairlead.volcano.kinds import VC_NUMATOPOLOGY
from fairlead.volcano.numa.hints import planned, reserved
from fairlead.volcano.numa.views import NumaViews, View
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.containers import Container
    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

_POLICY = "volcano.sh/numa-topology-policy"
_DECISION = "volcano.sh/topology-decision"
_NO_POLICY = ("", "none")
_STATIC = "static"
_BINDER = "DefaultBinder"
_BEST = 100


class NumaAware(TierPlugin):
    name = "numa-aware"

    def __init__(self, *, weight: int = 1) -> None:
        self._weight = weight
        self._known = NumaViews()

    @classmethod
    def of(cls, arguments: Arguments) -> NumaAware:
        return cls(weight=arguments.whole("weight", 1))

    def open(self, round: Round) -> None:
        self._round = round
        table = round.cluster.table
        reports = round.cluster.object_index.of(VC_NUMATOPOLOGY)
        self._known.keep_only(reports)
        self._views: dict[int, View] = {}
        for name, report in reports.items():
            row = table.row_of.get(name)
            if row is not None:
                self._views[row] = self._known.see(report, {task.uid for task in round.resources.tasks_on(row)})
        self._reserved = {row: reserved(view.report) for row, view in self._views.items()}
        self._plans: dict[str, dict[int, frozenset[int]]] = {}

    # ---- judging ----

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        if task.pod.shape.quality != GUARANTEED:
            return
        policy = _policy(task)
        refused: dict[str, list[int]] = {}
        plans = self._plans[task.uid] = {}
        for at, row in enumerate(nodes.row_numbers().tolist()):
            found = self._judge(task, policy, row)
            if isinstance(found, str):
                refused.setdefault(found, []).append(at)
            elif found is not None:
                plans[row] = found
        for text, places in refused.items():
            mask = nodes.none()
            mask[places] = True
            yield Reject(Reason(self.name, text, final=True), mask)

    def _judge(self, task: Task, policy: str, row: int) -> str | frozenset[int] | None:
        """The CPUs that a task would get, or why it cannot have any; None where neither the task nor the node has a
        policy."""
        view = self._views.get(row)
        if policy in _NO_POLICY:
            return self._plan(task, row, view) if view is not None and _is_strict_about_cpus(view) else None
        if view is None:
            return "numa info is empty"
        if view.report.cpu_policy != _STATIC:
            return "cpu manager policy isn't static"
        if policy != view.report.topology_policy:
            return f"task topology policy[{policy}] is different with node[{view.report.topology_policy}]"
        if not view.left():
            return "cpu allocatable map is empty"
        return self._plan(task, row, view)

    def _plan(self, task: Task, row: int, view: View) -> str | frozenset[int]:
        containers = [container for container in task.pod.shape.containers if not container.init]
        wanted = [(container.name, count) for container in containers if (count := _whole_cpus(container))]
        found = planned(view.report, view.left() - self._reserved[row], wanted)
        return f"container {found} cannot be assigned by numa" if isinstance(found, str) else found

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        """The fewer NUMA nodes a task would be spread over, the better; 0 for tasks without a policy."""
        plans, rows = self._plans.get(task.uid), nodes.row_numbers()
        if plans is None or _policy(task) in _NO_POLICY:
            return np.zeros(len(rows), dtype=np.float64)
        spread = np.array([len(self._numa_nodes(row, plans.get(row, frozenset()))) for row in rows.tolist()])
        most = int(spread.max(initial=0))
        turned = np.full(len(rows), _BEST) if most == 0 else _BEST - spread * _BEST // most
        return turned.astype(np.float64) * self._weight

    def _numa_nodes(self, row: int, cpus: frozenset[int]) -> Counter[int]:
        view = self._views.get(row)
        return Counter() if view is None else Counter(view.report.cpus[cpu].numa for cpu in cpus)

    # ---- what happens ----

    def allocated(self, task: Task) -> None:
        plan = self._plans.get(task.uid, {}).get(task.row)
        if plan is None or task.status is TaskStatus.PIPELINED:
            return
        self._views[task.row].given[task.uid] = plan
        cycle = self._round.cycles.get(task.uid)
        if cycle is not None and plan:
            taken = {str(numa): {"cpu": str(count)} for numa, count in sorted(self._numa_nodes(task.row, plan).items())}
            cycle.notes[_BINDER] = {**cycle.notes.get(_BINDER, {}), _DECISION: json.dumps({"numa": taken})}

    def deallocated(self, task: Task) -> None:
        """A task that was placed in this round gives its CPUs back at once; those of others are free when the node says
        so."""
        if task.uid in self._plans and task.row in self._views:
            self._views[task.row].given.pop(task.uid, None)


def _policy(task: Task) -> str:
    return task.pod.annotations.get(_POLICY, "")


def _is_strict_about_cpus(view: View) -> bool:
    return view.report.cpu_policy == _STATIC and view.report.topology_policy not in _NO_POLICY


def _whole_cpus(container: Container) -> int:
    """How many CPUs a container gets for itself: all it requests, or none if that is a fraction."""
    whole, fraction = divmod(container.request("cpu") or 0, 1000)
    return 0 if fraction else whole
