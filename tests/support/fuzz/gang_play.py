"""Plays worlds with gangs on a server, and writes down what shows of them: step by step, as facts by name.

The same worlds are played on virtual time too, with our scheduler and many seeds, as it is and with room made for gangs
as 1.36 makes it: what comes out the same whatever the seed is no matter of chance, and only that is compared. Where
several wait for room that comes free, the original leaves it to its backoff who is first; a world ends before such a
step.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Protocol
from unittest.mock import patch

from fairlead.client.client import KubeApi
from fairlead.cluster.store.store import Store
from fairlead.core.engine.gangs.assembly import Assembly
from fairlead.core.framework.gang import Considered, GangCase, PodGroupPostFilterResult, Unit
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import Kind, Registry
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import SUCCESS, Status
from fairlead.core.state.statement import Statement
from fairlead.errors import AlreadyExists, NotFound
from fairlead.kube.preemption import gang_victims
from fairlead.runtime.virtual import VirtualClock, VirtualRuntime
from tests.support.fuzz.gangs import Doc, GangCluster, shared
from tests.support.real.gang_contenders import our_scheduler

Facts = dict[str, Any]
_KINDS = Registry()
PLACES = ("nodes ", "racks ")
_AT_REST = 8.0
"""Virtual seconds after which nothing is expected to change."""


class Server(Protocol):
    """Where worlds are played."""

    async def perform(self, write: Write) -> Doc: ...

    async def all(self, kind: Kind) -> Iterable[Doc]: ...

    async def settle(self, worlds: Sequence[GangCluster]) -> None: ...


class Live:
    """A real API server, with somebody who schedules."""

    def __init__(self, api: KubeApi, quiet: float) -> None:
        self._api = api
        self._quiet = quiet

    async def perform(self, write: Write) -> Doc:
        return await self._api.perform(write)

    async def all(self, kind: Kind) -> Iterable[Doc]:
        return (await self._api.list(kind)).items

    async def settle(self, worlds: Sequence[GangCluster]) -> None:
        """Wait until nothing has moved for a while."""
        before, quiet = await self._places(), 0.0
        while quiet < self._quiet:
            await asyncio.sleep(0.5)
            now = await self._places()
            before, quiet = now, quiet + 0.5 if now == before else 0.0

    async def _places(self) -> dict[str, str]:
        return {doc["metadata"]["uid"]: doc["spec"].get("nodeName", "") for doc in await self.all(kinds.POD)}


class Virtual:
    """A Store and our scheduler, on virtual time. It sees groups as a server of 1.36 shows them."""

    def __init__(self, seed: int) -> None:
        clock = VirtualClock(1_800_000_000.0)
        self._store = Store(clock=clock, rng=Random(seed))
        scheduler = our_scheduler(seed, unschedulable_limit=0.5)
        scheduler.watches = [watch for watch in scheduler.watches if watch.kind is not kinds.POD_GROUP_BETA]
        self._runtime = VirtualRuntime(self._store, [scheduler], clock=clock)

    async def perform(self, write: Write) -> Doc:
        return self._store.perform(write)

    async def all(self, kind: Kind) -> Iterable[Doc]:
        return self._store.list(kind)

    async def settle(self, worlds: Sequence[GangCluster]) -> None:
        self._runtime.run(self._runtime.now + _AT_REST)


async def play(server: Server, worlds: Sequence[GangCluster]) -> dict[int, Facts]:
    """Play worlds side by side; of each what shows after every step."""
    await prepare(server)
    players = [_Player(server, world) for world in worlds]
    for player in players:
        await player.furnish()
    await server.settle(worlds)
    for number in range(max(len(world.steps) for world in worlds)):
        await asyncio.gather(*(player.step(number) for player in players))
        await server.settle(worlds)
        pods, groups = await server.all(kinds.POD), await server.all(kinds.POD_GROUP)
        for player in players:
            player.look(number, pods, groups)
    for player in players:
        await player.clear()
    return {player.world.seed: player.facts for player in players}


Played = list[dict[int, Facts]]


async def played_often(worlds: Sequence[GangCluster], seeds: Iterable[int]) -> tuple[Played, Played]:
    """What our scheduler makes of worlds with one seed and another; and what it would if it made room as 1.36 does."""
    ours, theirs = [], []
    for seed in seeds:
        ours.append(await _played(worlds, seed))
        with (
            patch.object(gang_victims, "_select", _placing_anew),
            patch.object(Assembly, "_move_to", lambda *_: None),  # promises are those of the attempt that failed
        ):
            theirs.append(await _played(worlds, seed))
    return ours, theirs


async def _played(worlds: Sequence[GangCluster], seed: int) -> dict[int, Facts]:
    return await play(Virtual(seed), worlds)


def _placing_anew(
    case: GangCase, potential: list[Unit], protected: tuple[Considered, ...], statement: Statement
) -> PodGroupPostFilterResult:
    """Whom to evict: the gang is placed anew for each that comes back."""
    for unit in potential:
        _move(unit, statement.evict)
    if isinstance(status := case.fits(), Status):
        return PodGroupPostFilterResult(status)
    ordered = gang_victims.by_importance(potential, case.now)
    violating, others = gang_victims._split(ordered, case.cluster)
    victims = []
    for unit in [*violating, *others]:
        _move(unit, statement.assign)
        if isinstance(case.fits(), Status):
            _move(unit, statement.evict)
            victims.append(unit)
    return PodGroupPostFilterResult(SUCCESS, tuple(pod for unit in victims for pod, _ in unit.pods))


def _move(unit: Unit, way: Callable[[Pod, int], None]) -> None:
    for pod, row in unit.pods:
        way(pod, row)


async def prepare(server: Server) -> None:
    """What all worlds have, as far as it is not there; a gang may have cost somebody who is in nobody's way."""
    for doc in shared():
        with suppress(AlreadyExists):
            await _create(server, doc)


class _Player:
    def __init__(self, server: Server, world: GangCluster) -> None:
        self.world = world
        self.facts: Facts = {}
        self._server = server
        self._there: set[str] = set()
        self._waiting: set[str] = set()
        self._ended = False
        self._made: Counter[str] = Counter()
        """How many members each group has had."""

    async def furnish(self) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.world.namespace}}
        for doc in [namespace, *self.world.nodes, *self.world.existing]:
            await _create(self._server, doc)
        self._there = {doc["metadata"]["name"] for doc in self.world.existing if doc["kind"] == "Pod"}

    async def step(self, number: int) -> None:
        if number >= len(self.world.steps):
            return
        step = self.world.steps[number]
        for doc in step.create:
            await _create(self._server, doc)
        for name in step.delete:
            await self._delete(kinds.POD, name)
        for name in step.opens:
            opened = {"spec": {"schedulingGates": None}}
            with suppress(NotFound):
                await self._server.perform(Write(Verb.PATCH, kinds.POD, self.world.namespace, name, opened))

    async def _delete(self, kind: Kind, name: str) -> None:
        namespace = self.world.namespace if kind.namespaced else ""
        with suppress(NotFound):
            await self._server.perform(Write(Verb.DELETE, kind, namespace, name, {"gracePeriodSeconds": 0}))

    async def clear(self) -> None:
        for doc in await self._server.all(kinds.POD):
            if doc["metadata"]["namespace"] == self.world.namespace:
                await self._delete(kinds.POD, doc["metadata"]["name"])
        for doc in self.world.nodes:
            await self._delete(kinds.NODE, doc["metadata"]["name"])

    # ---- eyes ----

    def look(self, number: int, pods: Iterable[Doc], groups: Iterable[Doc]) -> None:
        if number >= len(self.world.steps) or self._ended:
            return
        step = self.world.steps[number]
        here = [doc for doc in pods if doc["metadata"]["namespace"] == self.world.namespace]
        places = {doc["metadata"]["name"] for doc in here if doc["spec"].get("nodeName")}
        evicted = self._there - places - set(step.delete)
        new = {_group_of(doc) for doc in step.create if doc["kind"] == "Pod"}
        others = self._waiting - new
        racing = len(step.delete) > 1 and bool(self._waiting)  # whose room is seen first decides where others go
        if (evicted and others) or (step.delete and len(self._waiting) > 1):
            self._ended = True
            return
        self._ended = racing
        self._there = places
        self._made += Counter(_group_of(doc) for doc in step.create if doc["kind"] == "Pod")
        self._waiting = {_group_of(doc) for doc in here if not doc["spec"].get("nodeName") and not _gated(doc)}
        known = {doc["metadata"]["name"]: doc for doc in groups if doc["metadata"]["namespace"] == self.world.namespace}
        # A condition stays True: whether a group got room before its members went depends on who is faster.
        fleeting = (*PLACES, *(f"condition {name.split('-')[0]}" for name in step.delete)) if racing else ()
        seen = self._seen(here, known).items()
        self.facts |= {f"{number} {name}": value for name, value in seen if not name.startswith(fleeting)}

    def _seen(self, pods: Sequence[Doc], groups: Mapping[str, Doc]) -> Facts:
        facts: Facts = {"left": sorted(name for doc in pods if (name := doc["metadata"]["name"]).startswith("e"))}
        racks = {doc["metadata"]["name"]: doc["metadata"]["labels"].get(self.world.key) for doc in self.world.nodes}
        for role in sorted({_role_of(doc) for doc in pods} - {""}):
            mine = [doc for doc in pods if _role_of(doc) == role]
            placed = Counter(node for doc in mine if (node := doc["spec"].get("nodeName")))
            facts[f"bound {role}"] = placed.total()
            facts[f"nodes {role}"] = dict(sorted(placed.items()))
            waiting = {_message(doc) for doc in mine if not doc["spec"].get("nodeName")}
            if self._says_the_same(groups.get(_group_of(mine[0])), pods):
                facts[f"told {role}"] = waiting
        for name, group in groups.items():
            if not self._shrank(group, pods):
                facts[f"condition {name}"] = _scheduled(group)
            if _topology_key(group) == self.world.key:
                used = {
                    racks[doc["spec"]["nodeName"]]
                    for doc in pods
                    if _group_of(doc) == name and doc["spec"].get("nodeName")
                }
                facts[f"racks {name}"] = used
        return facts

    def _says_the_same(self, group: Doc | None, pods: Sequence[Doc]) -> bool:
        """Members hear what one of the racks had to say, and which one is left to chance."""
        if group is not None and self._shrank(group, pods):
            return False
        if group is None or not _topology_key(group):
            return True
        racks = {doc["metadata"]["labels"].get(_topology_key(group)) for doc in self.world.nodes} - {None}
        name = group["metadata"]["name"]
        return len(racks) < 2 or any(_group_of(doc) == name and doc["spec"].get("nodeName") for doc in pods)

    def _shrank(self, group: Doc, pods: Sequence[Doc]) -> bool:
        """Whether a gang had enough members once and has not now: the original goes on trying it by backoff, and we
        wait for members."""
        name = group["metadata"]["name"]
        needed = (group["spec"]["schedulingPolicy"].get("gang") or {}).get("minCount", 0)
        return self._made[name] >= needed > sum(1 for doc in pods if _group_of(doc) == name)


async def _create(server: Server, doc: Doc) -> None:
    kind = _KINDS.by_kind(doc["apiVersion"], doc["kind"])
    assert kind is not None
    namespace, name = doc["metadata"].get("namespace", ""), doc["metadata"]["name"]
    await server.perform(Write(Verb.CREATE, kind, namespace, name, doc))
    if "status" in doc and kind is not kinds.NODE:
        body = {"status": doc["status"]}
        await server.perform(Write(Verb.PATCH, kind, namespace, name, body, subresource="status"))


def _group_of(doc: Doc) -> str:
    """Pods without a group go by the beginning of their name."""
    group: str = (doc["spec"].get("schedulingGroup") or {}).get("podGroupName") or doc["metadata"]["name"].split("-")[0]
    return group


def _role_of(doc: Doc) -> str:
    role: str = (doc["metadata"].get("labels") or {}).get("role", "")
    return role


def _gated(doc: Doc) -> bool:
    return bool(doc["spec"].get("schedulingGates"))


def _topology_key(group: Doc) -> str:
    wanted = (group["spec"].get("schedulingConstraints") or {}).get("topology") or ()
    return str(wanted[0]["key"]) if wanted else ""


def _message(doc: Doc) -> str:
    conditions = doc.get("status", {}).get("conditions", ())
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


def _scheduled(doc: Doc) -> tuple[str, ...]:
    for condition in doc.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodGroupScheduled":
            return condition["status"], condition["reason"], condition.get("message", "")
    return ()
