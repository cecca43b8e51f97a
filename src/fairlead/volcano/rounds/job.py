"""Task, SubJob and Job: what a Volcano round and its plugins see of pods and PodGroups.

They live for one round. A task's status changes only through `Job.move`, which keeps the counts by status, by role and
by sub-job, and the sum of what is allocated; so every predicate on a job is a comparison of a few counts.

Invariant: `counts[s]` is the number of tasks in status s, of the job, of each sub-job and of each role, and `allocated`
is the sum of the requests of the tasks in an allocated status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.records.tasks import ALLOCATED_CLASS, SCHEDULED_CLASS, TaskStatus

if TYPE_CHECKING:
    from fairlead.core.model.group import GroupCondition, NetworkTopology, PodGroup
    from fairlead.core.model.pod import Pod
    from fairlead.volcano.rounds.fit import FitErrors

QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
_ROLE = "volcano.sh/task-spec"
_TASK_PRIORITY = "volcano.sh/task-priority"
_PREEMPTABLE = "volcano.sh/preemptable"
_REVOCABLE_ZONE = "volcano.sh/revocable-zone"


@dataclass(frozen=True, slots=True)
class LastAttempt:
    """Where a task was before its transaction was discarded. Its condition is about that."""

    row: int
    status: TaskStatus
    eviction_occurred: bool
    hyper_node: str


class Task:
    """A pod in a round. `request` is shared between equal pods: never change it. `row` is -1 without a node. `job` is
    None for pods of no group in the round; they only use resources."""

    __slots__ = (
        "best_effort", "created", "eviction_occurred", "gated", "hyper_node", "index", "job", "key", "last", "name",
        "namespace", "pod", "preemptable", "priority", "request", "revocable_zone", "role", "row", "status", "sub_job",
        "uid", "waits_for_queue",
    )  # fmt: skip

    def __init__(self, pod: Pod, request: Amounts, status: TaskStatus, row: int = -1) -> None:
        self.pod = pod
        self.uid = pod.uid
        self.key = pod.key
        self.name = pod.name
        self.namespace = pod.namespace
        self.created = pod.created
        self.index = _index(pod.name)
        self.role = pod.annotations.get(_ROLE) or pod.labels.get(_ROLE) or ""
        self.request = request
        self.priority = _priority(pod)
        self.preemptable = _flag(pod.annotations, pod.labels, default=True)
        self.revocable_zone = revocable_zone(pod.annotations)
        self.best_effort = request.empty
        self.gated = bool(pod.gates)
        self.waits_for_queue = pod.gates == (QUEUE_GATE,)
        """Whether nothing but Volcano's own gate holds it."""
        self.begin(status, row)

    def begin(self, status: TaskStatus, row: int) -> None:
        """Set everything that a round changes back to what the cluster says."""
        self.status = status
        self.row = row
        self.job: Job | None = None
        self.sub_job: SubJob | None = None
        self.hyper_node = ""
        """The hypernode that scoring should stay close to (JobAllocatedHyperNode)."""
        self.eviction_occurred = False
        self.last: LastAttempt | None = None

    def __repr__(self) -> str:
        return f"<Task {self.key} {self.status.label}>"


def _index(name: str) -> int | None:
    """The number that a name of at least three parts ends in."""
    parts = name.split("-")
    if len(parts) < 3:
        return None
    try:
        return int(parts[-1])
    except ValueError:
        return None


def _priority(pod: Pod) -> int:
    """What the annotation says, else the pod's own, else 1."""
    text = pod.annotations.get(_TASK_PRIORITY)
    if text is not None:
        try:
            number = int(text)
        except ValueError:
            pass
        else:
            if -(2**31) <= number < 2**31:
                return number
    return pod.priority if pod.shape.has_priority else 1


_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def _flag(annotations: Mapping[str, str], labels: Mapping[str, str], *, default: bool) -> bool:
    """Whether something may be preempted: annotation, else label; what cannot be read is no."""
    text = annotations.get(_PREEMPTABLE, labels.get(_PREEMPTABLE))
    return default if text is None else text in _TRUE


def revocable_zone(annotations: Mapping[str, str]) -> str:
    zone = annotations.get(_REVOCABLE_ZONE)
    if zone is not None:
        return "*" if zone == "*" else ""
    return "*" if annotations.get(_PREEMPTABLE) in _TRUE else ""


_PENDING, _PIPELINED = TaskStatus.PENDING, TaskStatus.PIPELINED
_RELEASING, _SUCCEEDED = TaskStatus.RELEASING, TaskStatus.SUCCEEDED
_STATUSES = len(TaskStatus)
"""Constants of the module: before Python 3.12 attributes of an Enum are ten times slower."""


class TaskCounts:
    """How many tasks are in each status, and how many pending ones request nothing."""

    __slots__ = ("allocated_class", "by_status", "pending_best_effort")

    def __init__(self) -> None:
        self.by_status = [0] * _STATUSES
        self.allocated_class = 0
        self.pending_best_effort = 0

    def count(self, task: Task, status: TaskStatus, by: int) -> None:
        self.by_status[status] += by
        if status in ALLOCATED_CLASS:
            self.allocated_class += by
        if status is _PENDING and task.best_effort:
            self.pending_best_effort += by

    def of(self, status: TaskStatus) -> int:
        return self.by_status[status]

    @property
    def ready(self) -> int:
        """ReadyTaskNum."""
        return self.allocated_class + self.by_status[_SUCCEEDED]

    @property
    def waiting(self) -> int:
        """WaitingTaskNum."""
        return self.by_status[_PIPELINED]

    @property
    def valid(self) -> int:
        """ValidTaskNum."""
        return self.ready + self.waiting + self.by_status[_PENDING]


class _Gang:
    """Tasks with a minimum: what a job and a sub-job share."""

    __slots__ = ("counts", "min_available", "tasks")

    def __init__(self, min_available: int) -> None:
        self.min_available = min_available
        self.tasks: dict[str, Task] = {}
        self.counts = TaskCounts()

    def in_status(self, *statuses: TaskStatus) -> Iterator[Task]:
        """Tasks in some statuses, in the order in which they came to the job."""
        return (task for task in self.tasks.values() if task.status in statuses)

    @property
    def is_ready(self) -> bool:
        """Whether the minimum has places; pending tasks that request nothing count."""
        counts = self.counts
        ready = counts.allocated_class + counts.by_status[_SUCCEEDED]
        return ready + counts.pending_best_effort >= self.min_available

    @property
    def is_pipelined(self) -> bool:
        """Whether the minimum has places, including those that are about to become free."""
        return self.counts.waiting + self.counts.ready + self.counts.pending_best_effort >= self.min_available

    @property
    def is_starving(self) -> bool:
        return self.counts.waiting + self.counts.ready < self.min_available


class SubJob(_Gang):
    """Tasks of a job that one sub-group policy selects and that have equal values of its labels; tasks that no policy
    selects are a sub-job too."""

    __slots__ = (
        "allocated_hyper_node", "failed_roles", "job", "match_index", "nominated_hyper_node", "policy", "priority",
        "topology", "uid",
    )  # fmt: skip

    def __init__(
        self,
        job: Job,
        uid: str,
        *,
        policy: str,
        min_available: int,
        topology: NetworkTopology | None,
        match_index: int = 0,
    ) -> None:
        super().__init__(min_available)
        self.job = job
        self.uid = uid
        self.policy = policy
        """The name of its policy; empty for the rest of a job."""
        self.priority = 0
        self.match_index = match_index
        self.topology = topology
        self.allocated_hyper_node = ""
        self.nominated_hyper_node = ""
        self.failed_roles: set[str] = set()
        """Roles of which a task has an error noted: FitFailedRoles, kept by `Job.note_errors`."""

    def __repr__(self) -> str:
        return f"<SubJob {self.uid}>"


class Job(_Gang):
    """A PodGroup in a round. Its uid is its key, `namespace/name`, as orders compare it. `phase` and `conditions` are
    the round's own and written when it ends."""

    __slots__ = (
        "allocated", "allocated_hyper_node", "conditions", "created", "dirty", "fit_errors", "group",
        "min_resources", "name", "namespace", "phase", "preemptable", "priority", "queue", "revocable_zone",
        "role_counts", "role_minimums", "role_total", "sub_jobs", "topology", "total_request", "uid",
    )  # fmt: skip

    def __init__(self, group: PodGroup, *, queue: str, priority: int) -> None:
        super().__init__(group.min_member)
        self.group = group
        self.uid = group.key
        self.name = group.name
        self.namespace = group.namespace
        self.created = group.created
        self.queue = queue
        self.priority = priority
        self.phase = group.phase
        self.conditions: dict[str, GroupCondition] = {condition.type: condition for condition in group.conditions}
        self.role_minimums: Mapping[str, int] = group.task_minimums or {}
        self.role_total = sum(self.role_minimums.values())
        self.role_counts: dict[str, TaskCounts] = {}
        self.min_resources: Amounts | None = None if group.min_resources is None else Amounts.of(group.min_resources)
        """None where the group names none, which orders and admission distinguish from an empty list."""
        self.preemptable = _flag(group.annotations, group.labels, default=False)
        self.revocable_zone = revocable_zone(group.annotations)
        self.topology = group.network_topology
        """As normalised when the round opens: soft has become hard with the widest tier."""
        self.sub_jobs: dict[str, SubJob] = {}
        self.allocated = Amounts()
        self.total_request = Amounts()
        self.allocated_hyper_node = ""
        self.fit_errors: dict[str, FitErrors] = {}
        """By task uid, for as long as the round lives."""
        self.dirty = False

    def __repr__(self) -> str:
        return f"<Job {self.uid}>"

    # ---- tasks ----

    def add(self, task: Task, sub_job: SubJob) -> None:
        """Take in a task of this job."""
        task.job, task.sub_job = self, sub_job
        self.tasks[task.uid] = sub_job.tasks[task.uid] = task
        if task.priority > sub_job.priority:
            sub_job.priority = task.priority
        self.total_request.add(task.request)
        self._count(task, 1)

    def move(self, task: Task, status: TaskStatus) -> None:
        """Change a task's status."""
        self._count(task, -1)
        task.status = status
        self._count(task, 1)

    def _count(self, task: Task, by: int) -> None:
        status = task.status
        self.counts.count(task, status, by)
        assert task.sub_job is not None
        task.sub_job.counts.count(task, status, by)
        role = self.role_counts.get(task.role)
        if role is None:
            role = self.role_counts[task.role] = TaskCounts()
        role.count(task, status, by)
        if status in ALLOCATED_CLASS:
            if by > 0:
                self.allocated.add(task.request)
            else:
                self.allocated.subtract(task.request)

    # ---- what it is ----

    @property
    def is_pending(self) -> bool:
        """Not yet let in by enqueue."""
        return self.phase in ("", "Pending")

    @property
    def says_preemptable(self) -> bool:
        """Whether the group says if it may be preempted."""
        return _PREEMPTABLE in self.group.annotations or _PREEMPTABLE in self.group.labels

    @property
    def has_sub_groups(self) -> bool:
        return bool(self.group.sub_groups)

    @property
    def has_hard_topology(self) -> bool:
        return self.topology is not None and self.topology.hard and self.topology.highest_tier is not None

    @property
    def contains_topology(self) -> bool:
        """Whether the job or one of its sub-jobs has a network topology."""
        return self.topology is not None or any(sub_job.topology is not None for sub_job in self.sub_jobs.values())

    # ---- minimums per role and per sub-group ----

    @property
    def _roles_matter(self) -> bool:
        return self.min_available >= self.role_total

    def _role(self, role: str) -> TaskCounts:
        return self.role_counts.get(role) or _NONE

    def roles_valid(self) -> bool:
        """CheckTaskValid: enough pods of each role exist."""
        if not self._roles_matter:
            return True
        return all(self._role(role).valid >= least for role, least in self.role_minimums.items() if least)

    def roles_ready(self) -> bool:
        """CheckTaskReady."""
        if not self._roles_matter:
            return True
        return all(self.placed_in_role(role) >= least for role, least in self.role_minimums.items())

    def roles_pipelined(self) -> bool:
        """CheckTaskPipelined."""
        if not self._roles_matter:
            return True
        return all(
            self.placed_in_role(role) + self._role(role).waiting >= least for role, least in self.role_minimums.items()
        )

    def placed_in_role(self, role: str) -> int:
        """How many tasks of a role have a place or request nothing."""
        counts = self._role(role)
        return counts.ready + counts.pending_best_effort

    def _sub_groups_reach(self, counted: Mapping[str, int]) -> bool:
        return all(counted.get(policy.name, 0) >= policy.minimum for policy in self.group.sub_groups)

    def sub_groups_valid(self) -> bool:
        if not self.group.sub_groups:
            return True
        return self._sub_groups_reach(Counter(sub_job.policy for sub_job in self.sub_jobs.values()))

    def sub_groups_ready(self) -> bool:
        if not self.group.sub_groups:
            return True
        return self._sub_groups_reach(Counter(s.policy for s in self.sub_jobs.values() if s.is_ready))

    def sub_groups_pipelined(self) -> bool:
        if not self.group.sub_groups:
            return True
        return self._sub_groups_reach(Counter(s.policy for s in self.sub_jobs.values() if s.is_pipelined))

    # ---- what has a node ----

    @property
    def scheduled(self) -> int:
        """Tasks that have had a node, and have not lost it before their time."""
        return sum(self.counts.of(status) for status in SCHEDULED_CLASS)

    @property
    def ending_in_place(self) -> int:
        """How many tasks are about to end and still have their node."""
        if not self.counts.of(_RELEASING):
            return 0
        return sum(task.row >= 0 for task in self.in_status(_RELEASING))

    @property
    def is_only_ending(self) -> bool:
        """Whether the job is not ready only because tasks of it are ending: no task waits for a place."""
        ending = self.ending_in_place
        waiting = self.counts.of(_PENDING) + self.counts.of(_PIPELINED)
        return bool(ending) and not waiting and self.scheduled + ending >= self.min_available

    # ---- resources ----

    def minimum(self) -> Amounts:
        """GetMinResources: a copy, empty where none are named."""
        return self.min_resources.copy() if self.min_resources is not None else Amounts()

    def elastic(self) -> Amounts:
        """GetElasticResources: what it has beyond its minimum, per dimension."""
        if self.allocated.nothing:
            return Amounts()
        least = self.minimum()
        made = Amounts(max(0.0, self.allocated.cpu - least.cpu), max(0.0, self.allocated.memory - least.memory))
        for name, amount in self.allocated.scalars.items():
            made.scalars[name] = max(0.0, amount - least.scalars.get(name, 0.0))
        return made

    def without_gated(self, amounts: Amounts) -> Amounts:
        """DeductSchGatedResources: some amounts without what gated tasks request, except those that only wait for their
        queue's gate."""
        left = amounts.copy()
        for task in self.tasks.values():
            if not task.gated or task.waits_for_queue:
                continue
            left.cpu = max(0.0, left.cpu - task.request.cpu)
            left.memory = max(0.0, left.memory - task.request.memory)
            for name in left.scalars:
                left.scalars[name] = max(0.0, left.scalars[name] - task.request.scalars.get(name, 0.0))
        return left

    # ---- why not ----

    def note_errors(self, task: Task, errors: FitErrors) -> None:
        """Record why a task found no node; tasks of its role are not tried again then."""
        assert task.sub_job is not None
        self.fit_errors[task.uid] = errors
        task.sub_job.failed_roles.add(task.role)

    def forget_errors(self) -> None:
        self.fit_errors.clear()
        for sub_job in self.sub_jobs.values():
            sub_job.failed_roles.clear()

    def forget_errors_of(self, sub_job: SubJob) -> None:
        if sub_job.failed_roles:
            self.fit_errors = {uid: e for uid, e in self.fit_errors.items() if uid not in sub_job.tasks}
            sub_job.failed_roles.clear()

    def fit_error(self) -> str:
        """FitError: how many tasks are in which status, and what is behind the pending ones."""
        hopeful = sum(_was_allocated(task) for task in self.in_status(_PENDING))
        text = _how_it_stands(self.is_ready, self.min_available, tuple(self.counts.by_status), hopeful)
        for uid, errors in self.fit_errors.items():
            text += f". Origin reason is {self.tasks[uid].name}: {errors.message}"
            break
        return text


_NONE = TaskCounts()


def _was_allocated(task: Task) -> bool:
    """Whether a pending task could have been placed, had its job been."""
    return task.last is not None and task.last.status is TaskStatus.ALLOCATED


@lru_cache(maxsize=1024)
def _how_it_stands(ready: bool, least: int, by_status: tuple[int, ...], hopeful: int) -> str:
    """The head of FitError. A backlog of equal jobs has few different ones, and every round says them again."""
    head = "pod group is ready" if ready else "pod group is not ready"
    statuses = [f"{n} {status.label}" for status in TaskStatus if (n := by_status[status])]
    text = f"{head}, {', '.join(sorted([*statuses, f'{least} minAvailable']))}"
    waiting = by_status[_PENDING]
    if not waiting:
        return text
    reasons = ((hopeful, "Schedulable"), (waiting - hopeful, "Unschedulable"))
    return f"{text}; {_PENDING.label}: {', '.join(sorted(f'{n} {why}' for n, why in reasons if n))}"
