"""The event model and who listens to what (core specification, 2.1 and 2.2)."""

from __future__ import annotations

import pytest

from fairlead.core.engine.queue.hints import DEFAULT_INTERESTS, EXTENDER, Hints
from fairlead.core.framework.plugin import Hint, Plugin
from fairlead.core.framework.profile import profile_of
from fairlead.core.model.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ActionType, ClusterEvent
from tests.support.waiting import NODE_ADD, PROFILE, T0, ByPriority, FilterPlugin, GatePlugin, QueueScenario, on, saying


def listeners(plugin: Plugin, event: ClusterEvent) -> frozenset[str]:
    return Hints({PROFILE: profile_of(PROFILE, [plugin])}).listeners(event).plugins


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        (("Node", ActionType.ADD), ("Node", ActionType.ADD), True),
        (("Node", ActionType.ADD), ("Node", ActionType.DELETE), False),
        (("Node", ActionType.ADD), ("Pod", ActionType.ADD), False),
        (("Pod", ActionType.DELETE), ("AssignedPod", ActionType.DELETE), True),
        (("Pod", ActionType.UPDATE_POD_LABEL), ("UnschedulablePod", ActionType.UPDATE_POD_LABEL), True),
        (("AssignedPod", ActionType.ADD), ("UnschedulablePod", ActionType.ADD), False),
        (("Pod", ActionType.UPDATE_POD_TOLERATION), ("UnschedulablePod", ActionType.UPDATE), False),
        (("Pod", ActionType.UPDATE), ("UnschedulablePod", ActionType.UPDATE), True),
        (("Pod", ActionType.UPDATE), ("UnschedulablePod", ActionType.UPDATE_POD_LABEL), True),
        (("*", ActionType.ADD), ("storage.k8s.io/CSINode", ActionType.ADD), True),
        (("*", ActionType.ALL), ("Node", ActionType.DELETE), True),
    ],
)
def test_a_registration_matches_by_resource_and_bits_and_never_a_more_general_event(
    registered: tuple[str, int], incoming: tuple[str, int], matches: bool
) -> None:
    found = listeners(FilterPlugin("P", (on(*registered),)), ClusterEvent(*incoming))
    assert found == ({"P"} if matches else frozenset())


def test_events_are_labelled_by_resource_and_action_and_two_are_wildcards() -> None:
    assert ClusterEvent("AssignedPod", ActionType.DELETE).label == "AssignedPodDelete"
    assert ClusterEvent("Node", ActionType.UPDATE_NODE_TAINT).label == "NodeUpdateNodeTaint"
    assert ClusterEvent("storage.k8s.io/CSINode", ActionType.ADD).label == "storage.k8s.io/CSINodeAdd"
    assert [e.label for e in (UNSCHEDULABLE_TIMEOUT, FORCE_ACTIVATE)] == ["UnschedulableTimeout", "ForceActivate"]
    assert UNSCHEDULABLE_TIMEOUT.is_wildcard
    assert FORCE_ACTIVATE.is_wildcard


@pytest.mark.parametrize("point", ["pre_enqueue", "pre_filter", "filter", "reserve", "permit"])
def test_plugins_that_can_refuse_a_pod_are_asked_for_their_events(point: str) -> None:
    plugin = type("Some", (Plugin,), {"name": "Some", point: lambda self, *args: None})()
    assert listeners(plugin, NODE_ADD) == {"Some"}


@pytest.mark.parametrize("point", ["queue_key", "post_filter", "score", "pre_bind", "bind"])
def test_plugins_that_cannot_refuse_a_pod_are_not_asked(point: str) -> None:
    plugin = type("Some", (Plugin,), {"name": "Some", point: lambda self, *args: None})()
    assert listeners(plugin, NODE_ADD) == frozenset()


def test_a_plugin_that_names_no_events_listens_to_the_default_set_with_all_actions() -> None:
    plugin = FilterPlugin("Silent", None)
    resources = {
        "Pod", "Node", "PersistentVolume", "PersistentVolumeClaim", "storage.k8s.io/CSINode",
        "storage.k8s.io/CSIDriver", "storage.k8s.io/CSIStorageCapacity", "storage.k8s.io/StorageClass",
        "resource.k8s.io/ResourceClaim",
        "resource.k8s.io/DeviceClass",
    }  # fmt: skip
    assert {interest.event.resource for interest in DEFAULT_INTERESTS} == resources
    for resource in resources:
        for action in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE):
            assert listeners(plugin, ClusterEvent(resource, action)) == {"Silent"}
    assert listeners(plugin, ClusterEvent("resource.k8s.io/ResourceSlice", ActionType.ADD)) == frozenset()


def test_a_plugin_with_an_empty_list_is_never_woken_by_events() -> None:
    room = QueueScenario(FilterPlugin("Deaf", ()))
    pod = room.park("a", "Deaf")
    assert room.backlog.move(NODE_ADD, None, None, T0 + 60) == 0
    assert room.queue(pod) == "unschedulable"


def test_extenders_listen_to_the_default_set_under_one_name() -> None:
    room = QueueScenario(extra_interests={EXTENDER: DEFAULT_INTERESTS})
    pod = room.park("a", "Extender")
    assert room.backlog.move(ClusterEvent("Node", ActionType.UPDATE_NODE_ANNOTATION), None, None, T0 + 60) == 1
    assert room.queue(pod) == "active"


def test_who_listens_to_new_nodes_sees_changed_taints_whatever_its_hint_says() -> None:
    room = QueueScenario(FilterPlugin("Skipper", (on("Node", ActionType.ADD, saying(Hint.SKIP)),)))
    pod = room.park("a", "Skipper")
    assert room.backlog.move(NODE_ADD, None, None, T0 + 60) == 0
    assert room.backlog.move(ClusterEvent("Node", ActionType.UPDATE_NODE_TAINT), None, None, T0 + 60) == 1
    assert room.queue(pod) == "active"


def test_who_registered_for_taints_is_asked_by_its_own_hint_only() -> None:
    both = ActionType.ADD | ActionType.UPDATE_NODE_TAINT
    room = QueueScenario(FilterPlugin("Taints", (on("Node", both, saying(Hint.SKIP)),)))
    room.park("a", "Taints")
    assert room.backlog.move(ClusterEvent("Node", ActionType.UPDATE_NODE_TAINT), None, None, T0 + 60) == 0


def test_a_hint_sees_the_pod_and_the_object_before_and_after() -> None:
    seen = []
    hint = lambda pod, old, new: seen.append((pod.name, old, new)) or Hint.SKIP  # noqa: E731
    room = QueueScenario(FilterPlugin("Curious", (on("Node", ActionType.ADD, hint),)))
    room.park("a", "Curious")
    room.backlog.move(NODE_ADD, "before", "after", T0 + 60)
    assert seen == [("a", "before", "after")]


def test_a_hint_that_raises_counts_as_queue_and_is_reported() -> None:
    def broken(pod: object, old: object, new: object) -> Hint:
        raise KeyError("zone")

    room = QueueScenario(FilterPlugin("Broken", (on("Node", ActionType.ADD, broken),)))
    pod = room.park("a", "Broken")
    assert room.backlog.move(NODE_ADD, None, None, T0 + 60) == 1
    assert room.queue(pod) == "active"
    assert room.backlog.tallies.hints_asked["Broken", "NodeAdd", "Error"] == 1
    assert "Broken" in room.backlog.complaints[0]
    assert "zone" in room.backlog.complaints[0]


def test_an_error_while_registering_ends_the_start() -> None:
    class Unready(GatePlugin):
        def events(self) -> tuple[()]:
            raise RuntimeError("not configured")

    with pytest.raises(RuntimeError, match="not configured"):
        QueueScenario(Unready("Unready"))


def test_profiles_have_hints_of_their_own() -> None:
    listening = profile_of("one", [ByPriority(), FilterPlugin("P", (on("Node", ActionType.ADD),))])
    deaf = profile_of("two", [ByPriority(), FilterPlugin("P", ())])
    room = QueueScenario()
    room.backlog.reconfigure({"one": listening, "two": deaf}, T0)
    first = room.park("a", "P", schedulerName="one")
    second = room.park("b", "P", schedulerName="two")
    assert room.backlog.move(NODE_ADD, None, None, T0 + 60) == 1
    assert (room.queue(first), room.queue(second)) == ("active", "unschedulable")


def test_the_resources_to_watch_are_the_union_of_what_plugins_registered() -> None:
    room = QueueScenario(
        FilterPlugin("More", (on("Node", ActionType.UPDATE_NODE_LABEL), on("storage.k8s.io/CSINode", 1)))
    )
    registered = room.backlog.requeuing.hints.registered()
    assert registered["Node"] == ActionType.ADD | ActionType.UPDATE_NODE_TAINT | ActionType.UPDATE_NODE_LABEL
    assert registered["storage.k8s.io/CSINode"] == ActionType.ADD
    assert "PersistentVolume" not in registered
