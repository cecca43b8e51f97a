"""One history of the objects explains what all clients saw while connections are cut; an error would be noticed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from copy import deepcopy

import pytest

from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.store.history import Subscription
from tests.support.history.checker import Checker
from tests.support.history.clients import Clients
from tests.support.history.record import Record, Session, State, Told, Tried, Wrote
from tests.support.served import served

WRITES = 100


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials.generate(now=time.time())


def played(credentials: Credentials, writes: int = WRITES) -> Record:
    """What clients saw of a server while they made so many writes."""

    async def play() -> Record:
        clients = Clients(1, cut_every=0.05)

        async def enough() -> bool:
            await clients.wrote(writes)
            return False

        async with asyncio.timeout(60), served(credentials) as client:
            await clients.life(client.server.url, credentials.token, credentials.ca, enough())
        return clients.record

    return asyncio.run(play())


@pytest.fixture(scope="module")
def record(credentials: Credentials) -> Record:
    return played(credentials)


def test_one_history_explains_all(record: Record) -> None:
    assert Checker(record).check() == []
    assert sum(len(session.told) for session in record.sessions) > WRITES


def dropped(told: list[Told], at: int) -> None:
    del told[at]


def repeated(told: list[Told], at: int) -> None:
    told.insert(at, told[at])


def swapped(told: list[Told], at: int) -> None:
    told[at], told[at + 1] = told[at + 1], told[at]


@pytest.mark.parametrize("error", [dropped, repeated, swapped])
def test_an_error_in_what_one_watcher_gets_is_noticed(record: Record, error: Callable[[list[Told], int], None]) -> None:
    rng = random.Random(1)
    for number, session in enumerate(record.sessions[:8]):
        events = [at for at, told in enumerate(session.told[:-1]) if told.name and session.told[at + 1].name]
        for at in rng.sample(events, min(2, len(events))):
            wrong = deepcopy(record)
            error(wrong.sessions[number].told, at)
            assert Checker(wrong).check(), (error.__name__, number, at)


@pytest.mark.parametrize("error", [dropped, repeated, swapped])
def test_an_error_of_the_server_is_noticed(
    credentials: Credentials, monkeypatch: pytest.MonkeyPatch, error: Callable[[list[Told], int], None]
) -> None:
    """Every watcher is told wrongly once, when some dozens of events have gone out."""
    drain, sent = Subscription.drain, 0

    def wrong(self: Subscription, limit: int | None = None) -> list[Told]:
        nonlocal sent
        events = drain(self, limit)
        sent += len(events)
        if sent > 50 and len(events) > 1:
            sent = 0
            error(events, 0)
        return events

    monkeypatch.setattr(Subscription, "drain", wrong)
    assert Checker(played(credentials)).check()


def state(version: int, content: str = "1") -> State:
    return State(version, "u", content, "a")


def small(*, version_after: int, listed: dict[str, State]) -> Record:
    """One object, written and changed, a kill, and what is listed afterwards."""
    record = Record(wrote=[Wrote("c", state(5, "1")), Wrote("c", state(6, "2"), expected=5)], killed_at=[6])
    record.tried = [*map(tried, ("1", "2"))]
    record.sessions = [Session("", 4, {}, 0, [Told("ADDED", "c", state(5, "1")), Told("MODIFIED", "c", state(6, "2"))])]
    record.sessions.append(Session("", version_after, listed, 1))
    return record


def tried(content: str | None) -> Tried:
    return Tried("c", content)


def test_what_a_lost_sync_leaves_is_noticed() -> None:
    """The files are those of before the last acknowledged write."""
    assert Checker(small(version_after=6, listed={"c": state(6, "2")})).check() == []
    assert Checker(small(version_after=5, listed={"c": state(5, "1")})).check()
    assert Checker(small(version_after=6, listed={})).check()
    assert Checker(small(version_after=9, listed={"c": state(8, "1")})).check()


def test_a_write_without_an_answer_may_have_happened_or_not() -> None:
    for listed in ({"c": state(6, "2")}, {"c": state(7, "3")}):
        wrong = small(version_after=8, listed=listed)
        wrong.tried.append(tried("3"))
        assert Checker(wrong).check() == []
    gone = small(version_after=8, listed={})
    gone.tried.append(tried(None))
    assert Checker(gone).check() == []


def test_two_writes_under_one_version_are_noticed() -> None:
    both = small(version_after=7, listed={"c": state(7, "3")})
    both.tried.append(tried("3"))
    both.wrote.append(Wrote("c", state(7, "3"), expected=5))
    assert Checker(both).check()
