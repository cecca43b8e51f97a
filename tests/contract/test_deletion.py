"""Deletion: at once, gracefully, held by finalizers, with preconditions, as a collection."""

from __future__ import annotations

import pytest

from fairlead.core.model.kinds import CONFIG_MAP, NAMESPACE, NODE, POD
from fairlead.errors import Conflict, Forbidden, Invalid, NotFound
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.documents import config, node, pod


async def bound(world: ApiUnderTest, name: str = "p", **metadata: object) -> None:
    where = world.name("node")
    await world.create(NODE, node(where))
    await world.create(POD, pod(name, **metadata))
    await world.bind(name, where)


async def test_an_object_without_ties_is_gone_at_once(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a"))
    answer = await world.delete(CONFIG_MAP, "a")
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": doc["metadata"]["uid"]}
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await world.delete(CONFIG_MAP, "a")


async def test_a_finalizer_holds_an_object_until_it_is_taken_away(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a", finalizers=["example.com/hold"]))
    doc = await world.delete(CONFIG_MAP, "a")
    assert doc["kind"] == "ConfigMap"
    assert doc["metadata"]["deletionTimestamp"]
    assert doc["metadata"]["deletionGracePeriodSeconds"] == 0
    again = await world.delete(CONFIG_MAP, "a")
    assert again["metadata"]["deletionTimestamp"] == doc["metadata"]["deletionTimestamp"]
    held = await world.get(CONFIG_MAP, "a")
    held["metadata"]["finalizers"] = []
    await world.update(CONFIG_MAP, held)
    with pytest.raises(NotFound):
        await world.get(CONFIG_MAP, "a")


async def test_no_finalizer_may_be_added_to_what_is_going_away(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a", finalizers=["example.com/hold"]))
    doc = await world.delete(CONFIG_MAP, "a")
    doc["metadata"]["finalizers"].append("example.com/more")
    with pytest.raises(Invalid, match="no new finalizers can be added if the object is being deleted"):
        await world.update(CONFIG_MAP, doc)


async def test_a_bound_pod_is_given_its_grace_and_goes_when_it_is_over(world: ApiUnderTest) -> None:
    await bound(world)
    doc = await world.delete(POD, "p")
    assert doc["metadata"]["deletionGracePeriodSeconds"] == 30
    assert doc["metadata"]["deletionTimestamp"] > doc["metadata"]["creationTimestamp"]
    assert (await world.get(POD, "p"))["metadata"]["deletionTimestamp"]
    await world.delete(POD, "p", {"gracePeriodSeconds": 0})
    with pytest.raises(NotFound):
        await world.get(POD, "p")


async def test_grace_can_be_shortened_but_not_lengthened(world: ApiUnderTest) -> None:
    await bound(world)
    first = await world.delete(POD, "p", {"gracePeriodSeconds": 20})
    assert first["metadata"]["deletionGracePeriodSeconds"] == 20
    longer = await world.delete(POD, "p", {"gracePeriodSeconds": 100})
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 20
    shorter = await world.delete(POD, "p", {"gracePeriodSeconds": 5})
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_a_pod_that_nobody_runs_is_gone_at_once(world: ApiUnderTest) -> None:
    await world.create(POD, pod("p"))
    await world.delete(POD, "p")
    with pytest.raises(NotFound):
        await world.get(POD, "p")


async def test_preconditions_must_hold(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a"))
    uid, version = doc["metadata"]["uid"], doc["metadata"]["resourceVersion"]
    with pytest.raises(Conflict) as caught:
        await world.delete(CONFIG_MAP, "a", {"preconditions": {"uid": "other"}})
    assert caught.value.message == (
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID '
        f"in record ({uid}). The object might have been deleted and then recreated"
    )
    with pytest.raises(Conflict) as caught:
        await world.delete(CONFIG_MAP, "a", {"preconditions": {"resourceVersion": "1"}})
    assert caught.value.message == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match '
        f"the ResourceVersion in record ({version}). The object might have been modified"
    )
    await world.delete(CONFIG_MAP, "a", {"preconditions": {"uid": uid, "resourceVersion": version}})


async def test_foreground_and_orphan_deletion_leave_their_finalizers(world: ApiUnderTest) -> None:
    for name, policy, finalizer in (("f", "Foreground", "foregroundDeletion"), ("o", "Orphan", "orphan")):
        await world.create(CONFIG_MAP, config(name))
        await world.delete(CONFIG_MAP, name, {"propagationPolicy": policy})
        doc = await world.get(CONFIG_MAP, name)
        assert doc["metadata"]["finalizers"] == [finalizer]
        assert doc["metadata"]["deletionTimestamp"]
        await world.patch(CONFIG_MAP, name, {"metadata": {"finalizers": None}})


async def test_a_collection_is_deleted_by_selection(world: ApiUnderTest) -> None:
    for name, labels in (("a", {"go": "y"}), ("b", {"go": "y"}), ("c", {})):
        await world.create(CONFIG_MAP, config(name, labels=labels))
    await world.delete(CONFIG_MAP, "", params={"labelSelector": "go=y"})
    assert await world.names(CONFIG_MAP) == ["c"]
    await world.delete(CONFIG_MAP, "")
    assert await world.names(CONFIG_MAP) == []


async def test_a_dry_run_deletes_nothing(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a"))
    await world.delete(CONFIG_MAP, "a", {"dryRun": ["All"]})
    assert await world.names(CONFIG_MAP) == ["a"]


async def test_a_namespace_going_away_takes_in_nothing_new(world: ApiUnderTest) -> None:
    doc = await world.delete(NAMESPACE, world.namespace)
    assert doc["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden, match="because it is being terminated") as caught:
        await world.create(CONFIG_MAP, config("a"))
    assert [cause["reason"] for cause in caught.value.details["causes"]] == ["NamespaceTerminating"]


async def test_a_deleted_name_can_be_used_again_by_a_new_object(world: ApiUnderTest) -> None:
    first = await world.create(CONFIG_MAP, config("a"))
    await world.delete(CONFIG_MAP, "a")
    second = await world.create(CONFIG_MAP, config("a"))
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
