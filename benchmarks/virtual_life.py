"""The laboratory's whole path on virtual time: pods are created, admitted, bound, started, ended and deleted.

Store, admission, fan-out, scheduler, controllers, simulated kubelets and the recorder of an experiment take part;
Events are not kept in experiments. Seconds are of this process's CPU: a simulation waits for nobody.

`python -m benchmarks --only VirtualLife --profile 40` shows what stands in the way.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.row import Row
from fairlead.core.model import kinds
from fairlead.lab.play.run import LabRun
from fairlead.lab.scenario.reading import read_scenario
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    MeasureSpec,
    PolicySpec,
    ShapeSpec,
    constant,
)
from fairlead.runtime.collecting import ALLOCATIONS_OF_EXPERIMENTS, collect_rarely

NODES, PODS, BURST = 1_000, 20_000, 100
SOAK_PODS, SOAK_MARK = 1_000_000, 200_000
COPIES = 10
OPENB = Path(__file__).parents[1] / "examples/openb.yaml"
MEGABYTE = 1e6


class _Rows:
    """Counts the rows of a run, and forgets them."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, table: str, *row: Any) -> None:
        self.count += 1


def life(pods: int, *, nodes: int = NODES, burst: int = BURST) -> LabScenario:
    """Bursts of equal pods, one a second, that run for ten seconds each."""
    shape = ShapeSpec(count=nodes, resources={"cpu": "32", "memory": "128Gi", "pods": "110"})
    jobs = JobClassSpec(
        arrivals=ArrivalSpec(gap=constant(1), count=pods, burst=burst),
        resources={"cpu": "100m", "memory": "128Mi"},
        duration=constant(10),
    )
    return LabScenario(
        cluster=ClusterSpec(nodes=[shape]), loads=[LoadSpec(jobs=[jobs])], measure=MeasureSpec(decisions=False)
    )


def run_of(scenario: LabScenario, policy: PolicySpec, load: LoadSpec) -> LabRun:
    """A run that has its nodes and has not begun, in a process that is set up as experiments are."""
    collect_rarely(ALLOCATIONS_OF_EXPERIMENTS)
    return LabRun(scenario, policy, load, 1, _Rows(), base=OPENB.parent)


def bench_life() -> Iterable[Row]:
    scenario = life(PODS)
    run = run_of(scenario, scenario.policies[0], scenario.loads[0])
    seconds = _played(run)
    note = f"the laboratory's whole path, bursts of {BURST}; {seconds / PODS * 1e6:,.0f} µs CPU a pod"
    yield Row("VirtualLife/1000Nodes", PODS / seconds, "pods/s", 3_000, nodes=NODES, pods=PODS, note=note)


def bench_openb() -> Iterable[Row]:
    """Alibaba's GPU trace ten times over, until the scenario stops: every pod is offered once, and placed or refused;
    those that end by then leave. A pod that is refused is withdrawn, as in the simulator of the paper: kube-scheduler's
    queue would try it again at every departure. Many pods of the trace run for days, and have not ended."""
    scenario = read_scenario(OPENB)
    load, trace = scenario.loads[0], scenario.cluster.trace
    assert trace is not None
    assert load.trace is not None
    burst = load.trace.burst * COPIES
    load = replace(load, trace=replace(load.trace, copies=COPIES, burst=burst))
    scenario = replace(scenario, cluster=replace(scenario.cluster, trace=replace(trace, copies=COPIES)))
    run = run_of(scenario, scenario.policies[0], load)
    pods, nodes = len(run.jobs), len(run.cluster.list("nodes"))
    began, refused = time.process_time(), 0
    run.begin()
    while run.next_event():
        for name in run.recorder.waiting():
            run.cluster.delete(kinds.POD, name)
            refused += 1
    seconds = time.process_time() - began
    running, stop = run.recorder.running, scenario.stop.at
    if run.recorder.unended != running or running > sum(job.arrival + (job.duration or 0) > stop for job in run.jobs):
        raise AssertionError(f"{run.recorder.unended} jobs have not ended, {running} pods run")
    placed = f"{pods - refused:,} pods placed, {refused:,} refused, {pods - refused - running:,} have ended"
    note = f"openb, ten copies, policy {scenario.policies[0].name}: {placed}; {seconds / pods * 1e6:,.0f} µs CPU a pod"
    yield Row("VirtualLife/openb-x10", seconds, "s", 41, nodes=nodes, pods=pods, note=note, higher_is_better=False)


def bench_memory(pods: int = SOAK_PODS, mark: int = SOAK_MARK) -> Iterable[Row]:
    """How much the process grows between its first two hundred thousand pods and its last."""
    scenario = life(pods)
    run = run_of(scenario, scenario.policies[0], scenario.loads[0])
    run.begin()
    early = 0.0
    while not run.recorder.is_done:
        run.next_event()
        if not early and pods - run.recorder.unended >= mark:
            early = _resident()
    late = _resident()
    note = f"{early:,.0f} MB after {mark:,} pods, {late:,.0f} MB after {pods:,}"
    yield Row("VirtualLife/memory", late - early, "MB", 50, nodes=NODES, pods=pods, note=note, higher_is_better=False)


def _played(run: LabRun) -> float:
    """Play a run to its end; the seconds of CPU that it took."""
    began = time.process_time()
    run.play()
    seconds = time.process_time() - began
    if run.recorder.unended:
        raise AssertionError(f"{run.recorder.unended} of {len(run.jobs)} jobs have not ended")
    return seconds


def _resident() -> float:
    """Megabytes that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MEGABYTE
