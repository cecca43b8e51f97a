"""OpsServer: the port on which a running scheduler is watched. Health, metrics, its configuration, and explanations.

Paths and answers are kube-scheduler's. Health is open to everybody; for everything else a PortGuard is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from fairlead.cluster.server.asking import NOBODY_ASKED, QUESTIONS_PATH, STATUS_PATH, answer_to_request
from fairlead.cluster.server.explaining import explained_namespace, explanation_document, is_explanation
from fairlead.cluster.server.listening import LOOPBACK, Endpoint, Listener
from fairlead.cluster.server.port_guard import Open
from fairlead.errors import ApiError, InternalError

if TYPE_CHECKING:
    from fairlead.cluster.server.asking import Asked
    from fairlead.cluster.server.port_guard import PortGuard
    from fairlead.core.model.flow import Doc

logger = logging.getLogger(__name__)

Check = Callable[[], bool]
_STOP_WITHIN = 5.0


@dataclass(frozen=True, slots=True)
class Vitals:
    """The checks behind each health path, by name, in the order in which they are listed."""

    healthz: Mapping[str, Check]
    livez: Mapping[str, Check]
    readyz: Mapping[str, Check]

    def failing(self) -> list[str]:
        """What keeps it from being ready, by name."""
        return [title for title, fails in self.failures().items() if fails]

    def failures(self) -> dict[str, bool]:
        """Whether each check of readiness fails."""
        return {title: not holds() for title, holds in self.readyz.items()}


@dataclass(frozen=True, slots=True)
class Pages:
    """What the server shows: `metrics` gives the exposition, `reset` forgets it, `config` is the current document."""

    metrics: Callable[[], Awaitable[bytes]]
    reset: Callable[[], None]
    config: Callable[[], Doc]
    status: Callable[[], Awaitable[Doc]] | None = None


class OpsServer:
    """Serves until it is stopped.
    `always_allowed` are paths beside health for which the guard is not asked; one that ends in `*` is a prefix."""

    def __init__(
        self,
        *,
        vitals: Vitals,
        pages: Pages,
        asked: Asked = NOBODY_ASKED,
        at: Endpoint = LOOPBACK,
        guard: PortGuard | None = None,
        always_allowed: Sequence[str] = (),
        standing_by: Callable[[], ApiError | None] = lambda: None,
    ) -> None:
        self.host, self.port, self._tls = at.host, at.port, at.tls
        self._vitals = {"healthz": vitals.healthz, "livez": vitals.livez, "readyz": vitals.readyz}
        self._pages = pages
        self._asked = asked
        self._guard = guard or Open(at.host)
        self._always_allowed = always_allowed
        self._standing_by = standing_by
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    async def start(self) -> None:
        self._listener = Listener(self._handle, within=_STOP_WITHIN)
        self.port = await self._listener.start(self.host, self.port, self._tls)

    async def stop(self) -> None:
        if self._listener is not None:
            await self._listener.stop()
            self._listener = None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except ApiError as error:
            return web.json_response(error.status(), status=error.code)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path)
            failure = InternalError(f"Internal error occurred: {type(error).__name__}: {error}")
            return web.json_response(failure.status(), status=failure.code)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.rstrip("/")
        first, _, rest = path.removeprefix("/").partition("/")
        if first in self._vitals:
            return self._health(first, rest, request)
        self._guard.check_origin(request.headers.get("Host", ""), request.headers.get("Origin", ""))
        if not self._is_open(request.path):
            await self._guard.check(request.headers.get("Authorization", ""), request.method.lower(), request.path)
        if path == "/metrics" and request.method == "DELETE":
            self._pages.reset()
            return web.Response(text="metrics reset\n")
        if path == QUESTIONS_PATH and request.method == "POST":
            self._check_leading()
            may_list = partial(self._guard.check_pods, request.headers.get("Authorization", ""))
            return _json(await answer_to_request(request, self._asked.answerers, may_list))
        if request.method != "GET":
            return web.Response(status=405, text="Method Not Allowed\n")
        if path == "/metrics":
            return web.Response(body=await self._pages.metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})
        if path == "/configz":
            return _json({"componentconfig": self._pages.config()})
        if path == STATUS_PATH and self._pages.status is not None:
            return _json(await self._pages.status())
        if is_explanation(path):
            await self._guard.check_pods(request.headers.get("Authorization", ""), explained_namespace(path))
            self._check_leading()
            return _json(await explanation_document(path, self._asked.explainers))
        return web.Response(status=404, text="404 page not found\n")

    def _check_leading(self) -> None:
        error = self._standing_by()
        if error is not None:
            raise error

    def _is_open(self, path: str) -> bool:
        return any(
            path == known or (known.endswith("*") and path.startswith(known[:-1])) for known in self._always_allowed
        )

    def _health(self, name: str, check: str, request: web.BaseRequest) -> web.Response:
        """`ok`, or the list of checks when one fails or `?verbose` requests it; `/healthz/NAME` is one of them."""
        checks = self._vitals[name]
        if check and check not in checks:
            return web.Response(status=404, text="404 page not found\n")
        excluded = set(request.query.getall("exclude", ()))
        lines, healthy = [], True
        for title, holds in checks.items():
            if check and title != check:
                continue
            if title in excluded:
                lines.append(f"[+]{title} excluded: ok")
            elif holds():
                lines.append(f"[+]{title} ok")
            else:
                lines.append(f"[-]{title} failed: reason withheld")
                healthy = False
        if healthy and "verbose" not in request.query:
            return web.Response(text="ok")
        verdict = f"{name} check {'passed' if healthy else 'failed'}"
        return web.Response(status=200 if healthy else 500, text="\n".join((*lines, verdict, "")))


def _json(document: Doc) -> web.Response:
    return web.Response(body=orjson.dumps(document), content_type="application/json")
