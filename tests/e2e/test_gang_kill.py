"""kill -9 of `fairlead scheduler` while a gang is being bound: whoever comes next finishes what was begun.

The cluster has room for the gang and a few pods more. A rival gang appears while nobody schedules; it is newer, more
important, and would fit as well. If it got its places before the gang that is half bound, that gang could never be
whole. The scheduler is killed when the watch has shown a random number of binds, and perhaps once more after it was
started again. It talks to the API slowly, so that the kills come in the middle.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import JOB, POD, POD_GROUP, PRIORITY_CLASS, Kind
from fairlead.errors import NotFound
from fairlead.testing.builders import job, pod, podgroup, priority_class
from fairlead.volcano.kinds import VC_POD_GROUP
from tests.support.processes.scheduler_process import GANG_GATES, PATIENCE, SchedulerProcess
from tests.support.processes.up import Up

NODES, CPUS = 9, 8
SIZE, RIVALS = 66, 8
"""Members of the gang and of the rival: one of them and then the other does not fit, some of both do."""
SEED = 20261116
ATTEMPTS = 8
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {qps: 40, burst: 25}
podMaxBackoffSeconds: 1
"""
Doc = dict[str, Any]


class Eyes:
    """What the watch has shown: which pods have a node, by the gang they say they are of. At every moment a gang that
    is half bound has the cluster to itself."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._pods: dict[str, Doc] = {}
        self._moved = asyncio.Event()
        self._wrong = ""
        self.under_way = ""
        """The gang that was begun first, until it is whole."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        version = (await self._api.list(POD, Query(namespace="default"))).resource_version
        watching = asyncio.create_task(self._watch(version))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch(self, version: str) -> None:
        async with aclosing(self._api.watch(POD, Query(namespace="default", resource_version=version))) as watch:
            async for event in watch:
                name = event.doc["metadata"].get("name", "")
                if event.type == "DELETED":
                    self._pods.pop(name, None)
                elif event.type in ("ADDED", "MODIFIED"):
                    self._pods[name] = event.doc
                self._look()
                self._moved.set()

    def _look(self) -> None:
        bound = self.bound()
        if self.under_way and bound[self.under_way] == SIZE:
            self.under_way = ""
        if self.under_way and bound[self.under_way]:
            others = bound.total() - bound[self.under_way]
            if others:
                self._wrong = f"{others} pods of others got places while {self.under_way} was half bound"

    def bound(self) -> Counter[str]:
        return Counter(
            doc["metadata"]["labels"]["gang"]
            for doc in self._pods.values()
            if doc["spec"].get("nodeName") and "deletionTimestamp" not in doc["metadata"]
        )

    def known(self, gang: str) -> list[Doc]:
        return [doc for doc in self._pods.values() if doc["metadata"]["labels"]["gang"] == gang]

    async def until(self, condition: Callable[[], bool], what: str, scheduler: SchedulerProcess | None = None) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition() and not self._wrong:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            log = scheduler.log.read_text() if scheduler is not None else ""
            raise AssertionError(f"{what}: not in time; {self.bound()}\n{log}") from None
        assert not self._wrong, f"{self._wrong}\n{scheduler.log.read_text() if scheduler is not None else ''}"


class KilledSchedulers:
    def __init__(self, up: Up, api: KubeApi, eyes: Eyes, directory: Path) -> None:
        self.api = api
        self.eyes = eyes
        self._up = up
        self._directory = directory
        self._lives = 0

    def scheduler(self) -> SchedulerProcess:
        """One more life; it knows nothing of the last one."""
        self._lives += 1
        return SchedulerProcess(
            self._directory / str(self._lives), self._up.kubeconfig, f"--feature-gates={GANG_GATES}", config=CONFIG
        )

    async def create(self, kind: Kind, *documents: Doc) -> None:
        for doc in documents:
            namespace = "default" if kind.namespaced else ""
            await self.api.perform(Write(Verb.CREATE, kind, namespace, doc["metadata"]["name"], doc))

    async def remove(self, gang: str) -> None:
        with suppress(NotFound):
            body = {"propagationPolicy": "Background"}
            await self.api.perform(Write(Verb.DELETE, JOB, "default", gang, body))
        for doc in self.eyes.known(gang):
            with suppress(NotFound):
                body = {"gracePeriodSeconds": 0}
                await self.api.perform(Write(Verb.DELETE, POD, "default", doc["metadata"]["name"], body))
        await self.eyes.until(lambda: not self.eyes.known(gang), f"{gang} goes")


# ---- gangs of three sorts ----


def _member(gang: str, number: int) -> Any:
    return pod(f"{gang}-{number}").asks(cpu="1").labelled(gang=gang)


def _group(gang: str, minimum: int) -> Doc:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": {"name": gang}, "spec": spec}


async def _native(stage: KilledSchedulers, gang: str, size: int = SIZE, priority: str = "") -> None:
    await stage.create(POD_GROUP, _group(gang, size))
    members = [_member(gang, number).having(schedulingGroup={"podGroupName": gang}) for number in range(size)]
    more = {"priorityClassName": priority} if priority else {}
    await stage.create(POD, *(member.having(**more).doc() for member in members))


async def _of_volcano(stage: KilledSchedulers, gang: str) -> None:
    await stage.create(VC_POD_GROUP, podgroup(gang, SIZE).doc())
    named = {"scheduling.k8s.io/group-name": gang}
    await stage.create(POD, *(_member(gang, number).annotated(named).doc() for number in range(SIZE)))


async def _of_a_job(stage: KilledSchedulers, gang: str) -> None:
    template = _member(gang, 0).annotated({"scheduling.fairlead.io/gang": "auto"}).running_for("1h")
    await stage.create(JOB, job(gang).of(template).times(SIZE, at_once=SIZE).doc())


Sort = Callable[[KilledSchedulers, str], Awaitable[None]]
SORTS: Sequence[tuple[Sort, int]] = ((_native, 2), (_of_volcano, 1), (_of_a_job, 1))
"""With how many kills each gets through."""


# ---- the test ----


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    shape = f"cpu={CPUS},memory=64Gi"
    with Up(tmp_path / "up", "--scheduler", "none", "--nodes", str(NODES), "--shape", shape) as up:
        up.wait_ready()
        yield up


@pytest.mark.long
async def test_a_gang_that_is_half_bound_when_the_scheduler_is_killed_comes_first_and_becomes_whole(
    up: Up, tmp_path: Path
) -> None:
    rng = random.Random(SEED)
    api = KubeApi(load_kubeconfig(up.kubeconfig))
    eyes = Eyes(api)
    stage = KilledSchedulers(up, api, eyes, tmp_path / "lives")
    try:
        await stage.create(PRIORITY_CLASS, priority_class("urgent", 1000).never_preempting().doc())
        async with eyes.open():
            for number, (sort, kills) in enumerate(SORTS):
                await _in_the_middle(stage, sort, f"gang{number}", kills, rng)
    finally:
        await api.close()


async def _in_the_middle(stage: KilledSchedulers, sort: Sort, gang: str, kills: int, rng: random.Random) -> None:
    """On a machine that is busy with other things a kill may come too late: then once more."""
    found = []
    for attempt in range(ATTEMPTS):
        halves = await _one_gang(stage, sort, f"{gang}-{attempt}", kills, rng)
        if all(0 < half < SIZE for half in halves):
            return
        found.append(halves)
    raise AssertionError(f"no kill came in the middle of {SIZE}: {found}")


async def _one_gang(stage: KilledSchedulers, sort: Sort, gang: str, kills: int, rng: random.Random) -> list[int]:
    """A gang, killed schedulers, a rival; the answer is how many members were bound after each kill."""
    eyes, rival = stage.eyes, f"rival-of-{gang}"
    await sort(stage, gang)
    await eyes.until(lambda: len(eyes.known(gang)) == SIZE, "all members are there")
    halves = [await _killed_at(stage, gang, rng.randint(1, SIZE // 5))]
    eyes.under_way = gang
    await _native(stage, rival, RIVALS, "urgent")
    while len(halves) < kills and halves[-1] < SIZE:
        halves.append(await _killed_at(stage, gang, min(SIZE, halves[-1] + rng.randint(1, SIZE // 6))))
    last = stage.scheduler()
    try:
        await eyes.until(lambda: eyes.bound()[gang] == SIZE, f"{gang} is whole", last)
        await eyes.until(lambda: all(_is_refused(doc) for doc in eyes.known(rival)), f"{rival} has had its turn", last)
        assert eyes.bound() == {gang: SIZE}, "whoever comes second gets all or nothing"
        await stage.remove(gang)
        await eyes.until(lambda: eyes.bound() == {rival: RIVALS}, f"{rival} is whole", last)
        await stage.remove(rival)
        assert last.end() == 0, last.log.read_text()
    finally:
        last.close()
    return halves


async def _killed_at(stage: KilledSchedulers, gang: str, bound: int) -> int:
    """Let a scheduler work until so many members are bound, and pull the plug."""
    running = stage.scheduler()
    try:
        await stage.eyes.until(lambda: stage.eyes.bound()[gang] >= bound, f"{bound} of {gang} are bound", running)
    finally:
        running.close()
    pods = (await stage.api.list(POD, Query(namespace="default", label_selector=f"gang={gang}"))).items
    return sum(1 for doc in pods if doc["spec"].get("nodeName"))


def _is_refused(doc: Doc) -> bool:
    conditions = doc.get("status", {}).get("conditions", ())
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)
