"""What wakes a pod that inter-pod affinity refused."""

from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.flow import Doc
from fairlead.core.model.node import Node, compile_node
from fairlead.core.model.pod import Pod, Shapes, compile_pod
from fairlead.kube.affinity.hints import after_node_change, after_pod_change
from fairlead.kube.affinity.plugin import InterPodAffinity
from tests.support.documents import ZONE, apart, near, plain_pod, term

WEB, DB = {"app": "web"}, {"app": "db"}
SHAPES = Shapes()


def seated(name: str, labels: dict[str, str], *, node: str = "n1", affinity: Doc | None = None) -> Pod:
    return compile_pod(plain_pod(name, labels, nodeName=node, affinity=affinity), SHAPES)


def refused(affinity: Doc) -> Pod:
    return compile_pod(plain_pod("waiting", WEB, affinity=affinity), SHAPES)


def node(zone: str | None = None) -> Node:
    return compile_node({"metadata": {"name": "n1", "labels": {} if zone is None else {ZONE: zone}}})


JOINING, AVOIDING = refused(near(term(ZONE, DB))), refused(apart(term(ZONE, DB)))


def test_it_listens_to_pods_and_to_labels_of_nodes() -> None:
    pods, nodes = (interest.event for interest in InterPodAffinity().events())
    assert pods.match(ClusterEvent(POD, ActionType.UPDATE_POD_LABEL))
    assert not pods.match(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION))
    assert nodes.match(ClusterEvent(NODE, ActionType.ADD))
    assert not nodes.match(ClusterEvent(NODE, ActionType.DELETE))


def test_company_that_comes_wakes() -> None:
    assert after_pod_change(JOINING, None, seated("x", DB)) is Hint.QUEUE
    assert after_pod_change(JOINING, None, seated("x", WEB)) is Hint.SKIP
    assert after_pod_change(JOINING, None, seated("x", DB, node="")) is Hint.SKIP
    assert after_pod_change(JOINING, seated("x", DB), None) is Hint.SKIP
    assert after_pod_change(JOINING, seated("x", WEB), seated("x", DB)) is Hint.QUEUE
    assert after_pod_change(JOINING, seated("x", DB), seated("x", WEB)) is Hint.SKIP


def test_the_disliked_that_go_wake() -> None:
    assert after_pod_change(AVOIDING, seated("x", DB), None) is Hint.QUEUE
    assert after_pod_change(AVOIDING, seated("x", WEB), None) is Hint.SKIP
    assert after_pod_change(AVOIDING, None, seated("x", DB)) is Hint.SKIP
    assert after_pod_change(AVOIDING, seated("x", DB), seated("x", WEB)) is Hint.QUEUE


def test_every_term_must_match() -> None:
    both = refused(apart(term(ZONE, DB), term(ZONE, {"tier": "front"})))
    assert after_pod_change(both, seated("x", DB), None) is Hint.SKIP
    assert after_pod_change(both, seated("x", {**DB, "tier": "front"}), None) is Hint.QUEUE


def test_the_end_of_a_pod_that_kept_this_one_away_wakes() -> None:
    plain = refused({})
    shy = seated("x", DB, affinity=apart(term(ZONE, WEB)))
    assert after_pod_change(plain, shy, None) is Hint.QUEUE
    assert after_pod_change(plain, seated("x", DB, affinity=apart(term(ZONE, DB))), None) is Hint.SKIP


def test_namespace_selectors_see_no_labels_here() -> None:
    selecting = term(ZONE, DB, namespaceSelector={"matchLabels": {"team": "a"}})
    excluding = term(ZONE, DB, namespaceSelector={"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]})
    assert after_pod_change(refused(near(selecting)), None, seated("x", DB)) is Hint.SKIP
    assert after_pod_change(refused(near(excluding)), None, seated("x", DB)) is Hint.QUEUE


def test_its_own_change_of_labels_wakes() -> None:
    assert after_pod_change(AVOIDING, AVOIDING, refused(apart(term(ZONE, DB)))) is Hint.QUEUE


@pytest.mark.parametrize(
    ("old", "new", "joining", "avoiding"),
    [
        (None, node("a"), Hint.QUEUE, Hint.QUEUE),
        (None, node(), Hint.SKIP, Hint.QUEUE),
        (node(), node("a"), Hint.QUEUE, Hint.SKIP),
        (node("a"), node(), Hint.SKIP, Hint.QUEUE),
        (node("a"), node("b"), Hint.QUEUE, Hint.QUEUE),
        (node("a"), node("a"), Hint.SKIP, Hint.SKIP),
    ],
)
def test_nodes_that_come_or_move_wake(old: Node | None, new: Node, joining: Hint, avoiding: Hint) -> None:
    assert after_node_change(JOINING, old, new) is joining
    assert after_node_change(AVOIDING, old, new) is avoiding
