"""NodeAffinity: selectors, the nodes that they name, scores, and which events wake a pod."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model import kinds
from fairlead.core.model.events import NODE, ActionType
from fairlead.core.model.flow import Doc
from fairlead.core.model.reasons import SKIP
from fairlead.core.model.selectors import SelectorError, parse_node_selector, parse_node_selector_term
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from tests.support.documents import PREFERRED, REQUIRED, compiled, compiled_node, node, plain_pod
from tests.support.plugins import PluginScenario, hint

PLUGIN = NodeAffinityPlugin()
OWN = "node(s) didn't match Pod's node affinity/selector (final)"
ENFORCED = "node(s) didn't match scheduler-enforced node affinity (final)"


def street() -> PluginScenario:
    made = PluginScenario()
    for name, labels in {"ssd": {"disk": "ssd", "size": "10"}, "hdd": {"disk": "hdd", "size": "x"}, "bare": {}}.items():
        made.put(kinds.NODE, node(name, labels=labels))
    return made


def expression(key: str, operator: str, *values: str) -> Doc:
    return {"key": key, "operator": operator, "values": list(values)}


def on_labels(*expressions: Doc) -> Doc:
    return {"matchExpressions": list(expressions)}


def on_name(operator: str, *values: str) -> Doc:
    return {"matchFields": [expression("metadata.name", operator, *values)]}


def requiring(*terms: Doc, **spec: Any) -> Doc:
    return plain_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}, **spec)


def preferring(*weighted: tuple[int, Doc]) -> Doc:
    terms = [{"weight": weight, "preference": term} for weight, term in weighted]
    return plain_pod(affinity={"nodeAffinity": {PREFERRED: terms}})


def fitting(document: Doc, plugin: NodeAffinityPlugin = PLUGIN) -> set[str]:
    """Nodes that are not refused; every refusal is for the pod's own wishes."""
    where = street()
    refused = where.judged(plugin, document)
    assert set(refused.values()) <= {OWN}
    return {"ssd", "hdd", "bare"} - set(refused)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (expression("disk", "In", "ssd", "nvme"), {"ssd"}),
        (expression("disk", "NotIn", "ssd"), {"hdd", "bare"}),
        (expression("disk", "Exists"), {"ssd", "hdd"}),
        (expression("disk", "DoesNotExist"), {"bare"}),
        (expression("size", "Gt", "9"), {"ssd"}),
        (expression("size", "Gt", "10"), set()),
        (expression("size", "Lt", "11"), {"ssd"}),
        (expression("size", "Lt", "10"), set()),
    ],
)
def test_operators_compare_labels(wish: Doc, expected: set[str]) -> None:
    assert fitting(requiring(on_labels(wish))) == expected


def test_values_must_be_label_values_so_there_are_no_negative_bounds() -> None:
    assert fitting(requiring(on_labels(expression("size", "Gt", "-99")))) == set()


def test_terms_are_alternatives_and_expressions_of_one_are_not() -> None:
    ssd, hdd = expression("disk", "In", "ssd"), expression("disk", "In", "hdd")
    assert fitting(requiring(on_labels(ssd), on_labels(hdd))) == {"ssd", "hdd"}
    assert fitting(requiring(on_labels(ssd, hdd))) == set()


def test_an_empty_term_matches_nothing_and_spoils_nothing() -> None:
    assert fitting(requiring({})) == set()
    assert fitting(requiring({}, on_labels(expression("disk", "In", "ssd")))) == {"ssd"}


def test_a_selector_without_terms_matches_nothing() -> None:
    assert fitting(requiring()) == set()


def test_a_broken_term_matches_nothing_and_the_others_still_count() -> None:
    broken = on_labels(expression("size", "Gt", "many"))
    assert fitting(requiring(broken)) == set()
    assert fitting(requiring(broken, on_labels(expression("disk", "In", "ssd")))) == {"ssd"}


def test_node_selector_and_affinity_must_both_hold() -> None:
    wish = on_labels(expression("disk", "Exists"))
    assert fitting(requiring(wish, nodeSelector={"disk": "hdd"})) == {"hdd"}
    assert fitting(plain_pod(nodeSelector={"disk": "hdd", "size": "10"})) == set()


def test_it_steps_aside_for_pods_that_say_nothing_of_nodes() -> None:
    assert street().prepared(PLUGIN, plain_pod())[2] is SKIP
    assert street().prepared(PLUGIN, plain_pod(affinity={"nodeAffinity": {}}))[2] is SKIP


def test_an_empty_node_selector_does_not_step_aside_but_matches_all() -> None:
    assert street().prepared(PLUGIN, plain_pod(nodeSelector={}))[2] is None
    assert fitting(plain_pod(nodeSelector={})) == {"ssd", "hdd", "bare"}


# ---- names ----


def names(*terms: Doc) -> Any:
    return street().prepared(PLUGIN, requiring(*terms))[2]


def test_fields_name_the_only_nodes_that_are_looked_at() -> None:
    assert names(on_name("In", "ssd")) == frozenset({"ssd"})
    assert names(on_name("In", "ssd"), on_name("In", "hdd")) == frozenset({"ssd", "hdd"})


def test_one_term_without_a_name_and_all_nodes_are_looked_at() -> None:
    assert names(on_name("In", "ssd"), on_labels(expression("disk", "Exists"))) is None
    assert names(on_name("NotIn", "ssd")) is None


def test_names_of_one_term_must_agree() -> None:
    both = {"matchFields": [expression("metadata.name", "In", n) for n in ("ssd", "hdd")]}
    status = names(both)
    assert (status.message, status.code.name) == ("pod affinity terms conflict", "UNRESOLVABLE")
    assert names(both, on_name("In", "bare")) == frozenset({"bare"})


def test_a_field_with_two_values_names_nodes_and_matches_none_of_them() -> None:
    assert names(on_name("In", "ssd", "hdd")) == frozenset({"ssd", "hdd"})
    assert fitting(requiring(on_name("In", "ssd", "hdd"))) == set()


def test_fields_match_by_name() -> None:
    assert fitting(requiring(on_name("In", "hdd"))) == {"hdd"}
    assert fitting(requiring(on_name("NotIn", "hdd"))) == {"ssd", "bare"}


# ---- what the administrator adds ----


def added(*terms: Doc) -> NodeAffinityPlugin:
    return NodeAffinityPlugin(added_required=parse_node_selector({"nodeSelectorTerms": list(terms)}, strict=True))


def test_what_is_enforced_is_looked_at_first() -> None:
    plugin = added(on_labels(expression("disk", "Exists")))
    assert street().judged(plugin, plain_pod(nodeSelector={"disk": "ssd"})) == {"hdd": OWN, "bare": ENFORCED}
    assert street().judged(plugin, plain_pod()) == {"bare": ENFORCED}


def test_what_is_enforced_is_parsed_strictly() -> None:
    with pytest.raises(SelectorError):
        added(on_labels(expression("size", "Gt", "many")))


# ---- scores ----


def test_weights_of_matching_preferences_add_up() -> None:
    ssd, some = on_labels(expression("disk", "In", "ssd")), on_labels(expression("disk", "Exists"))
    assert street().scores(PLUGIN, preferring((30, ssd), (10, some))) == {"ssd": 100, "hdd": 25, "bare": 0}


def test_where_no_preference_matches_everyone_gets_nothing() -> None:
    assert street().scores(PLUGIN, preferring((5, on_labels(expression("none", "Exists"))))) == {
        "ssd": 0,
        "hdd": 0,
        "bare": 0,
    }


def test_it_scores_nothing_without_preferences_but_an_empty_list_is_one() -> None:
    assert street().scores(PLUGIN, plain_pod()) is None
    assert street().scores(PLUGIN, preferring()) == {"ssd": 0, "hdd": 0, "bare": 0}


def test_preferences_without_weight_or_preferences_are_passed_over() -> None:
    some = on_labels(expression("disk", "Exists"))
    assert street().scores(PLUGIN, preferring((0, some), (7, {}))) == {"ssd": 0, "hdd": 0, "bare": 0}


def test_a_broken_preference_fails_the_attempt() -> None:
    place = street()
    document = preferring((5, on_labels(expression("size", "Gt", "many"))))
    with pytest.raises(AssertionError, match="many"):
        place.scores(PLUGIN, document)


def test_added_preferences_count_for_every_pod() -> None:
    term = parse_node_selector_term(on_labels(expression("disk", "In", "hdd")))
    plugin = NodeAffinityPlugin(added_preferred=[(10, term)])
    assert street().scores(plugin, plain_pod()) == {"ssd": 0, "hdd": 100, "bare": 0}
    ssd = on_labels(expression("disk", "In", "ssd"))
    assert street().scores(plugin, preferring((20, ssd))) == {"ssd": 100, "hdd": 50, "bare": 0}


# ---- hints ----

SSD, HDD = {"disk": "ssd"}, {"disk": "hdd"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, SSD, Hint.QUEUE),
        (None, HDD, Hint.SKIP),
        (HDD, SSD, Hint.QUEUE),
        (SSD, {**SSD, "more": "x"}, Hint.SKIP),
        (SSD, HDD, Hint.SKIP),
    ],
)
def test_a_node_wakes_when_it_matches_and_did_not(
    old: dict[str, str] | None, new: dict[str, str], expected: Hint
) -> None:
    action = ActionType.ADD if old is None else ActionType.UPDATE_NODE_LABEL
    before = None if old is None else compiled_node(labels=old)
    waiting = compiled(plain_pod(nodeSelector=SSD))
    assert hint(PLUGIN, NODE, action, waiting, old=before, new=compiled_node(labels=new)) is expected


def test_a_new_node_must_meet_what_is_enforced_too() -> None:
    plugin = added(on_labels(expression("pool", "Exists")))
    waiting = compiled(plain_pod(nodeSelector=SSD))
    bare, pooled = compiled_node(labels=SSD), compiled_node(labels={**SSD, "pool": "x"})
    assert hint(plugin, NODE, ActionType.ADD, waiting, new=bare) is Hint.SKIP
    assert hint(plugin, NODE, ActionType.ADD, waiting, new=pooled) is Hint.QUEUE


def test_of_the_old_node_only_the_pods_own_preferences_are_asked() -> None:
    """So a node that comes to meet what is enforced does not wake a pod whose own wishes it met before."""
    plugin = added(on_labels(expression("pool", "Exists")))
    waiting = compiled(plain_pod(nodeSelector=SSD))
    before, after = compiled_node(labels=SSD), compiled_node(labels={**SSD, "pool": "x"})
    assert hint(plugin, NODE, ActionType.UPDATE_NODE_LABEL, waiting, old=before, new=after) is Hint.SKIP
    assert hint(plugin, NODE, ActionType.UPDATE_NODE_LABEL, waiting, old=compiled_node(), new=after) is Hint.QUEUE
