"""Ten thousand fuzzed requests: every one gets an answer, none a 500, and the Store is whole afterwards."""

from __future__ import annotations

import asyncio
import os
import random
import time

import aiohttp
import orjson
import pytest
from yarl import URL

from fairlead.cluster.server.server import Server
from fairlead.cluster.store import schema
from fairlead.cluster.store.store import Store
from tests.support.fuzz.drawn_requests import DrawnFuzz
from tests.support.fuzz.requests import Fuzz, Request, populate

REQUESTS, PARTS, DRAWN = 10_000, 8, 400
DELIBERATE = frozenset({504})
"""A version that is still to come: the original answers the same."""
AT_ONCE = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_no_request_gets_a_500_and_the_store_stays_whole(part: int) -> None:
    asyncio.run(_fuzz(part, REQUESTS // PARTS))


def test_no_request_that_is_drawn_by_openapi_gets_a_500() -> None:
    """`make fuzz WHAT=requests N=...` sends more of them."""
    seed = int(os.environ.get("FAIRLEAD_FUZZ_SEED") or 1)
    asyncio.run(_fuzz(seed, int(os.environ.get("FAIRLEAD_REQUESTS") or DRAWN), drawn=True))


async def _fuzz(seed: int, count: int, *, drawn: bool = False) -> None:
    store = Store(clock=time.time, rng=random.Random(seed))
    populate(store)
    server = Server(store, token="t")
    await server.start()
    fuzz = DrawnFuzz(seed, store) if drawn else Fuzz(seed)
    requests = (fuzz.request() for _ in range(count))
    try:
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer t"}) as session:
            await asyncio.gather(*(_ask(session, server.url, requests) for _ in range(AT_ONCE)))
            async with session.get(server.url + "/readyz") as answer:
                assert answer.status == 200
    finally:
        await server.stop()
    check_whole(store)


async def _ask(session: aiohttp.ClientSession, url: str, requests: object) -> None:
    for request in requests:  # type: ignore[attr-defined]
        assert isinstance(request, Request)
        target = URL(url + request.path, encoded=False).with_query(request.params)
        async with session.request(
            request.method, target, headers=request.headers, data=request.body or None, allow_redirects=False
        ) as answer:
            text = await answer.read()
        assert answer.status < 500 or answer.status in DELIBERATE, (request, answer.status, text[:500])
        if answer.status >= 400 and text and answer.content_type == "application/json":
            status = orjson.loads(text)
            assert (status["kind"], status["code"]) == ("Status", answer.status), request


def check_whole(store: Store) -> None:
    """What is stored can be read, is where its name says, and is what watches tell."""
    for kind in store.registry:
        if kind.stored_as is not None:
            continue
        page = store.page(kind)
        names = [(doc["metadata"].get("namespace", ""), doc["metadata"]["name"]) for doc in page.items]
        assert names == sorted(names, key="/".join), kind
        for (namespace, name), doc in zip(names, page.items, strict=True):
            record = store.existing(kind, namespace, name)
            assert doc["metadata"]["resourceVersion"] == str(record.version)
            assert (doc["apiVersion"], doc["kind"]) == (kind.api_version, kind.kind)
            assert doc["metadata"]["uid"]
            again, unknown = schema.decode(kind, doc)
            assert (again, unknown) == (doc, []), kind
        replayed = {record.key: record.raw for _, record, _ in store.subscribe(kind).drain()}
        assert replayed == {key: store.existing(kind, *key).raw for key in replayed}
        assert len(replayed) == len(names)
