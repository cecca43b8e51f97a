"""A refused configuration is announced once for each reason, in a form that the API server takes."""

from __future__ import annotations

import asyncio
import random

import pytest

from fairlead.cli import refusals
from fairlead.cli.refusals import announce_refusals, event_about
from fairlead.cluster.store.store import Store
from fairlead.core.model.kinds import EVENT_V1

REASONS = (["a.yaml:3: no"], ["a.yaml:3: no"], [], ["a.yaml:3: no"], ["a.yaml:3: no", "b.conf:1: neither"])


async def test_each_reason_is_announced_once_and_again_after_it_was_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "LOOK_EVERY", 0.0)
    said: list[str] = []
    left, done = list(REASONS), asyncio.Event()

    def refused() -> list[str]:
        if len(left) == 1:
            done.set()
        return left.pop(0) if len(left) > 1 else left[0]

    async def announce(trouble: str) -> None:
        said.append(trouble)

    announcing = asyncio.ensure_future(announce_refusals(refused, announce))
    await done.wait()
    await asyncio.sleep(0)
    announcing.cancel()
    await asyncio.gather(announcing, return_exceptions=True)
    assert said == ["a.yaml:3: no", "a.yaml:3: no", "a.yaml:3: no; b.conf:1: neither"]


def test_the_event_is_one_that_a_server_takes() -> None:
    store = Store(clock=lambda: 1_700_000_000.0, rng=random.Random(1))
    write = event_about("fairlead-7d", "default", "x" * 5000, 1_700_000_000.0)
    store.perform(write)
    made = store.read(EVENT_V1, "default", write.name)
    assert (made["reason"], made["regarding"]["name"]) == ("ConfigurationRefused", "fairlead-7d")
    assert len(made["note"]) <= 1024
