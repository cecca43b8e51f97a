from __future__ import annotations

import pytest

from fairlead.cluster.controllers.workloads.replicaset import ReplicaSets, ReplicationControllers
from fairlead.core.model.flow import Reply, Verb, Write
from fairlead.core.model.kinds import POD, REPLICA_SET, REPLICATION_CONTROLLER
from fairlead.errors import Forbidden
from fairlead.testing.builders import pod, replica_set
from tests.support.controllers import Documents, created, refused, said, settle


@pytest.fixture
def world() -> Documents:
    return Documents()


def births(writes: list[Write]) -> list[Write]:
    return [write for write in said(writes, Verb.CREATE) if write.kind is POD]


def test_at_most_five_hundred_pods_are_created_at_once_and_the_rest_follows(world: Documents) -> None:
    controller = ReplicaSets(world)
    first = births(controller.step(0, [world.put(REPLICA_SET, replica_set("web").replicas(700).doc())], []))
    assert len(first) == 500
    pods = [created(world, write, f"web-{index}") for index, write in enumerate(first)]
    rest = births(controller.step(1, [change for _, change in pods], [reply for reply, _ in pods]))
    assert len(rest) == 200


def test_after_a_refusal_a_single_pod_is_tried_and_the_failure_is_reported(world: Documents) -> None:
    controller = ReplicaSets(world)
    writes = settle(controller, 0, world.put(REPLICA_SET, replica_set("web").replicas(10).doc()))
    error = Forbidden("exceeded quota: mem")
    answers = [refused(one, error) if one.kind is POD else Reply(one, {}) for one in writes]
    assert settle(controller, 1, replies=answers) == []
    again = said(controller.step(controller.wake_at() or 0, [], []))
    assert len(births(again)) == 1
    (report,) = [one for one in again if one.subresource == "status"]
    (condition,) = report.body["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert condition["message"] == "exceeded quota: mem"


def test_a_pod_carries_the_template_and_its_owner(world: Documents) -> None:
    template = pod("t").annotated(note="x").asks(cpu="1")
    change = world.put(REPLICA_SET, replica_set("web").replicas(1).of(template).doc())
    (birth,) = births(ReplicaSets(world).step(0, [change], []))
    metadata = birth.body["metadata"]
    assert metadata["generateName"] == "web-"
    assert metadata["labels"] == {"app": "web"}
    assert metadata["annotations"] == {"note": "x"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("ReplicaSet", "uid-web", True)


def test_nothing_is_created_for_an_owner_that_is_going(world: Documents) -> None:
    doc = replica_set("web").replicas(3).doc()
    doc["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z"
    assert births(ReplicaSets(world).step(0, [world.put(REPLICA_SET, doc)], [])) == []


def test_pods_are_available_only_after_they_were_ready_long_enough(world: Documents) -> None:
    controller = ReplicaSets(world)
    owner = world.put(REPLICA_SET, replica_set("web").replicas(1).having(minReadySeconds=30).doc())
    child = pod("web-1").labelled(app="web").owned_by({**owner.doc, "apiVersion": "apps/v1"}).doc()
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:10Z"}
    child["status"] = {"phase": "Running", "conditions": [ready]}
    (report,) = settle(controller, 20, owner, world.put(POD, child))
    assert (report.body["status"]["readyReplicas"], report.body["status"]["availableReplicas"]) == (1, 0)
    assert controller.wake_at() == 40


def test_replication_controllers_have_plain_selectors_and_do_the_same(world: Documents) -> None:
    doc = replica_set("web").replicas(2).doc() | {"apiVersion": "v1", "kind": "ReplicationController"}
    doc["spec"]["selector"] = {"app": "web"}
    writes = ReplicationControllers(world).step(0, [world.put(REPLICATION_CONTROLLER, doc)], [])
    assert [one.body["metadata"]["ownerReferences"][0]["kind"] for one in births(writes)] == [
        "ReplicationController"
    ] * 2
