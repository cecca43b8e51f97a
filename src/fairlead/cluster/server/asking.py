"""Questions about what would happen, over HTTP: one path, the same on the embedded API server and on a scheduler's own
port.

    POST /apis/fairlead.io/v1/questions        {"kind": "SimulateQuestion", "objects": [...]}

The question goes to each scheduler of the server in turn; the first answer is the answer. Reading a question changes
nothing in the cluster, but its body may be long, so it is a POST.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import orjson

from fairlead.errors import BadRequest, NotFound

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fairlead.core.model.flow import Doc

QUESTIONS_PATH = "/apis/fairlead.io/v1/questions"
Answerer = Callable[["Doc"], "Future[Doc]"]
"""Puts a question to one scheduler."""


async def answer_to(
    body: bytes, answerers: Sequence[Answerer], may_list_pods: Callable[[str], Awaitable[None]] | None = None
) -> Doc:
    """The answer to a question as it came; BadRequest if it is none. `may_list_pods` raises if the caller may not read
    the names of pods in a namespace, or in all (""): a list of evictions is full of them."""
    try:
        question = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the question is not JSON: {error}") from None
    if not isinstance(question, dict):
        raise BadRequest("the question is not an object")
    if may_list_pods is not None and question.get("kind") == "EvictionsQuestion":
        await may_list_pods(str(question.get("namespace") or ""))
    for answerer in answerers:
        return await asyncio.wrap_future(answerer(question))
    raise NotFound("no scheduler of fairlead's own runs here, so nobody can be asked")
