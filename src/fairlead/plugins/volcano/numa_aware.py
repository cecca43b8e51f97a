"""numa-aware: pods that say how their CPUs should lie go only where the kubelet will be able to do it.

Who says so names a policy in `volcano.sh/numa-topology-policy`; such pods are taken to be of the class Guaranteed, and
to be one container. Pods without a policy are not looked at, also on nodes that have one. CPUs given to pods count as
taken until the node reports its CPUs anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.tiers import TierPlugin
from fairlead.model import kinds
from fairlead.model.reasons import Reason, Reject
from fairlead.model.tasks import TaskStatus
from fairlead.plugins.volcano.numa import assigned, chosen, hints, reserved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Round, Task
    from fairlead.model.topology import NumaTopology
    from fairlead.plugins.volcano.arguments import Arguments
    from fairlead.state.nodes import Nodes

_POLICY = "volcano.sh/numa-topology-policy"
_DECISION = "volcano.sh/topology-decision"
_BINDER = "DefaultBinder"
_BEST = 100


class NumaAware(TierPlugin):
    name = "numa-aware"

    def __init__(self, *, weight: int = 1) -> None:
        self._weight = weight
        self._given: dict[str, tuple[NumaTopology, frozenset[int]]] = {}
        """By pod, the CPUs it was given and the report they were found in; kept from round to round."""

    @classmethod
    def of(cls, arguments: Arguments) -> NumaAware:
        return cls(weight=arguments.whole("weight", 1))

    def open(self, round: Round) -> None:
        self._round = round
        table = round.cluster.table
        layouts = round.cluster.shelves.of(kinds.VC_NUMATOPOLOGY)
        self._layouts: dict[int, NumaTopology] = {
            table.row_of[name]: layout for name, layout in layouts.items() if name in table.row_of
        }
        current = {id(layout) for layout in self._layouts.values()}
        self._given = {
            uid: (layout, cpus)
            for uid, (layout, cpus) in self._given.items()
            if id(layout) in current and uid in round.cluster.pods
        }
        self._free = {
            row: layout.allocatable.get("cpu", frozenset()) & layout.cpus.keys()
            for row, layout in self._layouts.items()
        }
        for layout, cpus in self._given.values():
            row = table.row_of[layout.node]
            self._free[row] -= cpus
        self._reserved = {row: reserved(layout) for row, layout in self._layouts.items()}
        self._plans: dict[str, dict[int, frozenset[int]]] = {}

    # ---- judging ----

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        policy = _policy(task)
        if policy is None:
            return
        refused: dict[str, list[int]] = {}
        plans = self._plans[task.uid] = {}
        rows = nodes.row_numbers().tolist()
        for at, row in enumerate(rows):
            found = self._judge(task, policy, row)
            if isinstance(found, str):
                refused.setdefault(found, []).append(at)
            else:
                plans[row] = found
        for text, places in refused.items():
            mask = nodes.none()
            mask[places] = True
            yield Reject(Reason(self.name, text, final=True), mask)

    def _judge(self, task: Task, policy: str, row: int) -> str | frozenset[int]:
        """The CPUs a task would get, or why it cannot have any."""
        layout = self._layouts.get(row)
        if layout is None:
            return "numa info is empty"
        if layout.cpu_policy != "static":
            return "cpu manager policy isn't static"
        if policy != layout.topology_policy:
            return f"task topology policy[{policy}] is different with node[{layout.topology_policy}]"
        if not self._free[row]:
            return "cpu allocatable map is empty"
        count = _whole_cpus(task)
        if count == 0:
            return frozenset()
        free = self._free[row] - self._reserved[row]
        hint = chosen(policy, hints(layout, free, count))
        cpus = assigned(layout, free, count, hint) if hint is not None else None
        if hint is None:
            return f"container {task.name} cannot be assigned by numa"
        return cpus or frozenset()

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        """The fewer NUMA nodes a task would be spread over, the better."""
        plans, rows = self._plans.get(task.uid), nodes.row_numbers()
        if plans is None:
            return np.zeros(len(rows), dtype=np.float64)
        spread = np.array([len(self._numa_nodes(row, plans.get(row, frozenset()))) for row in rows.tolist()])
        most = int(spread.max(initial=0))
        turned = np.full(len(rows), _BEST) if most == 0 else _BEST - spread * _BEST // most
        return turned.astype(np.float64) * self._weight

    def _numa_nodes(self, row: int, cpus: frozenset[int]) -> Counter[int]:
        layout = self._layouts.get(row)
        return Counter() if layout is None else Counter(layout.cpus[cpu].numa for cpu in cpus)

    # ---- what happens ----

    def allocated(self, task: Task) -> None:
        plan = self._plans.get(task.uid, {}).get(task.row)
        if plan is None or task.status is TaskStatus.PIPELINED:
            return
        self._free[task.row] -= plan
        self._given[task.uid] = self._layouts[task.row], plan
        cycle = self._round.cycles.get(task.uid)
        if cycle is not None:
            told = {str(numa): {"cpu": str(count)} for numa, count in sorted(self._numa_nodes(task.row, plan).items())}
            cycle.notes[_BINDER] = {**cycle.notes.get(_BINDER, {}), _DECISION: json.dumps({"numa": told})}

    def deallocated(self, task: Task) -> None:
        """Only who was placed in this round gives its CPUs back at once; others when the node reports them free."""
        if task.uid in self._plans and task.uid in self._given:
            _, cpus = self._given.pop(task.uid)
            self._free[task.row] |= cpus


def _policy(task: Task) -> str | None:
    policy = task.pod.annotations.get(_POLICY, "")
    return policy if policy not in ("", "none") else None


def _whole_cpus(task: Task) -> int:
    """CPUs are given only in ones; a fraction asks for none."""
    whole, fraction = divmod(int(task.request.cpu), 1000)
    return 0 if fraction else whole
