"""TierPlugin: a policy of a Volcano profile, with one optional method per registration point, grouped by subject.

How to write a tier plugin
    Subclass TierPlugin, set `name`, take the configuration's arguments in the constructor (already parsed values), and
    override the points that you have something to say at. `open(round)` is called when a round begins and must set up
    everything anew: nothing else survives from one round to the next. Keep per-job and per-queue sums in `open`, and
    follow what the round does in `allocated(task)` and `deallocated(task)`, which are called for every placement,
    pipelining, eviction and undo. Nodes are rows of the table: `predicate` and `node_order` answer for a whole
    selection (`nodes: Nodes`, with `nodes.row_numbers()`) in arrays, and `round.resources` has idle, used, releasing
    and pipelined as columns. A plugin never changes the round; it counts and judges.

How to write an action
    A module in volcano/rounds/actions with `NAME` and `def execute(round: Round) -> Iterator[None]`, a generator that
    yields after each attempt (a job, or a task of a job that is ready) while no trial of its own is open, so that pods
    of other profiles have a turn. It changes the round only through Transaction (volcano/rounds/transaction.py), asks
    the plugins through `round.tiers`, and leaves what Volcano leaves to chance to `round.choices`.

The configuration says which plugins are asked and in which order: tiers, plugins within a tier, and switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.model.reasons import Reject, Status
    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.round import Job, QueueState, Round, SubJob, Task


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Purpose(Enum):
    """What hypernodes are looked for: room that is there, or room that can be made."""

    ALLOCATE = "allocate"
    EVICT = "evict"


@dataclass(frozen=True, slots=True)
class InvalidJob:
    """Why a job cannot be scheduled as it is: a reason of the PodGroup's condition, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class GangEvictionContext:
    """Whom whole gangs are evicted for: `kind` is gangpreempt or gangreclaim, `hyper_node` the domain."""

    kind: str
    job: Job
    hyper_node: str


class OrderPoints:
    """Which of two comes first: below 0 the left one, above 0 the right one, 0 if the plugin does not care."""

    def job_order(self, left: Job, right: Job) -> float:
        raise NotImplementedError

    def sub_job_order(self, left: SubJob, right: SubJob) -> float:
        raise NotImplementedError

    def queue_order(self, left: QueueState, right: QueueState) -> float:
        raise NotImplementedError

    def victim_queue_order(self, left: QueueState, right: QueueState, preemptor: QueueState) -> float:
        """From which of two queues tasks are evicted first for a task of the preemptor's queue."""
        raise NotImplementedError

    def task_order(self, left: Task, right: Task) -> float:
        raise NotImplementedError


class NodePoints:
    """Where a task may go, and where it should."""

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


class HyperNodePoints:
    """In which parts of the network a job or sub-job is tried."""

    def hyper_node_order(self, sub_job: SubJob, candidates: Sequence[str]) -> Mapping[str, float]:
        """What is added to the score of each hypernode."""
        raise NotImplementedError

    def gradient_for_job(self, job: Job, root: str, purpose: Purpose) -> list[list[str]]:
        """Hypernodes below `root` in groups; a group is tried only if no earlier one worked."""
        raise NotImplementedError

    def gradient_for_sub_job(self, sub_job: SubJob, root: str, purpose: Purpose) -> list[list[str]]:
        raise NotImplementedError


class VictimPoints:
    """Which tasks may be evicted: None abstains, a list (even an empty one) is a verdict."""

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        raise NotImplementedError

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        raise NotImplementedError

    def unified_evictable(self, eviction: GangEvictionContext, candidates: Sequence[Task]) -> list[Task] | None:
        """For gangpreempt and gangreclaim, which evict for a whole gang."""
        raise NotImplementedError

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        """For shuffle: the running tasks that are to be placed anew."""
        raise NotImplementedError


class QueuePoints:
    """What a queue may have."""

    def overused(self, queue: QueueState) -> bool:
        raise NotImplementedError

    def preemptive(self, queue: QueueState, tasks: Sequence[Task]) -> bool:
        """Whether a queue may take room from others for these tasks."""
        raise NotImplementedError

    def allocatable(self, queue: QueueState, task: Task) -> bool:
        raise NotImplementedError

    def holdable(self, queue: QueueState, task: Task) -> bool:
        """Whether its limit lets a queue hold a task now, beside its own that are still ending. Ours, not Volcano's."""
        raise NotImplementedError


class JobPoints:
    """How far a job is, and whether it is let in."""

    def job_ready(self, job: Job) -> bool:
        raise NotImplementedError

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        raise NotImplementedError

    def job_pipelined(self, job: Job) -> Vote:
        raise NotImplementedError

    def sub_job_pipelined(self, sub_job: SubJob) -> Vote:
        raise NotImplementedError

    def job_valid(self, job: Job) -> InvalidJob | None:
        raise NotImplementedError

    def job_enqueueable(self, job: Job) -> Vote:
        raise NotImplementedError

    def job_enqueued(self, job: Job) -> None:
        """A job was let in."""
        raise NotImplementedError

    def job_starving(self, job: Job) -> bool:
        raise NotImplementedError


class SimulationPoints:
    """Topology-aware preemption asks what if a victim were not on its row; each removal is followed by its undo."""

    def simulate_add_task(self, task: Task, victim: Task, row: int) -> None:
        raise NotImplementedError

    def simulate_remove_task(self, task: Task, victim: Task, row: int) -> None:
        raise NotImplementedError

    def simulate_predicate(self, task: Task, row: int) -> bool:
        raise NotImplementedError

    def simulate_allocatable(self, queue: QueueState, task: Task) -> bool:
        raise NotImplementedError


class TierPlugin(OrderPoints, NodePoints, HyperNodePoints, VictimPoints, QueuePoints, JobPoints, SimulationPoints):
    """A policy: it overrides the points that it has something to say at. The classes above list them by subject."""

    name: str = ""
    timed: bool = False
    """Whether its answers change as time passes, though nothing else does."""
    protects: str = ""
    """Why a task that it does not allow to be evicted is protected, as a sentence about that task."""
    uncounted: frozenset[str] = frozenset()
    """Resources that are not counted on nodes and in queues, because it counts them itself."""

    def open(self, round: Round) -> None:
        """A round begins."""

    def close(self, round: Round) -> None:
        """The round ends; conditions can still be set on its jobs."""

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
    "holdable": ("enabledAllocatable",),
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
    (`enableHierarchy`, which is off by default, is read by the plugin itself)."""

    plugin: TierPlugin
    switches: Mapping[str, bool] = field(default_factory=dict)

    def speaks_at(self, point: str) -> bool:
        if getattr(type(self.plugin), point) is getattr(TierPlugin, point):
            return False
        switches = SWITCHES[point]
        return not switches or any(self.switches.get(switch, True) for switch in switches)
