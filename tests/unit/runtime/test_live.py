"""The live runtime in both worlds: a Store reached directly, and the same Store behind the port."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fairlead.client.port import EVERYTHING, Page, Query
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, NAMESPACE, Kind
from fairlead.errors import ApiError, NotFound
from fairlead.runtime.live import Clock, LiveRuntime, RuntimeLimits, Stepped
from fairlead.runtime.worlds import Embedded, Remote, World
from tests.support.patience import until


@pytest.fixture
def store() -> Store:
    return Store(clock=time.time, rng=random.Random(1))


@pytest.fixture(params=["embedded", "remote"])
def world(request: pytest.FixtureRequest, store: Store) -> World:
    return Embedded(store) if request.param == "embedded" else Remote(StoreApi(store))


class Actor:
    """A controller made of a function."""

    def __init__(
        self,
        act: Callable[[float, Sequence[Change], Sequence[Reply]], list[Write]],
        *,
        kinds: Sequence[Kind] = (CONFIG_MAP,),
    ) -> None:
        self.name = "actor"
        self.watches = [Watch(kind) for kind in kinds]
        self.act = act
        self.wake: float | None = None
        self.steps = 0

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        self.steps += 1
        return self.act(now, changes, replies)

    def wake_at(self) -> float | None:
        return self.wake


def config(name: str, value: str = "") -> Doc:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}


def create(name: str, value: str = "") -> Write:
    return Write(Verb.CREATE, CONFIG_MAP, "default", name, config(name, value))


def update(name: str, value: str) -> Write:
    return Write(Verb.UPDATE, CONFIG_MAP, "default", name, config(name, value))


@asynccontextmanager
async def running(world: World, *actors: Actor, **options: Any) -> AsyncIterator[LiveRuntime]:
    runtime = LiveRuntime(world, actors, **options)
    task = asyncio.ensure_future(runtime.run_until_stopped())
    try:
        yield runtime
        runtime.stop()
        async with asyncio.timeout(10):
            await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Heard:
    """Collects what a test waits for; set from a worker thread, awaited on the loop."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self._loop = asyncio.get_running_loop()
        self._more = asyncio.Event()

    def add(self, *things: Any) -> None:
        self.things += things
        self._loop.call_soon_threadsafe(self._more.set)

    async def until(self, condition: Callable[[list[Any]], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition(self.things):
                await self._more.wait()
                self._more.clear()


async def test_the_first_step_brings_all_that_is_watched(world: World, store: Store) -> None:
    store.perform(create("a"))
    store.perform(create("b"))
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add([(c.happened, c.kind, c.doc["metadata"]["name"]) for c in changes])
        return []

    async with running(world, Actor(act, kinds=(CONFIG_MAP, NAMESPACE))):
        await heard.until(bool)
    first = heard.things[0]
    assert {(kind, name) for _, kind, name in first} >= {
        (CONFIG_MAP, "a"),
        (CONFIG_MAP, "b"),
        (NAMESPACE, "default"),
        (NAMESPACE, "kube-system"),
    }
    assert {happened for happened, _, _ in first} == {Happened.ADDED}


async def test_every_write_gets_one_reply_and_its_change_comes_back(world: World) -> None:
    heard = Heard()
    asked = [create(f"c{i}") for i in range(100)]

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(*(("change", c.doc["metadata"]["name"]) for c in changes))
        heard.add(*(("reply", r.write.name) for r in replies if r.doc and not r.error))
        return asked if actor.steps == 1 else []

    actor = Actor(act)
    async with running(world, actor):
        await heard.until(lambda things: len(things) >= 200)
    assert sorted(heard.things) == sorted([(what, w.name) for w in asked for what in ("change", "reply")])


async def test_writes_to_one_object_are_performed_in_their_order(world: World, store: Store) -> None:
    heard = Heard()
    asked = [create("x"), create("y"), *(update(name, str(i)) for i in range(20) for name in "xy")]

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(*replies)
        return asked if actor.steps == 1 else []

    actor = Actor(act)
    async with running(world, actor):
        await heard.until(lambda things: len(things) == len(asked))
    assert [r.error for r in heard.things if r.error] == []
    for name in "xy":
        order = [r.write for r in heard.things if r.write.name == name]
        assert order == [w for w in asked if w.name == name]
        assert (store.get(CONFIG_MAP, "default", name) or {})["data"] == {"value": "19"}


async def test_a_refused_write_is_a_reply_with_the_error(world: World) -> None:
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(*replies)
        return [Write(Verb.DELETE, CONFIG_MAP, "default", "nobody", note="mine")] if actor.steps == 1 else []

    actor = Actor(act)
    async with running(world, actor):
        await heard.until(bool)
    assert isinstance(heard.things[0].error, NotFound)
    assert heard.things[0].write.note == "mine"


async def test_a_step_that_raises_is_logged_and_the_next_goes_on(
    world: World, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        names = [c.doc["metadata"]["name"] for c in changes]
        heard.add(*names)
        if "bad" in names:
            raise ValueError("cannot read this one")
        return []

    with caplog.at_level(logging.ERROR, "fairlead.runtime"):
        async with running(world, Actor(act)):
            store.perform(create("bad"))
            await heard.until(lambda things: "bad" in things)
            store.perform(create("good"))
            await heard.until(lambda things: "good" in things)
    (record,) = caplog.records
    assert record.__dict__["controller"] == "actor"
    assert "cannot read this one" in caplog.text


async def test_a_controller_is_woken_when_it_said_so(world: World) -> None:
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        actor.wake = now + 0.01 if actor.steps < 5 else None
        heard.add(now)
        return []

    actor = Actor(act)
    async with running(world, actor):
        await heard.until(lambda things: len(things) == 5)
    assert heard.things == sorted(heard.things)
    assert heard.things[-1] - heard.things[0] >= 0.04


async def test_a_controller_with_more_to_do_is_called_again_at_once(world: World) -> None:
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        actor.wake = now if actor.steps < 50 else None
        heard.add(now)
        return []

    actor = Actor(act)
    async with running(world, actor):
        await heard.until(lambda things: len(things) == 50)


async def test_each_controller_has_one_thread_of_its_own_and_never_the_loops(world: World) -> None:
    heard = Heard()

    def actor(name: str) -> Actor:
        def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
            heard.add((name, threading.get_ident()))
            made.wake = now if made.steps < 5 else None
            return []

        made = Actor(act)
        return made

    async with running(world, actor("a"), actor("b")):
        await heard.until(lambda things: len(things) == 10)
    threads = set(heard.things)
    assert len(threads) == 2
    assert threading.get_ident() not in {thread for _, thread in threads}


async def test_stopping_finishes_the_writes_on_their_way(world: World, store: Store) -> None:
    stepped = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        stepped.add(1)
        return [create(f"c{i}") for i in range(500)] if actor.steps == 1 else []

    actor = Actor(act)
    async with running(world, actor):
        await stepped.until(bool)
    assert len(list(store.list(CONFIG_MAP, "default"))) == 500


async def test_a_step_that_never_ends_does_not_keep_the_runtime_from_stopping(world: World) -> None:
    entered, release = Heard(), threading.Event()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        entered.add(1)
        release.wait(20)
        return []

    try:
        async with running(world, Actor(act), limits=RuntimeLimits(stop_within=0.05)):
            await entered.until(bool)
    finally:
        release.set()


async def test_cancelling_leaves_no_task_behind(world: World) -> None:
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(1)
        actor.wake = now
        return [create(f"{actor.steps}-{i}") for i in range(10)]

    actor = Actor(act)
    runtime = LiveRuntime(world, [actor])
    task = asyncio.ensure_future(runtime.run_until_stopped())
    await heard.until(bool)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    gc.collect()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_telemetry_sees_every_step_and_every_reply(world: World) -> None:
    steps: list[Stepped] = []
    replies: list[tuple[str, Reply]] = []
    heard = Heard()

    def act(now: float, changes: Sequence[Change], got: Sequence[Reply]) -> list[Write]:
        heard.add(*got)
        return [create("a"), create("a")] if actor.steps == 1 else []

    actor = Actor(act)
    async with running(world, actor, on_step=steps.append, on_write=lambda name, reply: replies.append((name, reply))):
        await heard.until(lambda things: len(things) == 2)
    assert len(steps) == actor.steps
    assert (steps[0].controller, steps[0].writes, steps[0].failed) == ("actor", 2, False)
    assert [name for name, _ in replies] == ["actor", "actor"]
    assert [reply.error is None for _, reply in replies] == [True, False]


async def test_telemetry_that_fails_costs_no_write_and_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    def act(now: float, changes: Sequence[Change], got: Sequence[Reply]) -> list[Write]:
        heard.add(*got)
        return [create("a")] if actor.steps == 1 else []

    def fails(told: object) -> None:
        raise ValueError("no words for it")

    actor = Actor(act)
    async with running(world, actor, on_step=fails, on_turn=fails):
        await heard.until(lambda things: len(things) == 1)
    assert [reply.error for reply in heard.things] == [None]
    assert [record.message for record in caplog.records] == [
        "what a step of actor did could not be reported; this is logged once"
    ]


async def test_what_fails_for_one_object_is_reported_once_a_minute(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    class Stumbling(Reconciler[str]):
        name = "stumbling"
        watches = (Watch(CONFIG_MAP),)

        def observe(self, change: Change) -> None:
            self.queue.add(change.doc["metadata"]["name"])

        def visit(self, key: str, now: float) -> list[Write]:
            raise KeyError("spec")

    controller = Stumbling(store)
    store.perform(create("a"))
    runtime = LiveRuntime(Embedded(store), [controller])
    task = asyncio.ensure_future(runtime.run_until_stopped())
    await until(lambda: len(controller.errors) >= 3, "three errors")
    runtime.stop()
    await task
    assert [record.message for record in caplog.records] == [
        "stumbling failed over a and tries again: KeyError: 'spec'"
    ]


async def test_a_controller_reads_the_view_of_its_world(world: World, store: Store) -> None:
    store.perform(create("a", "1"))
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(world.view.get(CONFIG_MAP, "default", "a"), *world.view.list(CONFIG_MAP, "default"))
        return []

    async with running(world, Actor(act)):
        await heard.until(bool)
    assert [each["data"] for each in heard.things[:2]] == [{"value": "1"}] * 2


async def test_deleted_objects_come_as_deleted_with_their_last_state(world: World, store: Store) -> None:
    store.perform(create("a", "last"))
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(*changes)
        return []

    async with running(world, Actor(act)):
        await heard.until(bool)
        store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", "a"))
        await heard.until(lambda things: things[-1].happened is Happened.DELETED)
    assert heard.things[-1].doc["data"] == {"value": "last"}


async def test_a_store_without_room_fails_the_whole_turn(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies are given after the journal has spoken, so none of them may claim success."""
    from fairlead.errors import StorageFull

    class Full:
        def append(self, *_: Any) -> None:
            raise StorageFull("no space left")

    monkeypatch.setattr(store._commits, "_journal", Full())
    heard = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(*replies)
        return [create("a"), create("b")] if actor.steps == 1 else []

    actor = Actor(act)
    async with running(Embedded(store), actor):
        await heard.until(lambda things: len(things) == 2)
    assert all(isinstance(reply.error, StorageFull) for reply in heard.things)
    assert store.get(CONFIG_MAP, "default", "a") is None


class Slow:
    """An api that performs nothing until told, and counts how many are waiting."""

    def __init__(self, api: StoreApi) -> None:
        self._api, self.gate, self.waiting, self.most = api, asyncio.Event(), 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def perform(self, write: Write) -> Doc:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await self.gate.wait()
            if write.name == "broken":
                raise ZeroDivisionError("a defect")
            return await self._api.perform(write)
        finally:
            self.waiting -= 1


async def test_no_more_writes_are_on_their_way_than_allowed(store: Store) -> None:
    api, heard = Slow(StoreApi(store)), Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(*replies)
        return [create(f"c{i}") for i in range(30)] if actor.steps == 1 else []

    actor = Actor(act)
    # A quarter of the slots is for what is neither a bind nor a deletion nor an event.
    async with running(Remote(api), actor, limits=RuntimeLimits(in_flight=28)):  # type: ignore[arg-type]
        while api.waiting < 7:  # noqa: ASYNC110 (one line, and it takes no time)
            await asyncio.sleep(0)
        api.gate.set()
        await heard.until(lambda things: len(things) == 30)
    assert api.most == 7


async def test_a_defect_in_an_adapter_is_an_internal_error_to_the_controller(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    api, heard = Slow(StoreApi(store)), Heard()
    api.gate.set()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(*replies)
        return [create("broken")] if actor.steps == 1 else []

    actor = Actor(act)
    async with running(Remote(api), actor):  # type: ignore[arg-type]
        await heard.until(bool)
    assert isinstance(heard.things[0].error, ApiError)
    assert "a defect" in caplog.text


async def test_writes_that_do_not_end_are_given_up_when_stopping(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    api, heard = Slow(StoreApi(store)), Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add(1)
        return [create("a")]

    async with running(Remote(api), Actor(act), limits=RuntimeLimits(stop_within=0.02)):  # type: ignore[arg-type]
        await heard.until(bool)
    assert "1 writes given up" in caplog.text


def test_the_clock_shows_the_time_of_day_and_only_goes_forward() -> None:
    clock = Clock()
    assert abs(clock.now() - time.time()) < 5
    assert clock.now() <= clock.now()


async def test_a_watch_that_is_added_brings_all_its_objects_with_the_next_step(store: Store, world: World) -> None:
    store.perform(create("a"))
    seen = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        seen.add(sorted({change.doc["kind"] for change in changes}))
        if len(seen.things) == 1:
            actor.watches = [*actor.watches, Watch(NAMESPACE)]
        return []

    actor = Actor(act)
    async with running(world, actor):
        await seen.until(lambda steps: len(steps) > 1)
    assert seen.things[:2] == [["ConfigMap"], ["Namespace"]]


class Deaf(StoreApi):
    """A server that cannot list one kind."""

    async def list(self, kind: Kind, query: Query = EVERYTHING) -> Page:
        if kind is NAMESPACE:
            raise ApiError("conversion webhook failed")
        return await super().list(kind, query)


async def test_a_watch_that_cannot_be_had_does_not_stall_a_controller(store: Store) -> None:
    seen = Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        seen.add(len(changes))
        if len(seen.things) == 1:
            actor.watches = [*actor.watches, Watch(NAMESPACE, optional=True)]
        return []

    actor = Actor(act)
    async with running(Remote(Deaf(store)), actor, limits=RuntimeLimits(list_within=0.05)):
        await seen.until(lambda steps: len(steps) > 1)
        store.perform(create("later"))
        await seen.until(lambda steps: 1 in steps[1:])


class Counted(StoreApi):
    """Counts lists."""

    lists = 0

    async def list(self, kind: Kind, query: Query = EVERYTHING) -> Page:
        self.lists += 1
        return await super().list(kind, query)


async def test_who_stood_by_begins_with_what_it_knows_and_lists_nothing(store: Store) -> None:
    api = Counted(store)
    world, heard = Remote(api), Heard()

    def act(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        heard.add([(c.happened, c.doc["metadata"]["name"], c.doc.get("data")) for c in changes])
        return []

    actor = Actor(act)
    runtime = LiveRuntime(world, [actor])
    store.perform(create("before"))
    store.perform(create("gone"))
    news = asyncio.Event()
    world.follow(actor.watches, news.set)
    standing_by = asyncio.create_task(runtime.stand_by())
    async with asyncio.timeout(10):
        while not world.view.listed:
            await news.wait()
        store.perform(create("meanwhile"))
        store.perform(update("before", "new"))
        store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", "gone"))
        while world.view.get(CONFIG_MAP, "default", "gone"):
            news.clear()
            await news.wait()
    assert actor.steps == 0, "it acts only when it runs"
    lists, running_now = api.lists, asyncio.create_task(runtime.run_until_stopped(standing_by))
    store.perform(create("between"))
    await heard.until(lambda steps: any("between" in str(step) for step in steps))
    runtime.stop()
    await running_now
    assert api.lists == lists
    assert standing_by.done()
    told = [change for step in heard.things for change in step if change[1] != "kube-root-ca.crt"]
    assert told == [
        (Happened.ADDED, "before", {"value": "new"}),
        (Happened.ADDED, "meanwhile", {"value": ""}),
        (Happened.ADDED, "between", {"value": ""}),
    ]
