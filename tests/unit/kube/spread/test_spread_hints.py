"""What wakes a pod that spreading refused."""

from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.flow import Doc
from fairlead.core.model.node import Node, compile_node
from fairlead.core.model.pod import Pod, Shapes, compile_pod
from fairlead.kube.spread.plugin import PodTopologySpread
from tests.support.documents import ZONE, plain_pod, spread

WEB, DB = {"app": "web"}, {"app": "db"}
ON_PODS, ON_NODES = PodTopologySpread().events()
SHAPES = Shapes()


def seated(name: str, labels: dict[str, str], **more: str) -> Pod:
    return compile_pod(plain_pod(name, labels, **{"nodeName": "n1", **more}), SHAPES)  # type: ignore[arg-type]


def refused(*constraints: Doc, **spec: object) -> Pod:
    return compile_pod(plain_pod("waiting", WEB, topologySpreadConstraints=list(constraints), **spec), SHAPES)


def node(zone: str | None = None, *, taint: str = "") -> Node:
    labels = {} if zone is None else {ZONE: zone}
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    return compile_node({"metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints}})


def pod_hint(waiting: Pod, old: Pod | None, new: Pod | None) -> Hint:
    assert ON_PODS.hint is not None
    return ON_PODS.hint(waiting, old, new)


def node_hint(waiting: Pod, old: Node | None, new: Node | None) -> Hint:
    assert ON_NODES.hint is not None
    return ON_NODES.hint(waiting, old, new)


WAITING = refused(spread(ZONE, WEB))


def test_it_listens_to_pods_and_nodes() -> None:
    assert ON_PODS.event.match(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION))
    assert not ON_PODS.event.match(ClusterEvent(POD, ActionType.UPDATE_POD_SCALE_DOWN))
    assert ON_NODES.event.match(ClusterEvent(NODE, ActionType.DELETE))
    assert not ON_NODES.event.match(ClusterEvent(NODE, ActionType.UPDATE_NODE_ALLOCATABLE))


def test_a_pod_that_counts_wakes_when_it_comes_or_goes() -> None:
    assert pod_hint(WAITING, None, seated("x", WEB)) is Hint.QUEUE
    assert pod_hint(WAITING, seated("x", WEB), None) is Hint.QUEUE
    assert pod_hint(WAITING, None, seated("x", DB)) is Hint.SKIP
    assert pod_hint(WAITING, seated("x", DB), None) is Hint.SKIP


def test_pods_elsewhere_do_not_matter() -> None:
    assert pod_hint(WAITING, None, seated("x", WEB, namespace="other")) is Hint.SKIP
    assert pod_hint(WAITING, seated("x", WEB, nodeName=""), None) is Hint.SKIP


def test_changed_labels_wake_if_the_pod_now_counts_or_no_longer_does() -> None:
    assert pod_hint(WAITING, seated("x", WEB), seated("x", DB)) is Hint.QUEUE
    assert pod_hint(WAITING, seated("x", DB), seated("x", WEB)) is Hint.QUEUE
    assert pod_hint(WAITING, seated("x", WEB), seated("x", {**WEB, "more": "y"})) is Hint.SKIP
    assert pod_hint(WAITING, seated("x", WEB), seated("x", WEB)) is Hint.SKIP


@pytest.mark.parametrize(("policy", "hint"), [("Honor", Hint.QUEUE), ("Ignore", Hint.SKIP)])
def test_its_own_new_toleration_wakes_where_taints_are_honored(policy: str, hint: Hint) -> None:
    constraint = spread(ZONE, WEB, nodeTaintsPolicy=policy)
    before, after = refused(constraint), refused(constraint, tolerations=[{"operator": "Exists"}])
    assert pod_hint(after, before, after) is hint


def test_nodes_with_all_keys_wake_when_they_come_go_or_move() -> None:
    assert node_hint(WAITING, None, node("a")) is Hint.QUEUE
    assert node_hint(WAITING, node("a"), None) is Hint.QUEUE
    assert node_hint(WAITING, None, node()) is Hint.SKIP
    assert node_hint(WAITING, node(), None) is Hint.SKIP
    assert node_hint(WAITING, node(), node("a")) is Hint.QUEUE
    assert node_hint(WAITING, node("a"), node()) is Hint.QUEUE
    assert node_hint(WAITING, node("a"), node("b")) is Hint.QUEUE
    assert node_hint(WAITING, node("a"), node("a")) is Hint.SKIP


def test_new_taints_wake_only_on_nodes_that_have_all_keys() -> None:
    assert node_hint(WAITING, node("a", taint="x"), node("a")) is Hint.QUEUE
    assert node_hint(WAITING, node(taint="x"), node()) is Hint.SKIP


def test_a_broken_selector_wakes_on_everything() -> None:
    broken = refused({**spread(ZONE, WEB), "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}})
    assert pod_hint(broken, None, seated("x", DB)) is Hint.QUEUE
    assert node_hint(broken, None, node()) is Hint.QUEUE
