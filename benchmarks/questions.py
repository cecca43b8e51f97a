"""Questions to a busy scheduler: 100 explanations a second over HTTPS while 1,000 pods a second arrive.

The client is a process of its own. An answer counts only if the scheduler would have given exactly that one at some
moment between two steps, and the bar is all of them. The placing is compared with the same pods without questions.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import ssl
import time
from collections.abc import Iterable
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

import aiohttp

from benchmarks.api import new_store
from benchmarks.row import Row
from fairlead.assembly.schedulers import default_scheduler
from fairlead.cluster.server.asking import Asked
from fairlead.cluster.server.explaining import explanation_path
from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.server import Server
from fairlead.core.model.flow import Controller, Doc, Verb, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Embedded
from fairlead.testing.builders import node, pod

if TYPE_CHECKING:
    from fairlead.cluster.store.store import Store

NODES, PODS_PER_SECOND, QUESTIONS_PER_SECOND, SECONDS = 1_000, 1_000, 100, 30
PODS, QUESTIONS = PODS_PER_SECOND * SECONDS, QUESTIONS_PER_SECOND * SECONDS
AT_ONCE = 20
"""Pods that are created together, every 20 ms."""
ASKED_ABOUT = 500
"""One pod in so many is asked about, from its creation until the next one of them."""
KEPT = 3
"""How many of those pods are watched for what would be said of them: an answer may come a little late."""
PATIENCE = 60.0

Answer = tuple[str, int, Doc]


def bench_questions() -> Iterable[Row]:
    alone, asked = asyncio.run(_placed(asked=False)), asyncio.run(_placed(asked=True))
    rate = f"{QUESTIONS_PER_SECOND} explanations/s over HTTPS, {PODS_PER_SECOND} pods/s for {SECONDS} s"
    yield Row("explain.answers", asked.right_answers(), "answers", QUESTIONS, NODES, PODS, rate)
    slowed = 100 * (1 - asked.pods_per_second / alone.pods_per_second)
    costs = [f"{1e3 * one.mean_wait:.1f} ms and {1e6 * one.cpu / PODS:.0f} µs of CPU" for one in (alone, asked)]
    note = f"fewer pods/s; a pod waited and cost the scheduler {costs[0]}, with questions {costs[1]}"
    yield Row("explain.slowdown", slowed, "%", 20, NODES, PODS, note, higher_is_better=False)


class Placing:
    """One run: how fast pods were placed, and what would have been said of some of them between any two steps."""

    def __init__(self) -> None:
        self.scheduler = default_scheduler()
        self.done = asyncio.Event()
        self.answers: list[Answer] = []
        self.began = self.ended = self.cpu = 0.0
        self._loop = asyncio.get_running_loop()
        self._decisions = self.scheduler.decisions.reader()
        self._created: dict[str, float] = {}
        self._waits: list[float] = []
        self._asked_about: tuple[str, ...] = ()
        self._said: dict[str, list[Doc]] = {}

    @property
    def pods_per_second(self) -> float:
        return PODS / (self.ended - self.began)

    @property
    def mean_wait(self) -> float:
        return sum(self._waits) / len(self._waits)

    def create(self, store: Store, number: int) -> str:
        """A new pod; its name if it is one to be asked about."""
        name = f"pod-{number}"
        self._created[f"default/{name}"] = time.time()
        store.perform(Write(Verb.CREATE, POD, "default", name, pod(name).asks(cpu="100m", memory="128Mi").doc()))
        if number % ASKED_ABOUT:
            return ""
        self._asked_about = (*self._asked_about[1 - KEPT :], name)
        return name

    def after_step(self, controller: Controller) -> None:
        """On the scheduler's thread: count decisions, and note what would be said now."""
        for decision in self._decisions.read():
            if decision.result == "scheduled":
                self._waits.append(decision.at - self._created[decision.pod])
        if len(self._waits) == PODS and not self.ended:
            self.ended, self.cpu = time.perf_counter(), time.thread_time()
            self._loop.call_soon_threadsafe(self.done.set)
        for name in self._asked_about:
            explained = self.scheduler.explain("default", name)
            said = self._said.setdefault(name, [])
            if explained is not None and (not said or said[-1] != explained.to_document()):
                said.append(explained.to_document())

    def right_answers(self) -> int:
        """Answers that were true at some moment. A pod may be unknown until it was explained for the first time."""
        right, known = 0, set()
        for name, status, doc in self.answers:
            right += doc in self._said[name] if status == 200 else status == 404 and name not in known
            known |= {name} if status == 200 else set()
        return right


async def _placed(*, asked: bool) -> Placing:
    placing, store = Placing(), new_store()
    for number in range(NODES):
        body = node(f"node-{number}").offers(cpu="64", memory="256Gi").doc()
        store.perform(Write(Verb.CREATE, NODE, "", f"node-{number}", body))
    runtime = LiveRuntime(Embedded(store), [placing.scheduler], on_turn=placing.after_step)
    credentials, explainer = Credentials.generate(now=time.time()), partial(runtime.ask, placing.scheduler)
    server = Server(store, token=credentials.token, at=Endpoint(tls=credentials.tls()), asked=Asked([explainer]))
    await server.start()
    running = asyncio.create_task(runtime.run_until_stopped())
    ours, theirs = multiprocessing.Pipe()
    client = multiprocessing.get_context("spawn").Process(target=_ask_all, args=(server.url, credentials, theirs))
    if asked:
        client.start()
        await asyncio.to_thread(ours.recv)
    await _create_all(placing, store, ours)
    async with asyncio.timeout(PATIENCE):
        await placing.done.wait()
    if asked:
        placing.answers = await asyncio.to_thread(ours.recv)
        await asyncio.to_thread(client.join)
    runtime.stop()
    await running
    await server.stop()
    return placing


async def _create_all(placing: Placing, store: Store, client: Connection) -> None:
    placing.began = time.perf_counter()
    for first in range(0, PODS, AT_ONCE):
        with store.batch():
            names = [placing.create(store, number) for number in range(first, first + AT_ONCE)]
        for name in filter(None, names):
            client.send(name)
        due = placing.began + (first + AT_ONCE) / PODS_PER_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))


def _ask_all(url: str, credentials: Credentials, bench: Connection) -> None:
    bench.send(asyncio.run(_ask(url, credentials, bench)))


async def _ask(url: str, credentials: Credentials, bench: Connection) -> list[Answer]:
    """In the client's process: questions at their times, each on a task of its own, about the newest pod named."""
    tls = ssl.create_default_context(cadata=credentials.ca.decode())
    headers = {"Authorization": f"Bearer {credentials.token}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=0), headers=headers) as session:

        async def ask(name: str) -> Answer:
            async with session.get(url + explanation_path("default", name)) as response:
                return name, response.status, await response.json()

        bench.send("ready")
        name = await asyncio.to_thread(bench.recv)
        began, asking = time.perf_counter(), []
        for number in range(QUESTIONS):
            while bench.poll():
                name = bench.recv()
            asking.append(asyncio.create_task(ask(name)))
            await asyncio.sleep(max(0.0, began + (number + 1) / QUESTIONS_PER_SECOND - time.perf_counter()))
        return list(await asyncio.gather(*asking))
