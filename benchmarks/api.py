"""The embedded API: creates and watch events per second, start-up from a journal, memory of a whole cluster.

Rates are the median of a few short runs: on a shared machine the best one may be luck. Memory and start-up are those
of a fresh process that does nothing else, by its own high-water mark: getrusage would also count the peak of the
process that started it. Memory is the Store's alone; a scheduler and controllers in the same process come on top.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import resource
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
import orjson

from benchmarks.row import Row
from fairlead.client.port import Query
from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.server import Server
from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import CUSTOM_RESOURCE_DEFINITION, NODE, POD

RUNS = 3
CREATES = 5_000
HTTPS_CREATES, CONNECTIONS = 2_000, 16
NODES, PODS = 5_000, 50_000
BATCH = 100


def pod(name: str, node: str = "", *, distinct: bool = True) -> Doc:
    """A pod like others. Its spec is its own unless set otherwise: admission remembers specs that it found good, and
    a row that speaks of validation must not measure that memory."""
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    container: Doc = {"name": "main", "image": "registry.example/app:1.0", "resources": resources}
    if distinct:
        container["env"] = [{"name": "NAME", "value": name}]
    spec: Doc = {"containers": [container]}
    if node:
        spec["nodeName"] = node
    labels = {"app": "web", "tier": "front", "pod-template-hash": "5d4c8b7f9"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def node(name: str, zone: int) -> Doc:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": f"zone-{zone}",
        "topology.kubernetes.io/region": "region-1",
    }
    capacity = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def new_store(journal: Journal | None = None) -> Store:
    return Store(clock=time.time, rng=random.Random(1), journal=journal)


def _median(run: Callable[[], float]) -> float:
    return statistics.median(run() for _ in range(RUNS))


def _create_all(store: Store, count: int, batch: int = 1, *, distinct: bool = True) -> float:
    """Creates per second."""
    bodies = [pod(f"pod-{number}", distinct=distinct) for number in range(count)]
    start = time.perf_counter()
    for first in range(0, count, batch):
        with store.batch():
            for body in bodies[first : first + batch]:
                store.perform(Write(Verb.CREATE, POD, "default", "", body=body))
    return count / (time.perf_counter() - start)


def bench_creates_in_memory() -> Iterable[Row]:
    value = _median(lambda: _create_all(new_store(), CREATES))
    note = "distinct specs, each defaulted and validated"
    yield Row("api.creates.memory", value, "pods/s", 5_000, pods=CREATES, note=note)
    value = _median(lambda: _create_all(new_store(), CREATES, distinct=False))
    note = "equal specs: validated once and remembered"
    yield Row("api.creates.memory.equal", value, "pods/s", 5_000, pods=CREATES, note=note)


_TEXT = {"type": "string", "maxLength": 63}
_PORT = {"type": "object", "properties": {"name": _TEXT, "port": {"type": "integer"}}}
_FIELDS = {
    "replicas": {"type": "integer"}, "least": {"type": "integer"}, "most": {"type": "integer"}, "name": _TEXT,
    "mode": _TEXT, "note": _TEXT, "tags": {"type": "array", "maxItems": 10, "items": _TEXT},
    "ports": {"type": "array", "maxItems": 10, "items": _PORT},
}  # fmt: skip
_THING = {
    "replicas": 3,
    "least": 1,
    "most": 9,
    "name": "abc",
    "mode": "Auto",
    "tags": ["a", "b", "c"],
    "ports": [{"name": f"p{at}", "port": 80 + at} for at in range(6)],
}
_TEN_RULES = (
    "self.replicas >= 0", "self.replicas <= 100", "self.least <= self.replicas", "self.replicas <= self.most",
    "self.name.size() > 0", "self.name.startsWith('a')", "self.mode in ['Auto', 'Off']",
    "!has(self.note) || self.note.size() < 100", "self.tags.size() <= 10", "self.mode != 'Off' || self.replicas == 0",
)  # fmt: skip
_LOOPS = (
    "self.ports.all(p, p.port > 0 && p.port < 65536)", "self.ports.all(p, self.ports.exists_one(q, q.name == p.name))",
    "self.tags.all(t, t.matches('^[a-z]+$'))", "self.ports.map(p, p.port).sum() > 0",
)  # fmt: skip


def bench_creates_with_rules() -> Iterable[Row]:
    """Objects of a defined kind with rules, without and with loops."""
    for name, rules in (("api.creates.rules", _TEN_RULES), ("api.creates.rules.loops", _LOOPS)):
        value = _median(lambda rules=rules: _ruled_creates(rules))
        yield Row(name, value, "objects/s", 2_000, note=f"{len(rules)} rules of their definition")


def _ruled_creates(rules: Iterable[str]) -> float:
    spec = {"type": "object", "properties": _FIELDS, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "things", "kind": "Thing"}
    body = {"spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}}
    store = new_store()
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", "things.example.com", body))
    kind = store.registry.by_resource("example.com", "v1", "things")
    assert kind is not None
    start = time.perf_counter()
    for at in range(CREATES):
        store.perform(Write(Verb.CREATE, kind, "default", f"thing-{at}", {"spec": _THING}))
    return CREATES / (time.perf_counter() - start)


def bench_creates_with_journal() -> Iterable[Row]:
    for batch, note in ((1, "one transaction each"), (BATCH, f"{BATCH} to a transaction")):
        value = _median(lambda batch=batch: _journalled_creates(batch))
        name = "api.creates.journal" if batch == 1 else "api.creates.journal.batched"
        yield Row(name, value, "pods/s", 2_000, pods=CREATES, note=note)


def _journalled_creates(batch: int) -> float:
    with tempfile.TemporaryDirectory() as directory:
        journal = Journal(directory)
        try:
            return _create_all(new_store(journal), CREATES, batch)
        finally:
            journal.close()


def bench_watch_events() -> Iterable[Row]:
    """One watcher takes in, decoded, what another writes: only the watcher's time counts."""
    yield Row("api.watch", _median(_watched), "events/s", 10_000, pods=CREATES, note="delivered and decoded")


def _watched() -> float:
    store = new_store()
    start_version = str(store.resource_version)
    _create_all(store, CREATES)
    start = time.perf_counter()
    subscription = store.subscribe(POD, Query(resource_version=start_version), buffer=CREATES)
    seen = [orjson.loads(record.raw) for _, record, _ in subscription.drain()]
    return len(seen) / (time.perf_counter() - start)


def bench_creates_over_https() -> Iterable[Row]:
    """A client in a process of its own, as clients are."""
    value = _median(lambda: asyncio.run(_served_creates()))
    note = f"{CONNECTIONS} connections, client in another process"
    yield Row("api.creates.https", value, "pods/s", 800, pods=HTTPS_CREATES, note=note)


async def _served_creates() -> float:
    credentials = Credentials.generate(now=time.time())
    server = Server(new_store(), token=credentials.token, at=Endpoint(tls=credentials.tls()))
    await server.start()
    ours, theirs = multiprocessing.Pipe()
    client = multiprocessing.get_context("spawn").Process(target=_client, args=(server.url, credentials, theirs))
    client.start()
    try:
        seconds: float = await asyncio.to_thread(ours.recv)
        return HTTPS_CREATES / seconds
    finally:
        await asyncio.to_thread(client.join)
        await server.stop()


def _client(url: str, credentials: Credentials, done: Connection) -> None:
    done.send(asyncio.run(_post_all(url, credentials)))


async def _post_all(url: str, credentials: Credentials) -> float:
    tls = ssl.create_default_context(cadata=credentials.ca.decode())
    bodies = iter([orjson.dumps(pod(f"pod-{number}")) for number in range(HTTPS_CREATES)])
    headers = {"Authorization": f"Bearer {credentials.token}", "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(ssl=tls, limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        start = time.perf_counter()
        await asyncio.gather(*(_post(session, url, bodies) for _ in range(CONNECTIONS)))
        return time.perf_counter() - start


async def _post(session: aiohttp.ClientSession, url: str, bodies: Iterator[bytes]) -> None:
    for body in bodies:
        async with session.post(f"{url}/api/v1/namespaces/default/pods", data=body) as response:
            response.raise_for_status()
            await response.read()


def bench_start_from_journal() -> Iterable[Row]:
    """A cluster of full size: created by one fresh process, opened from its journal by another."""
    with tempfile.TemporaryDirectory() as directory:
        _, created = _in_fresh_process(_fill, directory)
        size = sum(file.stat().st_size for file in Path(directory).iterdir()) / 1e6
        seconds, opened = _in_fresh_process(_open_cluster, directory)
    yield Row(
        "api.start", seconds, "s", 10, nodes=NODES, pods=PODS, note=f"{size:.0f} MB on disk", higher_is_better=False
    )
    for name, megabytes, note in (
        ("api.memory.opened", opened, "Store alone, peak: opened from the journal, then every object listed"),
        ("api.memory.created", created, "Store alone, peak: every object created, with watch history"),
    ):
        yield Row(name, megabytes, "MB", 600, nodes=NODES, pods=PODS, note=note, higher_is_better=False)


def _in_fresh_process(work: Callable[[str], float], directory: str) -> tuple[float, float]:
    """What the work answers, and the most memory (MB) that its process held."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_report, args=(work, directory, theirs))
    process.start()
    theirs.close()
    result: tuple[float, float] = ours.recv()
    process.join()
    return result


def _report(work: Callable[[str], float], directory: str, done: Connection) -> None:
    done.send((work(directory), _peak_megabytes()))


def _peak_megabytes() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _fill(directory: str) -> float:
    start = time.perf_counter()
    store = new_store(Journal(directory))
    for first in range(0, NODES, BATCH):
        with store.batch():
            for n in range(first, first + BATCH):
                store.perform(Write(Verb.CREATE, NODE, "", "", body=node(f"node-{n}", n % 3)))
    for first in range(0, PODS, BATCH):
        with store.batch():
            for n in range(first, first + BATCH):
                body = pod(f"pod-{n}", f"node-{n % NODES}")
                store.perform(Write(Verb.CREATE, POD, "default", "", body=body))
    store.close()
    return time.perf_counter() - start


def _open_cluster(directory: str) -> float:
    """Seconds until the Store answers; then everything is read once, for the memory that this takes."""
    start = time.perf_counter()
    store = new_store(Journal(directory))
    seconds = time.perf_counter() - start
    found = sum(1 for _ in store.list(NODE)), sum(1 for _ in store.list(POD))
    if found != (NODES, PODS):
        raise AssertionError(f"the journal gave back {found} nodes and pods")
    store.close()
    return seconds
