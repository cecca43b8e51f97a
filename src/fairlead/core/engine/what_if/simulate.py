"""simulate: would this run, where, and whom would it cost? The answer of a copy that was really given the objects.

A Forecast says for each pod its node or why it waits, who would be evicted and where those would go, what becomes of
the queue, and who of those that wait would have started without it. `to_document` is the documented JSON form
(docs/answers.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.engine.what_if.families import what_ifs
from fairlead.core.engine.what_if.trial import HORIZON, Trial
from fairlead.core.engine.what_if.victims import EvictionPreview, preview
from fairlead.core.framework.explainers import QuotaExplainer
from fairlead.core.model.explanation import SCHEMA
from fairlead.core.model.html_tables import html_paragraph, html_table
from fairlead.core.model.times import micro_timestamp
from fairlead.core.state.cluster import PodPlace

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod

Branch = Callable[[Callable[[], Any]], Any]
"""Calls a function in a copy and returns what it returns; see runtime/copies.py."""
RUNS, EVICTS, WAITS = "Runs", "RunsAfterEvictions", "Waits"
_ROLLING = 5.0
"""Seconds that each pod of a rollout may take: some schedulers look only once a second."""
_OTHERS = 2_000
"""Of how many waiting pods it is found out whether they would have started without the workload."""


@dataclass(frozen=True, slots=True)
class PodForecast:
    """Where one pod of the workload would be, or why nowhere."""

    namespace: str
    name: str
    node: str = ""
    message: str = ""
    running: bool = False
    """Whether it is on its node already."""

    def to_document(self) -> Doc:
        doc: Doc = {"namespace": self.namespace, "name": self.name}
        running: Doc = {"running": True} if self.running else {}
        return doc | ({"node": self.node} if self.node else {"message": self.message}) | running


@dataclass(frozen=True, slots=True)
class QueueEffect:
    """What a queue or a quota holds before and after."""

    name: str
    before: Doc
    after: Doc

    def to_document(self) -> Doc:
        return {"name": self.name, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Forecast:
    """The answer. `at` is the moment of the cluster that it is about."""

    at: float
    verdict: str
    pods: tuple[PodForecast, ...]
    after: float = 0.0
    """Seconds until the last pod has its node, if nothing else happens."""
    evictions: EvictionPreview = field(default_factory=EvictionPreview)
    queues: tuple[QueueEffect, ...] = ()
    quotas: tuple[QueueEffect, ...] = ()
    delayed: tuple[str, ...] = ()
    """Waiting pods that would have got a node without the workload, and do not with it."""
    explanation: Doc | None = None
    changes: tuple[Doc, ...] = ()
    tried: int = 0
    """How many changes were tried."""
    exists: tuple[str, ...] = ()
    """What of the workload is there already, as kind/name."""

    @property
    def runs(self) -> bool:
        return self.verdict != WAITS

    @property
    def nodes(self) -> dict[str, str]:
        """Name to node of the pods that would have one."""
        return {pod.name: pod.node for pod in self.pods if pod.node}

    def _repr_html_(self) -> str:
        victims = (
            (f"{one.get('namespace', '')}/{one.get('name', '')}", one.get("node", ""), one.get("rule", ""))
            for one in self.evictions.to_document().get("victims", ())
        )
        placed = sum(bool(pod.node) for pod in self.pods)
        return (
            html_paragraph(self.verdict, f"{placed} of {len(self.pods)} pods would have a node")
            + html_table(("pod", "node", "why not"), ((pod.name, pod.node, pod.message) for pod in self.pods))
            + html_table(("evicted", "from", "rule"), victims)
        )

    def to_document(self) -> Doc:
        doc: Doc = {
            "apiVersion": SCHEMA,
            "kind": "Simulation",
            "at": micro_timestamp(self.at),
            "verdict": self.verdict,
            "placed": sum(bool(pod.node) for pod in self.pods),
            "pods": [pod.to_document() for pod in self.pods],
            "afterSeconds": round(self.after, 3),
        }
        doc |= self.evictions.to_document()
        if self.queues:
            doc["queues"] = [queue.to_document() for queue in self.queues]
        if self.quotas:
            doc["quotas"] = [quota.to_document() for quota in self.quotas]
        if self.delayed:
            doc["delayed"] = list(self.delayed)
        if self.explanation is not None:
            doc["explanation"] = self.explanation
        if self.changes:
            doc["changes"] = list(self.changes)
        if self.tried:
            doc["tried"] = self.tried
        if self.exists:
            doc["exists"] = list(self.exists)
        return doc


def simulate(scheduler: Scheduler, workload: Workload, branch: Branch | None = None, *, now: float = 0.0) -> Forecast:
    """Give a workload to a copy of a scheduler and say what became of it. With `branch` it is also found out who of
    those that wait would be delayed."""
    others = waiting_pods(scheduler, workload)
    undisturbed: frozenset[str] = frozenset()
    if branch is not None and 0 < len(others) <= _OTHERS:
        undisturbed = frozenset(branch(lambda: _who_starts(Trial(scheduler, now), others)))
    trial = Trial(scheduler, now)
    at, queues = trial.now, _queue_names(scheduler, workload)
    before = {name: _held(scheduler, name) for name in queues}
    quotas = _quota_use(scheduler, workload)
    spared = _on_nodes(scheduler) if len(scheduler.cluster.pods) <= _OTHERS else {}
    runs = try_out(trial, workload)
    after = trial.now - at
    pods = tuple(_forecast(trial, document, workload) for document in workload.pods)
    waiting = [document for document, pod in zip(workload.pods, pods, strict=True) if not pod.node]
    explanation = _explanation(scheduler, waiting)
    if trial.victims:
        trial.run(lambda: all(trial.place_of(victim.heir) for victim in trial.victims if victim.heir))
    started = set(undisturbed) - set(_placed(trial, others)) if undisturbed else set()
    evictions = preview(trial, workload, spared)
    verdict = WAITS if not runs else EVICTS if evictions.victims else RUNS
    effects = tuple(QueueEffect(name, before[name], _held(scheduler, name)) for name in queues)
    later = _quota_use(scheduler, workload)
    charged = tuple(QueueEffect(name, quotas[name], later.get(name, {})) for name in quotas)
    return Forecast(
        at,
        verdict,
        pods,
        after=after,
        evictions=evictions,
        queues=effects,
        quotas=charged,
        delayed=tuple(sorted(others[uid].key for uid in started)),
        explanation=explanation,
        exists=tuple(sorted(workload.exists)),
    )


def try_out(trial: Trial, workload: Workload) -> bool:
    """Whether all pods of a workload get a node, and what exists is replaced to the end."""
    rollouts = workload.put_into(trial)

    def done() -> bool:
        ends = [one.advance(trial) for one in rollouts]
        return all(ends) and all(map(trial.place_of, workload.uids))

    steps = sum(len(one.new) for one in workload.rollouts)
    return trial.run(done, horizon=HORIZON + _ROLLING * steps)


def waiting_pods(scheduler: Scheduler, workload: Workload) -> dict[str, Pod]:
    """Pods without a place. Only PodMode keeps a list of them; where there is no other mode, only the queues are read,
    because a copy pays for every page of memory that it looks at."""
    own = workload.own
    if len(scheduler.modes) == 1:
        queued = (pod for entry in scheduler.backlog.queues for pod in entry.waiting())
        return {pod.uid: pod for pod in queued if pod.uid not in own}
    return {
        uid: pod_state.seen
        for uid, pod_state in scheduler.cluster.pods.items()
        if pod_state.place is PodPlace.PENDING and uid not in own
    }


def _who_starts(trial: Trial, others: dict[str, Pod]) -> Sequence[str]:
    trial.run(lambda: all(map(trial.place_of, others)))
    return _placed(trial, others)


def _placed(trial: Trial, others: Iterable[str]) -> list[str]:
    return [uid for uid in others if trial.place_of(uid)]


def _on_nodes(scheduler: Scheduler) -> dict[str, list[Pod]]:
    table = scheduler.cluster.table
    return {name: list(table.pods[row]) for name, row in table.row_of.items()}


def _forecast(trial: Trial, document: Doc, workload: Workload) -> PodForecast:
    metadata = document["metadata"]
    node = trial.place_of(metadata["uid"])
    if node:
        return PodForecast(metadata["namespace"], metadata["name"], node, running=metadata["uid"] in workload.running)
    explained = trial.scheduler.explain(metadata["namespace"], metadata["name"])
    message = "its controller would not make it yet: its group is not let into its queue"
    if workload.rollouts:
        message = "its controller would not make it yet: the pods that it replaces have to go first"
    if explained is not None and metadata["uid"] in trial.scheduler.cluster.pods:
        message = explained.message or explained.verdict
    return PodForecast(metadata["namespace"], metadata["name"], message=message)


def _explanation(scheduler: Scheduler, waiting: Sequence[Doc]) -> Doc | None:
    """Of the first group that waits, or else of the first pod."""
    for document in waiting:
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        group = _group_name(scheduler, document)
        found = scheduler.explain_group(namespace, group) if group else None
        about = found or scheduler.explain(namespace, name)
        if about is not None:
            return about.to_document()
    return None


def _group_name(scheduler: Scheduler, document: Doc) -> str:
    from fairlead.core.model.pod import compile_pod

    pod = compile_pod(document, scheduler.cluster.shapes)
    return pod.group_ref.name if pod.group_ref is not None else pod.group


def _queue_names(scheduler: Scheduler, workload: Workload) -> list[str]:
    """The queues of the workload, if a mode keeps accounts of queues."""
    if len(scheduler.modes) == 1:
        return []
    return list(dict.fromkeys(name for one in what_ifs() for name in one.queues_of(workload)))


def _quota_use(scheduler: Scheduler, workload: Workload) -> dict[str, Doc]:
    """What the quotas of the workload's pods use, if a plugin keeps accounts of quotas."""
    from fairlead.core.model.pod import compile_pod

    cluster = scheduler.cluster
    pods = [compile_pod(document, cluster.shapes) for document in workload.pods]
    profile = scheduler.profiles.get(pods[0].scheduler_name) if pods else None
    found: dict[str, Doc] = {}
    for plugin in profile.plugins() if profile is not None else ():
        if isinstance(plugin, QuotaExplainer):
            found |= {name: dict(use) for name, use in plugin.quota_use(pods, cluster).items()}
    return found


def _held(scheduler: Scheduler, queue: str) -> Doc:
    found = scheduler.explain_queue(queue)
    return {} if found is None else found.to_document()
