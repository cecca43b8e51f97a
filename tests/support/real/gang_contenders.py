"""Both schedulers with their gang features on, each with a real control plane of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from fairlead.assembly.assemble import profiles_of
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.model.kinds import POD_GROUP, Kind
from fairlead.kube.config.gates import parse_feature_gates
from fairlead.kube.config.kube import default_kube_config
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from tests.support.processes.scheduler_process import GANG_GATES
from tests.support.real.control_plane import ControlPlane

NEXT_GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
LONGEST_BACKOFF = 1
"""Seconds. In 1.36 members of groups come back by backoff alone: the shorter, the sooner a story has settled."""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s, qps: 500, burst: 500}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: %d
"""
Schedules = Callable[[ControlPlane], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def kube_scheduler(plane: ControlPlane) -> AsyncIterator[None]:
    config = plane.directory / "scheduler.yaml"
    config.write_text(CONFIG % (plane.kubeconfig, LONGEST_BACKOFF))
    plane.start_scheduler("--config", str(config), f"--feature-gates={plane.gates}")
    yield


def our_scheduler(seed: int = 1, *, unschedulable_limit: float = 300.0) -> Scheduler:
    options = Options(seed=seed, max_backoff=float(LONGEST_BACKOFF), unschedulable_limit=unschedulable_limit)
    return Scheduler(profiles_of(default_kube_config(gates=parse_feature_gates(GANG_GATES))), options)


@asynccontextmanager
async def ours(plane: ControlPlane, scheduler: Scheduler | None = None) -> AsyncIterator[None]:
    own = KubeApi(load_kubeconfig(plane.kubeconfig))
    runtime = LiveRuntime(Remote(own), [scheduler or our_scheduler()])
    running = asyncio.ensure_future(runtime.run_until_stopped())
    try:
        yield
    finally:
        runtime.stop()
        await running
        await own.close()


@asynccontextmanager
async def on_a_real_server(directory: Path, schedules: Schedules, groups: Kind = POD_GROUP) -> AsyncIterator[KubeApi]:
    """A control plane with the gang features on, of the Kubernetes that has this version of groups, and a scheduler
    that works on it."""
    await asyncio.to_thread(directory.mkdir)
    served = f"{groups.api_version}=true"
    if groups is POD_GROUP:
        plane = ControlPlane(directory, gates=GANG_GATES, runtime_config=served)
    else:
        plane = ControlPlane(directory, gates=NEXT_GATES, runtime_config=served, suffix="-next")
    try:
        await asyncio.to_thread(plane.start)
        api = KubeApi(load_kubeconfig(plane.kubeconfig))
        try:
            async with schedules(plane):
                yield api
        finally:
            await api.close()
    finally:
        await asyncio.to_thread(plane.stop)
