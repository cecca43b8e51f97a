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

from fairlead.core.engine.what_if.cluster_changes import (
    Allowance,
    allowance_lines,
    asked_by,
    end_of,
    evict,
    evictions,
    label_wanted,
    most_free,
    raised,
    with_label,
    without_label,
)
from fairlead.core.engine.what_if.edits import (
    Edit,
    Step,
    devices_of,
    easier_groups,
    easier_pods,
    requests_of,
    with_devices,
    with_pods,
    with_request,
)
from fairlead.core.engine.what_if.families import what_ifs
from fairlead.core.engine.what_if.node_shapes import AlikeNodes, add_nodes, shapes_of
from fairlead.core.engine.what_if.simulate import Branch, Forecast, try_out, waiting_pods
from fairlead.core.engine.what_if.trial import Trial

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod

_SHORT = re.compile(r"Insufficient ([\w./-]*\w)")
_STEPS = {"cpu": 10, "memory": 2**20, "ephemeral-storage": 2**20}
"""The least difference between two requests that is worth distinguishing."""
_MOST_NODES = 256
_MOST_LABELLED = 8
"""Up to how many nodes it is tried whether a label on fewer of them is enough."""
_JOBS = 12
"""How many jobs are tried whose end might help."""


def least_changes(
    scheduler: Scheduler, workload: Workload, forecast: Forecast, branch: Branch, now: float
) -> tuple[list[Doc], int]:
    """Documents of the changes that help, and how many were tried. `forecast` says what refused the workload."""
    search = ChangeSearch(scheduler, branch, now)
    message = " ".join({pod.message for pod in forecast.pods})
    lacks = (forecast.explanation or {}).get("lacks") or ()
    found = [*search.plain(workload), *search.amounts(workload, message, lacks), *search.cluster(workload)]
    found += search.holders(workload, lacks)
    if sum(not pod.node for pod in forecast.pods) == 1:
        found += search.evictions(workload)
    told: dict[str, Edit] = {}
    for edit in sorted(found, key=lambda edit: edit.cost):
        told.setdefault(edit.says.partition(" (")[0] if edit.kind == "end" else edit.says, edit)
    return [edit.to_document() for edit in told.values()], search.tried


class ChangeSearch:
    def __init__(self, scheduler: Scheduler, branch: Branch, now: float) -> None:
        self._scheduler, self._branch, self._now = scheduler, branch, now
        self.tried = 0
        """How many changes were tried so far."""

    def runs(self, workload: Workload, prepare: Callable[[Trial], None] | None = None) -> bool:
        self.tried += 1

        def tried() -> bool:
            trial = Trial(self._scheduler, self._now)
            if prepare is not None:
                prepare(trial)
            return try_out(trial, workload) and not trial.victims

        return bool(self._branch(tried))

    def plain(self, workload: Workload) -> Iterator[Edit]:
        """Edits without an amount."""
        cluster = self._scheduler.cluster
        brought = (edit for one in what_ifs() for edit in one.edits(workload, cluster))
        for edit in (*easier_pods(workload, cluster), *easier_groups(workload), *brought):
            if self.runs(edit.workload):
                yield edit
            elif edit.otherwise is not None and self.runs(edit.otherwise.workload):
                yield edit.otherwise

    def amounts(self, workload: Workload, message: str, lacks: Sequence[Doc] = ()) -> Iterator[Edit]:
        """The most pods, the largest requests, and the most devices of a claim, that still run."""
        yield from self._most_that_run(1, len(workload.pods) - 1, partial(with_pods, workload))
        lines = allowance_lines(workload, self._scheduler.cluster)
        limits = [name for line in lines for one in line for name in one.limits]
        devices = _device_resources(workload) if any(one["of"] == "Device" for one in lacks) else ()
        for resource in dict.fromkeys([*_SHORT.findall(message), *limits, *devices]):
            asked = requests_of(workload, resource)
            whole = asked > 100 and any(resource in one.hundreds for one in what_ifs())
            step = 100 if whole else _STEPS.get(resource, 1)
            largest = most_free(self._scheduler.cluster, resource) // step
            smaller = partial(_asking, workload, resource, step)
            yield from self._most_that_run(1, (asked - 1) // step, smaller, largest)
        yield from self._most_that_run(1, devices_of(workload) - 1, partial(with_devices, workload))

    def _most_that_run(
        self, least: int, most: int, edit: Callable[[int], Edit | None], guess: int = -1
    ) -> Iterator[Edit]:
        """The edit with the largest amount that helps; if none does, that of the same change in the other way."""
        for way in (edit, lambda amount: getattr(edit(amount), "otherwise", None)):
            if most >= least and way(least) is not None:
                found = _most(least, most, partial(self._helps, way), guess)
                if found and (best := way(found)) is not None:
                    yield best
                    return

    def _helps(self, edit: Callable[[int], Edit | None], amount: int) -> bool:
        made = edit(amount)
        return made is not None and self.runs(made.workload)

    def cluster(self, workload: Workload) -> Iterator[Edit]:
        """More nodes, the end of a job, or evictions."""
        shapes = shapes_of(self._scheduler.cluster)
        found = [(number, shape) for shape in shapes if (number := self.nodes_needed(workload, shape))]
        if found:
            number, shape = min(found, key=lambda one: one[0])
            words = f"with {number} more node{'s'[: number != 1]} like {shape.example.name} ({shape.says})"
            yield Edit("nodes", 50 + number, words, workload)
        yield from self._ends(workload)
        yield from self._labels(workload)
        yield from self._allowances(workload)

    def _labels(self, workload: Workload) -> Iterator[Edit]:
        """A label on the fewest of the nodes on which the pods would be if all nodes had it."""
        cluster = self._scheduler.cluster
        for key, value in label_wanted(workload, cluster):
            nodes = self._branch(partial(self._used, workload, key, value))
            for name in list(nodes) if len(nodes) <= _MOST_LABELLED else ():
                fewer = [other for other in nodes if other != name]
                if fewer and self.runs(workload, with_label(cluster, key, value, fewer)):
                    nodes = fewer
            if nodes and self.runs(workload, with_label(cluster, key, value, nodes)):
                words = f"with the label {key}={value} on the node{'s'[: len(nodes) != 1]} {', '.join(nodes)}"
                command = Step(f"kubectl label nodes {' '.join(nodes)} {key}={value} --overwrite")
                yield Edit("label", 12 + len(nodes), words, workload, (command,))

    def _used(self, workload: Workload, key: str, value: str) -> list[str]:
        """The nodes that would get the label, if the pods may be on any of them."""
        trial, cluster = Trial(self._scheduler, self._now), self._scheduler.cluster
        lacking = without_label(cluster, key, value)
        with_label(cluster, key, value, lacking)(trial)
        if not try_out(trial, workload) or trial.victims:
            return []
        used = {trial.place_of(uid) for uid in workload.uids}
        return [name for name in lacking if name in used]

    def _allowances(self, workload: Workload) -> Iterator[Edit]:
        """The least that a queue or a quota, and those above it, have to allow more."""
        cluster = self._scheduler.cluster
        asked = asked_by(workload, cluster)
        for line in allowance_lines(workload, cluster):
            more = {(at, name): asked[name] for at, one in enumerate(line) for name in one.limits if asked.get(name)}
            if not more or not self.runs(workload, raised(line, more)):
                continue
            for key in more:
                step = _STEPS.get(key[1], 1)
                most = -(-more[key] // step)
                short = partial(self._short, workload, line, more, key, step)
                more[key] = min(more[key], (_most(0, most, short) + 1) * step) if short(0) else 0
            edit = _raise(workload, line, more)
            if edit is not None:
                yield edit

    def _short(
        self,
        workload: Workload,
        line: Sequence[Allowance],
        more: dict[tuple[int, str], int],
        key: tuple[int, str],
        step: int,
        steps: int,
    ) -> bool:
        return not self.runs(workload, raised(line, {**more, key: steps * step}))

    def evictions(self, workload: Workload) -> Iterator[Edit]:
        """The fewest pods of one node whose eviction helps, though the scheduler would not evict them itself."""
        for pods in evictions(workload, self._scheduler.cluster):
            if self._branch(partial(self._runs_without, workload, pods)):
                words = f"if {', '.join(f'{pod.key} (priority {pod.shape.priority})' for pod in pods)} went"
                steps = [Step(f"kubectl delete pod -n {pod.namespace} {pod.name}") for pod in pods]
                yield Edit("evictions", 60 + len(pods), words, workload, tuple(steps))
                return

    def _runs_without(self, workload: Workload, pods: Sequence[Pod]) -> bool:
        """The workload waits already when they go, and their successors come after it. Where it makes room for some of
        its pods by itself, those whom it evicts may be the same ones, so nothing is suggested."""
        trial = Trial(self._scheduler, self._now)
        if try_out(trial, workload) or trial.victims:
            return False
        evict(trial, pods)
        return trial.run(lambda: all(map(trial.place_of, workload.uids))) and not trial.victims

    def nodes_needed(self, workload: Workload, shape: AlikeNodes) -> int:
        """The fewest nodes of a shape that let the workload run; 0 if none do."""
        others = len(waiting_pods(self._scheduler, workload))  # they may come first and take the new nodes
        bound = min(_MOST_NODES, len(workload.pods) + others)
        if not self.runs(workload, lambda trial: add_nodes(trial, shape, bound)):
            return 0
        without = _most(1, bound - 1, lambda n: not self.runs(workload, lambda trial: add_nodes(trial, shape, n)))
        return without + 1

    def holders(self, workload: Workload, lacks: Sequence[Doc]) -> Iterator[Edit]:
        """Of those who hold what is short, the first without whom the workload runs."""
        names = dict.fromkeys(held["who"] for one in lacks for held in one.get("heldBy") or ())
        for who in list(names)[:_JOBS]:
            end = end_of(who, self._scheduler.cluster, workload)
            if end is not None and self.runs(workload, end.prepare):
                yield Edit("end", 41, end.says, workload, (Step(end.command),) if end.command else ())
                return

    def _ends(self, workload: Workload) -> Iterator[Edit]:
        """Jobs whose end would make room, the smallest first."""
        jobs: dict[tuple[str, str, str], list[Pod]] = {}
        for pod, _ in self._scheduler.cluster.seated():
            if pod.owner is not None and pod.owner.kind == "Job" and pod.uid not in workload.own:
                jobs.setdefault((pod.namespace, pod.owner.kind, pod.owner.name), []).append(pod)
        for (namespace, kind, name), pods in sorted(jobs.items(), key=lambda one: (len(one[1]), one[0]))[:_JOBS]:
            if self.runs(workload, partial(_without, pods)):
                words = f"when {kind} {namespace}/{name} has ended ({len(pods)} pod{'s'[: len(pods) != 1]})"
                yield Edit("end", 40 + len(pods), words, workload)
                return


def _raise(workload: Workload, line: Sequence[Allowance], more: dict[tuple[int, str], int]) -> Edit | None:
    """The edit that raises those of a line that have to be raised; None if none has."""
    raises = [
        (one, {name: amount for (number, name), amount in more.items() if number == at and amount})
        for at, one in enumerate(line)
    ]
    raises = [(one, amounts) for one, amounts in raises if amounts]
    if not raises:
        return None
    words = " and ".join(one.says(amounts) for one, amounts in raises).replace(" and with ", " and ")
    steps = [Step(one.command(amounts)) for one, amounts in reversed(raises)]  # none may exceed one above it
    return Edit("allowance", 34 + len(raises), words, workload, tuple(steps))


def _asking(workload: Workload, resource: str, step: int, steps: int) -> Edit:
    return with_request(workload, resource, steps * step)


def _device_resources(workload: Workload) -> list[str]:
    """What containers request besides the resources that every node has."""
    asked = {
        name
        for pod in workload.pods
        for container in pod["spec"]["containers"]
        for part in (container.get("resources") or {}).values()
        if isinstance(part, dict)
        for name in part
    }
    return sorted(name for name in asked if "/" in name)


def _without(pods: Sequence[Pod], trial: Trial) -> None:
    trial.remove_pods(pods)


def _most(least: int, most: int, helps: Callable[[int], bool], guess: int = -1) -> int:
    """The largest number of a range that helps, if every smaller one helps too; 0 if none does. A good `guess` spares
    the search."""
    if least <= guess <= most and helps(guess):
        if guess == most or not helps(guess + 1):
            return guess
        least = guess + 1
    elif most < least or not helps(least):
        return 0
    while least < most:
        middle = (least + most + 1) // 2
        if helps(middle):
            least = middle
        else:
            most = middle - 1
    return least
