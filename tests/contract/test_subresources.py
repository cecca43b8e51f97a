"""status, scale and binding."""

from __future__ import annotations

import pytest

from fairlead.core.model.kinds import CONFIG_MAP, DEPLOYMENT, NODE, POD
from fairlead.errors import ApiError, Conflict, Invalid, NotFound
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.documents import config, deployment, node, pod


async def test_an_update_leaves_the_status_alone_and_a_status_update_the_spec(world: ApiUnderTest) -> None:
    doc = await world.create(DEPLOYMENT, deployment("d", replicas=2))
    doc["spec"]["replicas"] = 3
    doc["status"] = {"replicas": 9}
    doc = await world.update(DEPLOYMENT, doc)
    assert (doc["spec"]["replicas"], doc["status"].get("replicas")) == (3, None)
    doc["spec"]["replicas"] = 5
    doc["status"] = {"replicas": 2, "observedGeneration": 2}
    doc = await world.update(DEPLOYMENT, doc, subresource="status")
    assert (doc["spec"]["replicas"], doc["status"]["replicas"]) == (3, 2)
    assert doc["metadata"]["generation"] == 2


async def test_a_status_update_can_conflict_too(world: ApiUnderTest) -> None:
    doc = await world.create(DEPLOYMENT, deployment("d"))
    await world.patch(DEPLOYMENT, "d", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Conflict):
        await world.update(DEPLOYMENT, doc | {"status": {"replicas": 1}}, subresource="status")


async def test_a_pods_status_is_written_by_its_subresource(world: ApiUnderTest) -> None:
    doc = await world.create(POD, pod("p"))
    doc["status"]["phase"] = "Running"
    doc["status"]["podIP"] = "10.1.2.3"
    doc["spec"]["nodeName"] = "sneaky"
    doc = await world.update(POD, doc, subresource="status")
    assert doc["status"]["phase"] == "Running"
    assert "nodeName" not in doc["spec"]
    assert (await world.get(POD, "p", subresource="status"))["status"]["podIP"] == "10.1.2.3"


async def test_a_nodes_status_and_spec_are_apart(world: ApiUnderTest) -> None:
    name = world.name("node")
    await world.create(NODE, node(name))
    amounts = {"status": {"allocatable": {"cpu": "3", "memory": "15Gi", "pods": "100"}}}
    doc = await world.patch(NODE, name, amounts, subresource="status")
    assert doc["status"]["allocatable"]["cpu"] == "3"
    doc = await world.patch(NODE, name, {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "99"}}})
    assert doc["spec"]["unschedulable"] is True
    assert doc["status"]["capacity"]["cpu"] == "4"


async def test_kinds_without_status_have_no_such_path(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a"))
    with pytest.raises(ApiError) as caught:
        await world.update(CONFIG_MAP, doc, subresource="status")
    assert caught.value.code in (404, 405)


# binding


async def test_a_binding_sets_the_node_and_the_condition(world: ApiUnderTest) -> None:
    where = world.name("node")
    await world.create(NODE, node(where))
    before = await world.create(POD, pod("p"))
    answer = await world.bind("p", where)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    doc = await world.get(POD, "p")
    assert doc["spec"]["nodeName"] == where
    (condition,) = doc["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert condition["lastTransitionTime"]
    assert doc["status"]["phase"] == "Pending"
    assert doc["metadata"]["uid"] == before["metadata"]["uid"]
    assert doc["metadata"]["generation"] == 1


async def test_annotations_of_a_binding_go_to_the_pod(world: ApiUnderTest) -> None:
    where = world.name("node")
    await world.create(NODE, node(where))
    await world.create(POD, pod("p", annotations={"old": "1"}))
    await world.bind("p", where, annotations={"new": "2"})
    assert (await world.get(POD, "p"))["metadata"]["annotations"] == {"old": "1", "new": "2"}


async def test_a_second_binding_is_a_conflict(world: ApiUnderTest) -> None:
    where = world.name("node")
    await world.create(NODE, node(where))
    await world.create(POD, pod("p"))
    await world.bind("p", where)
    with pytest.raises(Conflict) as caught:
        await world.bind("p", "elsewhere")
    assert caught.value.message == (
        f'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "{where}"'
    )


async def test_a_pod_that_goes_away_is_not_bound(world: ApiUnderTest) -> None:
    await world.create(POD, pod("p", finalizers=["example.com/hold"]))
    await world.delete(POD, "p")
    with pytest.raises(Conflict, match="pod p is being deleted, cannot be assigned to a host"):
        await world.bind("p", "anywhere")
    await world.patch(POD, "p", {"metadata": {"finalizers": None}})


async def test_a_gated_pod_is_not_bound(world: ApiUnderTest) -> None:
    await world.create(POD, pod("p", spec={"schedulingGates": [{"name": "example.com/wait"}]}))
    with pytest.raises(Conflict, match=r"pod p has non-empty \.spec\.schedulingGates"):
        await world.bind("p", "anywhere")


async def test_a_binding_names_the_pod_it_means(world: ApiUnderTest) -> None:
    await world.create(POD, pod("p"))
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other"):
        await world.bind("p", "anywhere", uid="other")
    with pytest.raises(NotFound, match='pods "nobody" not found'):
        await world.bind("nobody", "anywhere")


async def test_a_binding_needs_a_target(world: ApiUnderTest) -> None:
    await world.create(POD, pod("p"))
    with pytest.raises(ApiError, match=r"target\.name: Required value") as caught:
        await world.bind("p", "")
    assert caught.value.code in (400, 500)  # ours, and the original's


# scale


async def test_a_scale_reads_and_sets_the_replicas(world: ApiUnderTest) -> None:
    doc = await world.create(DEPLOYMENT, deployment("d", replicas=2))
    scale = await world.get(DEPLOYMENT, "d", subresource="scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=d"}
    assert scale["metadata"]["uid"] == doc["metadata"]["uid"]
    scale["spec"]["replicas"] = 4
    assert (await world.update(DEPLOYMENT, scale, subresource="scale"))["spec"] == {"replicas": 4}
    doc = await world.get(DEPLOYMENT, "d")
    assert (doc["spec"]["replicas"], doc["metadata"]["generation"]) == (4, 2)


async def test_a_scale_can_be_patched(world: ApiUnderTest) -> None:
    await world.create(DEPLOYMENT, deployment("d", replicas=2))
    await world.patch(DEPLOYMENT, "d", {"spec": {"replicas": 7}}, subresource="scale")
    assert (await world.get(DEPLOYMENT, "d"))["spec"]["replicas"] == 7


async def test_a_scale_below_nothing_is_invalid(world: ApiUnderTest) -> None:
    await world.create(DEPLOYMENT, deployment("d"))
    with pytest.raises(Invalid, match="must be greater than or equal to 0"):
        await world.patch(DEPLOYMENT, "d", {"spec": {"replicas": -1}}, subresource="scale")
