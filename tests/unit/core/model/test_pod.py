"""A pod's own part, and what changed between two versions of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fairlead.core.model.documents import ModelError
from fairlead.core.model.events import ActionType
from fairlead.core.model.flow import Doc
from fairlead.core.model.pod import Owner, Pod, Shapes, compile_pod, group_ref, pod_changes
from tests.support.documents import container, plain_pod


def compiled(document: Doc) -> Pod:
    return compile_pod(document, Shapes())


def test_a_pod_has_its_identity_place_and_times() -> None:
    document = plain_pod(nodeName="n1", schedulingGates=[{"name": "a"}, {"name": "b"}], priority=7)
    document["metadata"] |= {
        "creationTimestamp": "2026-01-01T00:00:10Z",
        "deletionTimestamp": "2026-01-01T00:01:00Z",
        "resourceVersion": "42",
        "generation": 3,
        "labels": {"app": "web"},
        "annotations": {"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "2", "controller": True},
        ],
    }
    document["status"] = {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:11Z",
        "nominatedNodeName": "n2",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"},
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
        ],
    }
    pod = compiled(document)
    assert (pod.uid, pod.key, pod.node_name, pod.nominated_node) == ("uid-p", "default/p", "n1", "n2")
    assert (pod.created, pod.start_time, pod.deletion_time) == (1767225610.0, 1767225611.0, 1767225660.0)
    assert pod.terminating
    assert (pod.phase, pod.finished, pod.gates) == ("Running", False, ("a", "b"))
    assert pod.owner == Owner("apps/v1", "ReplicaSet", "rs", "2")
    assert (pod.labels, pod.annotations) == ({"app": "web"}, {"note": "x"})
    assert pod.scheduled_condition == ("False", "Unschedulable", "0/3")
    assert pod.disruption_target
    assert (pod.resource_version, pod.generation, pod.priority) == ("42", 3, 7)
    assert repr(pod) == "<Pod default/p on n1>"


def test_a_bare_pod_has_defaults() -> None:
    pod = compiled(plain_pod())
    assert (pod.phase, pod.gates, pod.owner, pod.group_ref, pod.group) == ("Pending", (), None, None, "")
    assert (pod.created, pod.start_time, pod.terminating) == (0.0, None, False)
    assert (dict(pod.labels), dict(pod.annotations), pod.scheduled_condition) == ({}, {}, None)
    assert (pod.request["cpu"], pod.scheduler_name) == (0, "default-scheduler")


def test_equal_labels_are_shared() -> None:
    shapes = Shapes()
    documents = [plain_pod(f"web-{i}") for i in range(2)]
    for document in documents:
        document["metadata"]["labels"] = {"app": "web"}
    first, second = (compile_pod(document, shapes) for document in documents)
    assert first.labels is second.labels
    assert first.shape is second.shape


_AUTO = {"scheduling.fairlead.io/gang": "auto"}
_OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
_METADATA: list[Doc] = [
    {},
    {"labels": {"app": "web"}},
    {"labels": {"scheduling.x-k8s.io/pod-group": "c"}},
    {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
    {"annotations": {"scheduling.k8s.io/group-name": "v"}},
    {"annotations": _AUTO},
    {"annotations": _AUTO, "ownerReferences": [_OWNER]},
    {"annotations": _AUTO, "ownerReferences": [{**_OWNER, "name": "other"}]},
]


def test_a_pod_compiled_after_an_earlier_version_is_as_if_it_were_the_first() -> None:
    documents = []
    for metadata in _METADATA:
        documents.append(plain_pod())
        documents[-1]["metadata"] |= metadata
    for old in documents:
        for new in documents:
            shapes = Shapes()
            before = compile_pod(old, shapes)
            after, alone = compile_pod(new, shapes, before), compile_pod(new, shapes)
            assert [getattr(after, name) for name in Pod.__slots__] == [getattr(alone, name) for name in Pod.__slots__]


def test_the_group_may_be_named_in_three_ways() -> None:
    native = plain_pod(schedulingGroup={"podGroupName": "g"})
    native["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "v"}
    assert compiled(native).group_ref == group_ref("scheduling.k8s.io", "default", "g")
    volcano = plain_pod()
    volcano["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "v"}
    assert compiled(volcano).group_ref == group_ref("scheduling.volcano.sh", "default", "v")
    coscheduling = plain_pod()
    coscheduling["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "c"}
    assert compiled(coscheduling).group_ref == group_ref("scheduling.x-k8s.io", "default", "c")


def test_a_group_of_a_family_is_named_beside_the_one_that_the_core_knows() -> None:
    doc = plain_pod(schedulingGroup={"podGroupName": "g"})
    assert compiled(doc).group == ""
    doc["metadata"]["labels"] = {"pod-group.scheduling.sigs.k8s.io": "k"}
    pod = compiled(doc)
    assert (pod.group, pod.group_ref) == ("k", group_ref("scheduling.k8s.io", "default", "g"))


def test_a_bad_quantity_is_an_error_that_names_pod_and_field() -> None:
    with pytest.raises(ModelError) as caught:
        compiled(plain_pod(containers=[container(cpu="1K")]))
    assert str(caught.value) == (
        "Pod default/p: spec.containers[0].resources.requests[cpu]: unable to parse quantity's suffix"
    )
    assert (caught.value.kind, caught.value.key) == ("Pod", "default/p")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"metadata": {"name": "x"}},
        {"metadata": None, "spec": {}},
        {"metadata": {"name": "x"}, "spec": {"containers": "many"}},
        {"metadata": {"name": "x"}, "spec": {"containers": [{"resources": {"requests": ["cpu"]}}]}},
        {"metadata": {"name": "x", "creationTimestamp": "yesterday"}, "spec": {}},
        {"metadata": {"name": "x"}, "spec": {"tolerations": [1]}},
        {"metadata": {"name": "x"}, "spec": {"affinity": 3}},
    ],
)
def test_whatever_is_wrong_with_a_document_is_a_model_error(document: Any) -> None:
    with pytest.raises(ModelError, match=r"^Pod "):
        compiled(document)


def changes(old: Doc, new: Doc) -> tuple[ActionType, ...]:
    shapes = Shapes()
    return pod_changes(compile_pod(old, shapes), compile_pod(new, shapes))


def test_a_change_that_nobody_can_register_for_is_the_generic_update() -> None:
    assert changes(plain_pod(), plain_pod(status={"phase": "Running"})) == (ActionType.UPDATE,)


def test_changes_are_reported_in_order() -> None:
    old = plain_pod(containers=[container(cpu="1")], schedulingGates=[{"name": "a"}])
    new = plain_pod(
        containers=[container(cpu="500m")],
        tolerations=[{"operator": "Exists"}],
        status={"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "x"}]},
    )
    new["metadata"]["labels"] = {"a": "b"}
    assert changes(old, new) == (
        ActionType.UPDATE_POD_LABEL,
        ActionType.UPDATE_POD_SCALE_DOWN,
        ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        ActionType.UPDATE_POD_TOLERATION,
        ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
    )


@pytest.mark.parametrize(
    ("old", "new", "smaller"),
    [
        ({"cpu": "1"}, {"cpu": "999m"}, True),
        ({"cpu": "1"}, {"cpu": "2"}, False),
        ({"cpu": "1", "memory": "0"}, {"cpu": "1"}, True),
        ({"memory": "1.5"}, {"memory": "1.2"}, True),
        ({"memory": "1.00001"}, {"memory": "1.00002"}, False),
        ({"cpu": "1"}, {"cpu": "1", "memory": "1"}, False),
    ],
)
def test_a_request_that_shrinks_or_goes_away_is_a_scale_down(old: Doc, new: Doc, smaller: bool) -> None:
    found = changes(plain_pod(containers=[container(**old)]), plain_pod(containers=[container(**new)]))
    assert (ActionType.UPDATE_POD_SCALE_DOWN in found) is smaller


def test_one_gate_of_two_removed_is_not_yet_a_release() -> None:
    gated = plain_pod(schedulingGates=[{"name": "a"}, {"name": "b"}])
    less = copy.deepcopy(gated)
    less["spec"]["schedulingGates"].pop()
    assert changes(gated, less) == (ActionType.UPDATE,)
