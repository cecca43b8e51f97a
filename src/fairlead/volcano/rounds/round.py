"""Round: one Volcano session, as its plugins and actions see it: jobs, queues, nodes, resources, and the plugins.

The engine opens a round (volcano/rounds/opening.py), runs the configured actions over it (action_table.py) and closes
it (closing.py). Everything that Volcano leaves to chance goes through `choices`, and everything that happens is
reported to `witness`, so that a recorded round can be followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from fairlead.volcano.rounds.goheap import Heap
from fairlead.volcano.rounds.job import Job, LastAttempt, SubJob, Task

if TYPE_CHECKING:
    from random import Random

    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.effects import Effects
    from fairlead.core.framework.meter import Meter
    from fairlead.core.state.cluster import Cluster
    from fairlead.volcano.records.amounts import Amounts
    from fairlead.volcano.records.queues import Queue
    from fairlead.volcano.records.quirks import Quirks
    from fairlead.volcano.rounds.round_resources import RoundResources
    from fairlead.volcano.rounds.settings import Rounds
    from fairlead.volcano.rounds.tiers import GangEvictionContext, Tiers, VictimVote
    from fairlead.volcano.rounds.trial_overlay import TrialOverlay

__all__ = [
    "Choices", "HyperNodes", "Job", "LastAttempt", "QueueState", "Round", "SearchState", "Shard", "SubJob", "Task",
    "Witness",
]  # fmt: skip

Option = TypeVar("Option")


class HyperNodes(Protocol):
    """What a round asks about the network: a tree of hypernodes under a virtual root that has every node."""

    @property
    def root(self) -> str:
        """The virtual root's name, `<cluster-top-hypernode>`."""

    @property
    def ready(self) -> bool:
        """False while the hypernodes make no tree."""

    def __contains__(self, name: object) -> bool: ...

    def nodes_of(self, name: str) -> frozenset[str]:
        """The names of all nodes below one."""

    def tier(self, name: str) -> int: ...

    def tier_named(self, tier_name: str) -> int | None: ...

    def lowest_common(self, one: str, other: str) -> str:
        """LCA: an empty argument gives the other one; the empty text if there is none."""

    def lowest_containing(self, nodes: Iterable[str]) -> str:
        """The hypernode of the lowest tier that has all these nodes; empty if some node is not in the cluster."""

    def leaf_of(self, node: str) -> str:
        """The hypernode of the very lowest tier there is that has a node; empty if none does."""

    @property
    def tiers(self) -> tuple[int, ...]:
        """All tiers there are, the root's last."""

    def in_tier(self, tier: int) -> list[str]: ...

    def children(self, name: str) -> tuple[str, ...]: ...

    def ancestors(self, name: str) -> list[str]:
        """It, its parent, and so on up to the root."""

    def __iter__(self) -> Iterator[str]: ...


class QueueState:
    """A queue in a round."""

    __slots__ = ("created", "name", "queue")

    def __init__(self, queue: Queue) -> None:
        self.name = queue.name
        self.created = queue.created
        self.queue = queue

    def __repr__(self) -> str:
        return f"<QueueState {self.name}>"


class Choices:
    """What Volcano leaves to chance. Ties are broken by the round's rng; Go maps are walked in the order of
    insertion."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def node(self, task: Task, rows: Sequence[int]) -> int:
        """One of several rows that are equally good for a task."""
        return rows[0] if len(rows) == 1 else self._rng.choice(rows)

    def hyper_node(self, sub_job: SubJob, names: Sequence[str]) -> str:
        return names[0] if len(names) == 1 else self._rng.choice(names)

    def hyper_nodes(self, job: Job, names: Sequence[str]) -> Iterable[str]:
        """The order in which hypernodes of one tier are tried for a job."""
        return names

    def walk(self, what: str, items: Sequence[Option]) -> Iterable[Option]:
        """The order in which a Go map (or a racing set of workers) is walked. `what` names the walk."""
        return items

    def ranked(self, task: Task, rows: NDArray[np.int32], scores: NDArray[np.float64]) -> Iterable[int]:
        """Rows in the order in which room for a task is looked for: best score first, equals in the order given."""
        ranked: list[int] = rows[np.argsort(-scores, kind="stable")].tolist()
        return ranked

    def suspects(self, task: Task, row: int, tasks: Sequence[Task]) -> Sequence[Task]:
        """The order in which tasks that could be evicted from a row are shown to the plugins, some of which take the
        first that they may. Volcano shows them in any order; here the least important come first."""
        return sorted(tasks, key=_least_important)


def _least_important(task: Task) -> tuple[float, ...]:
    index = task.index if task.index is not None else -1
    return task.priority, -index, -task.created


class Witness:
    """Gets what a round does. A subclass counts or compares; this one ignores it."""

    def action(self, name: str) -> None: ...

    def placed(self, task: Task, *, pipelined: bool) -> None:
        """A task was put on `task.row`; `round.search.scores` has what its candidates scored."""

    def evicted(self, task: Task, preemptor: Task | None) -> None: ...

    def committed(self) -> None: ...

    def discarded(self) -> None: ...

    def overused(self, queue: QueueState) -> None: ...

    def preempting(self, victims: int) -> None:
        """Room for a task is made on a node by evicting at most so many."""

    def wants_votes(self, evictor: Task | GangEvictionContext) -> bool:
        """Whether `judged` is to be called about tasks that could be evicted for a task or a gang."""
        return False

    def judged(
        self,
        evictor: Task | GangEvictionContext,
        candidates: Sequence[Task],
        votes: Sequence[VictimVote],
        victims: Sequence[Task],
    ) -> None:
        """Plugins said which of some tasks may be evicted; each has a vote, and `victims` is what they came to."""

    def eviction_kept(self, task: Task, action: str, job: Job) -> None:
        """A transaction was kept in which a task is evicted for a job."""


@dataclass(slots=True)
class Scores:
    """What the candidates of a task scored, when there were at least two."""

    task: Task
    rows: NDArray[np.int32]
    totals: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """Which rows of the table are a scheduler's own, and whether it keeps to them or only prefers them."""

    own: NDArray[np.bool_]
    hard: bool


@dataclass(slots=True, eq=False)
class SearchState:
    """What the searches for nodes of a round leave to each other, and to those who ask afterwards."""

    first_row: int = 0
    """Where the next search begins; it moves on with each search, and from round to round."""
    shard: Shard | None = None
    scores: Scores | None = None
    """Of the last task that had a choice."""
    fitting: dict[str, int] = field(default_factory=dict)
    """By task, how many rows were feasible when one of them was chosen for it."""


@dataclass(slots=True, eq=False)
class Round:
    """`settings` are the profile's. `rows` are all nodes in the order in which they were first seen, `total` is what
    they can allocate together. `topology` is the tree of hypernodes."""

    uid: str
    now: float
    rng: Random
    effects: Effects
    settings: Rounds
    cluster: Cluster
    resources: RoundResources[Task]
    overlay: TrialOverlay
    jobs: dict[str, Job]
    queues: dict[str, QueueState]
    rows: NDArray[np.int32]
    total: Amounts
    tiers: Tiers
    topology: HyperNodes
    choices: Choices
    witness: Witness
    search: SearchState = field(default_factory=SearchState)
    attempting: Task | None = None
    """Whose turn it is: if something raises, it was this task's attempt."""
    meter: Meter | None = None
    """Measures how long things take, if somebody wants to know."""
    undone_evictions_stay_hidden: bool = False
    """Whether a pod whose eviction is undone stays out of what predicates and scores see until the round ends."""
    cycles: dict[str, Cycle] = field(default_factory=dict)
    """By task, what its filters noted when it was last looked at."""
    outcome: RoundOutcome = field(default_factory=lambda: RoundOutcome())
    quirks: Quirks = field(init=False)
    """Those of the settings."""
    beyond: BeyondDeserved = field(default_factory=lambda: BeyondDeserved())
    _rows_of: dict[str, NDArray[np.int32]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.quirks = self.settings.quirks

    def rows_of(self, hyper_node: str) -> NDArray[np.int32]:
        """The rows of a hypernode's nodes, in the order of `rows`."""
        if hyper_node == self.topology.root:
            return self.rows
        found = self._rows_of.get(hyper_node)
        if found is None:
            table = self.cluster.table
            members = self.topology.nodes_of(hyper_node)
            mine = [row for row in self.rows.tolist() if table.name(row) in members]
            found = self._rows_of[hyper_node] = np.array(mine, dtype=np.int32)
        return found

    def note(self, job: Job, message: str) -> None:
        """Write an event on the group of a job when the round ends."""
        self.outcome.notes[job.uid, message] = job

    def argument(self, action: str, name: str, default: Option) -> Option:
        """An argument of an action if it has the type of the default, else the default. A text may spell true or
        false."""
        value = (self.settings.configurations.get(action) or {}).get(name, default)
        if isinstance(default, bool) and isinstance(value, str) and value.lower() in ("true", "false"):
            value = value.lower() == "true"
        return value if type(value) is type(default) else default

    # ---- victims ----

    def victims_heap(self, victims: Sequence[Task], preemptor: Task) -> Heap[Task]:
        """Victims in the order in which they are evicted (BuildVictimsPriorityQueue)."""
        return Heap(lambda left, right: self._victim_first(left, right, preemptor), victims)

    def _victim_first(self, left: Task, right: Task, preemptor: Task) -> bool:
        tiers, one, other = self.tiers, left.job, right.job
        if one is other:
            return not tiers.task_first(left, right)
        if one is None or other is None:
            return one is None
        if preemptor.job is not None and one.queue != other.queue:
            return tiers.victim_queue_first(
                self.queues[one.queue], self.queues[other.queue], self.queues[preemptor.job.queue]
            )
        if said := tiers.compare_jobs(one, other):
            return said > 0
        return not tiers.task_first(left, right)


@dataclass(slots=True)
class BeyondDeserved:
    """The jobs that their queue refused in this round, by uid, and the one that is tried beyond what it deserves."""

    refused: dict[str, Job] = field(default_factory=dict)
    trying: Job | None = None


@dataclass(slots=True)
class RoundOutcome:
    """What a round has committed: pods to bind and pods to evict, in order."""

    binds: list[tuple[Task, int]] = field(default_factory=list)
    evictions: list[tuple[Task, str]] = field(default_factory=list)
    """Tasks and the reason: preempt, reclaim, shuffle, gangpreempt, gangreclaim."""
    let_through: dict[str, Task] = field(default_factory=dict)
    """Tasks whose queue has room for them, and whose gate is to be taken away, by uid."""
    notes: dict[tuple[str, str], Job] = field(default_factory=dict)
    """Jobs by their uid and what is to be said of them."""
