"""Questions that are wrong, too many, too large or abandoned: answered with the field, or ended."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import Future
from typing import Any

import pytest

from fairlead.core.engine.what_if.answers import answer
from fairlead.errors import BadRequest, TooManyRequests
from fairlead.runtime.copies import CopyFailed, CopyPool, ProcessCopy
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness
from tests.support.patience import until

POD = pod("p").doc()
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("most", {"kind": "FitQuestion", "objects": [POD], "most": 10**9}),
    ("most", {"kind": "FitQuestion", "objects": [POD], "most": "many"}),
    ("now", {"kind": "FitQuestion", "objects": [POD], "now": "soon"}),
    ("now", {"kind": "FitQuestion", "objects": [POD], "now": float("nan")}),
    ("objects", {"kind": "FitQuestion", "objects": 5}),
    ("objects", {"kind": "FitQuestion", "objects": [{"metadata": 5}]}),
    ("objects", {"kind": "SimulateQuestion", "objects": [{"kind": "Pod", "metadata": {"name": "x"}}]}),
    ("replaces", {"kind": "SimulateQuestion", "objects": [POD], "replaces": 5}),
    ("nodes", {"kind": "DrainQuestion", "nodes": {"a": 1}}),
    ("of", {"kind": "RowsQuestion", "of": "pods"}),
    ("of", {"kind": "RowsQuestion", "of": ["quotas"]}),
    ("nodes", {"kind": "RowsQuestion", "of": "devices", "nodes": "n0"}),
]


@pytest.fixture(scope="module")
def scheduler() -> Any:
    cluster = Harness(nodes=1)
    cluster.run(1)
    return cluster.assembled.schedulers[0]


@pytest.mark.parametrize(("field", "question"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_question_names_the_field(scheduler: Any, field: str, question: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match=f"^{field}: "):
        answer(scheduler, question, lambda function: function())


def at_once(function: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(function(None))
    return future


def children() -> int:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return len(file.read().split())


async def test_few_copies_are_made_at_a_time_and_few_questions_wait() -> None:
    pool = CopyPool(2, waiting=3)
    before = children()
    asked = [asyncio.create_task(pool.ask(at_once, lambda _: signal.pause())) for _ in range(5)]
    await until(lambda: children() - before == 2, "two copies")
    for _ in range(50):  # turns in which a third copy could be made
        await asyncio.sleep(0)
    assert children() - before == 2
    with pytest.raises(TooManyRequests, match="too many questions"):
        await pool.ask(at_once, lambda _: 1)
    for task in asked:
        task.cancel()
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended)
    await until(lambda: children() == before, "the copies are gone")
    assert await pool.ask(at_once, lambda _: 7) == 7


def test_a_copy_that_is_killed_while_somebody_waits_says_so() -> None:
    copy = ProcessCopy(signal.pause)
    copy.kill()
    with pytest.raises(CopyFailed, match="without an answer"):
        copy.result()
    copy.kill()
