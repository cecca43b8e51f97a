"""What a node offers, what changed on it, and how events match registrations."""

from __future__ import annotations

import copy

import pytest

from fairlead.core.model.documents import ModelError
from fairlead.core.model.events import (
    ANY,
    ASSIGNED_POD,
    ASSIGNED_POD_DELETE,
    CSI_NODE,
    FORCE_ACTIVATE,
    NODE,
    POD,
    ActionType,
    ClusterEvent,
)
from fairlead.core.model.flow import Doc
from fairlead.core.model.node import compile_node, node_changes, zone_key
from fairlead.core.model.taints import Taint

NODE_DOC: Doc = {
    "metadata": {
        "name": "n1",
        "uid": "u1",
        "labels": {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "5",
    },
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]},
    "status": {
        "allocatable": {"cpu": "3920m", "memory": "1.5Gi", "pods": "110", "nvidia.com/gpu": "8", "odd": "2"},
        "images": [{"names": ["a:1", "a@sha256:x"], "sizeBytes": 100}, {"names": None}],
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "x"}],
        "declaredFeatures": ["A", "B"],
    },
}


def test_a_node_is_read_in_base_units() -> None:
    node = compile_node(NODE_DOC)
    assert node.allocatable == {"cpu": 3920, "memory": 1610612736, "pods": 110, "nvidia.com/gpu": 8, "odd": 2}
    assert node.taints == (Taint("k", "", "NoSchedule"),)
    assert node.images == ((("a:1", "a@sha256:x"), 100), ((), 0))
    assert (node.features, node.conditions, node.ready) == (("A", "B"), {"Ready": "True"}, True)
    assert (node.name, node.uid, node.created, node.resource_version) == ("n1", "u1", 1767225600.0, "5")
    assert not node.unschedulable


def test_a_node_that_says_nothing_offers_nothing() -> None:
    node = compile_node({"metadata": {"name": "bare"}})
    assert (node.allocatable, node.taints, node.zone_key, node.ready) == ({}, (), "", False)


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({}, ""),
        ({"topology.kubernetes.io/zone": "z"}, ":\x00:z"),
        ({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}, "r:\x00:z"),
        ({"failure-domain.beta.kubernetes.io/zone": "old", "topology.kubernetes.io/zone": "new"}, ":\x00:old"),
        ({"failure-domain.beta.kubernetes.io/zone": "", "topology.kubernetes.io/zone": "new"}, ""),
    ],
)
def test_zone_keys_prefer_the_old_labels(labels: dict[str, str], key: str) -> None:
    assert zone_key(labels) == key


def test_a_bad_quantity_is_an_error_that_names_node_and_field() -> None:
    with pytest.raises(ModelError, match=r"^Node n1: status\.allocatable\[cpu\]: quantities must match"):
        compile_node({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "many"}}})
    with pytest.raises(ModelError, match=r"^Node \(unnamed\): "):
        compile_node({})


def changed(**sections: Doc) -> tuple[ActionType, ...]:
    old = copy.deepcopy(NODE_DOC)
    old["spec"]["unschedulable"] = True
    new = copy.deepcopy(old)
    for section, fields in sections.items():
        new[section].update(fields)
    return node_changes(compile_node(old), compile_node(new))


def test_uncordoning_with_new_taints_reports_taints_twice_around_the_rest() -> None:
    assert changed(
        metadata={"labels": {}, "annotations": {"a": "b"}},
        spec={"unschedulable": False, "taints": []},
        status={"allocatable": {}, "conditions": [{"type": "Ready", "status": "False"}], "declaredFeatures": []},
    ) == (
        ActionType.UPDATE_NODE_TAINT,
        ActionType.UPDATE_NODE_ALLOCATABLE,
        ActionType.UPDATE_NODE_LABEL,
        ActionType.UPDATE_NODE_TAINT,
        ActionType.UPDATE_NODE_CONDITION,
        ActionType.UPDATE_NODE_ANNOTATION,
        ActionType.UPDATE_NODE_DECLARED_FEATURE,
    )


def test_heartbeats_images_and_cordoning_are_no_event() -> None:
    beat = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "later"}]
    assert changed(status={"conditions": beat, "images": []}) == ()
    node = compile_node(NODE_DOC)
    cordoned = copy.deepcopy(NODE_DOC)
    cordoned["spec"]["unschedulable"] = True
    assert node_changes(node, compile_node(cordoned)) == ()


def test_the_time_of_a_taint_is_part_of_it() -> None:
    taint = {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-02T00:00:00Z"}
    assert changed(spec={"taints": [taint]}) == (ActionType.UPDATE_NODE_TAINT,)


@pytest.mark.parametrize(
    ("registered", "incoming", "match"),
    [
        ((NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), (NODE, ActionType.ADD), True),
        ((NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), (NODE, ActionType.UPDATE_NODE_LABEL), False),
        ((POD, ActionType.DELETE), (ASSIGNED_POD, ActionType.DELETE), True),
        ((ASSIGNED_POD, ActionType.DELETE), (POD, ActionType.DELETE), False),
        ((POD, ActionType.UPDATE_POD_LABEL), (ASSIGNED_POD, ActionType.UPDATE), False),
        ((POD, ActionType.UPDATE), (ASSIGNED_POD, ActionType.UPDATE), True),
        ((POD, ActionType.UPDATE), (ASSIGNED_POD, ActionType.UPDATE_POD_LABEL), True),
        ((NODE, ActionType.ADD), (POD, ActionType.ADD), False),
        ((ANY, ActionType.ADD), (CSI_NODE, ActionType.ADD), True),
        ((ANY, ActionType.ADD), (CSI_NODE, ActionType.DELETE), False),
        ((ANY, ActionType.ALL), (CSI_NODE, ActionType.DELETE), True),
        ((NODE, ActionType.ADD), (ANY, ActionType.ALL), False),
    ],
)
def test_events_match_by_resource_bits_and_size(
    registered: tuple[str, int], incoming: tuple[str, int], match: bool
) -> None:
    assert ClusterEvent(*registered).match(ClusterEvent(*incoming)) is match


def test_events_are_named_as_in_the_metrics() -> None:
    assert ASSIGNED_POD_DELETE.label == "AssignedPodDelete"
    assert ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT).label == "NodeUpdateNodeTaint"
    assert ClusterEvent(CSI_NODE, ActionType.ADD).label == "storage.k8s.io/CSINodeAdd"
    assert FORCE_ACTIVATE.label == "ForceActivate"
    assert FORCE_ACTIVATE.is_wildcard
