"""The real Volcano scheduler and Fairlead on the same fresh scenarios on a real API server: what runs at the end, per
gang and per queue, is the same."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead.api.client import KubeApi
from fairlead.api.credentials import load_kubeconfig
from fairlead.config.volcano_presets import PRESETS
from fairlead.errors import NotFound
from fairlead.model.flow import Verb, Write
from fairlead.model.kinds import NODE, POD, PRIORITY_CLASS, VC_POD_GROUP, VC_QUEUE, Kind
from tests.kube.contenders import clear, create, node_document, pod_document
from tests.kube.control_plane import ControlPlane, real_binary
from tests.kube.volcano_stories import Story, story

pytestmark = pytest.mark.kube

STORIES = 60
PERIOD = "200ms"
QUIET = 1.0
"""Seconds without a bind after which nobody is expected to start any more: five rounds."""
SEEN = 0.5
"""Seconds for a scheduler to hear of what was made."""
PATIENCE = 30.0
ROUNDS = 3
"""How often stories that ended differently are told again: the real one's sessions may still cut into one."""
GROUP = "scheduling.k8s.io/group-name"

Outcome = dict[str, int]


@contextmanager
def contender(name: str, kubeconfig: Path, directory: Path) -> Iterator[Path]:
    """One of the two, with Volcano's default configuration; the answer is its log."""
    settings = directory / f"{name}-settings"
    settings.mkdir(exist_ok=True)
    conf = settings / "volcano-scheduler.conf"
    conf.write_text(PRESETS["default"])
    if name == "volcano":
        command = [
            real_binary("vc-scheduler"), "--kubeconfig", str(kubeconfig), "--leader-elect=false", "--logtostderr",
            f"--scheduler-conf={conf}", f"--schedule-period={PERIOD}", "--enable-healthz=false",
            "--enable-metrics=false",
        ]  # fmt: skip
    else:
        command = [
            sys.executable, "-m", "fairlead", "scheduler", "--kubeconfig", str(kubeconfig), "--leader-elect=false",
            "--volcano-only", "--volcano-conf", str(conf), "--schedule-period", PERIOD, "--secure-port=0",
        ]  # fmt: skip
    log = directory / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Stage:
    """Plays stories on one cluster, one after the other, and clears it in between."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def play(self, told: Story) -> Outcome:
        await self._set_up(told)
        await self._settled(told)
        pods = (await self._api.list(POD, namespace="default")).items
        groups = Counter(pod["metadata"]["annotations"][GROUP] for pod in pods if pod["spec"].get("nodeName"))
        outcome = {gang.name: groups[gang.name] for gang in told.gangs}
        for queue in told.queues:
            outcome[queue.name] = sum(groups[gang.name] for gang in told.gangs if gang.queue == queue.name)
        await self._clear(told)
        return outcome

    async def _set_up(self, told: Story) -> None:
        nodes = [node_document(f"s{told.number}-n{at}", cpu=str(cores)) for at, cores in enumerate(told.nodes)]
        await create(self._api, NODE, "", nodes)
        for queue in told.queues:
            spec: dict[str, Any] = {"weight": queue.weight}
            if queue.capability is not None:
                spec["capability"] = {"cpu": str(queue.capability)}
            await self._make(VC_QUEUE, "", queue.name, spec)
        for gang in told.gangs:
            body: dict[str, Any] = {
                "minMember": gang.minimum,
                "queue": gang.queue,
                "priorityClassName": f"p{gang.priority}",
            }
            if gang.needs:
                body["minResources"] = {"cpu": str(gang.minimum)}
            await self._make(VC_POD_GROUP, "default", gang.name, body)
        pods = []
        for gang in told.gangs:
            for at in range(gang.members):
                pod = pod_document(f"{gang.name}-{at}", cpu="1")
                pod["metadata"]["annotations"] = {GROUP: gang.name}
                pod["spec"] |= {"schedulerName": "volcano", "priorityClassName": f"p{gang.priority}"}
                pods.append(pod)
        await create(self._api, POD, "default", pods)
        await asyncio.sleep(SEEN)
        await asyncio.gather(*(self._open(queue.name) for queue in told.queues))

    async def _open(self, queue: str) -> None:
        """Only now: a session that saw half of a story would decide another one, and a closed queue starts nothing."""
        state = {"status": {"state": "Open", "allocated": {}}}
        await self._api.perform(Write(Verb.PATCH, VC_QUEUE, "", queue, state, subresource="status"))

    async def _make(self, kind: Kind, namespace: str, name: str, spec: dict[str, Any]) -> None:
        document = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
        await self._api.perform(Write(Verb.CREATE, kind, namespace, name, document))

    async def _settled(self, told: Story) -> None:
        """Until nothing has been bound for a while after every group was looked at."""
        began = last = time.monotonic()
        seen: tuple[int, int] = (-1, -1)
        while time.monotonic() - began < PATIENCE:
            pods = (await self._api.list(POD, namespace="default")).items
            groups = (await self._api.list(VC_POD_GROUP, namespace="default")).items
            looked_at = sum(bool((group.get("status") or {}).get("conditions")) for group in groups)
            now = (sum(bool(pod["spec"].get("nodeName")) for pod in pods), looked_at)
            if now != seen:
                seen, last = now, time.monotonic()
            elif time.monotonic() - last > QUIET and (seen[0] or time.monotonic() - began > 3 * QUIET):
                return
            await asyncio.sleep(0.1)

    async def _clear(self, told: Story) -> None:
        await clear(self._api, "default")
        for kind, namespace, names in (
            (VC_POD_GROUP, "default", [gang.name for gang in told.gangs]),
            (VC_QUEUE, "", [queue.name for queue in told.queues]),
            (NODE, "", [f"s{told.number}-n{at}" for at in range(len(told.nodes))]),
        ):
            for name in names:
                await self._api.perform(Write(Verb.DELETE, kind, namespace, name))


async def play_all(kubeconfig: Path, numbers: Sequence[int]) -> list[Outcome]:
    api = KubeApi(load_kubeconfig(kubeconfig))
    try:
        stage = Stage(api)
        await Stage(api).play(story(0))  # whoever has just started may not be ready for the first
        return [await stage.play(story(number)) for number in numbers]
    finally:
        await api.close()


async def served(api: KubeApi, kind: Kind) -> None:
    """An established kind is announced a moment before the server answers for it."""
    for _ in range(300):
        try:
            await api.list(kind)
        except NotFound:
            await asyncio.sleep(0.1)
        else:
            return
    raise AssertionError(f"{kind.kind} is not served")


async def prepare(kubeconfig: Path) -> None:
    api = KubeApi(load_kubeconfig(kubeconfig))
    try:
        for kind in (VC_QUEUE, VC_POD_GROUP):
            await served(api, kind)
        classes: list[dict[str, Any]] = [
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"p{n}"}, "value": n}
            for n in range(1, 20)
        ]
        await create(api, PRIORITY_CLASS, "", classes)
    finally:
        await api.close()


def test_section_5_the_same_gangs_and_queues_run_under_both_schedulers(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path)
    definitions = Path(real_binary("vc-scheduler")).parent / "volcano-definitions"
    try:
        plane.start()
        for words in (
            ["apply", "--server-side", "-f", str(definitions)],
            ["wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all"],
        ):
            kubectl = [real_binary("kubectl"), "--kubeconfig", str(plane.kubeconfig), *words]
            subprocess.run(kubectl, check=True, capture_output=True)
        asyncio.run(prepare(plane.kubeconfig))
        differing: dict[int, str] = dict.fromkeys(range(1, STORIES + 1), "")
        for _ in range(ROUNDS):
            differing = compared(plane, tmp_path, list(differing))
            if not differing:
                break
    finally:
        plane.stop()
    assert not differing, "\n".join(differing.values())


def compared(plane: ControlPlane, directory: Path, numbers: Sequence[int]) -> dict[int, str]:
    """Stories that ended differently under the two, each in words."""
    outcomes = {}
    for name in ("volcano", "fairlead"):
        with contender(name, plane.kubeconfig, directory) as log:
            outcomes[name] = asyncio.run(play_all(plane.kubeconfig, numbers))
            assert any(map(any, (one.values() for one in outcomes[name]))), log.read_text()[-3000:]
    return {
        number: f"{story(number)}\n  volcano:  {theirs}\n  fairlead: {ours}"
        for number, theirs, ours in zip(numbers, outcomes["volcano"], outcomes["fairlead"], strict=True)
        if theirs != ours
    }
