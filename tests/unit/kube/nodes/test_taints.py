"""TaintToleration: what tolerates a taint, the score of soft taints, and which events wake a pod."""

from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model import kinds
from fairlead.core.model.events import NODE, POD, ActionType
from fairlead.core.model.flow import Doc
from fairlead.core.model.taints import Taint, parse_tolerations, tolerates
from fairlead.kube.nodes.taints import TaintToleration
from tests.support.documents import compiled_node, compiled_pod, node, plain_pod
from tests.support.plugins import PluginScenario, hint

PLUGIN = TaintToleration()
REFUSED = "node(s) had untolerated taint(s) (final)"
GPU: Doc = {"key": "gpu", "value": "big", "effect": "NoSchedule"}
GONE: Doc = {"key": "gone", "effect": "NoExecute"}
SOFT: Doc = {"key": "soft", "effect": "PreferNoSchedule"}
SLOW: Doc = {"key": "slow", "value": "very", "effect": "PreferNoSchedule"}


def street(**taints: list[Doc]) -> PluginScenario:
    made = PluginScenario()
    for name, listed in taints.items():
        made.put(kinds.NODE, node(name, taints=listed))
    return made


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "Equal", "value": "big"}, True),
        ({"key": "gpu", "value": "big"}, True),
        ({"key": "gpu", "value": "small"}, False),
        ({"key": "gpu"}, False),
        ({"key": "cpu", "value": "big"}, False),
        ({"operator": "Exists"}, True),
        ({"value": "big"}, True),
        ({"value": "small"}, False),
        ({}, False),
        ({"key": "gpu", "operator": "Gt", "value": "1"}, False),
        ({"key": "gpu", "operator": "Near", "value": "big"}, False),
    ],
)
def test_a_toleration_answers_a_taint_by_effect_key_and_operator(toleration: Doc, expected: bool) -> None:
    (parsed,) = parse_tolerations([toleration])
    assert tolerates(parsed, Taint("gpu", "big", "NoSchedule")) is expected


def test_comparisons_tolerate_nothing_while_their_feature_is_off() -> None:
    less, more = parse_tolerations([{"key": "k", "operator": "Lt", "value": "5"}, {"operator": "Gt", "value": "5"}])
    assert not tolerates(less, Taint("k", "4", "NoSchedule"))
    assert not tolerates(more, Taint("k", "6", "NoSchedule"))


def test_a_hard_taint_that_is_not_tolerated_refuses_for_good_and_is_not_named() -> None:
    where = street(clean=[], hard=[GPU], leaving=[GONE], soft=[SOFT])
    assert where.refusals(PLUGIN, plain_pod()) == {"hard": REFUSED, "leaving": REFUSED}


def test_every_hard_taint_must_be_tolerated() -> None:
    where = street(both=[GPU, GONE])
    one = plain_pod(tolerations=[{"key": "gpu", "operator": "Exists"}])
    two = plain_pod(tolerations=[{"key": "gpu", "operator": "Exists"}, {"key": "gone", "operator": "Exists"}])
    assert where.refusals(PLUGIN, one) == {"both": REFUSED}
    assert where.refusals(PLUGIN, two) == {}


def test_how_long_a_toleration_lasts_does_not_matter() -> None:
    tolerations = [{"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]
    assert street(leaving=[GONE]).refusals(PLUGIN, plain_pod(tolerations=tolerations)) == {}


def test_the_fewer_soft_taints_are_left_the_better() -> None:
    where = street(clean=[GPU], one=[SOFT], two=[SOFT, SLOW])
    assert where.scores(PLUGIN, plain_pod()) == {"clean": 100, "one": 50, "two": 0}
    tolerant = plain_pod(tolerations=[{"key": "soft", "operator": "Exists"}])
    assert where.scores(PLUGIN, tolerant) == {"clean": 100, "one": 100, "two": 0}


def test_only_tolerations_of_no_or_the_soft_effect_count_in_the_score() -> None:
    where = street(clean=[], soft=[SOFT])
    for effect, expected in (("", 100), ("PreferNoSchedule", 100), ("NoSchedule", 0), ("NoExecute", 0)):
        document = plain_pod(tolerations=[{"operator": "Exists", "effect": effect}])
        assert where.scores(PLUGIN, document) == {"clean": 100, "soft": expected}


def test_where_nobody_has_soft_taints_everyone_gets_a_hundred() -> None:
    assert street(a=[], b=[GPU]).scores(PLUGIN, plain_pod()) == {"a": 100, "b": 100}


def test_the_score_is_a_share_of_the_worst_feasible_node() -> None:
    where = street(one=[SOFT], two=[SOFT, SLOW], clean=[])
    assert where.scores(PLUGIN, plain_pod(), "one", "clean") == {"one": 0, "clean": 100}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, [], Hint.QUEUE),
        (None, [SOFT], Hint.QUEUE),
        (None, [GPU], Hint.SKIP),
        ([GPU], [], Hint.QUEUE),
        ([GPU], [SOFT], Hint.QUEUE),
        ([GPU], [GONE], Hint.SKIP),
        ([SOFT], [], Hint.SKIP),
        ([], [GPU], Hint.SKIP),
    ],
)
def test_a_node_wakes_when_its_hard_taints_are_tolerated_and_were_not(
    old: list[Doc] | None, new: list[Doc], expected: Hint
) -> None:
    action = ActionType.ADD if old is None else ActionType.UPDATE_NODE_TAINT
    before = None if old is None else compiled_node(taints=old)
    assert hint(PLUGIN, NODE, action, compiled_pod(), old=before, new=compiled_node(taints=new)) is expected


def test_its_own_new_tolerations_wake_a_pod_whatever_they_are() -> None:
    action = ActionType.UPDATE_POD_TOLERATION
    assert hint(PLUGIN, POD, action, compiled_pod("a"), old=compiled_pod("a"), new=compiled_pod("a")) is Hint.QUEUE
    assert hint(PLUGIN, POD, action, compiled_pod("a"), old=compiled_pod("b"), new=compiled_pod("b")) is Hint.SKIP


def test_other_events_do_not_concern_it() -> None:
    assert hint(PLUGIN, NODE, ActionType.UPDATE_NODE_LABEL, compiled_pod()) is None
    assert hint(PLUGIN, POD, ActionType.DELETE, compiled_pod()) is None
