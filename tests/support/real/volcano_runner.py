"""Where stories are told: one scheduler on one control plane, told what to do by its configuration file alone.

While a story is set up or cleared away the scheduler works with a configuration that starts nobody, so that it never
sees half of a story; then the story's own configuration takes its place, at one stroke. Nothing is timed: where the
scheduler is shows in what it does to pods without requests that are made for it to find (`_errand`), on a node that has
room for nothing else.

    idle ──errand only the idle configuration lets run──▶ set up ──every group's condition counts all its pods──▶
    story's configuration ──errands until one more round has started nobody──▶ look ──▶ idle
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import NODE, POD, PRIORITY_CLASS, Kind
from fairlead.errors import FairleadError, NotFound
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from tests.support.real.contenders import clear, create, make_namespace, node_document, pod_document
from tests.support.real.control_plane import ControlPlane, define_volcano_kinds, real_binary
from tests.support.real.volcano_chance import priority_classes
from tests.support.real.volcano_stories import GROUP, Doc, Story, StoryQueue

VOLCANO, FAIRLEAD = "volcano", "fairlead"
PERIOD = "100ms"
PATIENCE = 180.0
HOME = "home"
ERRANDS = "errands"
IDLE = """\
actions: "backfill"
tiers:
- plugins:
  - name: gang
"""
"""Without `predicates` a pod may go where it does not belong: so an errand shows that this is in force."""

Outcome = dict[str, int]


@contextmanager
def contender(name: str, kubeconfig: Path, conf: Path) -> Iterator[Path]:
    """One of the two, with a configuration file that it follows; the answer is its log."""
    if name == VOLCANO:
        command = [
            real_binary("vc-scheduler"),
            "--kubeconfig",
            str(kubeconfig),
            "--leader-elect=false",
            "--logtostderr",
            f"--scheduler-conf={conf}",
            f"--schedule-period={PERIOD}",
            "--enable-healthz=false",
            "--enable-metrics=false",
            "--kube-api-qps=2000",
            "--kube-api-burst=2000",
        ]
    else:
        # A file is looked at once a second; here somebody waits for it.
        quick = "from fairlead.cli import reloading, main; reloading.LOOK_EVERY = 0.05; main.main()"
        command = [
            sys.executable, "-c", quick, "scheduler", "--kubeconfig", str(kubeconfig), "--leader-elect=false",
            "--volcano-only", "--volcano-compatible", "--volcano-conf", str(conf), "--schedule-period", PERIOD,
            "--secure-port=0", "--kube-api-qps=-1",
        ]  # fmt: skip
    log = kubeconfig.parent / f"{name}.log"
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


class StoryRunner:
    """Tells stories, one after the other."""

    def __init__(self, api: KubeApi, conf: Path) -> None:
        self._api = api
        self._conf = conf
        self._errands = 0

    async def tell(self, told: Story) -> Outcome:
        """The idle configuration is in force before and after."""
        await self._set_up(told)
        await self._until(lambda: self._all_seen(told), "all groups were seen")
        self._follow(told.conf)
        outcome = await self._settled(told)
        self._follow(IDLE)
        await asyncio.gather(self.idle(), self._clear(told))
        return outcome

    def _follow(self, conf: str) -> None:
        """In one step, so that nobody reads half of a file."""
        fresh = self._conf.parent.parent / "fresh.conf"
        fresh.write_text(conf)
        os.replace(fresh, self._conf)

    # ---- where the scheduler is ----

    async def idle(self) -> None:
        """Only without `predicates` a pod goes to a node without the label that it asks for."""
        await self._errand({"example.com/nowhere": "true"}, phase="Inqueue")

    async def _one_more_round(self) -> None:
        """A group that waits to be let in is by the story's configuration, and not by the idle one."""
        await self._errand({"kubernetes.io/hostname": HOME}, phase="Pending")

    async def _errand(self, selector: dict[str, str], *, phase: str) -> None:
        """Make a pod that asks for no room, and wait until it has its place."""
        self._errands += 1
        name = f"errand-{self._errands}"
        group = {
            "apiVersion": VC_POD_GROUP.api_version, "kind": VC_POD_GROUP.kind, "metadata": {"name": name},
            "spec": {"minMember": 1, "queue": "default", "priorityClassName": "p1"}, "status": {"phase": phase},
        }  # fmt: skip
        pod = pod_document(name)
        pod["metadata"]["annotations"] = {GROUP: name}
        pod["spec"] |= {"schedulerName": "volcano", "nodeSelector": selector}
        await create(self._api, VC_POD_GROUP, ERRANDS, [group])
        await create(self._api, POD, ERRANDS, [pod])
        await self._until(lambda: self._has_place(name), f"{name} ({phase}) has its place")
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        await self._api.perform(Write(Verb.DELETE, POD, ERRANDS, name, options))
        await self._api.perform(Write(Verb.DELETE, VC_POD_GROUP, ERRANDS, name))

    async def _has_place(self, name: str) -> bool:
        pod = await self._api.get(POD, ERRANDS, name)
        return bool(pod["spec"].get("nodeName"))

    async def _all_seen(self, told: Story) -> bool:
        """Whether the scheduler says of every group how many pods it has."""
        groups = {group["metadata"]["name"]: group for group in await self._list(VC_POD_GROUP)}
        return all(f"/{gang.members} tasks in gang" in _said_of(groups[gang.name]) for gang in told.gangs)

    async def _settled(self, told: Story) -> Outcome:
        """What runs once two rounds have passed that started nobody."""
        seen = await self._running(told)
        quiet = 0
        while quiet < 2:
            await self._one_more_round()
            now = await self._running(told)
            quiet = quiet + 1 if now == seen else 0
            seen = now
        return seen

    async def _running(self, told: Story) -> Outcome:
        pods = await self._list(POD)
        return told.outcome(
            Counter(pod["metadata"]["annotations"][GROUP] for pod in pods if pod["spec"].get("nodeName"))
        )

    async def _list(self, kind: Kind) -> Sequence[Doc]:
        return (await self._api.list(kind, Query(namespace="default"))).items

    async def _until(self, ready: Callable[[], Awaitable[bool]], what: str) -> None:
        ends = time.monotonic() + PATIENCE
        while not await ready():
            if time.monotonic() > ends:
                raise AssertionError(f"after {PATIENCE:.0f} s still not: {what}")
            await asyncio.sleep(0.03)

    # ---- scenery ----

    async def _set_up(self, told: Story) -> None:
        for kind, documents in told.documents():
            await create(self._api, kind, "default" if kind.namespaced else "", documents)
            if kind is VC_QUEUE:
                await asyncio.gather(*(_open_queue(self._api, doc["metadata"]["name"]) for doc in documents))

    async def _clear(self, told: Story) -> None:
        await clear(self._api, "default")
        for kind, documents in told.documents():
            if kind is not POD:
                namespace = "default" if kind.namespaced else ""
                names = [doc["metadata"]["name"] for doc in documents]
                await asyncio.gather(*(self._api.perform(Write(Verb.DELETE, kind, namespace, name)) for name in names))


def _said_of(group: Doc) -> str:
    conditions = (group.get("status") or {}).get("conditions") or ()
    return " ".join(str(one.get("message", "")) for one in conditions)


async def _open_queue(api: KubeApi, name: str) -> None:
    """Nobody else is there to do it."""
    state = {"status": {"state": "Open", "allocated": {}}}
    await api.perform(Write(Verb.PATCH, VC_QUEUE, "", name, state, subresource="status"))


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


async def make_queues(api: KubeApi) -> None:
    """The two that every scheduler of Volcano's has, open: a scheduler alone leaves that to the controllers."""
    for kind in (VC_QUEUE, VC_POD_GROUP):
        await served(api, kind)
    await create(api, VC_QUEUE, "", [StoryQueue(name, {"weight": 1}).document() for name in ("root", "default")])
    for name in ("root", "default"):
        await _open_queue(api, name)


async def _furnish(kubeconfig: Path) -> None:
    api = KubeApi(load_kubeconfig(kubeconfig))
    try:
        await make_queues(api)
        await create(api, PRIORITY_CLASS, "", priority_classes())
        home = node_document(HOME, cpu="0")
        home["status"]["allocatable"] = {"cpu": "0", "memory": "0", "pods": "110"}
        await create(api, NODE, "", [home])
        await make_namespace(api, ERRANDS)
    finally:
        await api.close()


async def tell_all(name: str, plane: ControlPlane, stories: Sequence[Story]) -> list[Outcome]:
    """How each story ends under one of the two."""
    settings = plane.directory / f"{name}-settings"
    settings.mkdir(exist_ok=True)
    conf = settings / "volcano-scheduler.conf"
    conf.write_text(IDLE)
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        with contender(name, plane.kubeconfig, conf) as log:
            stage = StoryRunner(api, conf)
            try:
                await stage.idle()
                return [await stage.tell(told) for told in stories]
            except (AssertionError, FairleadError) as error:
                tail = log.read_text(errors="replace")[-3000:]
                raise AssertionError(f"{name}: {error}; the end of its log:\n{tail}") from error
    finally:
        await api.close()


def prepare(plane: ControlPlane) -> None:
    """A control plane with Volcano's kinds and all that stories have in common."""
    plane.directory.mkdir()
    plane.start()
    define_volcano_kinds(plane.kubeconfig)
    asyncio.run(_furnish(plane.kubeconfig))
