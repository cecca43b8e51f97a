"""InterPodAffinity: its three rules, its scores, and the quirks that are the original's."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.core.framework.refusals import trial_statement
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.reasons import SKIP, Code
from fairlead.core.state.nodes import Nodes
from fairlead.kube.affinity.plugin import InterPodAffinity
from tests.support.documents import HOST, ZONE, apart, near, plain_pod, rather_apart, rather_near, term
from tests.support.plugins import PluginScenario

WEB, DB = {"app": "web"}, {"app": "db"}
AFFINITY = "node(s) didn't match pod affinity rules (final)"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


@pytest.fixture
def made() -> PluginScenario:
    """Two nodes in zone a, one in b, one without a zone."""
    street = PluginScenario()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("bare", None)):
        street.node(name, zone)
    return street


def wanting(affinity: Doc, labels: dict[str, str] | None = None, **more: str) -> Doc:
    return plain_pod("new", labels, affinity=affinity, **more)


# ---- required ----


def test_a_pod_joins_company_in_the_same_domain(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB), "a1")
    refused = made.refusals(InterPodAffinity(), wanting(near(term(ZONE, DB))))
    assert refused == {"b1": AFFINITY, "bare": AFFINITY}


def test_all_terms_must_be_met_by_the_same_pods(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB), "a1")
    made.put_on(plain_pod("front", {"tier": "front"}), "a1")
    both = near(term(ZONE, DB), term(ZONE, {"tier": "front"}))
    assert set(made.refusals(InterPodAffinity(), wanting(both))) == {"a1", "a2", "b1", "bare"}
    made.put_on(plain_pod("both", {**DB, "tier": "front"}), "b1")
    assert set(made.refusals(InterPodAffinity(), wanting(both))) == {"a1", "a2", "bare"}


def test_the_first_pod_of_a_group_may_go_wherever_the_key_is(made: PluginScenario) -> None:
    assert made.refusals(InterPodAffinity(), wanting(near(term(ZONE, WEB)), WEB)) == {"bare": AFFINITY}
    assert set(made.refusals(InterPodAffinity(), wanting(near(term(ZONE, WEB)), DB))) == {"a1", "a2", "b1", "bare"}


def test_company_on_a_node_without_the_key_leaves_the_pod_first(made: PluginScenario) -> None:
    made.put_on(plain_pod("first", WEB), "bare")
    assert made.refusals(InterPodAffinity(), wanting(near(term(ZONE, WEB)), WEB)) == {"bare": AFFINITY}
    made.put_on(plain_pod("second", WEB), "b1")
    assert set(made.refusals(InterPodAffinity(), wanting(near(term(ZONE, WEB)), WEB))) == {"a1", "a2", "bare"}


def test_a_pod_keeps_away_from_those_it_dislikes_terminating_or_not(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB), "a1", terminating=True)
    assert made.refusals(InterPodAffinity(), wanting(apart(term(ZONE, DB)))) == {
        "a1": ANTI_AFFINITY,
        "a2": ANTI_AFFINITY,
    }


def test_those_on_nodes_keep_others_away(made: PluginScenario) -> None:
    made.put_on(plain_pod("shy", DB, affinity=apart(term(HOST, WEB))), "b1")
    assert made.refusals(InterPodAffinity(), plain_pod("new", WEB)) == {"b1": EXISTING}
    assert made.prepared(InterPodAffinity(), plain_pod("new", DB))[2] is SKIP


def test_the_first_broken_rule_is_the_reason(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB, affinity=apart(term(HOST, WEB))), "a1")
    both = {**near(term(ZONE, DB)), **apart(term(HOST, DB))}
    assert made.refusals(InterPodAffinity(), wanting(both, WEB)) == {
        "a1": ANTI_AFFINITY,
        "b1": AFFINITY,
        "bare": AFFINITY,
    }


def test_a_shy_pod_on_a_node_without_the_key_disturbs_nobody(made: PluginScenario) -> None:
    made.put_on(plain_pod("shy", DB, affinity=apart(term(ZONE, WEB))), "bare")
    assert made.prepared(InterPodAffinity(), plain_pod("new", WEB))[2] is SKIP


def test_a_pod_that_no_term_speaks_of_is_not_looked_at(made: PluginScenario) -> None:
    assert made.prepared(InterPodAffinity(), plain_pod("new", WEB))[2] is SKIP


def test_a_broken_selector_refuses_the_pod_everywhere_for_good(made: PluginScenario) -> None:
    broken = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}}
    _, _, status = made.prepared(InterPodAffinity(), wanting(apart(broken)))
    assert status.code is Code.UNRESOLVABLE
    assert status.message.startswith("parsing pod: ")


def test_a_broken_list_of_a_pod_on_a_node_is_as_if_it_were_not_there(made: PluginScenario) -> None:
    broken = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}}
    made.put_on(plain_pod("odd", DB, affinity={**apart(broken), **near(term(ZONE, WEB))}), "a1")
    assert made.prepared(InterPodAffinity(), plain_pod("new", WEB))[2] is SKIP
    assert made.scores(InterPodAffinity(), plain_pod("new", WEB)) == {"a1": 100, "a2": 100, "b1": 0, "bare": 0}


# ---- namespaces ----


def test_a_term_means_the_pods_own_namespace_unless_it_names_others(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB, namespace="other"), "a1")
    assert made.refusals(InterPodAffinity(), wanting(apart(term(HOST, DB)))) == {}
    named = term(HOST, DB, namespaces=["other"])
    assert made.refusals(InterPodAffinity(), wanting(apart(named))) == {"a1": ANTI_AFFINITY}


def test_a_namespace_selector_finds_namespaces_by_label(made: PluginScenario) -> None:
    made.namespace("other", team="a")
    made.put_on(plain_pod("db", DB, namespace="other"), "a1")
    for team, refused in (("a", {"a1": ANTI_AFFINITY}), ("b", {})):
        selecting = term(HOST, DB, namespaceSelector={"matchLabels": {"team": team}})
        assert made.refusals(InterPodAffinity(), wanting(apart(selecting))) == refused
    made.namespace("other", team="b")
    selecting = term(HOST, DB, namespaceSelector={"matchLabels": {"team": "b"}})
    assert made.refusals(InterPodAffinity(), wanting(apart(selecting))) == {"a1": ANTI_AFFINITY}


def test_a_namespace_selector_that_only_excludes_means_every_namespace_of_the_incoming_pods_terms(
    made: PluginScenario,
) -> None:
    made.namespace("other", team="a")
    excluding = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}
    made.put_on(plain_pod("db", DB, namespace="other"), "a1")
    selecting = term(HOST, DB, namespaceSelector=excluding)
    assert made.refusals(InterPodAffinity(), wanting(apart(selecting))) == {"a1": ANTI_AFFINITY}


def test_the_same_selector_of_a_pod_on_a_node_is_taken_at_its_word(made: PluginScenario) -> None:
    made.namespace("other", team="a")
    excluding = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}
    shy = plain_pod("shy", DB, affinity=apart(term(HOST, WEB, namespaceSelector=excluding)))
    made.put_on(shy, "a1")
    assert made.prepared(InterPodAffinity(), plain_pod("new", WEB, namespace="other"))[2] is SKIP
    assert made.refusals(InterPodAffinity(), plain_pod("new", WEB)) == {"a1": EXISTING}
    assert made.refusals(InterPodAffinity(), plain_pod("new", WEB, namespace="unheard-of")) == {"a1": EXISTING}


# ---- trials ----


def test_a_trial_sees_company_come_and_go(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB, affinity=apart(term(ZONE, {"tier": "x"}))), "a1")
    plugin = InterPodAffinity()
    place, cycle, _ = made.prepared(plugin, wanting(near(term(ZONE, DB)), {**DB, "tier": "y"}))
    trial = cycle.copy()
    statement = trial_statement(trial)
    statement.evict(made.cluster.pods["uid-db"].pod, made.row("a1"))
    assert made.named(place.refusals(plugin, trial)) == {"bare": AFFINITY}, "without company the pod is the first"
    shy = made.compiled(plain_pod("shy", DB, affinity=apart(term(HOST, {"tier": "y"}))))
    statement.assign(shy, made.row("b1"))
    assert made.named(place.refusals(plugin, trial)) == {
        "a1": AFFINITY,
        "a2": AFFINITY,
        "b1": EXISTING,
        "bare": AFFINITY,
    }
    statement.rollback()
    assert made.named(place.refusals(plugin, trial)) == {"b1": AFFINITY, "bare": AFFINITY}


def test_evicting_the_disliked_makes_room(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB), "a1")
    plugin = InterPodAffinity()
    place, cycle, _ = made.prepared(plugin, wanting(apart(term(HOST, DB))))
    trial = cycle.copy()
    trial_statement(trial).evict(made.cluster.pods["uid-db"].pod, made.row("a1"))
    assert made.named(place.refusals(plugin, trial)) == {}
    assert made.named(place.refusals(plugin, cycle)) == {"a1": ANTI_AFFINITY}


# ---- scores ----


def test_preferences_add_up_by_domain(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB), "a1")
    made.put_on(plain_pod("db2", DB), "b1")
    made.put_on(plain_pod("loud", {"tier": "loud"}), "b1")
    both = {**rather_near(10, term(ZONE, DB)), **rather_apart(4, term(ZONE, {"tier": "loud"}))}
    assert made.scores(InterPodAffinity(), wanting(both)) == {"a1": 100, "a2": 100, "b1": 60, "bare": 0}


def test_where_all_nodes_are_in_one_domain_none_is_better_until_one_is_outside() -> None:
    street, plugin = PluginScenario(), InterPodAffinity()
    wishing, needing = wanting(rather_near(10, term(ZONE, DB))), wanting(near(term(ZONE, DB)))

    def said() -> tuple[dict[str, int] | None, dict[str, str]]:
        return street.scores(plugin, wishing), street.refusals(plugin, needing)

    street.node("a1", "a")
    street.node("a2", "a")
    street.put_on(plain_pod("db", DB), "a1")
    together = ({"a1": 0, "a2": 0}, {})
    assert said() == together
    street.node("a2")
    assert said() == ({"a1": 100, "a2": 0}, {"a2": AFFINITY})
    street.remove(kinds.NODE, {"metadata": {"name": "a2"}})
    assert said() == ({"a1": 0}, {})
    street.node("a2", "a")
    assert said() == together
    street.node("b1", "b")
    assert said() == ({"a1": 100, "a2": 100, "b1": 0}, {"b1": AFFINITY})


def test_one_number_is_said_of_nodes_in_one_domain_of_several(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB, affinity=near(term(ZONE, DB))), "a1")
    plugin = InterPodAffinity()
    _, cycle, _ = made.prepared(plugin, wanting(near(term(ZONE, DB)), DB))

    def said(*names: str) -> list[int] | int:
        nodes = Nodes(made.cluster.table, np.array([made.row(name) for name in names], dtype=np.int32))
        plugin.pre_score(cycle, nodes)
        values = plugin.score(cycle, nodes)
        return values if isinstance(values, int) else plugin.normalize_score(cycle, nodes, values).tolist()

    assert (said("a1", "a2"), said("b1", "bare"), said("a1", "b1"), said("a1", "bare")) == (0, 0, [100, 0], [100, 0])


def test_pods_on_nodes_prefer_too_and_a_required_affinity_is_a_preference(made: PluginScenario) -> None:
    made.put_on(plain_pod("friend", DB, affinity=near(term(ZONE, WEB))), "a1")
    assert made.scores(InterPodAffinity(), plain_pod("new", WEB)) == {"a1": 100, "a2": 100, "b1": 0, "bare": 0}
    assert made.scores(InterPodAffinity(hard_pod_affinity_weight=0), plain_pod("new", WEB)) is None
    made.put_on(plain_pod("foe", DB, affinity=rather_apart(3, term(HOST, WEB))), "a1")
    assert made.scores(InterPodAffinity(), plain_pod("new", WEB)) == {"a1": 0, "a2": 100, "b1": 66, "bare": 66}


def test_preferences_of_others_may_be_ignored_by_pods_without_preferences(made: PluginScenario) -> None:
    made.put_on(plain_pod("friend", DB, affinity=rather_near(5, term(ZONE, WEB))), "a1")
    plugin = InterPodAffinity(ignore_preferred_terms_of_existing_pods=True)
    assert made.scores(plugin, plain_pod("new", WEB)) is None
    wishing = wanting(rather_near(1, term(HOST, {"no": "body"})), WEB)
    assert made.scores(plugin, wishing) == {"a1": 100, "a2": 100, "b1": 0, "bare": 0}


def test_preferences_that_cancel_out_still_score_zero_for_everybody(made: PluginScenario) -> None:
    made.put_on(plain_pod("friend", DB, affinity=rather_near(5, term(ZONE, WEB))), "a1")
    made.put_on(plain_pod("foe", DB, affinity=rather_apart(5, term(ZONE, WEB))), "a2")
    assert made.scores(InterPodAffinity(), plain_pod("new", WEB)) == dict.fromkeys(("a1", "a2", "b1", "bare"), 0)


def test_a_preference_of_no_weight_is_scored_all_the_same(made: PluginScenario) -> None:
    made.put_on(plain_pod("friend", DB, affinity=rather_near(0, term(ZONE, WEB))), "a1")
    assert made.scores(InterPodAffinity(), plain_pod("new", WEB)) == dict.fromkeys(("a1", "a2", "b1", "bare"), 0)


def test_preferences_that_hold_nowhere_are_not_scored(made: PluginScenario) -> None:
    made.put_on(plain_pod("friend", DB, affinity=rather_near(5, term(ZONE, WEB))), "bare")
    assert made.scores(InterPodAffinity(), plain_pod("new", WEB)) is None


@pytest.mark.parametrize(("raw", "score"), [(0, 0), (29, 28), (57, 56), (58, 57), (100, 100)])
def test_scores_are_normalised_in_floating_point_as_the_original_does(
    made: PluginScenario, raw: int, score: int
) -> None:
    plugin = InterPodAffinity()
    cycle = made.prepared(plugin, plain_pod("new"))[1]
    nodes = Nodes(made.cluster.table, np.arange(3, dtype=np.int32))
    assert plugin.normalize_score(cycle, nodes, np.array([0, raw, 100])).tolist()[1] == score


# ---- following the cluster ----


def test_many_pods_that_say_the_same_are_counted_as_a_few_are() -> None:
    made = PluginScenario()
    for number in range(100):
        made.node(f"n{number}", f"z{number % 3}")
    for number in range(0, 100, 2):
        made.put_on(plain_pod(f"p{number}", WEB, affinity=apart(term(HOST, WEB))), f"n{number}")
    assert set(made.refusals(InterPodAffinity(), plain_pod("new", WEB))) == {
        f"n{number}" for number in range(0, 100, 2)
    }
    for number in range(0, 80, 2):
        made.remove(kinds.POD, plain_pod(f"p{number}"))
    assert set(made.refusals(InterPodAffinity(), plain_pod("new", WEB))) == {
        f"n{number}" for number in range(80, 100, 2)
    }


def test_a_node_that_moves_to_another_zone_takes_its_pods_along(made: PluginScenario) -> None:
    made.put_on(plain_pod("db", DB), "a1")
    assert set(made.refusals(InterPodAffinity(), wanting(apart(term(ZONE, DB))))) == {"a1", "a2"}
    made.node("a1", "b")
    assert set(made.refusals(InterPodAffinity(), wanting(apart(term(ZONE, DB))))) == {"a1", "b1"}


def test_a_node_that_moves_takes_along_what_its_pods_say() -> None:
    made = PluginScenario()
    made.node("b1", "b")
    for number in range(50):
        made.node(f"a{number}", "a")
        made.put_on(plain_pod(f"p{number}", DB, affinity=apart(term(ZONE, WEB))), f"a{number}")
    assert "b1" not in made.refusals(InterPodAffinity(), plain_pod("new", WEB))
    made.node("a0", "b")
    assert made.refusals(InterPodAffinity(), plain_pod("new", WEB))["b1"] == EXISTING
