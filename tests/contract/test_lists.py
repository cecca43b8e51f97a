"""Lists: selectors, pages, versions."""

from __future__ import annotations

import pytest

from fairlead.client.port import Query
from fairlead.core.model.kinds import CONFIG_MAP, NODE, POD
from fairlead.errors import BadRequest, Gone
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.documents import config, node, pod


async def test_items_say_what_they_are_and_the_list_has_a_version(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a"))
    page = await world.api.list(CONFIG_MAP, Query(namespace=world.namespace))
    assert page.items == [doc]
    assert int(page.resource_version) >= int(doc["metadata"]["resourceVersion"])
    assert (page.continue_, page.remaining) == ("", None)


async def test_lists_are_sorted_by_name(world: ApiUnderTest) -> None:
    for name in ("b", "a-b", "a", "a.b", "c"):
        await world.create(CONFIG_MAP, config(name))
    assert await world.names(CONFIG_MAP) == ["a", "a-b", "a.b", "b", "c"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=web", ["a", "b"]),
        ("tier==web,size!=big", ["b"]),
        ("tier!=web", ["c", "d"]),
        ("tier in (web,db)", ["a", "b", "c"]),
        ("tier notin (web)", ["c", "d"]),
        ("size", ["a"]),
        ("!tier", ["d"]),
        ("tier,!size", ["b", "c"]),
    ],
)
async def test_label_selectors_choose(world: ApiUnderTest, selector: str, expected: list[str]) -> None:
    labels = {"a": {"tier": "web", "size": "big"}, "b": {"tier": "web"}, "c": {"tier": "db"}, "d": {}}
    for name, own in labels.items():
        await world.create(CONFIG_MAP, config(name, labels=own))
    assert await world.names(CONFIG_MAP, label_selector=selector) == expected


async def test_field_selectors_choose(world: ApiUnderTest) -> None:
    for name in ("a", "b"):
        await world.create(POD, pod(name))
    where = world.name("node")
    await world.create(NODE, node(where))
    await world.bind("a", where)
    assert await world.names(POD, field_selector="metadata.name=b") == ["b"]
    assert await world.names(POD, field_selector=f"spec.nodeName={where}") == ["a"]
    assert await world.names(POD, field_selector="spec.nodeName=") == ["b"]
    assert await world.names(POD, field_selector="status.phase!=Pending") == []
    assert await world.names(POD, field_selector="spec.schedulerName=default-scheduler,status.phase=Pending") == [
        "a",
        "b",
    ]


async def test_a_selector_that_makes_no_sense_is_a_bad_request(world: ApiUnderTest) -> None:
    with pytest.raises(BadRequest, match="unable to parse requirement"):
        await world.names(POD, label_selector="a in b")
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.surprise"):
        await world.names(POD, field_selector="spec.surprise=1")


async def test_a_list_comes_in_pages_of_one_moment(world: ApiUnderTest) -> None:
    for name in "abcde":
        await world.create(CONFIG_MAP, config(name))
    seen, token, versions = [], "", set()
    while True:
        page = await world.api.list(CONFIG_MAP, Query(namespace=world.namespace, limit=2, continue_=token))
        seen += [item["metadata"]["name"] for item in page.items]
        versions.add(page.resource_version)
        if len(seen) == 2:
            assert page.remaining == 3
            await world.delete(CONFIG_MAP, "e")
            await world.create(CONFIG_MAP, config("c2"))
        token = page.continue_
        if not token:
            break
    assert seen == ["a", "b", "c", "d", "e"]
    assert len(versions) == 1


async def test_pages_of_a_selection_do_not_say_how_many_remain(world: ApiUnderTest) -> None:
    for name in "abc":
        await world.create(CONFIG_MAP, config(name, labels={"x": "y"}))
    page = await world.api.list(CONFIG_MAP, Query(namespace=world.namespace, limit=1, label_selector="x=y"))
    assert page.continue_
    assert page.remaining is None


async def test_a_continue_token_that_is_none_is_a_bad_request(world: ApiUnderTest) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid"):
        await world.api.list(CONFIG_MAP, Query(namespace=world.namespace, limit=1, continue_="nonsense"))


async def test_a_continue_token_of_a_forgotten_moment_is_gone(world: ApiUnderTest) -> None:
    for name in "abc":
        await world.create(CONFIG_MAP, config(name))
    page = await world.api.list(CONFIG_MAP, Query(namespace=world.namespace, limit=1))
    await world.create(CONFIG_MAP, config("d"))
    await world.forget()
    with pytest.raises(Gone, match="The provided continue parameter is too old") as caught:
        await world.api.list(CONFIG_MAP, Query(namespace=world.namespace, limit=1, continue_=page.continue_))
    assert caught.value.code == 410


async def test_a_list_can_be_of_an_exact_version(world: ApiUnderTest) -> None:
    first = await world.create(CONFIG_MAP, config("a"))
    version = first["metadata"]["resourceVersion"]
    await world.create(CONFIG_MAP, config("b"))
    await world.delete(CONFIG_MAP, "a")
    page = await world.api.list(
        CONFIG_MAP, Query(namespace=world.namespace, resource_version=version, resource_version_match="Exact")
    )
    assert [item["metadata"]["name"] for item in page.items] == ["a"]
    assert page.resource_version == version


async def test_a_list_of_a_forgotten_version_is_gone(world: ApiUnderTest) -> None:
    first = await world.create(CONFIG_MAP, config("a"))
    await world.create(CONFIG_MAP, config("b"))
    await world.forget()
    with pytest.raises(Gone, match=r"The resourceVersion for the provided list is too old\."):
        await world.api.list(
            CONFIG_MAP,
            Query(
                namespace=world.namespace,
                resource_version_match="Exact",
                resource_version=first["metadata"]["resourceVersion"],
            ),
        )


async def test_a_list_not_older_than_a_version_shows_at_least_that(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a"))
    second = await world.create(CONFIG_MAP, config("b"))
    version = second["metadata"]["resourceVersion"]
    page = await world.api.list(
        CONFIG_MAP, Query(namespace=world.namespace, resource_version=version, resource_version_match="NotOlderThan")
    )
    assert [item["metadata"]["name"] for item in page.items] == ["a", "b"]
    assert int(page.resource_version) >= int(version)


@pytest.mark.parametrize(
    ("version", "match", "words"),
    [
        ("", "Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("0", "Exact", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
        ("1", "Sometime", "supported values"),
    ],
)
async def test_a_version_match_that_makes_no_sense_is_refused(
    world: ApiUnderTest, version: str, match: str, words: str
) -> None:
    from fairlead.errors import ApiError

    with pytest.raises(ApiError, match=words) as caught:
        await world.api.list(
            CONFIG_MAP, Query(namespace=world.namespace, resource_version=version, resource_version_match=match)
        )
    assert caught.value.code in (400, 422)


async def test_lists_reach_over_all_namespaces(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a", labels={"only": world.namespace}))
    page = await world.api.list(CONFIG_MAP, Query(label_selector=f"only={world.namespace}"))
    assert [item["metadata"]["namespace"] for item in page.items] == [world.namespace]
