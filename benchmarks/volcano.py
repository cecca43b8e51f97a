"""Rounds with the Volcano profile: gangs placed, a round over a large cluster, and room made for one big gang.

Gangs go through the whole scheduler (`Scheduler.step`, bindings confirmed by the watch; only time inside it counts).
The other rows are one round over a cluster that stands still: opened, run and closed, nothing written. ReclaimLargeJobs
is KAI's benchmark of that name: every node has 8 GPUs that are taken by 8 jobs of one pod, and one gang of a tenth as
many pods as there are nodes wants 8 GPUs each, from a queue that is owed all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from random import Random
from typing import TYPE_CHECKING

from benchmarks.row import Row
from benchmarks.scheduling import START
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.core.engine.scheduler import Options
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened, Reply
from fairlead.core.state.cluster import Cluster
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.config.setup import VolcanoSetup
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.rounds.action_table import run_actions
from fairlead.volcano.rounds.closing import close_round
from fairlead.volcano.rounds.opening import open_round
from fairlead.volcano.rounds.settings import rounds_of

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind
    from fairlead.volcano.rounds.round import Round
    from fairlead.volcano.rounds.settings import Rounds

GANGS = ((10, 100), (500, 20), (20, 500), (1, 10_000), (10_000, 1))
GANG_NODES, ROUND_NODES = 1_000, 5_000
GANG_BAR = 1_000.0
"""Pods per second that Volcano's vendors name."""
JOBS, PER_JOB, SHAPES = 200, 100, 10
RECLAIM_BARS = {100: 0.2, 200: 0.3, 500: 1.0, 1_000: 4.0}
_CREATED = "2026-01-01T00:00:00Z"
_GPU = "nvidia.com/gpu"
_RECLAIM = """
actions: "reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
    enableReclaimable: false
  - name: conformance
- plugins:
  - name: predicates
  - name: capacity
  - name: nodeorder
"""


def _change(kind: Kind, name: str, doc: Doc, **metadata: Doc) -> Change:
    whole = {"name": name, "uid": f"{kind.kind}-{name}", "resourceVersion": "1", "creationTimestamp": _CREATED}
    if kind.namespaced:
        whole["namespace"] = "default"
    return Change(Happened.ADDED, kind, {"apiVersion": kind.api_version, **doc, "metadata": {**whole, **metadata}})


def _nodes(count: int, offered: dict[str, str]) -> Iterator[Change]:
    for number in range(count):
        labels = {"kubernetes.io/hostname": f"node-{number}"}
        status = {"allocatable": offered, "capacity": offered}
        yield _change(kinds.NODE, f"node-{number}", {"spec": {}, "status": status}, labels=labels)


def _queue(name: str, **spec: object) -> Change:
    return _change(VC_QUEUE, name, {"spec": {"weight": 1, **spec}, "status": {"state": "Open"}})


def _job(name: str, least: int, queue: str = "default", phase: str = "Inqueue") -> Change:
    return _change(VC_POD_GROUP, name, {"spec": {"minMember": least, "queue": queue}, "status": {"phase": phase}})


def _pods(job: str, count: int, requests: dict[str, str], node: str = "") -> Iterator[Change]:
    spec: Doc = {"schedulerName": "volcano", "containers": [{"name": "main", "resources": {"requests": requests}}]}
    status = {"phase": "Pending"}
    if node:
        spec, status = {**spec, "nodeName": node}, {"phase": "Running"}
    for number in range(count):
        annotations = {"scheduling.k8s.io/group-name": job, "volcano.sh/task-spec": "worker"}
        doc = {"spec": spec, "status": status}
        yield _change(kinds.POD, f"{job}-worker-{number}", doc, annotations=annotations)


# ---- gangs ----


def bench_gangs() -> Iterable[Row]:
    for jobs, size in GANGS:
        pods = jobs * size
        spent, used = _place_gangs(jobs, size)
        note = f"{used * 1e6 / pods:,.0f} µs CPU per pod, rounds and bindings included"
        name = f"VolcanoGangs/{jobs}x{size}"
        yield Row(name, pods / spent, "pods/s", GANG_BAR, nodes=GANG_NODES, pods=pods, note=note)


def _place_gangs(jobs: int, size: int) -> tuple[float, float]:
    """Seconds, of time and of CPU, until all are bound and the watch has shown it."""
    volcano = VolcanoSetup("shipped", only=True)
    scheduler = SchedulerAssembly(setups=[volcano], options=Options(seed=1)).scheduler()
    nodes = _nodes(GANG_NODES, {"cpu": "32", "memory": "256Gi", "pods": "110"})
    scheduler.step(START, [*nodes, _queue("default")], ())
    groups = [_job(f"job-{number}", size) for number in range(jobs)]
    pods = {c.doc["metadata"]["name"]: c for job in range(jobs) for c in _pods(f"job-{job}", size, _ONE)}
    changes, replies = [*groups, *pods.values()], list[Reply]()
    bound, spent, used, now, idle = 0, 0.0, 0.0, START + 1, 0
    while bound < len(pods):
        began, began_cpu = time.perf_counter(), time.process_time()
        writes = scheduler.step(now, changes, replies)
        spent, used = spent + time.perf_counter() - began, used + time.process_time() - began_cpu
        now += 0.001 if writes else 1.0
        idle = 0 if writes else idle + 1
        if idle > 5:
            raise AssertionError(f"{len(pods) - bound} pods were not placed")
        bindings = [write for write in writes if write.subresource == "binding"]
        bound += len(bindings)
        replies = [Reply(write, write.body) for write in writes]
        changes = [
            Change(Happened.MODIFIED, kinds.POD, _bound(pods[w.name].doc, w.body["target"]["name"])) for w in bindings
        ]
    return spent, used


_ONE = {"cpu": "1", "memory": "1Gi"}


def _bound(doc: Doc, node: str) -> Doc:
    return {**doc, "spec": {**doc["spec"], "nodeName": node}}


# ---- one round ----


def _cluster(changes: Iterable[Change]) -> Cluster:
    cluster = Cluster()
    for change in changes:
        cluster.apply(change)
    if cluster.refused:
        raise AssertionError(cluster.refused[0])
    return cluster


def _run_round(cluster: Cluster, rounds: Rounds) -> tuple[Round, float, str]:
    """The round, how long it took, and what to say of it."""
    began, began_cpu = time.perf_counter(), time.process_time()
    round = open_round(cluster, rounds, uid="bench", now=START, rng=Random(1))
    for _ in run_actions(round):
        pass
    close_round(round)
    spent, used = time.perf_counter() - began, time.process_time() - began_cpu
    return round, spent, f"opened, run and closed; {used:.2f} s CPU"


def _rounds(text: str) -> Rounds:
    return rounds_of(profile_of_volcano(load_volcano_config(text)))


def bench_round() -> Iterable[Row]:
    """200 jobs of 100 pods in ten shapes: half of the jobs fit, or none."""
    for name, fitting, bar in (("HalfFits", JOBS // 2, 5.0), ("NothingFits", 0, 1.0)):
        changes = [*_nodes(ROUND_NODES, {"cpu": "32", "memory": "256Gi", "pods": "110"}), _queue("default")]
        for number in range(JOBS):
            cores = 1 + number % SHAPES * 0.1 + (0 if number < fitting else 40)
            changes.append(_job(f"job-{number}", PER_JOB))
            changes += _pods(f"job-{number}", PER_JOB, {"cpu": f"{cores:.1f}", "memory": "1Gi"})
        rounds = rounds_of(profile_of_volcano(load_volcano_config(PRESETS["shipped"])))
        round, spent, note = _run_round(_cluster(changes), rounds)
        if len(round.outcome.binds) != fitting * PER_JOB:
            raise AssertionError(f"{len(round.outcome.binds)} pods were placed")
        yield Row(
            f"VolcanoRound/{name}",
            spent,
            "s",
            bar,
            nodes=ROUND_NODES,
            pods=JOBS * PER_JOB,
            note=f"{note}; {len(round.outcome.binds):,} placed",
            higher_is_better=False,
        )


# ---- making room ----


def bench_reclaim() -> Iterable[Row]:
    for nodes, bar in RECLAIM_BARS.items():
        gang = nodes // 10
        changes = [*_nodes(nodes, {"cpu": "128", "memory": "1Ti", "pods": "110", _GPU: "8"})]
        changes += [_queue("queue-0", deserved={}), _queue("queue-1", deserved={_GPU: str(nodes * 8)})]
        for number in range(nodes * 8):
            changes.append(_job(f"running-{number}", 1, "queue-0", "Running"))
            changes += _pods(f"running-{number}", 1, {_GPU: "1"}, f"node-{number % nodes}")
        changes += [_job("large", gang, "queue-1"), *_pods("large", gang, {_GPU: "8"})]
        round, spent, note = _run_round(_cluster(changes), _rounds(_RECLAIM))
        if len(round.outcome.evictions) != gang * 8:
            raise AssertionError(f"{len(round.outcome.evictions)} pods were evicted")
        yield Row(
            f"ReclaimLargeJobs/{nodes}Nodes",
            spent,
            "s",
            bar,
            nodes=nodes,
            pods=nodes * 8 + gang,
            note=f"{note}; {gang * 8:,} evicted for a gang of {gang}",
            higher_is_better=False,
        )
