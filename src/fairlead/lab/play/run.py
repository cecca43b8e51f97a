"""play: one run of a scenario, with one policy, one load and one seed, into a directory of tables.

Everything that acts is what acts in a cluster: the scheduler of the policy, the Store, the usual controllers and the
simulated kubelets, on a VirtualRuntime. Here are only the deeds of the outside world: jobs arrive, nodes fail, ended
pods are cleared away, and somebody looks from time to time.

Invariant: the same scenario, policy, load and seed give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.errors import ConfigError, NotFound
from fairlead.lab.play.node_failures import NodeFailures
from fairlead.lab.play.recorder import MEASURED, RunRecorder, amounts_of
from fairlead.lab.play.sampler import RunSampler
from fairlead.lab.results.writing import RowSink, RunWriter
from fairlead.lab.scenario.documents import COSCHEDULING, NAMESPACE, objects_of
from fairlead.lab.scenario.drawing import draw
from fairlead.lab.scenario.feasibility import jobs_that_never_fit
from fairlead.lab.scenario.fleet import (
    RACK,
    device_slices,
    hyper_nodes,
    largest_node,
    nodes_of,
    priority_classes,
    queue_object,
)
from fairlead.lab.scenario.jobs import LabJob, jobs_of
from fairlead.lab.scenario.policies import assembly_of, scheduler_name_of
from fairlead.lab.scenario.queues import each_queue
from fairlead.runtime.virtual import Latencies, Latency
from fairlead.testing.harness import START, Harness
from fairlead.volcano.kinds import VC_POD_GROUP

if TYPE_CHECKING:
    from fairlead.assembly.schedulers import SchedulerAssembly
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.lab.scenario.records import Distribution, LabScenario, LoadSpec, PolicySpec

ZONE = "topology.kubernetes.io/zone"
_Arrivals = Iterator[tuple[float, Iterator["LabJob"]]]
_CREATE, _DELETE = Verb.CREATE, Verb.DELETE
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""
_AT_ONCE = {"gracePeriodSeconds": 0}
_CLEARED_TOGETHER = 64
"""So many ended pods are deleted at once, where that makes no difference: a deletion alone costs as much as a pod's
start."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """Which run of a scenario: names of a policy and a load, and a seed."""

    policy: str
    load: str
    seed: int

    @property
    def directory(self) -> str:
        """The name of the run's directory."""
        return f"{self.policy}+{self.load}+{self.seed}"


def play(
    scenario: LabScenario,
    key: RunKey,
    directory: Path,
    *,
    base: Path = Path(),
    begun: Callable[[LabRun], None] = lambda run: None,
) -> Path:
    """Play one run and write its tables; returns the directory. `begun` is called with the run before it is played.
    Raises ConfigError if the scenario cannot be played, or the directory is there already."""
    policy = _named(scenario.policies, key.policy, "policy")
    load = _named(scenario.loads, key.load, "load")
    with RunWriter(directory) as writer:
        run = LabRun(scenario, policy, load, key.seed, writer, base=base)
        begun(run)
        run.play()
        names = {"scenario": scenario.name, "policy": key.policy, "load": key.load, "seed": key.seed}
        writer.finish({**names, **run.about})
    return directory


def _named(many: Sequence[Any], name: str, what: str) -> Any:
    found = next((one for one in many if one.name == name), None)
    if found is None:
        raise ConfigError(f'there is no {what} "{name}"', hint=f"there are {', '.join(one.name for one in many)}")
    return found


class LabRun:
    """One run, from an empty Store to its last sample."""

    def __init__(
        self,
        scenario: LabScenario,
        policy: PolicySpec,
        load: LoadSpec,
        seed: int,
        writer: RowSink,
        *,
        base: Path = Path(),
    ) -> None:
        self._scenario = scenario
        self._policy = policy
        self._writer = writer
        rng = Random(f"{seed}/run")
        self._synced = START, 0.0  # the clock's time and the run's
        largest = partial(largest_node, scenario.cluster)
        self.jobs = self._with_start_delays(jobs_of(load, seed, scenario.cluster.queues, largest=largest), rng)
        assembly = assembly_of(policy, self.jobs, seed=seed, base=base)
        self.cluster = self._cluster(assembly, seed)
        nodes = self._first_objects()
        self.never_fit = jobs_that_never_fit(self.jobs, nodes)
        self._never = {job.name for one in self.never_fit for job in one.jobs}
        self._capacity = self._write_nodes(nodes)
        self._write_queues()
        self.recorder = RunRecorder(
            self.cluster.store, self.time, writer, self.jobs, decisions=scenario.measure.decisions
        )
        self._sampler = RunSampler(scenario.measure, self.jobs, self._capacity, writer)
        self.looked: Callable[[], None] = lambda: None
        """Called whenever jobs arrive or the cluster is sampled, for those who show how far the run is."""
        self._failures = NodeFailures(scenario.node_failures, self.cluster, rng)
        self._cleared_together = _CLEARED_TOGETHER if self._may_clear_later() else 1

    def time(self) -> float:
        """Seconds since the start of the run. It is read at every change, and stands still for many."""
        now = self.cluster.now
        known, time = self._synced
        if now != known:
            time = round(now - START, 6)
            self._synced = now, time
        return time

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that the policy makes."""
        scheduler = self.cluster.assembled.scheduler
        assert scheduler is not None
        return scheduler

    @property
    def about(self) -> Mapping[str, Any]:
        """What is written of the run beside its tables."""
        capacity = {f"capacity_{name}": amount for name, amount in self._capacity.items()}
        cores, gpus = self.recorder.held_waiting()
        waits: dict[str, Any] = {"waiting_cpu_hours": cores, "waiting_gpu_hours": gpus} if cores or gpus else {}
        if deadlock := self.recorder.deadlock():
            waits["deadlock"] = deadlock
        return {"ended": self.time(), "jobs": len(self.jobs), "makespan": self.recorder.last_end, **capacity, **waits}

    # ---- setting up ----

    def _with_start_delays(self, jobs: list[LabJob], rng: Random) -> list[LabJob]:
        start = self._scenario.latencies.start
        return jobs if start is None else [replace(j, start_delay=j.start_delay + draw(start, rng)) for j in jobs]

    def _cluster(self, assembly: SchedulerAssembly, seed: int) -> Harness:
        latencies = self._scenario.latencies
        options: dict[str, Any] = {
            "schedulers": assembly,
            "housekeeping": self._scenario.controllers,
            "seed": seed,
            "latencies": Latencies(_latency(latencies.bind), _latency(latencies.watch)),
            "start": START,
            "records": False,
        }
        snapshot = self._scenario.cluster.snapshot
        return Harness(**options) if snapshot is None else Harness.from_snapshot(snapshot, **options)

    def _first_objects(self) -> Sequence[Doc]:
        spec = self._scenario.cluster
        nodes = nodes_of(spec, now=START)
        queues = [queue_object(one) for one in each_queue(spec.queues)] if self._policy.volcano else []
        with self.cluster.store.batch():
            self.cluster.apply(*nodes, *device_slices(spec), *hyper_nodes(spec, nodes), *priority_classes(self.jobs))
        self.cluster.settle()
        self.cluster.apply(*queues)
        self.cluster.settle()
        return self.cluster.list("nodes")

    def _write_nodes(self, nodes: Sequence[Doc]) -> dict[str, float]:
        self._nodes = [
            (doc["metadata"]["name"], doc["metadata"]["labels"], amounts_of(doc["status"]["allocatable"]))
            for doc in nodes
        ]
        totals = [sum(amounts[at] for _, _, amounts in self._nodes) for at in range(len(MEASURED))]
        return dict(zip(MEASURED, totals, strict=True))

    def _write_queues(self) -> None:
        queues = each_queue(self._scenario.cluster.queues)
        parents = {one.parent for one in queues}
        weights = sum(one.weight for one in queues if one.name not in parents) or 1
        for one in queues:
            given = amounts_of(one.deserved)
            deserved = (
                given[at] or (None if one.name in parents else self._capacity[name] * one.weight / weights)
                for at, name in enumerate(MEASURED)
            )
            self._writer.add(
                "queues", one.name, one.parent, one.weight, *deserved, amounts_of(one.capability)[0] or None
            )

    # ---- playing ----

    def begin(self) -> None:
        """Put what happens from outside on the agenda: arrivals, samples, failures of nodes."""
        self._next_arrivals(groupby(self.jobs, key=lambda job: job.arrival))
        self._sample()
        self._failures.begin(name for name, _, _ in self._nodes)

    def next_event(self) -> bool:
        """Let time pass until something happens; False if nothing does before the run stops."""
        runtime = self.cluster.runtime
        happened = runtime.go_on(START + self._scenario.stop.at)
        self._clear()
        return happened

    def play(self) -> None:
        """Let all jobs arrive and time pass until the run stops."""
        stop = self._scenario.stop
        self.begin()
        over: Callable[[], bool] = {
            "done": lambda: self.recorder.is_done or self._is_stuck(),
            "placed": lambda: self.recorder.is_placed or self._is_stuck(),
            "time": lambda: False,
        }[stop.when]
        self.cluster.runtime.run_until(lambda: self._clear() or over(), limit=stop.at)
        self._sampler.sample(self.time(), self.recorder, self._ask)
        self.looked()
        self.recorder.finish()
        for name, labels, amounts in self._nodes:
            silent = self._failures.silences(name)
            self._writer.add("nodes", name, labels.get(ZONE), labels.get(RACK), *amounts, len(silent), sum(silent))

    def _is_stuck(self) -> bool:
        """Whether nothing can happen any more. Pods that wait may still be placed by what no pod has a part in, such as
        a plugin that looks at the time, so they are given a while unless they can never fit."""
        recorder, failures = self.recorder, self._scenario.node_failures
        if not recorder.has_no_future or failures is not None:
            return False
        if all(name in self._never for name in recorder.unended_jobs()):
            return True
        return self.time() - recorder.last_event >= self._scenario.stop.idle

    def _at(self, time: float, deed: Callable[[], None]) -> None:
        self.cluster.runtime.at(START + time, deed)

    def _next_arrivals(self, arrivals: _Arrivals) -> None:
        """Put the next instant at which jobs arrive on the agenda; only one is there at a time."""
        for arrival, jobs in arrivals:
            together = list(jobs)
            self._at(arrival, partial(self._arrive, together, arrivals))
            return

    def _arrive(self, jobs: Sequence[LabJob], later: _Arrivals) -> None:
        scheduler, rounds = scheduler_name_of(self._policy), bool(self._policy.volcano)
        profile = self.scheduler.profiles.get(scheduler)
        coscheduling = profile is not None and any(one.name == COSCHEDULING for one in profile.plugins())
        with self.cluster.store.batch():
            for job in jobs:
                self.recorder.arrived(job)
                queue = job.queue if rounds else ""
                made = objects_of(job, scheduler_name=scheduler, rounds=rounds, coscheduling=coscheduling, queue=queue)
                later_made = job.pods - 1 if job.pod_gap else 0
                for number, one in enumerate(made[len(made) - later_made :], 1):
                    self._at(self.time() + number * job.pod_gap, partial(self._create, *one))
                for one in made[: len(made) - later_made]:
                    self._create(*one)
        self._next_arrivals(later)
        self.looked()

    def _create(self, kind: kinds.Kind, doc: Doc) -> None:
        name, conforms = doc["metadata"]["name"], kind is kinds.POD
        self.cluster.store.perform(Write(_CREATE, kind, NAMESPACE, name, body=doc, conforms=conforms))

    def _sample(self) -> None:
        self._sampler.sample(self.time(), self.recorder, self._ask)
        self.looked()
        self._at(self.time() + self._scenario.measure.every, self._sample)

    def _ask(self, question: Any) -> object:
        return self.cluster.runtime.ask(self.scheduler, question).result()

    def _clear(self) -> bool:
        """Delete what has ended, unless it is to be kept; always False. What somebody else deleted is gone already."""
        recorder, store = self.recorder, self.cluster.store
        while recorder.ahead.broken:
            with suppress(NotFound):
                store.perform(Write(_DELETE, kinds.POD, NAMESPACE, recorder.ahead.broken.pop(0)))
        if len(recorder.ended_jobs) < self._cleared_together and len(recorder.ended_pods) < self._cleared_together:
            return False
        pods, recorder.ended_pods = recorder.ended_pods, []
        jobs, recorder.ended_jobs = recorder.ended_jobs, []
        if self._scenario.keep_ended:
            return False
        with store.batch():
            for doc in pods:
                with suppress(NotFound):
                    store.perform(Write(_DELETE, kinds.POD, NAMESPACE, doc["metadata"]["name"], body=_AT_ONCE))
            for job in jobs:
                if job.made_as == "pods" and (job.minimum > 1 or self._policy.volcano):
                    with suppress(NotFound):
                        store.perform(Write(_DELETE, VC_POD_GROUP, NAMESPACE, job.name))
        return False

    def _may_clear_later(self) -> bool:
        """Whether nobody notices when an ended pod is deleted. The scheduler forgets it when it ends; but groups and
        owners count their pods, whatever is on a node that fails is evicted, and each message that is delayed draws a
        number."""
        scenario = self._scenario
        return (
            scenario.node_failures is None
            and scenario.latencies.watch is None
            and scenario.latencies.bind is None
            and not self._policy.volcano
            and all(job.made_as == "pods" and job.minimum <= 1 for job in self.jobs)
        )


def _latency(distribution: Distribution | None) -> Latency | None:
    return None if distribution is None else lambda rng: draw(distribution, rng)
