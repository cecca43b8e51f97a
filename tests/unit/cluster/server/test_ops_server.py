"""The port on which a scheduler is watched: health, metrics, configuration, explanations, tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from fairlead.cluster.server.asking import Asked
from fairlead.cluster.server.explaining import Explainer, explanation_path
from fairlead.cluster.server.ops_server import OpsServer, Pages, Vitals
from fairlead.cluster.server.port_guard import OneToken
from fairlead.core.model.explanation import Explanation
from fairlead.core.model.flow import Doc


class Served:
    """A server and a client of it."""

    def __init__(self, **more: Any) -> None:
        self.ready = True
        self.resets = 0
        vitals = Vitals(
            healthz={"leaderElection": lambda: True},
            livez={"ping": lambda: True},
            readyz={"shutdown": lambda: True, "sched-handler-sync": lambda: self.ready},
        )
        self.server = OpsServer(
            vitals=vitals,
            pages=Pages(metrics=self._metrics, reset=self._reset, config=lambda: {"kind": "X"}),
            asked=Asked([self._ask]),
            **more,
        )

    def _reset(self) -> None:
        self.resets += 1

    async def _metrics(self) -> bytes:
        return b"metric 1.0\n"

    def _ask(self, question: Callable[[Explainer], Doc | None]) -> Future[Doc | None]:
        answer: Future[Doc | None] = Future()
        answer.set_result(question(self))
        return answer

    def explain_group(self, namespace: str, name: str) -> Explanation | None:
        return None

    def explain_queue(self, name: str) -> Explanation | None:
        return None

    def explain(self, namespace: str, name: str) -> Explanation | None:
        return Explanation(namespace, name, "uid", "default-scheduler", "Waiting") if name == "known" else None

    async def get(self, path: str, *, method: str = "GET", token: str = "") -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.server.url + path, headers=headers) as response,
        ):
            return response.status, await response.text()


@asynccontextmanager
async def asked(**more: Any) -> AsyncIterator[Served]:
    one = Served(**more)
    await one.server.start()
    try:
        yield one
    finally:
        await one.server.stop()


async def test_health_is_ok_in_one_word_or_reported_in_full() -> None:
    async with asked() as ops:
        assert await ops.get("/healthz") == (200, "ok")
        assert await ops.get("/livez") == (200, "ok")
        assert await ops.get("/readyz/shutdown") == (200, "ok")
        assert await ops.get("/readyz/nothing") == (404, "404 page not found\n")
        told = "[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n"
        assert await ops.get("/readyz?verbose") == (200, told)


async def test_a_failed_check_is_named_and_its_reason_withheld() -> None:
    async with asked() as ops:
        ops.ready = False
        told = "[+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n"
        assert await ops.get("/readyz") == (500, told)
        assert (await ops.get("/readyz?exclude=sched-handler-sync")) == (200, "ok")
        assert (await ops.get("/healthz"))[0] == 200


async def test_metrics_can_be_read_and_reset() -> None:
    async with asked() as ops:
        assert await ops.get("/metrics") == (200, "metric 1.0\n")
        assert await ops.get("/metrics", method="DELETE") == (200, "metrics reset\n")
        assert ops.resets == 1
        assert (await ops.get("/metrics", method="POST"))[0] == 405


async def test_configz_wraps_the_configuration() -> None:
    async with asked() as ops:
        assert await ops.get("/configz") == (200, '{"componentconfig":{"kind":"X"}}')
        assert (await ops.get("/"))[0] == 404


async def test_an_explanation_is_served() -> None:
    async with asked() as ops:
        status, text = await ops.get(explanation_path("default", "known"))
        assert (status, '"verdict":"Waiting"' in text) == (200, True)
        status, text = await ops.get(explanation_path("default", "unknown"))
        assert (status, '"reason": "NotFound"' in text) == (404, True)


async def test_with_a_token_only_health_is_open() -> None:
    async with asked(guard=OneToken(lambda: "secret")) as ops:
        assert (await ops.get("/healthz"))[0] == 200
        for path in ("/metrics", "/configz", explanation_path("default", "known")):
            assert (await ops.get(path))[0] == 401
            assert (await ops.get(path, token="guess"))[0] == 401
            assert (await ops.get(path, token="secret"))[0] == 200
