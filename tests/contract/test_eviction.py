"""pods/eviction asks the disruption budgets."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import NODE, POD, POD_DISRUPTION_BUDGET
from fairlead.errors import BadRequest, NotFound, TooManyRequests
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.documents import node, pod

Doc = dict[str, Any]


async def evict(world: ApiUnderTest, name: str, **body: Any) -> Doc:
    metadata = {"name": name, "namespace": world.namespace}
    doc = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata} | body
    return await world.api.perform(Write(Verb.CREATE, POD, world.namespace, name, doc, subresource="eviction"))


async def running(world: ApiUnderTest, name: str, **labels: str) -> Doc:
    """A pod that runs and is ready, on a node of its own."""
    where = world.name("node")
    await world.create(NODE, node(where))
    await world.create(POD, pod(name, labels=labels))
    await world.bind(name, where)
    ready = {"type": "Ready", "status": "True"}
    return await world.patch(POD, name, {"status": {"phase": "Running", "conditions": [ready]}}, subresource="status")


async def budget(world: ApiUnderTest, **status: Any) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    doc = await world.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "b"}, "spec": spec})
    doc["status"] = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    } | status
    await world.update(POD_DISRUPTION_BUDGET, doc, subresource="status")


async def test_a_pod_without_a_budget_is_evicted(world: ApiUnderTest) -> None:
    await running(world, "p", app="other")
    answer = await evict(world, "p", deleteOptions={"gracePeriodSeconds": 7})
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    doc = await world.get(POD, "p")
    assert doc["metadata"]["deletionGracePeriodSeconds"] == 7
    (target,) = (one for one in doc["status"]["conditions"] if one["type"] == "DisruptionTarget")
    assert (target["reason"], target["message"]) == ("EvictionByEvictionAPI", "Eviction API: evicting")
    await world.delete(POD, "p", {"gracePeriodSeconds": 0})


async def test_a_spent_budget_answers_too_many_requests(world: ApiUnderTest) -> None:
    await running(world, "p", app="web")
    await budget(world)
    with pytest.raises(TooManyRequests) as caught:
        await evict(world, "p")
    assert caught.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert caught.value.details["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}
    ]
    assert "deletionTimestamp" not in (await world.get(POD, "p"))["metadata"]


async def test_a_budget_is_charged_and_remembers_the_pod(world: ApiUnderTest) -> None:
    await running(world, "p", app="web")
    await budget(world, disruptionsAllowed=1, currentHealthy=2)
    await evict(world, "p")
    status = (await world.get(POD_DISRUPTION_BUDGET, "b"))["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["p"]
    await world.delete(POD, "p", {"gracePeriodSeconds": 0})


async def test_a_pod_that_is_not_ready_goes_when_the_budget_is_met_without_it(world: ApiUnderTest) -> None:
    await running(world, "p", app="web")
    unready = {"type": "Ready", "status": "False"}
    await world.patch(POD, "p", {"status": {"conditions": [unready]}}, subresource="status")
    await budget(world)
    await evict(world, "p", deleteOptions={"gracePeriodSeconds": 0})
    assert "p" not in await world.names(POD)


async def test_pods_that_do_not_run_go_unasked(world: ApiUnderTest) -> None:
    await world.create(POD, pod("p", labels={"app": "web"}))
    await budget(world)
    await evict(world, "p")
    assert "p" not in await world.names(POD)


async def test_an_eviction_names_its_pod(world: ApiUnderTest) -> None:
    with pytest.raises(NotFound, match='pods "nobody" not found'):
        await evict(world, "nobody")
    await world.create(POD, pod("p"))
    with pytest.raises(BadRequest, match="name in URL does not match name in Eviction object"):
        await evict(world, "p", metadata={"name": "q"})
