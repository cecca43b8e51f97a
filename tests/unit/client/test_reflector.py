"""Reflector and Mirror against a scripted api: lists, watches that break off, and 410."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.client.mirror import Mirror
from fairlead.client.port import Page, Query, WatchEvent
from fairlead.client.reflector import Recorded, Reflector
from fairlead.client.retries import Retries
from fairlead.core.model.flow import Change, Doc, Happened, Watch
from fairlead.core.model.kinds import NODE, POD
from fairlead.errors import ApiError, Forbidden, Gone, NotFound, TooManyRequests, Unreachable


def doc(name: str, version: int, *, uid: str = "", namespace: str = "n") -> Doc:
    metadata = {"name": name, "uid": uid or name, "resourceVersion": str(version), "namespace": namespace}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}


def event(type_: Any, name: str, version: int, **more: Any) -> WatchEvent:
    return WatchEvent(type_, doc(name, version, **more))


class Over(BaseException):
    """The script is at its end."""


class Scripted:
    """A ClusterApi that says what it is told to: lists answer Pages or errors, a watch says events and then ends or
    raises. It remembers how it was asked."""

    def __init__(self, lists: Sequence[Page | ApiError], watches: Sequence[Sequence[WatchEvent | ApiError]]) -> None:
        self.lists, self.watches = list(lists), list(watches)
        self.asked: list[dict[str, Any]] = []
        self.closed = 0

    async def list(self, kind: Any, query: Query) -> Page:
        self.asked.append({"list": kind, **asdict(query)})
        if not self.lists:
            raise Over
        answer = self.lists.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def watch(self, kind: Any, query: Query) -> AsyncIterator[WatchEvent]:
        self.asked.append({"watch": kind, **asdict(query)})
        if not self.watches:
            raise Over
        try:
            for answer in self.watches.pop(0):
                if isinstance(answer, ApiError):
                    raise answer
                yield answer
        finally:
            self.closed += 1


def page(*docs: Doc, version: int, continue_: str = "") -> Page:
    return Page(list(docs), str(version), continue_)


async def play(api: Scripted, watch: Watch = Watch(POD)) -> tuple[Reflector, list[tuple[str, str]], list[float]]:  # noqa: B008
    """Run a reflector to the end of the script: what it told, and how long it wanted to pause."""
    told: list[tuple[str, str]] = []
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    reflector = Reflector(api, watch, retries=Retries(rng=random.Random(1), sleep=pause), page=2)  # type: ignore[arg-type]
    reflector.listen(lambda changes: told.extend((c.happened.value, c.doc["metadata"]["name"]) for c in changes))
    with pytest.raises(Over):
        await reflector.run()
    return reflector, told, pauses


def names(reflector: Reflector) -> list[str]:
    return [each["metadata"]["name"] for each in reflector.list()]


async def test_a_list_in_pages_is_reported_as_one_and_watched_from_its_version() -> None:
    api = Scripted([page(doc("a", 1), doc("b", 2), version=9, continue_="x"), page(doc("c", 3), version=9)],
                   [[event("MODIFIED", "a", 10)]])  # fmt: skip
    reflector, told, _ = await play(api)
    assert told == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("MODIFIED", "a")]
    assert [ask.get("continue_") for ask in api.asked[:2]] == ["", "x"]
    assert api.asked[2]["resource_version"] == "9"
    assert api.asked[3]["resource_version"] == "10"
    assert names(reflector) == ["a", "b", "c"]


async def test_a_watch_that_breaks_off_is_resumed_where_it_was_after_a_pause() -> None:
    api = Scripted([page(version=5)], [[event("ADDED", "a", 6), Unreachable("cut")], [event("DELETED", "a", 7)]])
    _, told, pauses = await play(api)
    assert told == [("ADDED", "a"), ("DELETED", "a")]
    assert [ask["resource_version"] for ask in api.asked if "watch" in ask] == ["5", "6", "7"]
    assert len(pauses) == 1
    assert api.closed == 2


async def test_a_bookmark_moves_the_place_to_resume_from_and_is_shown_to_nobody() -> None:
    mark = WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "50"}})
    api = Scripted([page(version=5)], [[mark]])
    _, told, _ = await play(api)
    assert told == []
    assert api.asked[-1]["resource_version"] == "50"


async def test_after_410_a_new_list_is_reported_as_the_difference() -> None:
    first = page(doc("same", 1), doc("changed", 2), doc("vanished", 3), doc("replaced", 4), version=5)
    second = page(doc("same", 1), doc("changed", 8), doc("replaced", 9, uid="new"), doc("fresh", 10), version=11)
    api = Scripted([first, second], [[Gone("too old")]])
    reflector, told, pauses = await play(api)
    assert told[4:] == [
        ("DELETED", "vanished"),
        ("DELETED", "replaced"),
        ("MODIFIED", "changed"),
        ("ADDED", "replaced"),
        ("ADDED", "fresh"),
    ]
    assert sorted(names(reflector)) == ["changed", "fresh", "replaced", "same"]
    assert pauses == []


async def test_a_server_that_keeps_saying_410_is_given_time() -> None:
    api = Scripted([page(version=5)] * 3, [[Gone("no")], [Gone("no")], [Gone("no")]])
    _, _, pauses = await play(api)
    assert len(pauses) == 2


async def test_a_list_whose_snapshot_expired_is_read_again_in_one_piece() -> None:
    api = Scripted([page(doc("a", 1), version=5, continue_="x"), Gone("expired"), page(doc("b", 2), version=7)], [])
    _, told, _ = await play(api)
    assert told == [("ADDED", "b")]
    assert api.asked[2]["limit"] == 0
    assert api.asked[2]["continue_"] == ""


async def test_a_busy_server_is_left_alone_as_long_as_it_asks() -> None:
    api = Scripted([TooManyRequests("busy", retry_after=20.0), page(version=5)], [])
    _, _, pauses = await play(api)
    assert pauses == [20.0]


async def test_a_watch_that_ends_at_once_and_silent_is_not_asked_in_a_tight_loop() -> None:
    api = Scripted([page(version=5)], [[], [], []])
    _, _, pauses = await play(api)
    assert len(pauses) == 3
    assert pauses[-1] > pauses[0]


async def test_a_late_listener_gets_what_is_there() -> None:
    api = Scripted([page(doc("a", 1), version=5)], [])
    reflector, _, _ = await play(api)
    heard: list[Change] = []
    reflector.listen(heard.extend)
    assert [(c.happened, c.doc["metadata"]["name"]) for c in heard] == [(Happened.ADDED, "a")]


async def test_the_selection_of_the_watch_goes_with_every_request() -> None:
    api = Scripted([page(version=5)], [])
    await play(api, Watch(POD, field_selector="spec.nodeName=", label_selector="a", namespace="n"))
    for ask in api.asked:
        assert (ask["field_selector"], ask["label_selector"], ask["namespace"]) == ("spec.nodeName=", "a", "n")


Step = tuple[str, str]


@given(st.lists(st.tuples(st.sampled_from(["put", "delete", "cut", "gone"]), st.sampled_from("abc")), max_size=25))
def test_whatever_happens_the_changes_shown_lead_to_the_state_of_the_server(script: list[Step]) -> None:
    """A little server: objects by name, a version counter, a watch that breaks off or expires at any point."""
    state: dict[str, Doc] = {}
    version = 1
    lists = [page(version=1)]
    watches: list[list[WatchEvent | ApiError]] = [[]]
    unseen: list[WatchEvent] = []
    for action, name in script:
        if action == "cut":
            watches[-1] += [*unseen, Unreachable("cut")]
            watches.append([])
            unseen = []
        elif action == "gone":
            watches[-1].append(Gone("gone"))  # what was unseen is only in the next list
            watches.append([])
            lists.append(page(*state.values(), version=version))
            unseen = []
        elif action == "put" or name in state:
            version += 1
            kind = "DELETED" if action == "delete" else "MODIFIED" if name in state else "ADDED"
            born = state[name]["metadata"]["uid"] if name in state else f"{name}{version}"
            unseen.append(event(kind, name, version, uid=born))
            if kind == "DELETED":
                del state[name]
            else:
                state[name] = unseen[-1].doc
    watches[-1] += unseen
    replayed: dict[str, Doc] = {}

    def hear(changes: Sequence[Change]) -> None:
        for change in changes:
            name = change.doc["metadata"]["name"]
            assert (name in replayed) is (change.happened is not Happened.ADDED)
            if change.happened is Happened.DELETED:
                assert replayed.pop(name)["metadata"]["uid"] == change.doc["metadata"]["uid"]
            else:
                replayed[name] = change.doc

    async def main() -> Reflector:
        reflector = Reflector(Scripted(lists, watches), Watch(POD), retries=Retries(sleep=_no_pause))  # type: ignore[arg-type]
        reflector.listen(hear)
        with pytest.raises(Over):
            await reflector.run()
        return reflector

    reflector = asyncio.run(main())
    assert replayed == state
    assert {each["metadata"]["name"]: each for each in reflector.list()} == state


async def _no_pause(seconds: float) -> None: ...


# the mirror


class Still(Scripted):
    """Lists once, then watches in silence for ever."""

    async def watch(self, kind: Any, query: Query) -> AsyncIterator[WatchEvent]:
        self.asked.append({"watch": kind, **asdict(query)})
        await asyncio.Event().wait()
        yield event("ADDED", "never", 1)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 (any condition, and it takes no time)
            await asyncio.sleep(0)


async def test_one_watch_is_reflected_once_however_many_follow_it() -> None:
    api = Still([page(doc("a", 1), version=5)], [])
    mirror = Mirror(api)  # type: ignore[arg-type]
    woken: list[int] = []
    first = mirror.follow([Watch(POD)], lambda: woken.append(1))
    second = mirror.follow([Watch(POD)], lambda: woken.append(2))
    running = asyncio.ensure_future(mirror.run())
    await until(lambda: first.ready and second.ready)
    assert woken == [1, 2]
    assert [c.doc["metadata"]["name"] for c in first.drain()] == ["a"]
    assert [c.doc["metadata"]["name"] for c in second.drain()] == ["a"]
    assert list(first.drain()) == []
    assert len([ask for ask in api.asked if "list" in ask]) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_mirror_reads_what_is_watched_and_says_what_is_not() -> None:
    api = Still([page(doc("a", 1), doc("b", 2, namespace="m"), version=5), page(doc("a", 1), version=5)], [])
    mirror = Mirror(api)  # type: ignore[arg-type]
    mirror.follow([Watch(POD), Watch(POD, field_selector="spec.nodeName=")], lambda: None)
    running = asyncio.ensure_future(mirror.run())
    await until(lambda: mirror.listed)
    assert mirror.get(POD, "m", "b") == doc("b", 2, namespace="m")
    assert mirror.get(POD, "n", "b") is None
    assert sorted(each["metadata"]["name"] for each in mirror.list(POD)) == ["a", "b"]
    assert [each["metadata"]["name"] for each in mirror.list(POD, "n")] == ["a"]
    with pytest.raises(LookupError, match="nobody watches nodes"):
        mirror.get(NODE, "", "x")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_narrow_watches_of_one_kind_are_read_as_one() -> None:
    api = Still([page(doc("a", 1), version=5), page(doc("a", 1), doc("b", 2), version=5)], [])
    mirror = Mirror(api)  # type: ignore[arg-type]
    mirror.follow([Watch(POD, label_selector="x"), Watch(POD, label_selector="y")], lambda: None)
    running = asyncio.ensure_future(mirror.run())
    await until(lambda: mirror.listed)
    assert [each["metadata"]["name"] for each in mirror.list(POD)] == ["a", "b"]
    assert mirror.get(POD, "n", "b") is not None
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_one_can_do_without_and_another_cannot_is_reflected_once() -> None:
    """With two reflectors, who is told of an object by the one could read an older state of it from the other."""
    api = Still([page(doc("a", 1), version=5)], [])
    mirror = Mirror(api)  # type: ignore[arg-type]
    first = mirror.follow([Watch(POD, optional=True)], lambda: None)
    second = mirror.follow([Watch(POD)], lambda: None)
    running = asyncio.ensure_future(mirror.run())
    await until(lambda: first.ready and second.ready)
    assert len([ask for ask in api.asked if "list" in ask]) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_of_what_we_may_not_read_only_those_wait_who_need_it() -> None:
    class Refusing(Still):
        async def list(self, kind: Any, query: Query) -> Page:
            raise Forbidden("not you")

    mirror = Mirror(Refusing([], []))  # type: ignore[arg-type]
    woken: list[str] = []
    without = mirror.follow([Watch(POD, optional=True)], lambda: woken.append("without"))
    needing = mirror.follow([Watch(POD)], lambda: woken.append("needing"))
    in_part = mirror.follow([Watch(POD, part="modes")], lambda: None)
    running = asyncio.ensure_future(mirror.run())
    await until(lambda: without.ready)
    assert not needing.ready
    assert "without" in woken
    assert (in_part.ready, in_part.held) == (True, {"modes"})
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_the_newest_state_that_any_watch_has_shown_is_read() -> None:
    """Watches of one kind with different selectors are not equally far."""

    class Uneven(Still):
        async def watch(self, kind: Any, query: Query) -> AsyncIterator[WatchEvent]:
            if query.field_selector:
                yield event("MODIFIED", "a", 7)
            await asyncio.Event().wait()

    mirror = Mirror(Uneven([page(doc("a", 1), version=5), page(doc("a", 1), version=5)], []))  # type: ignore[arg-type]
    mirror.follow([Watch(POD)], lambda: None)
    told: list[Change] = []
    narrow = mirror.follow([Watch(POD, field_selector="spec.nodeName!=")], lambda: None)
    running = asyncio.ensure_future(mirror.run())

    def hears() -> bool:
        told.extend(narrow.drain())
        return len(told) == 2

    await until(hears)
    assert [each.doc["metadata"]["resourceVersion"] for each in told] == ["1", "7"]
    assert mirror.get(POD, "n", "a") == told[-1].doc
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_recorded_changes_are_a_sequence() -> None:
    recorded = Recorded(POD, [b'{"a":1}', b'{"a":2}', b'{"a":3}'])
    assert len(recorded) == 3
    assert [change.doc["a"] for change in recorded] == [1, 2, 3]
    assert recorded[-1].doc == {"a": 3}
    assert [change.doc["a"] for change in recorded[1:]] == [2, 3]


async def test_a_kind_that_the_server_does_not_know_has_no_objects_until_it_does() -> None:
    """Nobody waits for a definition that may never be installed; when it is, its objects come, and they go with it."""
    unknown = NotFound("the server could not find the requested resource")
    reflector, told, pauses = await play(Scripted([unknown], []))
    assert (reflector.listed, told, len(pauses)) == (True, [], 1)
    _, told, _ = await play(Scripted([unknown, page(doc("a", 1), version=5), unknown], [[NotFound("gone")]]))
    assert told == [("ADDED", "a"), ("DELETED", "a")]


async def test_what_we_may_not_read_is_none_only_where_we_can_do_without() -> None:
    refused = Forbidden("not you")
    reflector, _, _ = await play(Scripted([refused], []), Watch(POD, optional=True))
    assert reflector.listed
    reflector, _, _ = await play(Scripted([refused], []))
    assert not reflector.listed
