"""What a network does to watches and to the lease: hangs, cuts, repeats, nonsense. On virtual time."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from fairlead.client.client import Timeouts, _event
from fairlead.client.mirror import Mirror
from fairlead.client.port import Page, Query, WatchEvent
from fairlead.client.reflector import Reflector
from fairlead.client.retries import Retries
from fairlead.client.sockets import NOTICED_AFTER, PoolSockets
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.flow import Change, Doc, Verb, Watch, Write
from fairlead.core.model.kinds import LEASE, NODE, POD, PRIORITY_CLASS, Kind
from fairlead.errors import ApiError, InternalError, Interrupted, NotFound, Unreachable
from fairlead.runtime.leader import Election, Elector, LeadershipLost
from tests.support.virtual_loop import jump, now, run_virtually

# ---- watches ----


KEEPALIVE = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")


def doc(name: str, version: int) -> Doc:
    return {"metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(version)}}


class Script:
    """A server whose watches are scripts: events, errors, and numbers of seconds of silence."""

    def __init__(self, *watches: Sequence[Any], listed: Sequence[Doc] = (), absent: bool = False) -> None:
        self._watches = list(watches)
        self._listed, self._absent = listed, absent
        self.lists: list[float] = []
        self.watched: list[float] = []

    async def list(self, kind: Kind, *_: Any, **__: Any) -> Page:
        self.lists.append(now())
        if self._absent:
            raise NotFound("the server could not find the requested resource")
        return Page(list(self._listed), "10")

    async def watch(self, kind: Kind, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        self.watched.append(now())
        script: Sequence[Any] = self._watches.pop(0) if self._watches else [1e6]
        for each in script:
            if isinstance(each, BaseException):
                raise each
            if isinstance(each, int | float):
                await asyncio.sleep(each)
            else:
                yield each


def follow(api: Script, seconds: float) -> tuple[list[str], list[ApiError]]:
    """What a reflector tells, and which errors it met, within so many seconds."""

    async def play() -> tuple[list[str], list[ApiError]]:
        told: list[str] = []
        errors: list[ApiError] = []

        def hear(changes: Sequence[Change]) -> None:
            told.extend(
                f"{change.happened.value} {change.doc['metadata']['name']} {change.doc['metadata']['resourceVersion']}"
                for change in changes
            )

        reflector = Reflector(
            api,  # type: ignore[arg-type]
            Watch(POD),
            retries=Retries(rng=random.Random(1)),
            on_error=lambda watch, error, pause: errors.append(error),
        )
        reflector.listen(hear)
        task = asyncio.ensure_future(reflector.run())
        await asyncio.sleep(seconds)
        assert not task.done(), task.exception()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return told, errors

    return run_virtually(play())


def added(name: str, version: int) -> WatchEvent:
    return WatchEvent("ADDED", doc(name, version))


def test_a_line_that_is_no_event_costs_a_pause_and_no_process() -> None:
    for line in (
        b"<html>",
        b"[]",
        b'"text"',
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":"NEW","object":{"metadata":{}}}',
        b'{"type":"ADDED","object":{"metadata":null}}',
        b"\xff\xfe",
    ):
        with pytest.raises(InternalError, match="no event"):
            _event(line)
    api = Script([added("a", 11), InternalError("a line of the watch is no event")], [added("b", 12), 1e6])
    told, errors = follow(api, 30)
    assert told == ["ADDED a 11", "ADDED b 12"]
    assert len(errors) == 1


def test_an_event_without_a_name_or_version_makes_the_kind_be_listed_again() -> None:
    api = Script([added("a", 11), WatchEvent("MODIFIED", {"metadata": {}})], [added("b", 12), 1e6])
    told, errors = follow(api, 30)
    assert told == ["ADDED a 11", "DELETED a 11", "ADDED b 12"]
    assert len(api.lists) == 2
    assert len(errors) == 1


def test_a_server_that_sends_nonsense_again_and_again_is_listed_anew() -> None:
    nonsense = [InternalError("a line of the watch is no event")]
    api = Script(*[nonsense] * 5, [added("a", 11), 1e6])
    told, _ = follow(api, 120)
    assert told == ["ADDED a 11"]
    assert len(api.lists) > 1


def test_repeated_and_late_events_do_not_turn_back_time() -> None:
    later = WatchEvent("MODIFIED", doc("a", 13))
    api = Script([added("a", 11), later, added("a", 11), WatchEvent("BOOKMARK", doc("", 12)), added("b", 12), 1e6])
    told, _ = follow(api, 30)
    assert told == ["ADDED a 11", "MODIFIED a 13"]


def test_watches_that_are_cut_again_and_again_are_resumed_at_once() -> None:
    api = Script(*[[3.0, Interrupted("cut")]] * 20)
    follow(api, 90)
    assert len(api.watched) >= 20
    assert max(later - sooner for sooner, later in zip(api.watched, api.watched[1:], strict=False)) < 5
    assert len(api.lists) == 1


def test_a_kind_that_is_absent_is_asked_for_less_and_less() -> None:
    api = Script(absent=True)
    follow(api, 300)
    assert len(api.lists) <= 9


def test_silence_of_a_watch_is_noticed_soon_after_the_bookmark_that_did_not_come() -> None:
    assert 60 < Timeouts().idle <= 90


class Idle:
    """A server whose watches wait for events; those that were begun before a moment never bring any more. One kind is
    absent."""

    def __init__(self) -> None:
        self.events: list[tuple[Kind, WatchEvent]] = []
        self.deaf_before = 0.0
        self.watched: list[tuple[float, str]] = []
        self.down = False
        self._more = asyncio.Condition()

    async def list(self, kind: Kind, *_: Any, **__: Any) -> Page:
        if kind is PRIORITY_CLASS:
            raise NotFound("the server could not find the requested resource")
        return Page([], "10")

    async def watch(self, kind: Kind, query: Query, **__: Any) -> AsyncIterator[WatchEvent]:
        began, seen = now(), 0
        self.watched.append((began, kind.plural))
        if self.down:
            raise Unreachable("nobody is there")
        while True:
            for its, event in self.events[seen:]:
                newer = event.doc["metadata"]["resourceVersion"] > query.resource_version
                if its is kind and newer and began >= self.deaf_before:
                    yield event
            seen = len(self.events)
            async with self._more:
                await self._more.wait()

    async def happen(self, kind: Kind, event: WatchEvent) -> None:
        self.events.append((kind, event))
        async with self._more:
            self._more.notify_all()


def mirrored(play: Callable[[Idle, Mirror], Any]) -> None:
    async def run() -> None:
        api = Idle()
        mirror = Mirror(api)  # type: ignore[arg-type]
        for kind in (POD, LEASE, NODE, PRIORITY_CLASS):
            mirror.reflector(Watch(kind))
        task = asyncio.ensure_future(mirror.run())
        await asyncio.sleep(1)
        await play(api, mirror)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtually(run())


def test_what_silent_connections_kept_back_is_there_within_45_seconds() -> None:
    async def play(api: Idle, mirror: Mirror) -> None:
        await api.happen(POD, added("a", 11))
        await asyncio.sleep(100)
        api.deaf_before = now()
        await api.happen(POD, added("b", 12))
        await api.happen(NODE, added("n", 13))
        await asyncio.sleep(45)
        assert [one["metadata"]["name"] for one in mirror.list(POD)] == ["a", "b"]
        assert [one["metadata"]["name"] for one in mirror.list(NODE)] == ["n"]

    mirrored(play)


def test_an_idle_cluster_costs_two_requests_a_minute() -> None:
    async def play(api: Idle, mirror: Mirror) -> None:
        begun = len(api.watched)
        await asyncio.sleep(600)
        assert 10 < len(api.watched) - begun <= 20
        assert {kind for _, kind in api.watched[begun:]} == {"pods", "leases", "nodes"}

    mirrored(play)


def test_no_probe_is_sent_while_anything_arrives() -> None:
    async def play(api: Idle, mirror: Mirror) -> None:
        begun = len(api.watched)
        for version in range(11, 30):
            await api.happen(LEASE, added("a", version))
            await asyncio.sleep(20)
        assert len(api.watched) == begun

    mirrored(play)


def test_watches_are_begun_again_if_the_probe_cannot_be() -> None:
    async def play(api: Idle, mirror: Mirror) -> None:
        api.down, begun = True, len(api.watched)
        await asyncio.sleep(45)
        assert {kind for _, kind in api.watched[begun:]} == {"pods", "leases", "nodes"}

    mirrored(play)


def test_a_peer_that_is_gone_is_noticed_within_45_seconds() -> None:
    made = PoolSockets().make((socket.AF_INET, socket.SOCK_STREAM, 6, "", None))
    with made:
        asked = {name: made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in KEEPALIVE}
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    idle, between, count, unacknowledged = (asked[name] for name in KEEPALIVE)
    assert idle + between * count <= NOTICED_AFTER
    assert unacknowledged / 1000 + between <= NOTICED_AFTER


# ---- the lease ----


class Line:
    """A StoreApi over a line that can hang, be slow, lose answers, or be down."""

    def __init__(self, store: Store) -> None:
        self._api = StoreApi(store)
        self.hang_next, self.lose_next, self.seconds, self.down = 0, 0, 0.0, False

    async def get(self, kind: Kind, namespace: str, name: str) -> Doc:
        await self._travel()
        return await self._api.get(kind, namespace, name)

    async def perform(self, write: Write) -> Doc:
        await self._travel()
        answer = await self._api.perform(write)
        if self.lose_next:
            self.lose_next -= 1
            raise Unreachable("lost")
        return answer

    async def _travel(self) -> None:
        if self.hang_next:
            self.hang_next -= 1
            await asyncio.sleep(1e6)
        await asyncio.sleep(self.seconds)
        if self.down:
            raise Unreachable("down")


def elect(play: Callable[[Elector, Line, asyncio.Task[None], Store], Any]) -> None:
    async def run() -> None:
        store = Store(clock=now, rng=random.Random(1))
        line = Line(store)
        elector = Elector(line, Election("l", identity="me"), monotonic=now, wall=now, rng=random.Random(1))  # type: ignore[arg-type]
        task = asyncio.ensure_future(elector.run(lambda: asyncio.sleep(1e7)))
        await asyncio.sleep(5)
        assert elector.leading
        await play(elector, line, task, store)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtually(run())


def test_one_request_that_hangs_does_not_cost_the_lease() -> None:
    async def play(elector: Elector, line: Line, task: asyncio.Task[None], store: Store) -> None:
        for _ in range(20):
            line.hang_next = 1
            await asyncio.sleep(15)
            assert elector.may_write
            assert not task.done()

    elect(play)


def test_an_api_that_takes_two_seconds_a_request_does_not_cost_the_lease() -> None:
    async def play(elector: Elector, line: Line, task: asyncio.Task[None], store: Store) -> None:
        line.seconds = 2.0
        for _ in range(75):
            await asyncio.sleep(1)
            assert elector.may_write
        assert not task.done()

    elect(play)


def test_a_lost_answer_to_a_renewal_is_found_out() -> None:
    async def play(elector: Elector, line: Line, task: asyncio.Task[None], store: Store) -> None:
        line.lose_next = 1
        await asyncio.sleep(30)
        assert elector.may_write
        assert not task.done()

    elect(play)


def test_a_leader_that_was_stopped_longer_than_its_lease_may_not_write_when_it_wakes() -> None:
    async def play(elector: Elector, line: Line, task: asyncio.Task[None], store: Store) -> None:
        jump(20.0)
        assert not elector.may_write
        with pytest.raises(LeadershipLost):
            await task

    elect(play)


def test_a_leader_never_takes_back_a_lease_that_another_took_however_long_it_was_stopped() -> None:
    """It stops in every place in which it could find the other's lease run out by its own clock."""

    async def play(elector: Elector, line: Line, task: asyncio.Task[None], store: Store) -> None:
        lease = store.read(LEASE, "kube-system", "l")
        taken = {**lease, "spec": {**lease["spec"], "holderIdentity": "other", "leaseTransitions": 7}}
        store.perform(Write(Verb.UPDATE, LEASE, "kube-system", "l", taken))
        elector._valid = lambda: elector.leader == "me"  # type: ignore[method-assign]
        with pytest.raises(LeadershipLost):
            await task
        assert store.read(LEASE, "kube-system", "l")["spec"]["holderIdentity"] == "other"
        assert not elector.may_write

    elect(play)


def test_who_may_write_has_sent_its_renewal_before_another_could_take_over() -> None:
    async def play(elector: Elector, line: Line, task: asyncio.Task[None], store: Store) -> None:
        line.down = True
        since = now()
        while elector.may_write:  # noqa: ASYNC110 (virtual time)
            await asyncio.sleep(0.1)
        assert now() - since <= 10.1
        lease = store.read(LEASE, "kube-system", "l")
        assert lease["spec"]["holderIdentity"] == "me"
        store.perform(Write(Verb.DELETE, LEASE, "kube-system", "l"))

    elect(play)
