"""Controllers and a scheduler that run Volcano Jobs on a real API server: Volcano's own parts, ours, and mixed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.cluster.kubelets.kubelet import Kubelet
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.errors import NotFound
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from fairlead.testing.builders import node
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.kinds import VC_COMMAND, VC_JOB, VC_POD_GROUP, VC_QUEUE
from tests.support.job_cases import GONE, Case, Doc
from tests.support.real.contenders import create, make_namespace
from tests.support.real.control_plane import ControlPlane, define_volcano_kinds, real_binary
from tests.support.real.volcano_runner import served

CONTROLLERS, SCHEDULER, KUBELET = "controllers", "scheduler", "kubelet"
USERS = (CONTROLLERS, SCHEDULER, KUBELET)
PATIENCE = 600.0


class Team(NamedTuple):
    """Which of the two parts are ours."""

    name: str
    our_controllers: bool
    our_scheduler: bool


TEAMS = (
    Team("volcano", our_controllers=False, our_scheduler=False),
    Team("our-controllers", our_controllers=True, our_scheduler=False),
    Team("our-scheduler", our_controllers=False, our_scheduler=True),
    Team("ours", our_controllers=True, our_scheduler=True),
)


@contextmanager
def at_work(team: Team, plane: ControlPlane, period: str = "200ms") -> Iterator[None]:
    conf = plane.directory / f"{team.name}-settings" / "volcano-scheduler.conf"
    conf.parent.mkdir()
    conf.write_text(PRESETS["shipped"])
    fairlead, quick = [sys.executable, "-m", "fairlead"], ["--kube-api-qps=2000", "--kube-api-burst=2000"]
    if team.our_controllers:
        controllers = [*fairlead, "controllers", "--no-leader-elect", "--volcano-compatible"]
    else:
        controllers = [
            real_binary("vc-controller-manager"), "--leader-elect=false", "--enable-healthz=false", "--logtostderr",
            *quick,
        ]  # fmt: skip
    if team.our_scheduler:
        scheduler = [
            *fairlead, "scheduler", "--leader-elect=false", "--volcano-only", "--volcano-conf", str(conf),
            "--volcano-compatible", "--secure-port=0", "--kube-api-qps=-1", f"--schedule-period={period}",
        ]  # fmt: skip
    else:
        scheduler = [
            real_binary("vc-scheduler"),
            "--leader-elect=false",
            "--enable-healthz=false",
            "--enable-metrics=false",
            "--logtostderr",
            f"--scheduler-conf={conf}",
            f"--schedule-period={period}",
            *quick,
        ]
    with ExitStack() as running:
        for part, command in ((CONTROLLERS, controllers), (SCHEDULER, scheduler)):
            log = running.enter_context((plane.directory / f"{team.name}-{part}.log").open("wb"))
            process = subprocess.Popen(
                [*command, "--kubeconfig", str(plane.kubeconfig_of(part))],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            running.callback(process.wait)
            running.callback(process.kill)
        yield


@asynccontextmanager
async def furnished(plane: ControlPlane, nodes: int = 4) -> AsyncIterator[KubeApi]:
    """Volcano's kinds, queues, simulated nodes, a kubelet and the garbage collector."""
    async with without_kubelet(plane, nodes) as api:
        hands = KubeApi(load_kubeconfig(plane.kubeconfig_of(KUBELET)))
        world = Remote(hands)
        runtime = LiveRuntime(world, [Kubelet(world.view, rng=Random(1))])
        running = asyncio.create_task(runtime.run_until_stopped())
        try:
            yield api
        finally:
            runtime.stop()
            await running
            await hands.close()


@asynccontextmanager
async def without_kubelet(plane: ControlPlane, nodes: int) -> AsyncIterator[KubeApi]:
    """As above, for a test that plays the kubelet itself."""
    await asyncio.to_thread(define_volcano_kinds, plane.kubeconfig)
    await asyncio.to_thread(plane.start_controllers, "--controllers=garbagecollector")
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        for kind in (VC_JOB, VC_POD_GROUP, VC_QUEUE, VC_COMMAND):
            await served(api, kind)
        queue = {"apiVersion": VC_QUEUE.api_version, "kind": "Queue", "spec": {"weight": 1}}
        for name in ("root", "default"):
            await create(api, VC_QUEUE, "", [{**queue, "metadata": {"name": name}}])
            state = {"status": {"state": "Open", "allocated": {}}}
            await api.perform(Write(Verb.PATCH, VC_QUEUE, "", name, state, subresource="status"))
        await create(api, NODE, "", [node(f"n{index}").doc() for index in range(nodes)])
        yield api
    finally:
        await api.close()


class JobRun:
    """The Jobs of one namespace, followed to their ends."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self._api, self._namespace = api, namespace

    async def ends(self, cases: Sequence[Case]) -> dict[str, Doc]:
        await make_namespace(self._api, self._namespace)
        await create(self._api, VC_JOB, self._namespace, [case.document(self._namespace) for case in cases])
        async with asyncio.timeout(PATIENCE):
            found = await asyncio.gather(*(self._follow(case) for case in cases))
        return dict(zip((case.name for case in cases), found, strict=True))

    async def _follow(self, case: Case) -> Doc:
        for phase, action in case.commands:
            await self._until(case, lambda doc, phase=phase: doc is not None and phase_of(doc) == phase)
            await self._command(case.name, action)
        if case.ends == GONE:
            await self._until(case, lambda doc: doc is None)
            return {"phase": GONE}
        doc = await self._until(case, lambda doc: doc is not None and phase_of(doc) == case.ends)
        pods = await self._pods(case, settled=True)
        assert doc is not None
        return {
            "phase": phase_of(doc),
            "retryCount": doc["status"].get("retryCount", 0),
            "minAvailable": doc["status"].get("minAvailable"),
            "pods": pods,
        }

    async def _pods(self, case: Case, *, settled: bool) -> dict[str, str]:
        """Of a Job that is over: pods that are being deleted go first."""
        while True:
            found = (await self._api.list(POD, Query(namespace=self._namespace))).items
            own = [pod for pod in found if pod["metadata"]["annotations"]["volcano.sh/job-name"] == case.name]
            if not any(pod["metadata"].get("deletionTimestamp") or _lives(pod) for pod in own):
                return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in own}
            await asyncio.sleep(0.3)

    async def _command(self, job: str, action: str) -> None:
        found = await self._api.get(VC_JOB, self._namespace, job)
        target = {
            "apiVersion": VC_JOB.api_version, "kind": "Job", "name": job, "uid": found["metadata"]["uid"],
            "controller": True,
        }  # fmt: skip
        body = {
            "apiVersion": VC_COMMAND.api_version,
            "kind": "Command",
            "action": action,
            "target": target,
            "metadata": {"generateName": f"{job}-", "namespace": self._namespace},
        }
        await self._api.perform(Write(Verb.CREATE, VC_COMMAND, self._namespace, "", body))

    async def _until(self, case: Case, holds: Callable[[Doc | None], bool]) -> Doc | None:
        doc: Doc | None = None
        try:
            while True:
                try:
                    doc = await self._api.get(VC_JOB, self._namespace, case.name)
                except NotFound:
                    doc = None
                if holds(doc):
                    return doc
                await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            status = "gone" if doc is None else json.dumps(doc.get("status"))
            print(f"{self._namespace}/{case.name} did not go on: {status}")
            raise


def until(holds: Callable[[], Any], what: str) -> None:
    ends = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > ends:
            raise AssertionError(f"{what} did not happen in {PATIENCE:g} s")
        time.sleep(0.3)


def phase_of(job: Doc) -> str:
    phase: str = ((job.get("status") or {}).get("state") or {}).get("phase") or ""
    return phase


def _lives(pod: Doc) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def writes_of(audit_log: Path, namespace: str, users: Iterable[str]) -> Counter[str]:
    """How many writes to a namespace each user made; an Event counts like any other."""
    found: Counter[str] = Counter()
    for line in audit_log.read_text().splitlines():
        entry: dict[str, Any] = json.loads(line)
        about = entry.get("objectRef") or {}
        if about.get("namespace") == namespace and entry["user"]["username"] in set(users):
            found[entry["user"]["username"]] += 1
    return found
