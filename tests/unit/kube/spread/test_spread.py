"""PodTopologySpread: the worked examples of its rules, and the quirks that are the original's."""

from __future__ import annotations

import pytest

from fairlead.core.framework.refusals import trial_statement
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.reasons import SKIP, Code
from fairlead.core.model.requirements import EVERYTHING
from fairlead.core.model.terms import SpreadConstraint
from fairlead.kube.spread.plugin import PodTopologySpread
from tests.support.documents import HOST, ZONE, plain_pod, spread
from tests.support.plugins import PluginScenario

WEB = {"app": "web"}
SKEWED = "node(s) didn't match pod topology spread constraints"
MISSING = "node(s) didn't match pod topology spread constraints (missing required label) (final)"


def web(*constraints: Doc, name: str = "new", **spec: object) -> Doc:
    return plain_pod(name, WEB, topologySpreadConstraints=list(constraints), **spec)


def street(**zones: int) -> PluginScenario:
    """A node for each zone, with that many web pods."""
    made = PluginScenario()
    for zone, count in zones.items():
        made.node(f"n-{zone}", zone)
        made.fill(f"n-{zone}", count, WEB)
    return made


# ---- hard constraints ----


def test_a_pod_goes_where_the_skew_stays_within_bounds() -> None:
    assert street(a=2, b=1, c=0).refusals(PodTopologySpread(), web(spread(ZONE, WEB))) == {"n-a": SKEWED, "n-b": SKEWED}


def test_too_few_domains_count_as_an_empty_one() -> None:
    made = street(a=2, b=1)
    assert made.refusals(PodTopologySpread(), web(spread(ZONE, WEB))) == {"n-a": SKEWED}
    wanting = web(spread(ZONE, WEB, minDomains=4))
    assert made.refusals(PodTopologySpread(), wanting) == {"n-a": SKEWED, "n-b": SKEWED}
    assert street(a=2, b=1, c=0).refusals(PodTopologySpread(), wanting) == {"n-a": SKEWED, "n-b": SKEWED}


def test_a_node_without_the_label_is_refused_for_good() -> None:
    made = street(a=0)
    made.node("bare")
    assert made.refusals(PodTopologySpread(), web(spread(ZONE, WEB))) == {"bare": MISSING}


def test_the_first_constraint_that_fails_gives_the_reason() -> None:
    made = street(a=1, b=0)
    made.node("n-a2", "a", host=False)
    constraints = spread(ZONE, WEB), spread(HOST, WEB)
    assert made.refusals(PodTopologySpread(), web(*constraints)) == {"n-a": SKEWED, "n-a2": SKEWED}
    assert made.refusals(PodTopologySpread(), web(*reversed(constraints))) == {"n-a": SKEWED, "n-a2": MISSING}


def test_only_nodes_with_all_keys_count_for_any_constraint() -> None:
    made = street(a=1, b=0)
    made.node("n-b2", "b", host=False)
    made.fill("n-b2", 5, WEB)
    assert made.refusals(PodTopologySpread(), web(spread(ZONE, WEB), spread(HOST, WEB, skew=9))) == {
        "n-a": SKEWED,
        "n-b2": MISSING,
    }


def test_a_pod_that_its_own_selector_passes_over_does_not_add_to_the_skew() -> None:
    stranger = plain_pod("new", {"app": "db"}, topologySpreadConstraints=[spread(ZONE, WEB)])
    assert street(a=2, b=1).refusals(PodTopologySpread(), stranger) == {}


def test_terminating_pods_and_other_namespaces_do_not_count() -> None:
    made = street(a=1, b=0)
    made.put_on(plain_pod("leaving", WEB), "n-a", terminating=True)
    made.put_on(plain_pod("elsewhere", WEB, namespace="other"), "n-a")
    assert made.refusals(PodTopologySpread(), web(spread(ZONE, WEB, skew=2))) == {}


def test_a_selector_of_everything_counts_nothing() -> None:
    assert street(a=5, b=0).refusals(PodTopologySpread(), web(spread(ZONE, {}))) == {}


def test_no_selector_matches_nothing_even_with_match_label_keys() -> None:
    assert street(a=5, b=0).refusals(PodTopologySpread(), web(spread(ZONE, None, matchLabelKeys=["app"]))) == {}


def test_match_label_keys_narrow_the_selector_to_the_pods_own_values() -> None:
    made = street(a=2, b=0)
    old = {**WEB, "version": "1"}
    made.put_on(plain_pod("old", old), "n-b")
    newer = spread(ZONE, {}, matchLabelKeys=["version", "absent"])
    assert made.refusals(
        PodTopologySpread(), plain_pod("new", {"version": "1"}, topologySpreadConstraints=[newer])
    ) == {"n-b": SKEWED}


def test_nodes_that_the_pod_cannot_use_do_not_count_unless_configured_to() -> None:
    made = street(a=1)
    made.node("n-b", "b", disk="hdd")
    picky = {"nodeSelector": {"disk": "ssd"}}
    made.node("n-c", "c", disk="ssd")
    made.fill("n-c", 1, WEB)
    assert made.refusals(PodTopologySpread(), web(spread(ZONE, WEB), **picky)) == {}
    ignoring = web(spread(ZONE, WEB, nodeAffinityPolicy="Ignore"), **picky)
    assert made.refusals(PodTopologySpread(), ignoring) == {"n-a": SKEWED, "n-c": SKEWED}


def test_tainted_nodes_count_unless_configured_not_to() -> None:
    made = street(a=1)
    made.node("n-b", "b", taint="dedicated")
    assert made.refusals(PodTopologySpread(), web(spread(ZONE, WEB))) == {"n-a": SKEWED}
    honoring = spread(ZONE, WEB, nodeTaintsPolicy="Honor")
    assert made.refusals(PodTopologySpread(), web(honoring)) == {}
    tolerating = web(honoring, tolerations=[{"operator": "Exists"}])
    assert made.refusals(PodTopologySpread(), tolerating) == {"n-a": SKEWED}


def test_a_trial_counts_terminating_pods_that_the_attempt_did_not_count() -> None:
    """Taking away a victim that is terminating already makes its domain look emptier than empty."""
    made = street(a=1, b=0)
    made.put_on(plain_pod("leaving", WEB), "n-b", terminating=True)
    plugin = PodTopologySpread()
    place, cycle, _ = made.prepared(plugin, web(spread(ZONE, WEB, skew=2)))
    assert made.named(place.refusals(plugin, cycle)) == {}
    trial = cycle.copy()
    statement = trial_statement(trial)
    statement.evict(made.cluster.pods["uid-leaving"].pod, made.row("n-b"))
    assert made.named(place.refusals(plugin, trial)) == {"n-a": SKEWED}
    statement.rollback()
    assert made.named(place.refusals(plugin, trial)) == {}


def test_a_trial_counts_pods_that_a_selector_of_everything_did_not_count() -> None:
    made = street(a=0, b=0)
    plugin = PodTopologySpread()
    place, cycle, _ = made.prepared(plugin, web(spread(ZONE, {})))
    trial = cycle.copy()
    trial_statement(trial).assign(made.compiled(plain_pod("other", {})), made.row("n-a"))
    assert made.named(place.refusals(plugin, trial)) == {"n-a": SKEWED}
    assert made.named(place.refusals(plugin, cycle)) == {}


def test_a_broken_selector_fails_the_attempt() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    document = web({**spread(ZONE, WEB), "labelSelector": broken})
    _, _, status = street(a=0).prepared(PodTopologySpread(), document)
    assert status.code is Code.ERROR
    assert status.message == (
        "get constraints from pod: obtaining pod's hard topology spread constraints:"
        ' "Near" is not a valid label selector operator'
    )


def test_pods_without_hard_constraints_are_not_filtered() -> None:
    for document in (web(), web(spread(ZONE, WEB, hard=False))):
        assert street(a=1).prepared(PodTopologySpread(), document)[2] is SKIP


def test_a_trial_counts_only_what_the_constraint_counts() -> None:
    made = street(a=0, b=0)
    made.node("n-a2", "a", taint="dedicated")
    plugin = PodTopologySpread()
    place, cycle, _ = made.prepared(plugin, web(spread(ZONE, WEB, nodeTaintsPolicy="Honor")))
    trial = cycle.copy()
    statement = trial_statement(trial)
    statement.assign(made.compiled(plain_pod("elsewhere", WEB, namespace="other")), made.row("n-a"))
    statement.assign(made.compiled(plain_pod("another", {"app": "db"})), made.row("n-a"))
    statement.assign(made.compiled(plain_pod("not-admitted", WEB)), made.row("n-a2"))
    assert made.named(place.refusals(plugin, trial)) == {}
    statement.assign(made.compiled(plain_pod("one-of-us", WEB)), made.row("n-a"))
    assert made.named(place.refusals(plugin, trial)) == {"n-a": SKEWED, "n-a2": SKEWED}


def test_constraints_follow_the_nodes() -> None:
    made = street(a=1, b=0)
    hard = web(spread(ZONE, WEB))
    assert made.refusals(PodTopologySpread(), hard) == {"n-a": SKEWED}
    made.node("n-b", "a")
    assert made.refusals(PodTopologySpread(), hard) == {}
    made.node("n-b", "b", taint="dedicated")
    assert made.refusals(PodTopologySpread(), hard) == {"n-a": SKEWED}
    assert made.refusals(PodTopologySpread(), web(spread(ZONE, WEB, nodeTaintsPolicy="Honor"))) == {}


# ---- soft constraints ----


def test_the_emptier_a_zone_the_better() -> None:
    made = street(a=4, b=2, c=0)
    soft = web(spread(ZONE, WEB, hard=False))
    # ln(3 + 2) = 1.609: raw scores 6, 3 and 0.
    assert made.scores(PodTopologySpread(), soft) == {"n-a": 0, "n-b": 50, "n-c": 100}


def test_without_any_pods_all_nodes_are_equally_good() -> None:
    assert street(a=0, b=0).scores(PodTopologySpread(), web(spread(ZONE, WEB, hard=False))) == {"n-a": 100, "n-b": 100}


def test_nodes_without_a_key_score_nothing() -> None:
    made = street(a=1, b=0)
    made.node("bare")
    assert made.scores(PodTopologySpread(), web(spread(ZONE, WEB, hard=False))) == {"n-a": 0, "n-b": 100, "bare": 0}


def test_the_number_of_domains_is_that_of_the_feasible_nodes() -> None:
    made = street(a=3, b=4, c=0, d=0)
    soft = web(spread(ZONE, WEB, hard=False, skew=1))
    # ln 4 weighs 3 and 4 as 4.16 and 5.55, rounded 4 and 6; over four zones it would be ln 6: 5 and 7.
    assert made.scores(PodTopologySpread(), soft, "n-a", "n-b") == {"n-a": 100, "n-b": 66}


def test_host_names_count_pods_on_the_node_whatever_the_policies() -> None:
    made = PluginScenario()
    made.node("n1", taint="dedicated")
    made.node("n2")
    made.fill("n1", 3, WEB)
    soft = web(spread(HOST, WEB, hard=False, nodeTaintsPolicy="Honor"))
    assert made.scores(PodTopologySpread(), soft) == {"n1": 0, "n2": 100}


def test_a_broken_soft_selector_fails_the_scoring() -> None:
    document = web({**spread(ZONE, WEB, hard=False), "labelSelector": {"matchLabels": {"-": "x"}}})
    with pytest.raises(AssertionError, match="calculating preScoreState: obtaining pod"):
        street(a=0).scores(PodTopologySpread(), document)


# ---- defaults ----


def service(name: str, selector: dict[str, str] | None, namespace: str = "default") -> Doc:
    metadata = {"name": name, "namespace": namespace}
    return {"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": {"selector": selector}}


def test_pods_of_a_service_are_spread_by_default() -> None:
    made = street(a=4, b=0)
    plain = plain_pod("new", WEB)
    assert made.scores(PodTopologySpread(), plain) is None
    made.put(kinds.SERVICE, service("other", {"app": "db"}))
    made.put(kinds.SERVICE, service("headless", None))
    made.put(kinds.SERVICE, service("far", WEB, "elsewhere"))
    assert made.scores(PodTopologySpread(), plain) is None
    made.put(kinds.SERVICE, service("web", WEB))
    # Raw: 4 ln 4 + 2 for the host name and 4 ln 4 + 4 for the zone make 17; 2 + 4 make 6.
    assert made.scores(PodTopologySpread(), plain) == {"n-a": 35, "n-b": 100}
    assert made.scores(PodTopologySpread(defaulting="List"), plain) is None
    made.put(kinds.SERVICE, service("web", {"app": "db"}))
    assert made.scores(PodTopologySpread(), plain) is None


@pytest.mark.parametrize(
    ("api_version", "kind", "selector", "spreads"),
    [
        ("v1", "ReplicationController", WEB, True),
        ("apps/v1", "ReplicaSet", {"matchLabels": WEB}, True),
        ("apps/v1", "StatefulSet", {"matchLabels": WEB}, True),
        ("apps/v1beta1", "ReplicaSet", {"matchLabels": WEB}, False),
        ("batch/v1", "Job", {"matchLabels": WEB}, False),
    ],
)
def test_the_owner_may_select_the_pods_to_spread(api_version: str, kind: str, selector: Doc, spreads: bool) -> None:
    made = street(a=4, b=0)
    owned = plain_pod("new", WEB)
    owned["metadata"]["ownerReferences"] = [{"apiVersion": api_version, "kind": kind, "name": "o", "controller": True}]
    assert made.scores(PodTopologySpread(), owned) is None, "an owner that is not there selects nothing"
    metadata = {"name": "o", "namespace": "default"}
    of_kind = {"StatefulSet": kinds.STATEFUL_SET, "ReplicationController": kinds.REPLICATION_CONTROLLER}
    document = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"selector": selector}}
    made.put(of_kind.get(kind, kinds.REPLICA_SET), document)
    assert (made.scores(PodTopologySpread(), owned) is not None) is spreads


def test_an_unlabelled_node_is_a_domain_of_its_own_for_system_defaults() -> None:
    made = street(a=2, b=2)
    made.node("bare", host=False)
    made.put(kinds.SERVICE, service("web", WEB))
    # Two zones and "none" make ln(3 + 2); the bare node has neither key and keeps a raw score of nothing.
    scores = made.scores(PodTopologySpread(), plain_pod("new", WEB))
    assert scores is not None
    assert scores["bare"] == 100
    assert scores["n-a"] == scores["n-b"] == 0


def test_an_empty_zone_and_no_zone_are_one_domain_for_system_defaults() -> None:
    made = PluginScenario()
    made.node("empty", "", host=False)
    made.node("none", host=False)
    made.node("a", "a", host=False)
    made.fill("none", 3, WEB)
    made.fill("a", 3, WEB)
    made.put(kinds.SERVICE, service("web", WEB))
    # Two domains make ln 4, so three pods make 4.16 + 4; the node without the label gets no points at all.
    assert made.scores(PodTopologySpread(), plain_pod("new", WEB)) == {"empty": 0, "none": 100, "a": 0}
    made.node("b", "b", host=False)
    # Now ln 5: 4.83 + 4 make 9, and 4 for zone b.
    assert made.scores(PodTopologySpread(), plain_pod("new", WEB)) == {"empty": 0, "none": 100, "a": 0, "b": 55}


def test_listed_defaults_may_be_hard_and_their_hint_sees_services() -> None:
    made = street(a=1, b=0)
    made.put(kinds.SERVICE, service("web", WEB))
    default = SpreadConstraint(max_skew=1, topology_key=ZONE, hard=True, selector=EVERYTHING)
    plugin = PodTopologySpread(default_constraints=(default,), defaulting="List")
    assert made.refusals(plugin, plain_pod("new", WEB)) == {"n-a": SKEWED}
    assert made.prepared(plugin, plain_pod("new", {"app": "db"}))[2] is SKIP
    hint = plugin.events()[0].hint
    assert hint is not None
    gone = made.compiled(plain_pod("n-a-0", WEB, nodeName="n-a"))
    assert hint(made.compiled(plain_pod("new", WEB)), gone, None).value == "Queue"
