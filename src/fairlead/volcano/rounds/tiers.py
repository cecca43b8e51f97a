"""Tiers: what is asked of several tier plugins at once, and how their answers combine, one short method per rule.

The rules are Volcano's: which answer ends the questions, which tier decides, and what it means if no plugin answers.
The questions are grouped by subject as in TierPlugin; actions ask all of them through one Tiers object. How to write a
plugin or an action is said in volcano/rounds/tier_plugin.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.volcano.rounds.tier_plugin import (
    SWITCHES,
    Enabled,
    GangEvictionContext,
    InvalidJob,
    Purpose,
    TierPlugin,
    Vote,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.reasons import Reject, Status
    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.round import Job, QueueState, SubJob, Task, Witness

__all__ = [
    "SWITCHES", "Enabled", "GangEvictionContext", "InvalidJob", "Purpose", "TierPlugin", "Tiers", "VictimVote", "Vote",
]  # fmt: skip


class _Questions:
    """The plugins by tier and point, and the rules by which several answers become one."""

    def __init__(self, tiers: Sequence[Sequence[Enabled]], *, disagreement_restarts: bool = True) -> None:
        self.plugins: dict[str, TierPlugin] = {e.plugin.name: e.plugin for tier in tiers for e in tier}
        self._disagreement_restarts = disagreement_restarts
        self._asked_plugins = {
            point: [[self.plugins[e.plugin.name] for e in tier if e.speaks_at(point)] for tier in tiers]
            for point in SWITCHES
        }
        self._asked: dict[str, list[list[Callable[..., Any]]]] = {
            point: [[getattr(plugin, point) for plugin in tier] for tier in plugins]
            for point, plugins in self._asked_plugins.items()
        }
        self._in_turn = {point: [ask for tier in tiers for ask in tier] for point, tiers in self._asked.items()}

    def speaks_at(self, point: str) -> bool:
        """Whether any plugin does."""
        return bool(self._in_turn[point])

    def _each(self, point: str) -> list[Callable[..., Any]]:
        """The plugins that speak at a point, tier after tier."""
        return self._in_turn[point]

    def _compare(self, point: str, *args: Any) -> float:
        """The first plugin that cares decides."""
        for ask in self._in_turn[point]:
            if said := ask(*args):
                return said  # type: ignore[no-any-return]
        return 0

    def _all(self, point: str, *args: object) -> bool:
        return all(ask(*args) for ask in self._in_turn[point])

    def _vote(self, point: str, subject: object) -> bool:
        """A no counts at once; a yes decides at the end of its tier; if all abstain, that is a yes."""
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


class OrderQuestions(_Questions):
    """Which of two comes first; where no plugin cares, the older one, then by name."""

    def compare_jobs(self, left: Job, right: Job) -> float:
        """Below 0 if the left job comes first, 0 if no plugin cares."""
        return self._compare("job_order", left, right)

    def job_first(self, left: Job, right: Job) -> bool:
        for ask in self._in_turn["job_order"]:
            if said := ask(left, right):
                return bool(said < 0)
        return left.uid < right.uid if left.created == right.created else left.created < right.created

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


class NodeQuestions(_Questions):
    """Where a task, job or sub-job may go, and where it should."""

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


@dataclass(frozen=True, slots=True)
class VictimVote:
    """One plugin's answer to which tasks may be evicted, by their uids."""

    tier: int
    plugin: TierPlugin
    allowed: frozenset[str]


class VictimQuestions(_Questions):
    """Which tasks may be evicted."""

    witness: Witness | None = None
    """What is notified of the votes, if anything."""

    def _victims(self, point: str, evictor: Task | GangEvictionContext, candidates: Sequence[Task]) -> list[Task]:
        if self.witness is None or not self.witness.wants_votes(evictor):
            return self._agreed(point, evictor, candidates, None)
        votes: list[VictimVote] = []
        victims = self._agreed(point, evictor, candidates, votes)
        if votes:
            self.witness.judged(evictor, candidates, votes, victims)
        return victims

    def _agreed(
        self, point: str, evictor: object, candidates: Sequence[Task], votes: list[VictimVote] | None
    ) -> list[Task]:
        """Within a tier, those that all plugins which vote agree on. An empty verdict passes the question to the next
        tier, so a lower tier may give what a higher one refused. Where plugins agree on no task, the next plugin of
        the tier starts anew if `disagreement_restarts`, else the tier has no victims."""
        for number, (tier, plugins) in enumerate(zip(self._asked[point], self._asked_plugins[point], strict=True)):
            victims: list[Task] | None = None
            for ask, plugin in zip(tier, plugins, strict=True):
                said: list[Task] | None = ask(evictor, candidates)
                if said is None:
                    continue
                if votes is not None:
                    votes.append(VictimVote(number, plugin, frozenset(task.uid for task in said)))
                if not said:
                    victims = None
                    break
                if victims is None:
                    victims = said
                    continue
                agreed = {task.uid for task in said}
                victims = [task for task in victims if task.uid in agreed] or None
                if victims is None and not self._disagreement_restarts:
                    break
            if victims is not None:
                return victims
        return []

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._victims("preemptable", evictor, candidates)

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._victims("reclaimable", evictor, candidates)

    def unified_evictable(self, eviction: GangEvictionContext, candidates: Sequence[Task]) -> list[Task]:
        return self._victims("unified_evictable", eviction, candidates)

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        """All tasks that any plugin names, of the first tier in which one names any."""
        for tier in self._asked["victim_tasks"]:
            named: dict[str, Task] = {}
            for ask in tier:
                named.update((task.uid, task) for task in ask(tasks))
            if named:
                return list(named.values())
        return []


class JobQuestions(_Questions):
    """What a queue may have, how far a job is, and whether it is let in."""

    def overused(self, queue: QueueState) -> bool:
        return any(ask(queue) for ask in self._each("overused"))

    def preemptive(self, queue: QueueState, tasks: Sequence[Task]) -> bool:
        return self._all("preemptive", queue, tasks)

    def allocatable(self, queue: QueueState, task: Task) -> bool:
        return self._all("allocatable", queue, task)

    def holdable(self, queue: QueueState, task: Task) -> bool:
        return self._all("holdable", queue, task)

    def job_ready(self, job: Job) -> bool:
        return self._all("job_ready", job)

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        if not sub_job.job.has_sub_groups:
            return self.job_ready(sub_job.job)
        return self._all("sub_job_ready", sub_job)

    def job_pipelined(self, job: Job) -> bool:
        return self._vote("job_pipelined", job)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        if not sub_job.job.has_sub_groups:
            return self.job_pipelined(sub_job.job)
        return self._vote("sub_job_pipelined", sub_job)

    def job_valid(self, job: Job) -> InvalidJob | None:
        for ask in self._each("job_valid"):
            said: InvalidJob | None = ask(job)
            if said is not None:
                return said
        return None

    def job_enqueueable(self, job: Job) -> bool:
        return self._vote("job_enqueueable", job)

    def job_enqueued(self, job: Job) -> None:
        for ask in self._each("job_enqueued"):
            ask(job)

    def job_starving(self, job: Job) -> bool:
        """The first tier with a plugin that answers decides, and all of it must agree. False if there is none."""
        for tier in self._asked["job_starving"]:
            if tier:
                return all(ask(job) for ask in tier)
        return False


class SimulationQuestions(_Questions):
    """What if a victim were not on its row."""

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


class Tiers(OrderQuestions, NodeQuestions, VictimQuestions, JobQuestions, SimulationQuestions):
    """All questions to the plugins of a configuration. A plugin that is listed twice is asked twice, but the instance
    listed last answers both times."""

    def allocated(self, task: Task) -> Status | None:
        """All plugins are notified; the last failure counts."""
        failure: Status | None = None
        for notify in self._each("allocated"):
            said: Status | None = notify(task)
            if said is not None and not said.ok:
                failure = said
        return failure

    def deallocated(self, task: Task) -> None:
        for notify in self._each("deallocated"):
            notify(task)
