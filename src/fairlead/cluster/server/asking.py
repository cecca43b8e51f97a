"""Questions about what would happen, over HTTP: one path, the same on the embedded API server and on a scheduler's own
port.

    POST /apis/fairlead.io/v1/questions        {"kind": "SimulateQuestion", "objects": [...]}

The question goes to each scheduler of the server in turn; the first answer is the answer. Reading a question changes
nothing in the cluster, but its body may be long, so it is a POST.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from fairlead.cluster.server.negotiation import read_body
from fairlead.errors import BadRequest, NotFound, Unreachable

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest

    from fairlead.cluster.server.explaining import AskExplainer
    from fairlead.core.model.flow import Doc

QUESTIONS_PATH = "/apis/fairlead.io/v1/questions"
STATUS_PATH = "/apis/fairlead.io/v1/status"
"""How the scheduler of the process is, as `fairlead status` shows it."""
Answerer = Callable[["Doc"], "Awaitable[Doc]"]
"""Puts a question to one scheduler. Cancelling ends the work on it."""
MayListPods = Callable[[str], "Awaitable[None]"]
"""Raises if the caller may not read the names of pods in a namespace, or in all ("")."""
_LOOK_EVERY = 0.5
_COUNT = frozenset({"FitQuestion", "NeedQuestion"})
"""Questions whose answers count, and name no pods but those that were asked about."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The schedulers that answer questions: what explains a pod, and what says what would happen."""

    explainers: Sequence[AskExplainer] = ()
    answerers: Sequence[Answerer] = ()


NOBODY_ASKED = Asked()


async def answer_to_request(
    request: BaseRequest, answerers: Sequence[Answerer], may_list_pods: MayListPods | None = None
) -> Doc:
    """The answer to a request; the work on it ends when the client goes."""
    working = asyncio.ensure_future(answer_to(await read_body(request), answerers, may_list_pods))
    try:
        while not (await asyncio.wait({working}, timeout=_LOOK_EVERY))[0]:
            if request.transport is None or request.transport.is_closing():
                raise Unreachable("the client has gone")
        return working.result()
    finally:
        if not working.done():
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working


async def answer_to(body: bytes, answerers: Sequence[Answerer], may_list_pods: MayListPods | None = None) -> Doc:
    """The answer to a question as it came. Raises BadRequest if the body is not a question. Answers name pods, so the
    caller needs the right to list them: in the namespaces that the question is about, or in all if any may be named."""
    try:
        question = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the question is not JSON: {error}") from None
    if not isinstance(question, dict):
        raise BadRequest("the question is not an object")
    if may_list_pods is not None:
        for namespace in sorted(set(_namespaces(question))):
            await may_list_pods(namespace)
    for answerer in answerers:
        return await answerer(question)
    raise NotFound("no scheduler of fairlead's own runs here, so nobody can be asked")


def _namespaces(question: Doc) -> Iterator[str]:
    """The namespaces of whose pods the answer may speak; "" for all."""
    kind, objects = question.get("kind"), question.get("objects")
    if kind == "EvictionsQuestion":
        yield str(question.get("namespace") or "")
    elif kind not in _COUNT or not isinstance(objects, list):
        yield ""
    else:
        for one in objects:
            metadata = one.get("metadata") if isinstance(one, dict) else None
            yield str((metadata or {}).get("namespace") or "default") if isinstance(metadata, dict) else ""
