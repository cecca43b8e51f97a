"""least_changes: what would let a waiting workload run, the cheapest first. Nothing is suggested that was not tried.

    refusals ─▶ candidates (edits.py) ─▶ each tried in a copy of its own ─▶ those that helped, by cost

Of changes with an amount (pods, requests, nodes) the least is looked for by halving, because more of such a change
never helps less: the amount that is suggested was tried, and so was the next smaller change, which did not help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fairlead.engine.what_if.edits import (
    Edit,
    easier_groups,
    easier_pods,
    requests_of,
    with_pods,
    with_request,
)
from fairlead.engine.what_if.node_shapes import AlikeNodes, add_nodes, shapes_of
from fairlead.engine.what_if.simulate import Branch, try_out
from fairlead.engine.what_if.trial import Trial
from fairlead.model import kinds

if TYPE_CHECKING:
    from fairlead.engine.scheduler import Scheduler
    from fairlead.engine.what_if.workload import Workload
    from fairlead.model.flow import Doc
    from fairlead.model.pod import Pod

_SHORT = re.compile(r"Insufficient ([\w./-]*\w)")
_STEPS = {"cpu": 10, "memory": 2**20, "ephemeral-storage": 2**20}
"""The least difference between two requests that is worth telling apart."""
_MOST_NODES = 256
_JOBS = 12
"""How many jobs are tried whose end might help."""


def least_changes(scheduler: Scheduler, workload: Workload, message: str, branch: Branch, now: float) -> list[Doc]:
    """Documents of the changes that help. `message` is what refused the workload."""
    search = ChangeSearch(scheduler, branch, now)
    found = [*search.plain(workload), *search.amounts(workload, message), *search.cluster(workload)]
    return [edit.to_document() for edit in sorted(found, key=lambda edit: edit.cost)]


class ChangeSearch:
    def __init__(self, scheduler: Scheduler, branch: Branch, now: float) -> None:
        self._scheduler, self._branch, self._now = scheduler, branch, now

    def runs(self, workload: Workload, prepare: Callable[[Trial], None] | None = None) -> bool:
        def tried() -> bool:
            trial = Trial(self._scheduler, self._now)
            if prepare is not None:
                prepare(trial)
            return try_out(trial, workload) and not trial.victims

        return bool(self._branch(tried))

    def plain(self, workload: Workload) -> Iterator[Edit]:
        """Edits without an amount."""
        cluster = self._scheduler.cluster
        queues = list(cluster.object_index.of(kinds.VC_QUEUE))
        for edit in (*easier_pods(workload, cluster), *easier_groups(workload, queues)):
            if self.runs(edit.workload):
                yield edit

    def amounts(self, workload: Workload, message: str) -> Iterator[Edit]:
        """The most pods, and the largest requests, that still run."""
        count = len(workload.pods)
        most = _most(1, count - 1, lambda number: self.runs(with_pods(workload, number).workload))
        if most:
            yield with_pods(workload, most)
        for resource in dict.fromkeys(_SHORT.findall(message)):
            step, asked = _STEPS.get(resource, 1), requests_of(workload, resource)
            most = _most(1, (asked - 1) // step, partial(self._runs_asking, workload, resource, step))
            if most:
                yield with_request(workload, resource, most * step)

    def _runs_asking(self, workload: Workload, resource: str, step: int, steps: int) -> bool:
        return self.runs(with_request(workload, resource, steps * step).workload)

    def cluster(self, workload: Workload) -> Iterator[Edit]:
        """More nodes, the end of a job, or evictions."""
        shapes = shapes_of(self._scheduler.cluster)
        found = [(number, shape) for shape in shapes if (number := self.nodes_needed(workload, shape))]
        if found:
            number, shape = min(found, key=lambda one: one[0])
            words = f"with {number} more node{'s'[: number != 1]} like {shape.example.name} ({shape.says})"
            yield Edit("nodes", 50 + number, words, workload)
        yield from self._ends(workload)

    def nodes_needed(self, workload: Workload, shape: AlikeNodes) -> int:
        """The fewest nodes of a shape that let the workload run; 0 if none do."""
        bound = min(_MOST_NODES, len(workload.pods))
        if not self.runs(workload, lambda trial: add_nodes(trial, shape, bound)):
            return 0
        without = _most(1, bound - 1, lambda n: not self.runs(workload, lambda trial: add_nodes(trial, shape, n)))
        return without + 1

    def _ends(self, workload: Workload) -> Iterator[Edit]:
        """Jobs whose end would make room, the smallest first."""
        jobs: dict[tuple[str, str, str], list[Pod]] = {}
        for pod, _ in self._scheduler.cluster.seated():
            if pod.owner is not None and pod.owner.kind == "Job":
                jobs.setdefault((pod.namespace, pod.owner.kind, pod.owner.name), []).append(pod)
        for (namespace, kind, name), pods in sorted(jobs.items(), key=lambda one: (len(one[1]), one[0]))[:_JOBS]:
            if self.runs(workload, partial(_without, pods)):
                words = f"when {kind} {namespace}/{name} has ended ({len(pods)} pod{'s'[: len(pods) != 1]})"
                yield Edit("end", 40 + len(pods), words, workload)
                return


def _without(pods: Sequence[Pod], trial: Trial) -> None:
    trial.remove_pods(pods)


def _most(least: int, most: int, helps: Callable[[int], bool]) -> int:
    """The largest number of a range that helps, if every smaller one helps too; 0 if none does."""
    if most < least or not helps(least):
        return 0
    while least < most:
        middle = (least + most + 1) // 2
        if helps(middle):
            least = middle
        else:
            most = middle - 1
    return least
