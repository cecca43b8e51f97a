"""Pods that a kubelet refused because its node was full."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.cluster.kubelets.refused_pods import MOST, REPLACED, RefusedPods
from fairlead.core.model.flow import Change, Doc, Happened, Verb, Write
from fairlead.core.model.kinds import POD, Kind


class View:
    def __init__(self, *docs: Doc) -> None:
        self.docs = {doc["metadata"]["name"]: doc for doc in docs}

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        return self.docs.get(name)

    def list(self, kind: Kind, namespace: str = "") -> list[Doc]:
        return list(self.docs.values())


def refused(name: str, *, reason: str = "OutOfcpu", scheduler: str = "fairlead", **metadata: Any) -> Doc:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"u-{name}", "resourceVersion": "7", **metadata},
        "spec": {"schedulerName": scheduler, "nodeName": "n0", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Failed", "reason": reason, "message": "Node didn't have enough resource: cpu"},
    }


def steps(*docs: Doc, replace: bool) -> tuple[RefusedPods, list[Write]]:
    controller = RefusedPods(View(*docs), {"fairlead"}, replace=replace)
    changes = [Change(Happened.ADDED, POD, doc) for doc in docs]
    return controller, controller.step(0.0, changes, [])


def test_they_are_counted_and_reported_and_nothing_else_happens() -> None:
    others = (refused("evicted", reason="Evicted"), refused("theirs", scheduler="default-scheduler"))
    controller, writes = steps(refused("one"), *others, replace=False)
    assert controller.counts == {"OutOfcpu": 1}
    assert list(controller.complaints) == [
        "a kubelet refused a pod (OutOfcpu): default/one on node n0: Node didn't have enough resource: cpu"
    ]
    assert writes == []


def test_a_pod_with_a_controller_is_deleted_on_request() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": True}
    _, writes = steps(refused("one", ownerReferences=[owner]), replace=True)
    assert [(write.verb, write.name) for write in writes] == [(Verb.DELETE, "one")]


def test_a_bare_pod_is_made_again_without_a_node() -> None:
    _, writes = steps(refused("one", labels={"app": "x"}), replace=True)
    assert [write.verb for write in writes] == [Verb.DELETE, Verb.CREATE]
    made = writes[1].body
    assert made["metadata"] == {
        "name": "one",
        "namespace": "default",
        "labels": {"app": "x"},
        "annotations": {REPLACED: "1"},
    }
    assert made["spec"] == {"schedulerName": "fairlead", "containers": [{"name": "c", "image": "i"}]}


@pytest.mark.parametrize(("times", "replaced"), [(MOST - 1, True), (MOST, False)])
def test_a_bare_pod_is_not_replaced_for_ever(times: int, replaced: bool) -> None:
    _, writes = steps(refused("one", annotations={REPLACED: str(times)}), replace=True)
    assert bool(writes) is replaced
