"""extender: a policy of the user's own that is asked over HTTP, verb by verb.

The socket is elsewhere: a `Wire` posts a body to a verb and returns the answer, or raises ExtenderError. Bodies have
Volcano's Go field names, with what scheduling knows of a task, node, job or queue, and their documents where those are
available. A verb that is not configured is not asked. Every task is asked about every node, which is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairlead.core.model.reasons import Reason, Reject, failed
from fairlead.errors import ExtenderError
from fairlead.volcano.plugins.extender_bodies import Bodies, no_documents
from fairlead.volcano.rounds.tiers import TierPlugin, Vote

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.containers import Container
    from fairlead.core.model.reasons import Status
    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.plugins.extender_bodies import Documents
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

VERBS = (
    "onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused",
    "jobEnqueueable", "jobReady", "allocateFunc", "deallocateFunc",
)  # fmt: skip
_UNSCHEDULABLE = 2
"""The one code of a refusal that an eviction could turn around."""


class ExtenderPost(Protocol):
    def post(self, verb: str, body: object) -> Any:
        """The answer to a verb; raises ExtenderError if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class ExtenderRules:
    """`verbs` are the paths of the verbs. `ignorable`: a missing answer is a yes. `managed`: only tasks that request
    one of these resources are asked about, if any is named."""

    verbs: Mapping[str, str] = field(default_factory=dict)
    ignorable: bool = False
    managed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, arguments: Arguments) -> ExtenderRules:
        listed = arguments.raw("extender.managedResources")
        return cls(
            {verb: name for verb in VERBS if (name := arguments.text(f"extender.{verb}Verb"))},
            ignorable=arguments.flag("extender.ignorable", default=False),
            managed=frozenset(listed) if isinstance(listed, list) else frozenset(),
        )


class VolcanoExtender(TierPlugin):
    name = "extender"
    protects = "the extender does not name it"
    timed = True

    def __init__(self, wire: ExtenderPost, rules: ExtenderRules, documents: Documents = no_documents) -> None:
        self._wire = wire
        self._rules = rules
        self._documents = documents

    def open(self, round: Round) -> None:
        """Notify the extender that a round begins. In the original, one that cannot be reached is not asked in this
        round (`failed_opening_mutes_extender`)."""
        self._round = round
        self._bodies = Bodies(round, self._documents)
        self._silent = False
        self._trouble = ""
        if self._has("onSessionOpen"):
            answer = self._ask("onSessionOpen", self._bodies.of_round())
            muted = round.quirks.failed_opening_mutes_extender
            self._silent = muted and answer is None and not self._rules.ignorable

    def close(self, round: Round) -> None:
        if self._has("onSessionClose"):
            self._ask("onSessionClose", {})

    # ---- asking ----

    def _has(self, verb: str) -> bool:
        return verb in self._rules.verbs

    def _ask(self, verb: str, body: object) -> Mapping[str, Any] | None:
        """The answer; None if there is none that can be used."""
        try:
            answer = self._wire.post(self._rules.verbs[verb], body)
        except ExtenderError as error:
            self._trouble = str(error)
            return None
        return answer if isinstance(answer, Mapping) else {}

    def _asks(self, verb: str, task: Task | None = None) -> bool:
        """Whether a verb is to be asked, about this task if one is given."""
        if self._silent or not self._has(verb):
            return False
        managed = self._rules.managed
        return task is None or not managed or any(_names(one, managed) for one in task.pod.shape.containers)

    # ---- nodes ----

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        if not self._asks("predicate", task):
            return
        for at, row in enumerate(nodes.row_numbers().tolist()):
            body = {"task": self._bodies.of_task(task), "node": self._bodies.of_node(row)}
            refusal = self._refusal(self._ask("predicate", body))
            if refusal is not None:
                mask = nodes.none()
                mask[at] = True
                yield Reject(refusal, mask)

    def _refusal(self, answer: Mapping[str, Any] | None) -> Reason | None:
        if answer is None:
            return None if self._rules.ignorable else Reason(self.name, self._trouble)
        text = str(answer.get("status") or "")
        return Reason(self.name, text, final=answer.get("code") != _UNSCHEDULABLE) if text else None

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        rows = nodes.row_numbers().tolist()
        scores = np.zeros(len(rows), dtype=np.float64)
        if not self._asks("prioritize", task):
            return scores
        listed = [self._bodies.of_node(row) for row in rows]
        answer = self._ask("prioritize", {"task": self._bodies.of_task(task), "nodes": listed})
        given = (answer or {}).get("nodeScore")
        if isinstance(given, Mapping) and not (answer or {}).get("errorMessage"):
            scores[:] = [float(given.get(body["Name"], 0.0)) for body in listed]
        return scores

    # ---- victims ----

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        return self._victims("preemptable", evictor, candidates)

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        return self._victims("reclaimable", evictor, candidates)

    def _victims(self, verb: str, evictor: Task, candidates: Sequence[Task]) -> list[Task] | None:
        if not self._asks(verb, evictor):
            return None
        listed = [self._bodies.of_task(task) for task in candidates]
        answer = self._ask(verb, {"evictor": self._bodies.of_task(evictor), "evictees": listed})
        if answer is None:
            return []
        if not answer.get("status"):
            return None
        named = {victim.get("UID") for victim in answer.get("victims") or () if isinstance(victim, Mapping)}
        return [task for task in candidates if task.uid in named]

    # ---- queues and jobs ----

    def overused(self, queue: QueueState) -> bool:
        if not self._asks("queueOverused"):
            return False
        answer = self._ask("queueOverused", {"queue": self._bodies.of_queue(queue)})
        return not self._rules.ignorable if answer is None else bool(answer.get("overused"))

    def job_enqueueable(self, job: Job) -> Vote:
        if not self._asks("jobEnqueueable"):
            return Vote.ABSTAIN
        answer = self._ask("jobEnqueueable", {"job": self._bodies.of_job(job)})
        if answer is None:
            return Vote.PERMIT if self._rules.ignorable else Vote.REJECT
        status = answer.get("status")
        return Vote(max(-1, min(1, status))) if isinstance(status, int) else Vote.ABSTAIN

    def job_ready(self, job: Job) -> bool:
        """Without an answer a job is ready only if the extender is ignorable; in the original, only if it is not
        (`silent_extender_means_ready`)."""
        if not self._asks("jobReady"):
            return True
        answer = self._ask("jobReady", {"job": self._bodies.of_job(job)})
        if answer is None:
            return self._rules.ignorable != self._round.quirks.silent_extender_means_ready
        return bool(answer.get("status"))

    # ---- what happens ----

    def allocated(self, task: Task) -> Status | None:
        return self._notify("allocateFunc", task)

    def deallocated(self, task: Task) -> None:
        self._notify("deallocateFunc", task)

    def _notify(self, verb: str, task: Task) -> Status | None:
        if not self._asks(verb, task):
            return None
        answer = self._ask(verb, {"task": self._bodies.of_task(task)})
        if answer is None:
            return None if self._rules.ignorable else failed(self._trouble)
        message = str(answer.get("errorMessage") or "")
        return failed(message) if message else None


def _names(container: Container, resources: frozenset[str]) -> bool:
    """Whether a container requests one of these, or is limited in it."""
    return any(name in resources for name, _ in (*container.requests, *container.limits))
