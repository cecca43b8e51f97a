"""Watches: from now, from a version, by selection, with bookmarks and initial events; and 410."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from fairlead.client.port import Query
from fairlead.client.reflector import Reflector
from fairlead.core.model.flow import Change, Watch
from fairlead.core.model.kinds import CONFIG_MAP, NODE, POD
from fairlead.errors import Gone
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.documents import config, node, pod


async def version(world: ApiUnderTest) -> str:
    return (await world.api.list(CONFIG_MAP, Query(namespace=world.namespace))).resource_version


async def test_a_watch_from_a_version_replays_what_came_after(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("before"))
    start = await version(world)
    doc = await world.create(CONFIG_MAP, config("a", {"n": "1"}))
    await world.update(CONFIG_MAP, doc | {"data": {"n": "2"}})
    await world.delete(CONFIG_MAP, "a")
    assert await world.events(3, CONFIG_MAP, resource_version=start) == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


async def test_a_watch_without_a_version_begins_with_all_there_is(world: ApiUnderTest) -> None:
    for name in "abc":
        await world.create(CONFIG_MAP, config(name))
    assert sorted(await world.events(3, CONFIG_MAP)) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


async def test_a_watch_shows_what_happens_while_it_is_open(world: ApiUnderTest) -> None:
    start = await version(world)
    watching = asyncio.ensure_future(world.events(2, CONFIG_MAP, resource_version=start))
    await world.create(CONFIG_MAP, config("a"))
    await world.delete(CONFIG_MAP, "a")
    assert await watching == [("ADDED", "a"), ("DELETED", "a")]


async def test_events_carry_whole_objects_with_rising_versions(world: ApiUnderTest) -> None:
    start = await version(world)
    doc = await world.create(CONFIG_MAP, config("a", {"n": "1"}))
    await world.delete(CONFIG_MAP, "a")
    stream = world.api.watch(CONFIG_MAP, Query(namespace=world.namespace, resource_version=start), timeout=120)
    added = await anext(stream)
    deleted = await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert added.doc == doc
    assert (deleted.doc["data"], deleted.doc["metadata"]["uid"]) == ({"n": "1"}, doc["metadata"]["uid"])
    assert int(deleted.doc["metadata"]["resourceVersion"]) > int(doc["metadata"]["resourceVersion"])


async def test_a_watch_resumes_after_the_version_it_was_given(world: ApiUnderTest) -> None:
    first = await world.create(CONFIG_MAP, config("a"))
    await world.create(CONFIG_MAP, config("b"))
    resumed = await world.events(1, CONFIG_MAP, resource_version=first["metadata"]["resourceVersion"])
    assert resumed == [("ADDED", "b")]


async def test_an_object_that_enters_a_selection_is_added_and_one_that_leaves_it_deleted(world: ApiUnderTest) -> None:
    start = await version(world)
    doc = await world.create(CONFIG_MAP, config("a", labels={"in": "no"}))
    doc["metadata"]["labels"] = {"in": "yes"}
    doc = await world.update(CONFIG_MAP, doc)
    doc["data"] = {"n": "1"}
    doc = await world.update(CONFIG_MAP, doc)
    doc["metadata"]["labels"] = {"in": "no"}
    await world.update(CONFIG_MAP, doc)
    assert await world.events(3, CONFIG_MAP, resource_version=start, label_selector="in=yes") == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


async def test_a_watch_by_field_sees_a_pod_leave_when_it_is_bound(world: ApiUnderTest) -> None:
    where = world.name("node")
    await world.create(NODE, node(where))
    start = await version(world)
    await world.create(POD, pod("p"))
    await world.bind("p", where)
    unbound = await world.events(2, POD, resource_version=start, field_selector="spec.nodeName=")
    assert unbound == [("ADDED", "p"), ("DELETED", "p")]
    assert await world.events(1, POD, resource_version=start, field_selector=f"spec.nodeName={where}") == [
        ("ADDED", "p")
    ]


async def test_initial_events_end_with_a_marked_bookmark(world: ApiUnderTest) -> None:
    for name in "ab":
        await world.create(CONFIG_MAP, config(name))
    stream = world.api.watch(CONFIG_MAP, Query(namespace=world.namespace), send_initial_events=True, timeout=120)
    seen = [await anext(stream) for _ in range(3)]
    await world.create(CONFIG_MAP, config("c"))
    async for event in stream:
        if event.type != "BOOKMARK":
            break
    await stream.aclose()  # type: ignore[attr-defined]
    assert [event.type for event in seen] == ["ADDED", "ADDED", "BOOKMARK"]
    assert seen[2].doc["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(seen[2].doc["metadata"]["resourceVersion"]) >= int(seen[1].doc["metadata"]["resourceVersion"])
    assert (event.type, event.doc["metadata"]["name"]) == ("ADDED", "c")


async def test_initial_events_without_bookmarks_have_no_marked_end(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a"))
    stream = world.api.watch(
        CONFIG_MAP, Query(namespace=world.namespace), send_initial_events=True, bookmarks=False, timeout=1
    )
    assert [event.type async for event in stream] == ["ADDED"]


async def test_a_watch_ends_when_its_time_is_over(world: ApiUnderTest) -> None:
    start = await version(world)
    async with asyncio.timeout(180):
        seen = [
            event.type
            async for event in world.api.watch(
                CONFIG_MAP, Query(namespace=world.namespace, resource_version=start), timeout=1
            )
        ]
    assert set(seen) <= {"BOOKMARK"}


async def test_a_watch_from_a_forgotten_version_is_gone(own_world: ApiUnderTest) -> None:
    """Not on the real server: it keeps recent events in a cache that only a restart wipes."""
    start = await version(own_world)
    await own_world.create(CONFIG_MAP, config("a"))
    await own_world.create(CONFIG_MAP, config("b"))
    await own_world.forget()
    with pytest.raises(Gone, match=r"too old resource version: \d+ \(\d+\)") as caught:
        await own_world.events(1, CONFIG_MAP, resource_version=start)
    assert caught.value.code == 410


async def test_a_reflector_mirrors_any_of_them(world: ApiUnderTest) -> None:
    for name in "abcde":
        await world.create(CONFIG_MAP, config(name))
    heard: list[tuple[str, str]] = []
    more = asyncio.Event()

    def hear(changes: Sequence[Change]) -> None:
        heard.extend((change.happened.value, change.doc["metadata"]["name"]) for change in changes)
        more.set()

    reflector = Reflector(world.api, Watch(CONFIG_MAP, namespace=world.namespace), page=2)
    reflector.listen(hear)
    running = asyncio.ensure_future(reflector.run())
    try:
        async with asyncio.timeout(180):
            while len(heard) < 5:
                more.clear()
                await more.wait()
            doc = await world.get(CONFIG_MAP, "a")
            await world.update(CONFIG_MAP, doc | {"data": {"x": "y"}})
            await world.delete(CONFIG_MAP, "b")
            while len(heard) < 7:
                more.clear()
                await more.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert heard == [("ADDED", name) for name in "abcde"] + [("MODIFIED", "a"), ("DELETED", "b")]
    assert [doc["metadata"]["name"] for doc in reflector.list()] == list("acde")
    assert reflector.get(world.namespace, "a") == await world.get(CONFIG_MAP, "a")
