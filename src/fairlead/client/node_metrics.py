"""How busy nodes are, asked of Prometheus, Elasticsearch or the custom metrics of the cluster itself.

The numbers are averages over ten minutes. One request (or two) is for all nodes. A node of which nothing is known is
left out of the answer; a plugin decides what that means.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import aiohttp
import orjson

from fairlead.core.model.quantity import read_quantity
from fairlead.core.model.times import seconds_of
from fairlead.core.model.usage import NodeUsage
from fairlead.errors import ConfigError, NotFound, Unreachable

Raw = Callable[[str], Awaitable[bytes]]
"""The bytes behind a path of the cluster's own API server."""

_PERIOD = "10m"
_TIMEOUT = aiohttp.ClientTimeout(total=60.0)
_CPU_QUERY = (
    'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)'
    f"[{_PERIOD}:30s])"
)
_MEMORY_QUERY = f"100*avg_over_time(((1-node_memory_MemAvailable_bytes/node_memory_MemTotal_bytes))[{_PERIOD}:30s])"
_CUSTOM_CPU, _CUSTOM_MEMORY = "node_cpu_usage_avg", "node_memory_usage_avg"
_CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
_AT_ONCE = 500
"""Nodes in one question to Elasticsearch."""


class NodeMetrics(Protocol):
    async def usage(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        """What is known of these nodes now; raises ApiError if nobody answers."""
        ...

    async def close(self) -> None: ...


def node_metrics(conf: Mapping[str, str], raw: Raw) -> NodeMetrics:
    """The source that the `metrics` of a configuration names. Raises ConfigError if it cannot be used."""
    kind = conf.get("type", "")
    if kind == "prometheus_adaptor":
        return CustomMetrics(raw)
    makers: dict[str, Callable[[Mapping[str, str]], NodeMetrics]] = {
        "prometheus": Prometheus,
        "elasticsearch": Elasticsearch,
    }
    if kind not in makers:
        raise ConfigError(f'there is no source of metrics "{kind}"')
    if not conf.get("address"):
        raise ConfigError("metrics address is empty")
    return makers[kind](conf)


class _Http:
    """A server that is asked in JSON."""

    def __init__(self, conf: Mapping[str, str], headers: Mapping[str, str] | None = None) -> None:
        self.address = conf["address"].rstrip("/")
        self._unverified = conf.get("tls.insecureSkipVerify") == "true"
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, **body: Any) -> Any:
        url = self.address + path
        try:
            async with self._pool().post(url, **body) as response:
                raw = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unreachable(f"{url}: {error or type(error).__name__}") from error
        if response.status != 200:
            raise Unreachable(f"{url}: code {response.status}: {raw[:200].decode(errors='replace')}")
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"{url}: the answer is no JSON: {error}") from error

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=not self._unverified)
            self._session = aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT, headers=self._headers)
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


class Prometheus:
    """The node exporter's series; `instance` must be the node's name."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._http = _Http(conf)

    async def usage(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        cpu = await self._by_instance(_CPU_QUERY, now)
        memory = await self._by_instance(_MEMORY_QUERY, now)
        return _joined(nodes, cpu, memory, now)

    async def _by_instance(self, query: str, now: float) -> dict[str, float]:
        answer = await self._http.post("/api/v1/query", data={"query": query, "time": f"{now:.3f}"})
        data = answer.get("data") or {}
        found: dict[str, float] = {}
        for series in data.get("result") or () if data.get("resultType") == "vector" else ():
            found.setdefault(series["metric"].get("instance", ""), float(series["value"][1]))
        return found

    async def close(self) -> None:
        await self._http.close()


class Elasticsearch:
    """Metricbeat's documents; parts of one, which become percent."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._http = _Http(conf, _authorization(conf))
        self._index = conf.get("elasticsearch.index") or "metricbeat-*"
        self._host_field = conf.get("elasticsearch.hostnameFieldName") or "host.hostname"

    async def usage(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        found: dict[str, NodeUsage] = {}
        names = sorted(nodes)
        for start in range(0, len(names), _AT_ONCE):
            question = self._question(names[start : start + _AT_ONCE])
            answer = await self._http.post(f"/{self._index}/_search", json=question)
            buckets = ((answer.get("aggregations") or {}).get("nodes") or {}).get("buckets") or {}
            found |= dict(_of_buckets(buckets, now))
        return found

    def _question(self, nodes: Sequence[str]) -> dict[str, Any]:
        averages = {"cpu": "host.cpu.usage", "mem": "system.memory.actual.used.pct"}
        return {
            "size": 0,
            "query": {"range": {"@timestamp": {"gte": f"now-{_PERIOD}", "lt": "now"}}},
            "aggs": {
                "nodes": {
                    "filters": {"filters": {node: {"term": {self._host_field: node}} for node in nodes}},
                    "aggs": {name: {"avg": {"field": field}} for name, field in averages.items()},
                }
            },
        }

    async def close(self) -> None:
        await self._http.close()


def _authorization(conf: Mapping[str, str]) -> dict[str, str]:
    user = conf.get("elasticsearch.username", "")
    if not user:
        return {}
    secret = f"{user}:{conf.get('elasticsearch.password', '')}"
    return {"Authorization": f"Basic {b64encode(secret.encode()).decode()}"}


def _of_buckets(buckets: Mapping[str, Any], now: float) -> Iterator[tuple[str, NodeUsage]]:
    for node, bucket in buckets.items():
        cpu, memory = (bucket.get(name, {}).get("value") for name in ("cpu", "mem"))
        if cpu is not None and memory is not None:
            yield node, NodeUsage(cpu * 100.0, memory * 100.0, now)


class CustomMetrics:
    """The cluster's custom metrics API, as the Prometheus adapter fills it; parts of one, with times of their own."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    async def usage(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        cpu, memory = await self._values(_CUSTOM_CPU), await self._values(_CUSTOM_MEMORY)
        return {
            node: NodeUsage(cpu[node][0], memory[node][0], memory[node][1])
            for node in nodes
            if node in cpu and node in memory
        }

    async def _values(self, metric: str) -> dict[str, tuple[float, float]]:
        """By node, a metric in percent and when it was taken."""
        answer = orjson.loads(await self._answer(metric))
        return {
            item["describedObject"]["name"]: (
                read_quantity(item["value"]).nanos / 10**9 * 100.0,
                seconds_of(item["timestamp"]),
            )
            for item in answer.get("items") or ()
        }

    async def _answer(self, metric: str) -> bytes:
        newest, older = (f"/apis/custom.metrics.k8s.io/{version}/nodes/*/{metric}" for version in _CUSTOM_VERSIONS)
        try:
            return await self._raw(newest)
        except NotFound:
            return await self._raw(older)

    async def close(self) -> None:
        """The API server's connections are not its own."""


def _joined(
    nodes: Collection[str], cpu: Mapping[str, float], memory: Mapping[str, float], now: float
) -> dict[str, NodeUsage]:
    return {node: NodeUsage(cpu[node], memory[node], now) for node in nodes if node in cpu and node in memory}
