"""Questions to a controller: answered on its own thread, between two steps, by both runtimes."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from functools import partial

import aiohttp
import pytest

from fairlead.assembly.presets import first_profile
from fairlead.cluster.server.asking import Asked
from fairlead.cluster.server.explaining import explanation_path
from fairlead.cluster.server.server import Server
from fairlead.cluster.store.store import Store
from fairlead.core.engine.explain.decisions import DecisionLog
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.model.figures import Decision
from fairlead.core.model.flow import Change, Controller, Doc, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.errors import Unreachable
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.virtual import VirtualRuntime
from fairlead.runtime.worlds import Embedded
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness


def store_of(*nodes: str) -> Store:
    store = Store(clock=time.time, rng=random.Random(1))
    for name in nodes:
        store.perform(Write(Verb.CREATE, NODE, "", name, body=node(name).doc()))
    return store


class Patient:
    """A controller that works until it is interrupted, and notes the threads on which it was used."""

    name = "patient"
    watches: Sequence[Watch] = ()

    def __init__(self) -> None:
        self.interrupted_by: Sequence[object] = ()
        self.working = threading.Event()
        self.threads: set[int] = set()

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        self.threads.add(threading.get_ident())
        self.working.set()
        end = time.monotonic() + 10
        while not self.interrupted_by and time.monotonic() < end:
            time.sleep(0.001)
        assert self.interrupted_by, "nobody asked"
        self.working.clear()
        return []

    def wake_at(self) -> float | None:
        return None

    def asked(self) -> bool:
        self.threads.add(threading.get_ident())
        return self.working.is_set()


async def test_a_question_ends_the_step_and_is_answered_on_the_controllers_thread() -> None:
    patient = Patient()
    runtime = LiveRuntime(Embedded(store_of()), [patient])
    running = asyncio.create_task(runtime.run_until_stopped())
    await asyncio.to_thread(patient.working.wait, 10)
    first, second = (asyncio.wrap_future(runtime.ask(patient, Patient.asked)) for _ in range(2))
    assert await asyncio.wait_for(first, 10) is False, "the step was over"
    assert await asyncio.wait_for(second, 10) is False
    assert len(patient.threads) == 1
    assert threading.get_ident() not in patient.threads
    assert not patient.interrupted_by
    runtime.stop()
    await running
    with pytest.raises(Unreachable, match="patient has been stopped"):
        runtime.ask(patient, Patient.asked).result()


async def test_what_a_question_raises_reaches_the_asker_and_the_next_is_answered() -> None:
    scheduler = Scheduler([first_profile()])
    runtime = LiveRuntime(Embedded(store_of()), [scheduler])
    assert runtime.ask(scheduler, lambda s: s.explain("default", "nobody")).result() is None, "before it runs"
    running = asyncio.create_task(runtime.run_until_stopped())
    await asyncio.sleep(0)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wrap_future(runtime.ask(scheduler, lambda _: 1 // 0))
    given_up = runtime.ask(scheduler, lambda _: time.sleep(0.01))
    given_up.cancel()
    assert await asyncio.wrap_future(runtime.ask(scheduler, lambda s: s.name)) == "scheduler"
    assert not scheduler.interrupted_by
    runtime.stop()
    await running


def test_the_virtual_runtime_answers_at_once() -> None:
    cluster = Harness(nodes=1)
    (scheduler,) = (one for one in cluster.runtime.controllers if isinstance(one, Scheduler))
    assert isinstance(cluster.runtime, VirtualRuntime)
    future = cluster.runtime.ask(scheduler, lambda s: s.explain("default", "nobody"))
    assert future.done()
    assert future.result() is None


def test_a_scheduler_that_is_asked_ends_its_step_after_one_attempt() -> None:
    scheduler = Scheduler([first_profile()])
    cluster = Harness(nodes=3, schedulers=[lambda _: scheduler])
    cluster.settle()
    binds: list[int] = []
    cluster.apply(*(pod(f"p-{i}") for i in range(5)))
    reader = scheduler.decisions.reader()
    scheduler.interrupted_by = ["a question"]
    step = scheduler.step

    def counted(now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        writes = step(now, changes, replies)
        binds.append(sum(write.subresource == "binding" for write in writes))
        return writes

    scheduler.step = counted  # type: ignore[method-assign]
    cluster.settle()
    assert len(cluster.bindings()) == 5
    assert binds[:5] == [1] * 5, "each step makes one attempt, whoever asks"
    assert len(reader.read()) == 5


def decided(at: int) -> Decision:
    return Decision(float(at), "default-scheduler", f"default/p-{at}", str(at), "scheduled")


def test_each_reader_of_decisions_has_a_cursor_of_its_own() -> None:
    log = DecisionLog()
    first, second = log.reader(), log.reader()
    log.append(decided(1))
    assert [one.at for one in first.read()] == [1]
    log.append(decided(2))
    assert [one.at for one in first.read()] == [2]
    assert [one.at for one in second.read()] == [1, 2]
    assert first.read() == second.read() == ()


def test_decisions_that_all_have_read_are_dropped_but_for_the_newest_thousand() -> None:
    log = DecisionLog()
    slow, fast = log.reader(), log.reader()
    for at in range(3_000):
        log.append(decided(at))
    assert len(fast.read()) == 3_000
    assert len(slow.read()) == 3_000, "what one reader has not read stays"
    assert [one.at for one in log.reader().read()] == list(range(2_000, 3_000)), "a new reader begins with the newest"


class Moments:
    """What a scheduler would have said of some pods, between any two of its steps, until so many are placed."""

    def __init__(self, names: Sequence[str], *, until: int) -> None:
        self.said: dict[str, list[Doc | None]] = {name: [None] for name in names}
        self.placed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._until = until

    def note(self, controller: Controller) -> None:
        assert isinstance(controller, Scheduler)
        decisions = controller.decisions.reader().read()
        if sum(decision.result == "scheduled" for decision in decisions) == self._until:
            self._loop.call_soon_threadsafe(self.placed.set)
        for name, said in self.said.items():
            explained = controller.explain("default", name)
            document = None if explained is None else explained.to_document()
            if document != said[-1]:
                said.append(document)


async def test_explanations_over_http_while_pods_are_placed_show_one_moment_each() -> None:
    names = [f"watched-{at}" for at in range(6)]
    store, moments = store_of(*(f"node-{at}" for at in range(20))), Moments(names, until=397)
    scheduler = Scheduler([first_profile()])
    runtime = LiveRuntime(Embedded(store), [scheduler], on_turn=moments.note)
    server = Server(store, token="t", asked=Asked([partial(runtime.ask, scheduler)]))
    await server.start()
    running = asyncio.create_task(runtime.run_until_stopped())
    done = asyncio.Event()
    answers: list[tuple[str, int, Doc]] = []

    async def hammer(client: aiohttp.ClientSession, start: int) -> None:
        at = start
        while not done.is_set():
            name, at = names[at % len(names)], at + 1
            async with client.get(server.url + explanation_path("default", name)) as response:
                answers.append((name, response.status, await response.json()))

    async with aiohttp.ClientSession(headers={"Authorization": "Bearer t"}) as client, asyncio.TaskGroup() as group:
        for start in range(3):
            group.create_task(hammer(client, start))
        for at in range(400):
            name = names[at // 70] if at % 70 == 0 else f"p-{at}"
            made = pod(name).asks(cpu="99") if at % 140 == 0 else pod(name).asks(cpu="100m")
            store.perform(Write(Verb.CREATE, POD, "default", name, body=made.doc()))
            if at % 20 == 0:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(30):
            await moments.placed.wait()
        done.set()
    await server.stop()
    runtime.stop()
    await running
    assert {status for _, status, _ in answers} == {200, 404}
    torn = [doc for name, status, doc in answers if status == 200 and doc not in moments.said[name]]
    assert torn == []
    assert {doc["verdict"] for _, status, doc in answers if status == 200} >= {"Scheduled", "Unschedulable"}
