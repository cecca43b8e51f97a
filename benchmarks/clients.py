"""What clients of a running cluster meet: how soon it is ready, apply and defined kinds, and many watchers at once.

The watchers are in a process of their own, over loopback HTTPS, and every event must reach every one of them: the row
counts what arrived, and the bar is all of it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection

import aiohttp

from benchmarks.api import RUNS, new_store
from benchmarks.row import Row
from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.server import Server
from fairlead.core.model.flow import Doc, PatchType, Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT

APPLIES = CUSTOM = 2_000
WATCHERS, EVENTS_PER_SECOND, SECONDS = 100, 100, 30
READY_NODES = 100
PATIENCE = 30.0


def bench_ready() -> Iterable[Row]:
    """From the command to the line that says `ready`."""
    value = statistics.median(_seconds_until_ready() for _ in range(RUNS))
    note = "fairlead up: process started to cluster ready"
    yield Row("up.ready", value, "s", 2, nodes=READY_NODES, note=note, higher_is_better=False)


def _seconds_until_ready() -> float:
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        command = [sys.executable, "-m", "fairlead", "up", "--nodes", str(READY_NODES)]
        with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as up:
            assert up.stdout is not None
            try:
                line = up.stdout.readline()
                seconds = time.perf_counter() - began
                if not line.startswith("ready"):
                    raise AssertionError(f"fairlead up said {line!r}")
            finally:
                up.terminate()
        return seconds


def _deployment(name: str, image: str) -> Doc:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def bench_apply() -> Iterable[Row]:
    """Half of them create a Deployment, half change its image."""
    value = statistics.median(_applied() for _ in range(RUNS))
    yield Row("api.apply", value, "applies/s", 500, note="Deployments: half create, half change the image")


def _applied() -> float:
    store, params = new_store(), {"fieldManager": "bench"}
    writes = [
        Write(
            Verb.PATCH,
            DEPLOYMENT,
            "default",
            f"d-{number}",
            _deployment(f"d-{number}", image),
            patch_type=PatchType.APPLY,
            params=params,
        )
        for image in ("example.com/app:1", "example.com/app:2")
        for number in range(APPLIES // 2)
    ]
    began = time.perf_counter()
    for write in writes:
        store.perform(write)
    return len(writes) / (time.perf_counter() - began)


def bench_custom_creates() -> Iterable[Row]:
    value = statistics.median(_custom_created() for _ in range(RUNS))
    yield Row("api.creates.custom", value, "objects/s", 1_000, note="schema, defaults, pruning and one CEL rule each")


def _custom_created() -> float:
    properties = {
        "size": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "default": 10},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    rule = {"rule": "self.size <= self.limit", "message": "too large"}
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": [rule]}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    body = {
        "spec": {
            "group": "bench.example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        }
    }
    store = new_store()
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", "things.bench.example.com", body))
    kind = store.registry.by_resource("bench.example.com", "v1", "things")
    assert kind is not None
    began = time.perf_counter()
    for number in range(CUSTOM):
        thing = {"metadata": {"name": f"t-{number}"}, "spec": {"size": number % 10 + 1, "tags": ["a", "b"]}}
        store.perform(Write(Verb.CREATE, kind, "default", f"t-{number}", thing))
    return CUSTOM / (time.perf_counter() - began)


def bench_watchers() -> Iterable[Row]:
    arrived, lag = asyncio.run(_watched_by_many())
    wanted = WATCHERS * EVENTS_PER_SECOND * SECONDS
    note = f"{WATCHERS} watchers, {EVENTS_PER_SECOND} events/s for {SECONDS} s, HTTPS; the last came {lag:.2f} s late"
    yield Row("api.watchers", arrived, "events", wanted, note=note)


async def _watched_by_many() -> tuple[int, float]:
    """How many events arrived, and how long after the last was written the last arrived."""
    credentials, store = Credentials.generate(now=time.time()), new_store()
    server = Server(store, token=credentials.token, at=Endpoint(tls=credentials.tls()))
    await server.start()
    ours, theirs = multiprocessing.Pipe()
    client = multiprocessing.get_context("spawn").Process(target=_watch_all, args=(server.url, credentials, theirs))
    client.start()
    try:
        await asyncio.to_thread(ours.recv)
        store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", "c", {"data": {"n": ""}}))
        began = time.perf_counter()
        for number in range(EVENTS_PER_SECOND * SECONDS - 1):
            store.perform(Write(Verb.PATCH, CONFIG_MAP, "default", "c", {"data": {"n": str(number)}}))
            await asyncio.sleep(max(0.0, began + (number + 1) / EVENTS_PER_SECOND - time.perf_counter()))
        ended = time.time()
        arrived, last = await asyncio.to_thread(ours.recv)
        return arrived, max(0.0, last - ended)
    finally:
        await asyncio.to_thread(client.join)
        await server.stop()


def _watch_all(url: str, credentials: Credentials, done: Connection) -> None:
    done.send(asyncio.run(_watch(url, credentials, done)))


async def _watch(url: str, credentials: Credentials, done: Connection) -> tuple[int, float]:
    tls = ssl.create_default_context(cadata=credentials.ca.decode())
    headers = {"Authorization": f"Bearer {credentials.token}"}
    counts = [0] * WATCHERS
    latest = [0.0] * WATCHERS
    ready = asyncio.Semaphore(0)
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        tasks = [asyncio.create_task(_follow(session, url, n, counts, latest, ready)) for n in range(WATCHERS)]
        for _ in tasks:
            await ready.acquire()
        done.send("watching")
        await asyncio.wait(tasks, timeout=SECONDS + PATIENCE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return sum(counts), max(latest)


async def _follow(
    session: aiohttp.ClientSession,
    url: str,
    number: int,
    counts: list[int],
    latest: list[float],
    ready: asyncio.Semaphore,
) -> None:
    path = f"{url}/api/v1/namespaces/default/configmaps?watch=true"
    async with session.get(path, timeout=aiohttp.ClientTimeout(total=None)) as response:
        ready.release()
        async for line in response.content:
            counts[number] += line.startswith(b'{"type":"')
            latest[number] = time.time()
            if counts[number] == EVENTS_PER_SECOND * SECONDS:
                return
