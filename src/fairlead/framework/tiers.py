"""TierPlugin: a policy in Volcano's manner, with one optional method per registration point; and Tiers, which combines
what the plugins say, one short method per rule.

How to write a tier plugin
    Subclass TierPlugin, set `name`, take the configuration's arguments in the constructor (already parsed values), and
    override the points that you have something to say at. `open(round)` is called when a round begins and must set up
    everything anew: nothing else survives from one round to the next. Keep per-job and per-queue sums in `open`, and
    follow what the round does in `allocated(task)` and `deallocated(task)`, which are called for every placement,
    pipelining, eviction and undo. Nodes are rows of the table: `predicate` and `node_order` answer for a whole
    selection (`nodes: Nodes`, with `nodes.row_numbers()`) in arrays, and `round.books` has idle, used, releasing and
    pipelined as columns. A plugin never changes the round; it counts and judges.

How to write an action
    A module in engine/actions with `NAME` and `def execute(round: Round) -> Iterator[None]`, a generator that yields
    after each attempt (a job, or a task of a job that is ready) while no trial of its own is open, so that others can
    have a turn. It changes the round only through `Transaction(round)` (engine/transaction.py), asks the plugins
    through `round.tiers`, and leaves what the original leaves to chance to `round.choices`.

Which plugin is asked, and in which order, is the configuration's: tiers, plugins within a tier, and switches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Job, QueueState, Round, SubJob, Task
    from fairlead.model.reasons import Reject, Status
    from fairlead.state.nodes import Nodes


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Purpose(Enum):
    """What hypernodes are looked for: room that is there, or room that can be made."""

    ALLOCATE = "allocate"
    EVICT = "evict"


@dataclass(frozen=True, slots=True)
class Invalid:
    """Why a job cannot be scheduled as it is: a reason of the PodGroup's condition, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """Whom whole gangs are evicted for: `kind` is gangpreempt or gangreclaim, `hyper_node` the domain."""

    kind: str
    job: Job
    hyper_node: str


class TierPlugin:
    """A policy. Orders answer below 0 if left comes first, above if right does, 0 if they do not care."""

    name: str = ""
    timed: bool = False
    """Whether its answers change as time passes, though nothing else does."""

    def open(self, round: Round) -> None:
        """A round begins."""

    def close(self, round: Round) -> None:
        """It ends; conditions can still be set on its jobs."""

    # ---- orders ----

    def job_order(self, left: Job, right: Job) -> float:
        raise NotImplementedError

    def sub_job_order(self, left: SubJob, right: SubJob) -> float:
        raise NotImplementedError

    def queue_order(self, left: QueueState, right: QueueState) -> float:
        raise NotImplementedError

    def victim_queue_order(self, left: QueueState, right: QueueState, preemptor: QueueState) -> float:
        raise NotImplementedError

    def task_order(self, left: Task, right: Task) -> float:
        raise NotImplementedError

    # ---- nodes ----

    def pre_predicate(self, task: Task) -> Status | None:
        """Look at the task once, before its nodes are judged. Anything but None ends its attempt."""
        raise NotImplementedError

    def predicate(self, task: Task, nodes: Nodes) -> Iterable[Reject]:
        """Which rows are refused. A row may be in several rejects: all its reasons are reported."""
        raise NotImplementedError

    def best_node(self, task: Task, rows: NDArray[np.int32], scores: NDArray[np.float64]) -> int | None:
        """The row to take, or None to leave it to the scores."""
        raise NotImplementedError

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        """What is added to each row's score (NodeOrder, NodeMap and Reduce, BatchNodeOrder)."""
        raise NotImplementedError

    # ---- hypernodes ----

    def hyper_node_order(self, sub_job: SubJob, candidates: Sequence[str]) -> Mapping[str, float]:
        raise NotImplementedError

    def gradient_for_job(self, job: Job, root: str, purpose: Purpose) -> list[list[str]]:
        raise NotImplementedError

    def gradient_for_sub_job(self, sub_job: SubJob, root: str, purpose: Purpose) -> list[list[str]]:
        raise NotImplementedError

    # ---- victims: None abstains, a list (even an empty one) is a verdict ----

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        raise NotImplementedError

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        raise NotImplementedError

    def unified_evictable(self, eviction: Eviction, candidates: Sequence[Task]) -> list[Task] | None:
        raise NotImplementedError

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        raise NotImplementedError

    # ---- queues ----

    def overused(self, queue: QueueState) -> bool:
        raise NotImplementedError

    def preemptive(self, queue: QueueState, tasks: Sequence[Task]) -> bool:
        raise NotImplementedError

    def allocatable(self, queue: QueueState, task: Task) -> bool:
        raise NotImplementedError

    # ---- jobs ----

    def job_ready(self, job: Job) -> bool:
        raise NotImplementedError

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        raise NotImplementedError

    def job_pipelined(self, job: Job) -> Vote:
        raise NotImplementedError

    def sub_job_pipelined(self, sub_job: SubJob) -> Vote:
        raise NotImplementedError

    def job_valid(self, job: Job) -> Invalid | None:
        raise NotImplementedError

    def job_enqueueable(self, job: Job) -> Vote:
        raise NotImplementedError

    def job_enqueued(self, job: Job) -> None:
        raise NotImplementedError

    def job_starving(self, job: Job) -> bool:
        raise NotImplementedError

    # ---- what-ifs of topology-aware preemption: `row` without `victim`, or with it again ----

    def simulate_add_task(self, task: Task, victim: Task, row: int) -> None:
        raise NotImplementedError

    def simulate_remove_task(self, task: Task, victim: Task, row: int) -> None:
        raise NotImplementedError

    def simulate_predicate(self, task: Task, row: int) -> bool:
        raise NotImplementedError

    def simulate_allocatable(self, queue: QueueState, task: Task) -> bool:
        raise NotImplementedError

    # ---- what happens ----

    def allocated(self, task: Task) -> Status | None:
        """A task was put on `task.row` (allocated, pipelined, or an eviction undone). A refusal undoes it."""
        raise NotImplementedError

    def deallocated(self, task: Task) -> None:
        """A task is taken off `task.row` (a placement undone, or an eviction)."""
        raise NotImplementedError


SWITCHES: Mapping[str, tuple[str, ...]] = {
    "job_order": ("enableJobOrder",),
    "sub_job_order": ("enabledSubJobOrder",),
    "queue_order": ("enableQueueOrder",),
    "victim_queue_order": (),
    "task_order": ("enableTaskOrder",),
    "pre_predicate": ("enablePredicate",),
    "predicate": ("enablePredicate",),
    "best_node": ("enableBestNode",),
    "node_order": ("enableNodeOrder",),
    "hyper_node_order": ("enabledHyperNodeOrder",),
    "gradient_for_job": ("enabledHyperNodeGradient",),
    "gradient_for_sub_job": ("enabledHyperNodeGradient",),
    "preemptable": ("enablePreemptable",),
    "reclaimable": ("enableReclaimable",),
    "unified_evictable": (),
    "victim_tasks": ("enabledVictim",),
    "overused": ("enabledOverused",),
    "preemptive": ("enablePreemptive",),
    "allocatable": ("enabledAllocatable",),
    "job_ready": ("enableJobReady",),
    "sub_job_ready": ("enabledSubJobReady",),
    "job_pipelined": ("enableJobPipelined",),
    "sub_job_pipelined": ("enabledSubJobPipelined",),
    "job_valid": (),
    "job_enqueueable": ("enableJobEnqueued",),
    "job_enqueued": ("enableJobEnqueued",),
    "job_starving": ("enableJobStarving",),
    "simulate_add_task": ("enablePreemptable", "enabledAllocatable"),
    "simulate_remove_task": ("enablePreemptable", "enabledAllocatable"),
    "simulate_predicate": ("enablePredicate",),
    "simulate_allocatable": ("enabledAllocatable",),
    "allocated": (),
    "deallocated": (),
}
"""The switches of each point, any of which lets it speak; without one it always does. All are on by default."""


@dataclass(frozen=True, slots=True, eq=False)
class Enabled:
    """A plugin in its tier. `switches` are the ones that the configuration names, spelt as there; the others are on
    (`enableHierarchy`, which is off by default, is the plugin's own business)."""

    plugin: TierPlugin
    switches: Mapping[str, bool] = field(default_factory=dict)

    def speaks_at(self, point: str) -> bool:
        if getattr(type(self.plugin), point) is getattr(TierPlugin, point):
            return False
        switches = SWITCHES[point]
        return not switches or any(self.switches.get(switch, True) for switch in switches)


class Tiers:
    """All that is asked of several plugins at once. A plugin that is listed twice is asked twice, but the instance
    listed last answers both times."""

    def __init__(self, tiers: Sequence[Sequence[Enabled]], *, reseed_victims: bool = True) -> None:
        self.plugins: dict[str, TierPlugin] = {e.plugin.name: e.plugin for tier in tiers for e in tier}
        self._reseed_victims = reseed_victims
        self._asked: dict[str, list[list[Callable[..., Any]]]] = {
            point: [[getattr(self.plugins[e.plugin.name], point) for e in tier if e.speaks_at(point)] for tier in tiers]
            for point in SWITCHES
        }

    def _each(self, point: str) -> Iterator[Callable[..., Any]]:
        for tier in self._asked[point]:
            yield from tier

    def speaks_at(self, point: str) -> bool:
        """Whether anybody does."""
        return any(self._asked[point])

    # ---- orders ----

    def _compare(self, point: str, *args: Any) -> float:
        """The first that cares decides."""
        for tier in self._asked[point]:
            for ask in tier:
                if said := ask(*args):
                    return said  # type: ignore[no-any-return]
        return 0

    def compare_jobs(self, left: Job, right: Job) -> float:
        """Without the tie-break."""
        return self._compare("job_order", left, right)

    def job_first(self, left: Job, right: Job) -> bool:
        if said := self._compare("job_order", left, right):
            return said < 0
        return (left.created, left.uid) < (right.created, right.uid)

    def sub_job_first(self, left: SubJob, right: SubJob) -> bool:
        if said := self._compare("sub_job_order", left, right):
            return said < 0
        return (left.match_index, left.uid) < (right.match_index, right.uid)

    def queue_first(self, left: QueueState, right: QueueState) -> bool:
        if said := self._compare("queue_order", left, right):
            return said < 0
        return (left.created, left.name) < (right.created, right.name)

    def victim_queue_first(self, left: QueueState, right: QueueState, preemptor: QueueState) -> bool:
        if said := self._compare("victim_queue_order", left, right, preemptor):
            return said < 0
        return not self.queue_first(left, right)

    def task_first(self, left: Task, right: Task) -> bool:
        if said := self._compare("task_order", left, right):
            return said < 0
        if left.index is not None and right.index is not None and left.index != right.index:
            return left.index < right.index
        return (left.created, left.uid) < (right.created, right.uid)

    # ---- nodes ----

    def pre_predicate(self, task: Task) -> Status | None:
        for ask in self._each("pre_predicate"):
            said: Status | None = ask(task)
            if said is not None and not said.ok:
                return said
        return None

    def predicates(self, task: Task) -> Iterator[Callable[[Nodes], Iterable[Reject]]]:
        """Each plugin's judgement in turn; who judges leaves out the rows that an earlier one refused."""
        for ask in self._each("predicate"):
            yield lambda nodes, ask=ask: ask(task, nodes)  # type: ignore[misc]

    def node_scores(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        total = np.zeros(len(nodes), dtype=np.float64)
        for ask in self._each("node_order"):
            total += ask(task, nodes)
        return total

    def best_node(self, task: Task, rows: NDArray[np.int32], scores: NDArray[np.float64]) -> int | None:
        for ask in self._each("best_node"):
            row: int | None = ask(task, rows, scores)
            if row is not None:
                return row
        return None

    # ---- hypernodes ----

    def hyper_node_scores(self, sub_job: SubJob, candidates: Sequence[str]) -> dict[str, float]:
        total = dict.fromkeys(candidates, 0.0)
        for ask in self._each("hyper_node_order"):
            for name, score in ask(sub_job, candidates).items():
                total[name] = total.get(name, 0.0) + score
        return total

    def gradient_for_job(self, job: Job, root: str, purpose: Purpose) -> list[list[str]]:
        for ask in self._each("gradient_for_job"):
            return ask(job, root, purpose)  # type: ignore[no-any-return]
        return [[root]]

    def gradient_for_sub_job(self, sub_job: SubJob, root: str, purpose: Purpose) -> list[list[str]]:
        for ask in self._each("gradient_for_sub_job"):
            return ask(sub_job, root, purpose)  # type: ignore[no-any-return]
        return [[root]]

    # ---- victims ----

    def _victims(self, point: str, evictor: object, candidates: Sequence[Task]) -> list[Task]:
        """Within a tier, those that all who vote agree on. An empty verdict passes the question to the next tier, so a
        lower tier may give what a higher one refused. Where an intersection comes out empty, the next plugin of the
        tier starts anew, unless that is fixed."""
        for tier in self._asked[point]:
            victims: list[Task] | None = None
            for ask in tier:
                said: list[Task] | None = ask(evictor, candidates)
                if said is None:
                    continue
                if not said:
                    victims = None
                    break
                if victims is None:
                    victims = said
                    continue
                agreed = {task.uid for task in said}
                victims = [task for task in victims if task.uid in agreed] or None
                if victims is None and not self._reseed_victims:
                    break
            if victims is not None:
                return victims
        return []

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._victims("preemptable", evictor, candidates)

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._victims("reclaimable", evictor, candidates)

    def unified_evictable(self, eviction: Eviction, candidates: Sequence[Task]) -> list[Task]:
        return self._victims("unified_evictable", eviction, candidates)

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        """The first tier in which anybody names one; there, all who are named by anybody."""
        for tier in self._asked["victim_tasks"]:
            named: dict[str, Task] = {}
            for ask in tier:
                named.update((task.uid, task) for task in ask(tasks))
            if named:
                return list(named.values())
        return []

    # ---- yes and no ----

    def _all(self, point: str, *args: object) -> bool:
        return all(ask(*args) for tier in self._asked[point] for ask in tier)

    def overused(self, queue: QueueState) -> bool:
        return any(ask(queue) for ask in self._each("overused"))

    def preemptive(self, queue: QueueState, tasks: Sequence[Task]) -> bool:
        return self._all("preemptive", queue, tasks)

    def allocatable(self, queue: QueueState, task: Task) -> bool:
        return self._all("allocatable", queue, task)

    def job_ready(self, job: Job) -> bool:
        return self._all("job_ready", job)

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        if not sub_job.job.has_sub_groups:
            return self.job_ready(sub_job.job)
        return self._all("sub_job_ready", sub_job)

    def _vote(self, point: str, subject: object) -> bool:
        """A no counts at once; a yes ends it with its tier; nobody caring is a yes."""
        for tier in self._asked[point]:
            permitted = False
            for ask in tier:
                vote = ask(subject)
                if vote < 0:
                    return False
                permitted |= vote > 0
            if permitted:
                return True
        return True

    def job_pipelined(self, job: Job) -> bool:
        return self._vote("job_pipelined", job)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        if not sub_job.job.has_sub_groups:
            return self.job_pipelined(sub_job.job)
        return self._vote("sub_job_pipelined", sub_job)

    def job_valid(self, job: Job) -> Invalid | None:
        for ask in self._each("job_valid"):
            said: Invalid | None = ask(job)
            if said is not None:
                return said
        return None

    def job_enqueueable(self, job: Job) -> bool:
        return self._vote("job_enqueueable", job)

    def job_enqueued(self, job: Job) -> None:
        for ask in self._each("job_enqueued"):
            ask(job)

    def job_starving(self, job: Job) -> bool:
        """The first tier in which anybody has a say: all of it must agree. Nobody: no."""
        for tier in self._asked["job_starving"]:
            if tier:
                return all(ask(job) for ask in tier)
        return False

    # ---- what-ifs ----

    def simulate_add_task(self, task: Task, victim: Task, row: int) -> None:
        for ask in self._each("simulate_add_task"):
            ask(task, victim, row)

    def simulate_remove_task(self, task: Task, victim: Task, row: int) -> None:
        for ask in self._each("simulate_remove_task"):
            ask(task, victim, row)

    def simulate_predicate(self, task: Task, row: int) -> bool:
        return self._all("simulate_predicate", task, row)

    def simulate_allocatable(self, queue: QueueState, task: Task) -> bool:
        return self._all("simulate_allocatable", queue, task)

    # ---- what happens ----

    def allocated(self, task: Task) -> Status | None:
        """All are told; the last failure counts."""
        failure: Status | None = None
        for tell in self._each("allocated"):
            said: Status | None = tell(task)
            if said is not None and not said.ok:
                failure = said
        return failure

    def deallocated(self, task: Task) -> None:
        for tell in self._each("deallocated"):
            tell(task)
