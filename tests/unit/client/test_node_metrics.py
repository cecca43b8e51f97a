"""How busy nodes are, asked of servers that answer as Prometheus, Elasticsearch and the metrics API do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from fairlead.client.node_metrics import node_metrics
from fairlead.core.model.usage import NodeUsage, UsageBoard
from fairlead.errors import ConfigError, NotFound, Unreachable
from fairlead.runtime.usage import UsageCollector

NOW = 1_800_000_000.0
NODES = ("a", "b")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def no_api(path: str) -> bytes:
    raise NotFound(path)


async def asked(handler: Handler, **conf: str) -> dict[str, NodeUsage]:
    """What a source finds out at a server of ours."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    server = TestServer(application)
    await server.start_server()
    source = node_metrics({"address": str(server.make_url("/")), **conf}, no_api)
    try:
        return await source.usage(NODES, NOW)
    finally:
        await source.close()
        await server.close()


def vector(**values: str) -> dict[str, Any]:
    result = [{"metric": {"instance": name}, "value": [NOW, value]} for name, value in values.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def test_prometheus_answers_for_all_nodes_at_once() -> None:
    queries = []

    async def answer(request: web.Request) -> web.Response:
        assert (request.method, request.path) == ("POST", "/api/v1/query")
        form = await request.post()
        queries.append(str(form["query"]))
        return web.json_response(
            vector(a="12.5", b="80", elsewhere="1") if "cpu" in str(form["query"]) else vector(a="50")
        )

    assert asyncio.run(asked(answer, type="prometheus")) == {"a": NodeUsage(12.5, 50.0, NOW)}
    assert all("[10m:30s]" in query for query in queries)
    assert [query.count("node_cpu_seconds_total") for query in queries] == [1, 0]


def test_elasticsearch_is_asked_for_averages_by_host() -> None:
    seen = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.path, request.headers["Authorization"], await request.json()))
        buckets = {
            "a": {"cpu": {"value": 0.25}, "mem": {"value": 0.5}},
            "b": {"cpu": {"value": None}, "mem": {"value": None}},
        }
        return web.json_response({"aggregations": {"nodes": {"buckets": buckets}}})

    conf = {
        "type": "elasticsearch",
        "elasticsearch.index": "custom-*",
        "elasticsearch.username": "me",
        "elasticsearch.password": "word",
        "elasticsearch.hostnameFieldName": "host",
    }
    assert asyncio.run(asked(answer, **conf)) == {"a": NodeUsage(25.0, 50.0, NOW)}
    ((path, authorization, body),) = seen
    assert (path, authorization) == ("/custom-*/_search", "Basic bWU6d29yZA==")
    assert body["query"]["range"]["@timestamp"] == {"gte": "now-10m", "lt": "now"}
    assert body["aggs"]["nodes"]["filters"]["filters"]["a"] == {"term": {"host": "a"}}
    assert body["aggs"]["nodes"]["aggs"]["cpu"] == {"avg": {"field": "host.cpu.usage"}}


def test_the_adapter_is_read_from_the_custom_metrics_api() -> None:
    paths = []

    async def raw(path: str) -> bytes:
        paths.append(path)
        if "v1beta2" in path:
            raise NotFound(path)
        value = "250m" if path.endswith("node_cpu_usage_avg") else "500m"
        item = {"describedObject": {"kind": "Node", "name": "a"}, "timestamp": "2027-01-15T08:00:00Z", "value": value}
        return orjson.dumps({"items": [item, {**item, "describedObject": {"name": "elsewhere"}}]})

    found = asyncio.run(node_metrics({"type": "prometheus_adaptor"}, raw).usage(NODES, NOW + 60))
    assert found == {"a": NodeUsage(25.0, 50.0, NOW)}, "with the time of the measurement, not of the question"
    assert paths[1] == "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/node_cpu_usage_avg"


@pytest.mark.parametrize("conf", [{"type": "carrier-pigeon"}, {"type": "prometheus"}])
def test_a_source_that_cannot_be_asked_is_refused(conf: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        node_metrics(conf, no_api)


def test_trouble_at_the_source_is_said() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=503, text="busy")

    with pytest.raises(Unreachable, match="code 503: busy"):
        asyncio.run(asked(answer, type="prometheus"))


def test_old_numbers_stay_when_nobody_answers(caplog: pytest.LogCaptureFixture) -> None:
    board = UsageBoard({"type": "prometheus_adaptor"})
    board.put({"a": NodeUsage(1, 2, NOW)})
    collector = UsageCollector(board, names=lambda: NODES, raw=no_api, now=lambda: NOW)
    asyncio.run(collector.collect())
    asyncio.run(collector.collect())
    assert board.usage() == {"a": NodeUsage(1, 2, NOW)}
    assert len(caplog.records) == 1, "the same trouble is told once"


def test_nobody_is_asked_before_there_are_nodes_and_then_soon() -> None:
    async def story() -> list[str]:
        nodes: list[str] = []
        asked: list[str] = []
        answered = asyncio.Event()

        async def raw(path: str) -> bytes:
            asked.append(path)
            if len(asked) == 2:
                answered.set()
            return b'{"items": []}'

        board = UsageBoard({"type": "prometheus_adaptor", "interval": "1h"})
        collecting = asyncio.create_task(UsageCollector(board, names=lambda: nodes, raw=raw, now=lambda: NOW).run())
        await asyncio.sleep(0)
        assert asked == []
        nodes.append("a")
        async with asyncio.timeout(20):
            await answered.wait()
        collecting.cancel()
        await asyncio.wait([collecting])
        return asked

    assert len(asyncio.run(story())) == 2


def test_another_configuration_is_followed_at_once() -> None:
    async def story() -> None:
        async def answer(request: web.Request) -> web.Response:
            return web.json_response(vector(a="7"))

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        server = TestServer(application)
        await server.start_server()
        board = UsageBoard()
        collector = UsageCollector(board, names=lambda: NODES, raw=no_api, now=lambda: NOW)
        collecting = asyncio.create_task(collector.run())
        await collector.collect()
        assert (board.usage(), collector.interval) == ({}, 30.0)
        board.metrics = {"type": "prometheus", "address": str(server.make_url("/")), "interval": "10s"}
        await collector.collect()
        assert board.usage() == {"a": NodeUsage(7.0, 7.0, NOW)}
        assert collector.interval == 10.0
        collecting.cancel()
        await asyncio.wait([collecting])
        await server.close()

    asyncio.run(story())
