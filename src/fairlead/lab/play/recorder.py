"""RunRecorder: follows the pods of a run at the Store and writes a row when a pod, or a whole job, has ended.

It notes the cluster's time at each write, to the fraction of a second. What has ended is written and forgotten, so that
memory depends on what lives, not on what has lived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.model.quantity import parse_quantity
from fairlead.gpu_share.gpu_shares import COUNT, gpu_request
from fairlead.lab.play.gang_waits import PodsAhead, WorkTogether
from fairlead.lab.scenario.documents import job_of

if TYPE_CHECKING:
    from fairlead.cluster.store.history import Feed
    from fairlead.cluster.store.store import Store
    from fairlead.lab.results.writing import RowSink
    from fairlead.lab.scenario.jobs import LabJob

GPU_RESOURCES = ("nvidia.com/gpu", COUNT)
MEASURED = ("cpu", "memory", "gpu")
_ENDED = ("Succeeded", "Failed")
_ADDED = Happened.ADDED
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


def amounts_of(resources: Any, annotations: Any = None) -> tuple[float, float, float]:
    """Cores, bytes and GPUs of a pod or a node; shared GPUs count by their part."""
    return _amounts_of(tuple(resources.items()), tuple((annotations or {}).items()))


@lru_cache(maxsize=4096)
def _amounts_of(asked: tuple[tuple[str, Any], ...], notes: tuple[tuple[str, str], ...]) -> tuple[float, float, float]:
    resources = dict(asked)
    cpu, memory = (parse_quantity(resources.get(name, "0")).nanos / 1e9 for name in MEASURED[:2])
    gpus = sum(parse_quantity(resources[name]).nanos / 1e9 for name in GPU_RESOURCES if name in resources)
    return cpu, memory, gpus + gpu_request(dict(notes)).total / 1000


@dataclass(slots=True)
class _LiveJob:
    spec: LabJob
    arrived: float
    amounts: tuple[float, float, float]
    together: WorkTogether = field(init=False)
    to_come: int = field(init=False)
    alive: int = 0
    placed_pods: int = 0
    started_pods: int = 0
    placed: float | None = None
    started: float | None = None
    succeeded: int = 0
    failed: int = 0
    evicted: int = 0
    lost: float = 0.0

    def __post_init__(self) -> None:
        self.together = WorkTogether(self.spec.together)
        self.to_come = self.spec.pods if self.spec.pod_gap else 0

    @property
    def will_end(self) -> int:
        """How many pods have a node and end by themselves."""
        return 0 if self.spec.duration is None else self.together.will_end

    @property
    def is_broken(self) -> bool:
        """Whether so many bare pods were evicted, which nobody makes again, that the others can never work."""
        if self.spec.made_as != "pods" or not self.evicted or self.together.needed <= 1:
            return False
        return self.alive + self.to_come + self.succeeded + self.failed < self.together.needed

    @property
    def is_over(self) -> bool:
        wanted = self.succeeded if self.spec.made_as != "pods" else self.succeeded + self.failed + self.evicted
        return wanted >= self.spec.pods and not self.alive


@dataclass(slots=True)
class _LivePod:
    name: str
    job: _LiveJob
    created: float
    node: str = ""
    placed: float | None = None
    started: float | None = None
    refusal: str = ""
    evicted: bool = False


class RunRecorder:
    """`over` is called with each pod that has ended, and `done` with each job."""

    def __init__(
        self, store: Store, now: Callable[[], float], writer: RowSink, jobs: Sequence[LabJob], *, decisions: bool
    ) -> None:
        self._now = now
        self._writer = writer
        self._decisions = decisions
        self._coming = {job.name: job for job in jobs}
        self._jobs: dict[str, _LiveJob] = {}
        self._pods: dict[str, _LivePod] = {}
        self.pending: dict[str, None] = {}
        """Pods without a node, by uid, the oldest first."""
        self.running = 0
        self.ahead = PodsAhead()
        self.last_event = 0.0
        """When a pod last came, got its node, started or ended."""
        self.last_end = 0.0
        self.evictions = 0
        self.allocated: dict[str, list[float]] = {}
        """What the pods of each queue hold: cores, bytes, GPUs."""
        self.ended_pods: list[Doc] = []
        self.ended_jobs: list[LabJob] = []
        feed = store.feed([kinds.POD])
        feed.wake = partial(self._take, feed)

    @property
    def is_done(self) -> bool:
        """Whether all jobs have arrived and ended."""
        return not self._coming and not self._jobs

    @property
    def unended(self) -> int:
        """How many jobs have not ended, or not arrived."""
        return len(self._coming) + len(self._jobs)

    @property
    def has_no_future(self) -> bool:
        """Whether no job is to come and nothing that has a node will end."""
        return not self._coming and not self.ahead.to_come and not self.ahead.ending

    def unended_jobs(self) -> Iterable[str]:
        """The names of the jobs that have arrived and not ended."""
        return self._jobs

    @property
    def is_placed(self) -> bool:
        """Whether all jobs have arrived and no pod waits for a node."""
        return not self._coming and not self.ahead.to_come and not self.pending

    def deadlock(self) -> list[dict[str, Any]]:
        """The jobs that hold places and wait for the rest of their pods, if nothing is to come or to end."""
        if not self.has_no_future:
            return []
        return [
            {
                "job": live.spec.name,
                "runs": live.together.running,
                "needs": live.together.needed,
                "gpus": live.together.held * live.amounts[2],
            }
            for live in self._jobs.values()
            if live.together.held and not live.together.works
        ]

    def held_waiting(self) -> tuple[float, float]:
        """For how many hours cores and GPUs were held by pods whose work waited."""
        for live in self._jobs.values():
            live.together.change(self._now())
        cores, gpus = self.ahead.waited
        for live in self._jobs.values():
            cores += live.together.lost * live.amounts[0]
            gpus += live.together.lost * live.amounts[2]
        return round(cores / 3600, 6), round(gpus / 3600, 6)

    def oldest_wait(self) -> float:
        """How long the pod that has waited longest has waited for its node."""
        first = next(iter(self.pending), None)
        return 0.0 if first is None else self._now() - self._pods[first].created

    def waiting(self) -> list[str]:
        """The names of pods without a node, the oldest first."""
        return [self._pods[uid].name for uid in self.pending]

    def arrived(self, job: LabJob) -> None:
        """Count a job, before its pods are created."""
        del self._coming[job.name]
        live = self._jobs[job.name] = _LiveJob(job, self._now(), amounts_of(job.resources, job.annotations))
        self.ahead.to_come += live.to_come

    def finish(self) -> None:
        """Write what has not ended."""
        for pod in self._pods.values():
            state = "running" if pod.started is not None else "placed" if pod.placed is not None else "waiting"
            self._write_pod(pod, None, state)
        for live in self._jobs.values():
            self._write_job(live, None)
        for job in self._coming.values():
            self._write_job(_LiveJob(job, job.arrival, amounts_of(job.resources, job.annotations)), None)

    # ---- pods ----

    def _take(self, feed: Feed) -> None:
        now = self._now()
        for change in feed.drain():
            self._change(change, now)

    def _change(self, change: Change, now: float) -> None:
        doc = change.doc
        metadata = doc["metadata"]
        uid = metadata["uid"]
        pod = self._pods.get(uid)
        if pod is None:
            live = self._jobs.get(job_of(doc)) if change.happened is _ADDED else None
            if live is None:
                return
            pod = self._pods[uid] = _LivePod(metadata["name"], live, now)
            self.pending[uid] = None
            live.alive += 1
            if live.to_come:
                live.to_come -= 1
                self.ahead.to_come -= 1
            self.last_event = now
        live = pod.job
        node, status = doc["spec"].get("nodeName"), doc["status"]
        if pod.placed is None and node:
            self._placed(uid, pod, live, node, now)
        elif pod.placed is None and self._decisions:
            self._note_refusal(pod, status, now)
        phase = status.get("phase")
        if pod.started is None and phase != "Pending" and node:
            pod.started = self.last_event = now
            self.running += 1
            live.started_pods += 1
            live.together.change(now, running=1)
            if live.started is None and live.started_pods >= live.spec.minimum:
                live.started = now
        if metadata.get("deletionTimestamp") and not pod.evicted:
            pod.evicted = True
        if phase in _ENDED or change.gone:
            self._ended(uid, pod, live, phase, change, now)

    def _placed(self, uid: str, pod: _LivePod, live: _LiveJob, node: str, now: float) -> None:
        pod.placed, pod.node = now, node
        self.last_event = now
        self._recount(live, now, held=1)
        del self.pending[uid]
        live.placed_pods += 1
        if live.placed is None and live.placed_pods >= live.spec.minimum:
            live.placed = now
        self._hold(live, 1)
        if self._decisions:
            self._writer.add("decisions", now, pod.name, "bound", node, "")

    def _note_refusal(self, pod: _LivePod, status: Doc, now: float) -> None:
        for one in status.get("conditions") or ():
            if one["type"] == "PodScheduled" and one["status"] == "False":
                message = one.get("message") or one.get("reason") or ""
                if message != pod.refusal:
                    pod.refusal = message
                    self._writer.add("decisions", now, pod.name, "refused", "", message)

    def _ended(self, uid: str, pod: _LivePod, live: _LiveJob, phase: str, change: Change, now: float) -> None:
        del self._pods[uid]
        self.pending.pop(uid, None)
        live.alive -= 1
        outcome = phase.lower() if phase in _ENDED and not pod.evicted else "evicted"
        if outcome == "succeeded":
            live.succeeded += 1
        elif outcome == "failed":
            live.failed += 1
        else:
            live.evicted += 1
            self.evictions += 1
            if self._decisions:
                self._writer.add("decisions", now, pod.name, "evicted", pod.node, "")
        if pod.started is not None:
            self.running -= 1
            live.lost += now - pod.started if outcome != "succeeded" else 0.0
        if pod.placed is not None:
            self._hold(live, -1)
            self._recount(live, now, held=-1, running=-(pod.started is not None), succeeded=outcome == "succeeded")
        self.last_end = self.last_event = now
        self._write_pod(pod, now, outcome)
        if live.spec.made_as == "pods" and not change.gone:
            self.ended_pods.append(change.doc)
        if live.is_broken:
            self.ahead.broken += [one.name for one in self._pods.values() if one.job is live and not one.evicted]
        if live.is_over:
            del self._jobs[live.spec.name]
            self.ahead.waited[0] += live.together.lost * live.amounts[0]
            self.ahead.waited[1] += live.together.lost * live.amounts[2]
            self._write_job(live, now)
            self.ended_jobs.append(live.spec)

    def _recount(self, live: _LiveJob, now: float, *, held: int, running: int = 0, succeeded: int = 0) -> None:
        before = live.will_end
        live.together.change(now, held=held, running=running, succeeded=succeeded)
        self.ahead.ending += live.will_end - before

    def _hold(self, live: _LiveJob, sign: int) -> None:
        queue = live.spec.queue
        held = self.allocated.get(queue)
        if held is None:
            held = self.allocated[queue] = [0.0, 0.0, 0.0]
        cpu, memory, gpu = live.amounts
        held[0] += sign * cpu
        held[1] += sign * memory
        held[2] += sign * gpu

    # ---- rows ----

    def _write_pod(self, pod: _LivePod, ended: float | None, outcome: str) -> None:
        self._writer.add(
            "pods", pod.name, pod.job.spec.name, pod.node or None, pod.created, pod.placed, pod.started, ended, outcome
        )

    def _write_job(self, live: _LiveJob, ended: float | None) -> None:
        job = live.spec
        amounts = [amount * job.pods for amount in live.amounts]
        self._writer.add(
            "jobs",
            job.name,
            job.job_class,
            job.queue,
            job.user,
            job.priority,
            job.pods,
            job.minimum,
            *amounts,
            job.duration,
            live.arrived,
            live.placed,
            live.started,
            ended,
            live.succeeded,
            live.failed,
            live.evicted,
            live.lost,
        )
