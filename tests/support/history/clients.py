"""Writers and watchers of ConfigMaps, who record what they are answered; connections are cut under the watchers."""

from __future__ import annotations

import asyncio
import itertools
import random
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import orjson

from fairlead.client.sockets import PoolSockets
from tests.support.history.record import Read, Record, Session, State, Told, Tried, Wrote

MAPS = "/api/v1/namespaces/default/configmaps"
OURS, LABELS = "history", ("a", "b")
_LOST = (aiohttp.ClientError, TimeoutError, OSError)


def state_of(doc: Any) -> State:
    metadata = doc["metadata"]
    return State(int(metadata["resourceVersion"]), metadata["uid"], doc["data"]["k"], metadata["labels"]["l"])


class Clients:
    """Clients of a server that may be killed and started anew under the same or another address."""

    def __init__(self, seed: int, *, writers: int = 4, names: int = 12, cut_every: float = 0.5) -> None:
        self.record = Record()
        self._rng = random.Random(seed)
        self._writers, self._names, self._cut_every = writers, names, cut_every
        self._acknowledged: dict[str, int] = {}
        self._contents = itertools.count()
        self._open: list[Session] = []
        self.writes = 0

    async def life(self, url: str, token: str, ca: bytes, end: Awaitable[bool]) -> None:
        """Write and watch until `end` is done, which says whether it killed the server. If not, watchers read on until
        they have seen all."""
        life = self._life = len(self.record.killed_at)
        headers = {"Authorization": f"Bearer {token}"}
        self._stop, self._progress = asyncio.Event(), asyncio.Condition()
        sockets, tls = PoolSockets(), ssl.create_default_context(cadata=ca.decode())
        connector = aiohttp.TCPConnector(ssl=tls, limit=0, socket_factory=sockets.make)
        async with aiohttp.ClientSession(url, connector=connector, headers=headers) as self._http:
            selections = ["", "", *LABELS]
            sessions = [asyncio.create_task(self._watch(label, life)) for label in selections]
            writers = [
                asyncio.create_task(self._write(random.Random(self._rng.random()))) for _ in range(self._writers)
            ]
            killed = await end
            self._stop.set()
            await asyncio.gather(*writers)
            if not killed:
                await self._read_to_the_end()
            for task in sessions:
                task.cancel()
            await asyncio.gather(*sessions, return_exceptions=True)
            self._open.clear()
        await sockets.close()
        if killed:
            self.record.killed_at.append(self.highest)

    async def _read_to_the_end(self) -> None:
        """An object with each label is written last; watchers have a minute to see those in their view."""
        ends = {}
        for label in LABELS:
            name = f"last-{label}-{self.writes}"
            await self._change(name, None, label, conditional=False)
            ends[label] = ends[""] = self._acknowledged[name]
        for one in self._open:
            one.end = ends[one.label]
        with suppress(TimeoutError):
            async with asyncio.timeout(60):
                await self._until(lambda: all(one.reached >= one.end for one in self._open))

    async def wrote(self, count: int) -> None:
        """So many more writes were acknowledged."""
        aim = self.writes + count
        await self._until(lambda: self.writes >= aim)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with self._progress:
            await self._progress.wait_for(holds)

    async def _progressed(self) -> None:
        async with self._progress:
            self._progress.notify_all()

    @property
    def highest(self) -> int:
        """The highest version that anybody saw."""
        seen = [session.reached for session in self.record.sessions]
        return max([*seen, *(wrote.state.version for wrote in self.record.wrote if wrote.state)], default=0)

    # ---- writing ----

    async def _write(self, rng: random.Random) -> None:
        with suppress(*_LOST):
            while not self._stop.is_set():
                await self._write_one(f"c{rng.randrange(self._names)}", rng)
                await self._progressed()

    async def _write_one(self, name: str, rng: random.Random) -> None:
        """Read, then change what was read: under its version, without one, or by deleting it."""
        at_least = self._acknowledged.get(name, 0)
        status, doc = await self._ask("GET", f"{MAPS}/{name}")
        seen = state_of(doc) if status == 200 else None
        self.record.reads.append(Read(name, seen, at_least))
        if seen is not None and rng.random() < 0.15:
            self.record.tried.append(Tried(name, None))
            status, _ = await self._ask("DELETE", f"{MAPS}/{name}", {"preconditions": {"uid": seen.uid}})
            if status == 200:
                self.record.wrote.append(Wrote(name, None, self._life, uid=seen.uid))
                self.writes += 1
            return
        await self._change(name, seen, rng.choice(LABELS), conditional=rng.random() < 0.7)

    async def _change(self, name: str, seen: State | None, label: str, *, conditional: bool) -> None:
        content = str(next(self._contents))
        metadata: dict[str, Any] = {"name": name, "labels": {OURS: "yes", "l": label}}
        if seen is not None and conditional:
            metadata["resourceVersion"] = str(seen.version)
        self.record.tried.append(Tried(name, content))
        body = {"metadata": metadata, "data": {"k": content}}
        status, doc = await self._ask(*(("PUT", f"{MAPS}/{name}") if seen else ("POST", MAPS)), body)
        if status in (200, 201):
            state = state_of(doc)
            self._acknowledged[name] = max(state.version, self._acknowledged.get(name, 0))
            expected = seen.version if seen is not None and conditional else 0
            self.record.wrote.append(Wrote(name, state, self._life, expected))
            self.writes += 1
        elif status not in (404, 409):
            raise AssertionError((status, doc))

    async def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else orjson.dumps(body)
        headers = {"Content-Type": "application/json"}
        async with self._http.request(method, path, data=data, headers=headers) as answer:
            return answer.status, orjson.loads(await answer.read())

    # ---- watching ----

    async def _watch(self, label: str, life: int) -> None:
        """List, then watch, again and again from the last version that was seen, until it is too old."""
        with suppress(*_LOST):
            while True:
                session = await self._listed(label, life)
                while await self._follow(session):
                    pass
                self._open.remove(session)

    async def _listed(self, label: str, life: int) -> Session:
        _, page = await self._ask("GET", f"{MAPS}?labelSelector={self._selector(label)}")
        listed = {doc["metadata"]["name"]: state_of(doc) for doc in page["items"]}
        session = Session(label, int(page["metadata"]["resourceVersion"]), listed, life)
        self.record.sessions.append(session)
        self._open.append(session)
        return session

    async def _follow(self, session: Session) -> bool:
        """One connection, which is cut after a while; False if the version it should go on from is too old."""
        path = f"{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={_last(session)}"
        path += f"&labelSelector={self._selector(session.label)}"
        with suppress(TimeoutError):
            async with asyncio.timeout(self._rng.uniform(0.1, 2 * self._cut_every)), self._http.get(path) as answer:
                if answer.status == 410:
                    return False
                async for line in answer.content:
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        return False
                    session.told.append(_told(event))
                    await self._progressed()
        return True

    @staticmethod
    def _selector(label: str) -> str:
        return f"{OURS}=yes" + (f",l={label}" if label else "")


def _told(event: Any) -> Told:
    if event["type"] == "BOOKMARK":
        return Told("BOOKMARK", "", State(int(event["object"]["metadata"]["resourceVersion"]), "", "", ""))
    return Told(event["type"], event["object"]["metadata"]["name"], state_of(event["object"]))


def _last(session: Session) -> int:
    return max([session.version, *(told.state.version for told in session.told[-1:])])
