"""KubeApi against a scripted server on loopback: what the network and a busy server do to a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from fairlead.client.client import KubeApi, Timeouts, page_of
from fairlead.client.credentials import Connection
from fairlead.client.port import Query
from fairlead.client.retry import RetryDelays
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import DEPLOYMENT, NODE, POD
from fairlead.errors import BadRequest, Conflict, Gone, Invalid, NotSent, TooManyRequests, Unreachable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
AT_ONCE = RetryDelays(first=0.0, most=0.0)


@asynccontextmanager
async def served(handler: Handler, **options: Any) -> AsyncIterator[KubeApi]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server:
        connection = options.pop("connection", None) or Connection.to(str(server.make_url("")))
        api = KubeApi(connection, backoff=AT_ONCE, **options)
        try:
            yield api
        finally:
            await api.close()


class Script:
    """Answers in order; the last one is repeated. Remembers what was asked."""

    def __init__(self, *answers: tuple[int, Any] | tuple[int, Any, dict[str, str]]) -> None:
        self.answers = list(answers)
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        self.bodies.append(await request.read())
        code, body, *headers = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        text = body if isinstance(body, bytes) else orjson.dumps(body)
        return web.Response(status=code, body=text, headers=headers[0] if headers else None)


def status(code: int, reason: str, message: str = "no", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}


async def test_a_list_puts_apiversion_and_kind_back_into_its_items() -> None:
    script = Script(
        (200, {"metadata": {"resourceVersion": "7", "continue": "c", "remainingItemCount": 3}, "items": [{}]})
    )
    async with served(script.answer) as api:
        page = await api.list(
            DEPLOYMENT, Query(namespace="n", limit=1, continue_="b", label_selector="a=b", field_selector="c=d")
        )
    assert page.items == [{"kind": "Deployment", "apiVersion": "apps/v1"}]
    assert (page.resource_version, page.continue_, page.remaining) == ("7", "c", 3)
    assert script.asked[0].path == "/apis/apps/v1/namespaces/n/deployments"
    assert dict(script.asked[0].query) == {
        "limit": "1",
        "continue": "b",
        "labelSelector": "a=b",
        "fieldSelector": "c=d",
    }
    assert script.asked[0].headers["User-Agent"].startswith("fairlead/")


def test_items_that_say_what_they_are_are_left_alone() -> None:
    item = {"kind": "Other", "apiVersion": "x/v1"}
    assert page_of(POD, {"items": [item]}).items[0] is item
    assert page_of(POD, {"items": None}).items == []


PODS = "/api/v1/namespaces/n/pods"
PLAIN = "application/json"


@pytest.mark.parametrize(
    ("write", "method", "path", "media"),
    [
        (Write(Verb.CREATE, POD, "n", "a", {}), "POST", PODS, PLAIN),
        (Write(Verb.CREATE, POD, "n", "a", {}, "binding"), "POST", f"{PODS}/a/binding", PLAIN),
        (Write(Verb.UPDATE, POD, "n", "a", {}, "status"), "PUT", f"{PODS}/a/status", PLAIN),
        (Write(Verb.PATCH, NODE, "", "a", []), "PATCH", "/api/v1/nodes/a", PatchType.MERGE.value),
        (Write(Verb.PATCH, POD, "n", "a", [], patch_type=PatchType.JSON), "PATCH", f"{PODS}/a", PatchType.JSON.value),
        (Write(Verb.DELETE, POD, "n", "a", {"gracePeriodSeconds": 0}), "DELETE", f"{PODS}/a", PLAIN),
        (Write(Verb.DELETE, POD, "n", ""), "DELETE", PODS, None),
    ],
)
async def test_a_write_becomes_the_request_that_it_means(
    write: Write, method: str, path: str, media: str | None
) -> None:
    script = Script((200, {"ok": True}))
    async with served(script.answer) as api:
        assert await api.perform(write) == {"ok": True}
    request = script.asked[0]
    assert (request.method, request.path) == (method, path)
    assert script.bodies[0] == (b"" if write.body is None else orjson.dumps(write.body))
    if media:
        assert request.headers["Content-Type"] == media


async def test_parameters_of_a_write_are_sent_and_every_request_is_counted() -> None:
    script = Script((200, {}))
    async with served(script.answer) as api:
        await api.perform(Write(Verb.CREATE, POD, "n", "a", {}, params={"dryRun": "All"}))
        await api.perform(Write(Verb.CREATE, POD, "n", "a", {}, "binding"))
        await api.get(NODE, "", "x")
        assert script.asked[0].query["dryRun"] == "All"
        assert api.requests == {("create", "pods"): 1, ("create", "pods/binding"): 1, ("get", "nodes"): 1}


async def test_an_error_status_becomes_its_exception_with_the_causes() -> None:
    causes = [{"field": "spec.containers", "message": "Required value"}]
    script = Script((422, status(422, "Invalid", "Pod is invalid", causes=causes)))
    async with served(script.answer) as api:
        with pytest.raises(Invalid, match="Pod is invalid") as caught:
            await api.perform(Write(Verb.CREATE, POD, "n", "a", {}))
    assert caught.value.details["causes"] == causes


async def test_an_answer_that_is_no_status_is_reported_as_it_came() -> None:
    async with served(Script((400, b"<html>what?</html>")).answer) as api:
        with pytest.raises(BadRequest, match="what"):
            await api.get(POD, "n", "a")


async def test_a_server_that_asks_to_come_back_is_asked_again_even_for_a_write() -> None:
    busy = (429, status(429, "TooManyRequests"), {"Retry-After": "0"})
    script = Script(busy, (503, b"", {"Retry-After": "0"}), (201, {"done": 1}))
    async with served(script.answer) as api:
        assert await api.perform(Write(Verb.CREATE, POD, "n", "a", {})) == {"done": 1}
    assert len(script.asked) == 3


async def test_a_refused_eviction_is_an_answer_and_not_asked_again() -> None:
    script = Script((429, status(429, "TooManyRequests", "Cannot evict pod")))
    async with served(script.answer) as api:
        with pytest.raises(TooManyRequests):
            await api.perform(Write(Verb.CREATE, POD, "n", "a", {}, "eviction"))
    assert len(script.asked) == 1


async def test_a_write_is_not_repeated_when_it_may_have_happened() -> None:
    script = Script((503, status(503, "ServiceUnavailable")))
    async with served(script.answer) as api:
        with pytest.raises(Unreachable):
            await api.perform(Write(Verb.CREATE, POD, "n", "a", {}))
    assert len(script.asked) == 1


async def test_a_read_is_repeated_a_bounded_number_of_times() -> None:
    script = Script((503, status(503, "ServiceUnavailable")))
    async with served(script.answer, attempts=4) as api:
        with pytest.raises(Unreachable):
            await api.get(POD, "n", "a")
    assert len(script.asked) == 4


async def test_a_conflict_is_never_retried() -> None:
    script = Script((409, status(409, "Conflict")))
    async with served(script.answer) as api:
        with pytest.raises(Conflict):
            await api.perform(Write(Verb.UPDATE, POD, "n", "a", {}))
    assert len(script.asked) == 1


async def test_nobody_at_the_other_end_is_unreachable() -> None:
    api = KubeApi(Connection.to("http://127.0.0.1:9"), backoff=AT_ONCE, attempts=2)
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:9: "):
        await api.perform(Write(Verb.CREATE, POD, "n", "a", {}))
    await api.close()


async def test_a_server_that_says_nothing_is_unreachable_after_the_timeout() -> None:
    forever = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await forever.wait()
        return web.Response()

    async with served(silent, timeouts=Timeouts(read=0.05), attempts=1) as api:
        with pytest.raises(Unreachable):
            await api.get(POD, "n", "a")
        with pytest.raises(Unreachable, match="no answer within"):
            await api.perform(Write(Verb.CREATE, POD, "n", "a", {}))
        forever.set()


async def test_an_answer_to_a_write_whose_body_does_not_come_is_unreachable_after_the_timeout() -> None:
    forever = asyncio.Event()

    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=201)
        await response.prepare(request)
        await forever.wait()
        return response

    async with served(half, timeouts=Timeouts(read=0.05), attempts=1) as api:
        with pytest.raises(Unreachable, match="no answer within"):
            await api.perform(Write(Verb.CREATE, POD, "n", "a", {}))
        forever.set()


async def test_names_that_need_quoting_are_quoted() -> None:
    script = Script((200, {}), (200, {}))
    async with served(script.answer) as api:
        await api.get(POD, "n", "a b")
        await api.get(POD, "n", "system:a")
    pods = "/api/v1/namespaces/n/pods"
    assert [request.raw_path for request in script.asked] == [f"{pods}/a%20b", f"{pods}/system:a"]


async def test_an_expired_token_is_renewed_once() -> None:
    tokens = iter(["Bearer old", "Bearer new"])
    seen = []

    async def guard(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        if seen[-1] == "Bearer new":
            return web.json_response({"ok": 1})
        return web.json_response(status(401, "Unauthorized"), status=401)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", guard)
    async with TestServer(app) as server:
        api = KubeApi(Connection(str(server.make_url("")).rstrip("/"), authorization=lambda: next(tokens)))
        assert await api.get(POD, "n", "a") == {"ok": 1}
        await api.get(POD, "n", "a")
        await api.close()
    assert seen == ["Bearer old", "Bearer new", "Bearer new"]


def stream(*chunks: bytes) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        return response

    return handler


async def test_watch_events_survive_any_chunking_and_any_size() -> None:
    large = "x" * 3_000_000
    text = b"".join(
        orjson.dumps({"type": "ADDED", "object": {"metadata": {"name": name}}}) + b"\n" for name in ("a", large, "b")
    )
    chunks = [text[i : i + 65_521] for i in range(0, len(text), 65_521)]
    async with served(stream(*chunks)) as api:
        names = [event.doc["metadata"]["name"] async for event in api.watch(POD)]
    assert names == ["a", large, "b"]


async def test_an_error_event_ends_the_watch_with_its_exception() -> None:
    line = orjson.dumps({"type": "ERROR", "object": status(410, "Expired", "too old resource version: 1 (5)")}) + b"\n"
    async with served(stream(line)) as api:
        with pytest.raises(Gone, match="too old"):
            async for _ in api.watch(POD, Query(resource_version="1")):
                pass


async def test_a_watch_asks_for_what_it_wants() -> None:
    script = Script((200, b""))
    async with served(script.answer) as api:
        async for _ in api.watch(POD, Query(resource_version="5"), timeout=0.2):
            pass
        async for _ in api.watch(POD, send_initial_events=True, bookmarks=True):
            pass
    assert dict(script.asked[0].query) == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "1",
    }
    assert script.asked[1].query["sendInitialEvents"] == "true"
    assert script.asked[1].query["resourceVersionMatch"] == "NotOlderThan"


async def test_a_watch_that_falls_silent_is_unreachable() -> None:
    forever = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await forever.wait()
        return response

    async with served(silent, timeouts=Timeouts(idle=0.05)) as api:
        with pytest.raises(Unreachable):
            async for _ in api.watch(POD):
                pass
        forever.set()


@pytest.mark.parametrize("leads_for", [0, 1, 2])
async def test_a_write_that_was_under_way_when_the_lease_ran_out_is_not_sent(leads_for: int) -> None:
    """The question is asked before the request is made and when its bytes are written."""
    script, answers = Script((201, {"metadata": {"name": "p"}})), iter([True] * leads_for)
    async with served(script.answer, may_write=lambda: next(answers, False), attempts=1) as api:
        write = Write(Verb.CREATE, POD, "default", "p", {"metadata": {"name": "p"}})
        if leads_for == 2:
            await api.perform(write)
        else:
            with pytest.raises(NotSent):
                await api.perform(write)
    assert len(script.asked) == (leads_for == 2)
