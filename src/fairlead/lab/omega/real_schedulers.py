"""Omega's experiment with real pods and real fairlead profiles: what its simulator cannot do.

Each scheduler has a Cluster of its own, brought up to date when it begins to think, and plans with its profile's
plugins: affinity, devices and whatever else they know. It commits to the common Cluster with a PodTransaction, which
asks all filters again. A job may be a gang: its plan is given up if it is short, and its transaction is all or nothing.
Schedulers may prefer the rows of a shard; then they get into each other's way only where a shard is full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairlead.core.engine.cycle.attempt import Committed, attempt, undo
from fairlead.core.engine.cycle.placement import Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.lab.omega.pod_transactions import PodClaim, PodTransaction
from fairlead.lab.omega.simulation import JobRun, OneJobAtATime, Simulation
from fairlead.lab.omega.transactions import CommitMode, OptimisticCommit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.pod import Pod
    from fairlead.lab.omega.setup import ExperimentSpec, JobSpec

PodMaker: TypeAlias = "Callable[[JobSpec, int], dict[str, Any]]"
"""The document of a task's pod: the job, and a number that no other pod of the run has."""


def plain_pod(job: JobSpec, number: int) -> dict[str, Any]:
    """A pod with the requests of the job, labelled with it."""
    name = f"{job.workload.lower()}-{job.id}-{number}"
    amounts = job.amounts()
    requests = {"cpu": f"{amounts['cpu']}m", "memory": str(amounts["memory"])}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"job": f"job-{job.id}"}},
        "spec": {"containers": [{"name": "task", "resources": {"requests": requests}}]},
    }


class CommonCluster:
    """The common state, and a log of its changes for those who keep a copy."""

    def __init__(self, cluster: Cluster, nodes: Sequence[dict[str, Any]]) -> None:
        self.cluster = cluster
        self.log: list[Change] = []
        for node in nodes:
            self.apply(Change(Happened.ADDED, kinds.NODE, node))

    def apply(self, change: Change) -> None:
        self.log.append(change)
        self.cluster.apply(change)

    def bind(self, document: dict[str, Any], node: str) -> None:
        bound = {**document, "spec": {**document["spec"], "nodeName": node}}
        self.apply(Change(Happened.MODIFIED, kinds.POD, bound))

    def end(self, document: dict[str, Any]) -> None:
        self.apply(Change(Happened.DELETED, kinds.POD, document))


class ClusterCopy:
    """A scheduler's own Cluster, as the common one was when it last looked."""

    def __init__(self, common: CommonCluster) -> None:
        self.cluster = Cluster()
        self._common = common
        self._read = 0

    def refresh(self) -> NDArray[np.int64]:
        """Take in what has changed; returns the versions of the common rows that the copy is about."""
        for change in self._common.log[self._read :]:
            self.cluster.apply(change)
        self._read = len(self._common.log)
        table = self._common.cluster.table
        return table.version[: table.high].copy()


class ProfileScheduler(OneJobAtATime):
    """A scheduler that plans with a profile. `shard` and `shards` are its number and how many share the nodes; with
    one shard it looks at all nodes at once."""

    def __init__(
        self,
        experiment: ProfileExperiment,
        kind: str,
        profile: Profile,
        *,
        seed: int,
        shard: int = 0,
        shards: int = 1,
    ) -> None:
        super().__init__(experiment.simulation, kind, _NoNumbers())
        self._experiment = experiment
        self._copy = ClusterCopy(experiment.common)
        self._profile = profile
        self._evaluator = Evaluator(profile)
        self._rng = Random(seed)
        self._shard, self._shards = shard, shards
        self._seen = self._copy.refresh()

    def begin(self) -> None:
        self._seen = self._copy.refresh()

    def decide(self, job: JobRun, seconds: float) -> None:
        plan = self._plan_pods(job)
        if not plan:
            self.counts.no_resources += 1
            return
        placed, conflicted = self._experiment.commit(job, plan, self._seen)
        self._forget([pod for pod, _, _ in plan])
        job.unplaced -= placed
        self.count_commit(job, seconds, placed, conflicted)

    def _plan_pods(self, job: JobRun) -> list[tuple[Pod, dict[str, Any], str]]:
        """Pods for the tasks that have no machine, with the nodes that they fit on in the copy; none if the job is a
        gang and not all fit."""
        plan: list[tuple[Pod, dict[str, Any], str]] = []
        for _ in range(job.unplaced):
            document = self._experiment.new_pod(job.spec)
            pod = self._add(document)
            row = self._place(pod)
            if row < 0:
                self._drop(document)
                if self._experiment.is_gang(job.spec):
                    self._forget([pod for pod, _, _ in plan])
                    return []
                break
            plan.append((pod, document, self._copy.cluster.table.name(row)))
        return plan

    def _add(self, document: dict[str, Any]) -> Pod:
        applied = self._copy.cluster.apply(Change(Happened.ADDED, kinds.POD, document))
        assert applied is not None, self._copy.cluster.refused[-1]
        pod: Pod = applied.new
        return pod

    def _place(self, pod: Pod) -> int:
        """The row on which the copy assumes a pod now; -1 if there is none. The own shard is looked at first."""
        cluster = self._copy.cluster
        own = None
        if self._shards > 1:
            own = np.arange(self._shard, cluster.table.high, self._shards, dtype=np.int32)
        for within in (None,) if own is None else (own, None):
            cycle = Cycle(pod=pod, cluster=cluster, profile=self._profile, now=0.0, rng=self._rng, effects=Effects())
            answer = attempt(cycle, self._evaluator, Search(within=within))
            if isinstance(answer, Committed):
                return answer.placed.row
        return -1

    def _forget(self, pods: Sequence[Pod]) -> None:
        """Take what was only planned off the copy; what was kept comes back with the log."""
        cluster = self._copy.cluster
        for pod in pods:
            state = cluster.pods[pod.uid]
            cycle = Cycle(pod=pod, cluster=cluster, profile=self._profile, now=0.0, rng=self._rng, effects=Effects())
            undo(cycle, state.row)
            self._drop({"metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}, "spec": {}})

    def _drop(self, document: dict[str, Any]) -> None:
        self._copy.cluster.apply(Change(Happened.DELETED, kinds.POD, document))


class _NoNumbers:
    """A stream for schedulers that draw no machines."""

    def block(self) -> list[int]:
        raise AssertionError("a profile chooses the machines")


@dataclass(frozen=True, slots=True)
class PodsOfJobs:
    """How a job becomes pods: what makes each of them, and which jobs are placed whole or not at all."""

    new_pod: PodMaker = plain_pod
    gangs: Callable[[JobSpec], bool] = lambda job: False


_PLAIN = PodsOfJobs()


class ProfileExperiment:
    """One run: `make_profile` gives each scheduler a profile of its own, and one for the checks at commit."""

    def __init__(
        self,
        spec: ExperimentSpec,
        jobs: Sequence[JobSpec],
        make_profile: Callable[[], Profile],
        *,
        nodes: Sequence[dict[str, Any]],
        pods: PodsOfJobs = _PLAIN,
        sharded: bool = False,
        seed: int = 0,
    ) -> None:
        commit = replace(spec.commit, failures_raise_versions=False)
        self.is_gang = pods.gangs
        self.simulation = Simulation(replace(spec, commit=commit, cell=replace(spec.cell, machines=0)), jobs)
        self.common = CommonCluster(self.simulation.cell.cluster, nodes)
        self.simulation.cell.recount()
        self._new_pod = pods.new_pod
        self._pods = 0
        evaluator, rng = Evaluator(make_profile()), Random(seed)
        self._usual = PodTransaction(self.common.cluster, evaluator, commit, rng)
        whole = OptimisticCommit(commit.rule, CommitMode.ALL_OR_NOTHING)
        self._of_gangs = PodTransaction(self.common.cluster, evaluator, whole, rng)
        workloads: dict[str, list[Any]] = {}
        for workload, count in spec.schedulers.items():
            for number in range(count):
                scheduler = ProfileScheduler(
                    self,
                    workload.lower(),
                    make_profile(),
                    seed=seed * 1000 + len(self.simulation.schedulers),
                    shard=number,
                    shards=count if sharded else 1,
                )
                self.simulation.schedulers[f"{workload}-{number + 1}"] = scheduler
                workloads.setdefault(workload, []).append(scheduler)
        self.simulation.deal(workloads)

    def run(self) -> Simulation:
        self.simulation.run()
        return self.simulation

    def new_pod(self, job: JobSpec) -> dict[str, Any]:
        self._pods += 1
        return self._new_pod(job, self._pods)

    def commit(
        self, job: JobRun, plan: Sequence[tuple[Pod, dict[str, Any], str]], seen: NDArray[np.int64]
    ) -> tuple[int, int]:
        """Commit a plan; returns how many tasks were placed and how many conflicted."""
        documents = {}
        claims = []
        for _, document, node in plan:
            applied = self.common.cluster.apply(Change(Happened.ADDED, kinds.POD, document))
            assert applied is not None
            documents[applied.new.uid] = document
            claims.append(PodClaim(applied.new, node))
        transaction = self._of_gangs if self.is_gang(job.spec) else self._usual
        result = transaction.commit(claims, seen)
        for claim in result.kept:
            self.common.bind(documents[claim.pod.uid], claim.node)
        kept = [documents[claim.pod.uid] for claim in result.kept]
        for document in documents.values():
            if document not in kept:
                self.common.cluster.apply(Change(Happened.DELETED, kinds.POD, document))
        if kept:
            self.simulation.cell.count(len(kept), job.amounts)
            self.simulation.agenda.after(job.spec.duration, lambda: self._end(job, kept))
        return len(kept), len(result.conflicted)

    def _end(self, job: JobRun, documents: Sequence[dict[str, Any]]) -> None:
        for document in documents:
            self.common.end(document)
        self.simulation.cell.count(-len(documents), job.amounts)
