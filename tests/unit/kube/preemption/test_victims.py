"""Whom to evict from one node, with the order among equals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model import kinds
from fairlead.core.model.reasons import Verdict
from fairlead.kube.gosort import go_sort
from fairlead.kube.preemption.victims import VictimNode, by_importance, more_important, split_by_budget
from tests.support.documents import budget, compiled, node, pod
from tests.support.preemption import NOW, PreemptionScenario

EARLY, LATE, AHEAD = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2027-01-01T00:00:00Z"
DB = {"app": "db"}


def arena(*seated: dict[str, object], cpu: int = 4) -> PreemptionScenario:
    made = PreemptionScenario(node("n", cpu=cpu))
    made.put(kinds.POD, *seated)
    return made


# ---- who goes ----


def test_only_pods_of_lower_priority_can_go() -> None:
    made = arena(pod("peer", cpu="4", on="n", priority=5))
    assert made.victims(pod("p", priority=5)) == ["No preemption victims found for incoming pod"]
    found = made.challenge(pod("q", priority=5))
    assert found is not None
    answer = made.search(*found, 0)
    assert isinstance(answer, Verdict)
    assert answer.final


def test_where_nothing_but_eviction_is_lacking_the_filters_own_words_come_back() -> None:
    made = arena(pod("low", on="n"), pod("peer", cpu="2", on="n", priority=5))
    assert made.victims(pod("p", cpu="3", priority=5)) == ["Insufficient cpu"]


def test_no_more_go_than_must() -> None:
    made = arena(*(pod(f"v{i}", on="n", priority=i) for i in range(4)))
    assert made.victims(pod("p", priority=9)) == ["v0"]
    assert made.victims(pod("q", cpu="2", priority=9)) == ["v1", "v0"]


def test_the_more_important_are_given_back_first() -> None:
    made = arena(pod("big", cpu="3", on="n", priority=5), pod("small", cpu="1", on="n", priority=1))
    assert made.victims(pod("p", cpu="1", priority=9)) == ["small"]
    assert made.victims(pod("q", cpu="2", priority=9)) == ["big"]


def test_among_equal_priorities_who_started_later_goes() -> None:
    made = arena(pod("late", cpu="2", on="n", started=LATE), pod("early", cpu="2", on="n", started=EARLY))
    assert made.victims(pod("p", cpu="2", priority=9)) == ["late"]


def test_who_has_not_started_counts_as_starting_now() -> None:
    made = arena(pod("waiting", cpu="2", on="n"), pod("started", cpu="2", on="n", started=LATE))
    assert made.victims(pod("p", cpu="2", priority=9)) == ["waiting"]


def test_equals_that_have_not_started_come_in_reverse_order() -> None:
    pods = [compiled(pod(f"v{i}")) for i in range(5)]
    assert [p.name for p in by_importance(pods, NOW)] == ["v4", "v3", "v2", "v1", "v0"]
    started = [compiled(pod(f"v{i}", started=EARLY)) for i in range(5)]
    assert [p.name for p in by_importance(started, NOW)] == ["v0", "v1", "v2", "v3", "v4"]


def test_who_starts_by_a_clock_ahead_of_ours_counts_as_younger_than_who_has_not_started() -> None:
    ahead, waiting = compiled(pod("ahead", started="2027-01-01T00:00:00Z")), compiled(pod("waiting"))
    for pods in ([ahead, waiting], [waiting, ahead]):
        assert [p.name for p in by_importance(pods, NOW)] == ["waiting", "ahead"]


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from(["", EARLY, LATE, AHEAD])), max_size=20))
def test_the_order_is_that_of_the_originals_sort(drawn: list[tuple[int, str]]) -> None:
    pods = [compiled(pod(f"v{i}", priority=priority, started=start)) for i, (priority, start) in enumerate(drawn)]
    expected = go_sort(list(pods), lambda one, other: more_important(one, other, NOW))
    assert by_importance(pods, NOW) == expected


def test_ports_can_be_freed_too() -> None:
    made = arena(pod("web", on="n", port=80), pod("other", on="n", port=81))
    assert made.victims(pod("p", port=80, priority=9)) == ["web"]


# ---- budgets ----


def test_pods_whose_budget_is_spent_are_given_back_first() -> None:
    made = arena(pod("guarded", cpu="2", on="n", labels=DB), pod("free", cpu="2", on="n", priority=5))
    made.put(kinds.POD_DISRUPTION_BUDGET, budget("b", DB))
    assert made.victims(pod("p", cpu="2", priority=9)) == ["free"]


def test_violations_are_counted_and_victims_stay_in_order_of_importance() -> None:
    made = arena(pod("guarded", cpu="2", on="n", labels=DB), pod("free", cpu="2", on="n", priority=5))
    made.put(kinds.POD_DISRUPTION_BUDGET, budget("b", DB))
    found = made.challenge(pod("p", cpu="4", priority=9))
    assert found is not None
    answer = made.search(*found, 0)
    assert isinstance(answer, VictimNode)
    assert ([p.name for p in answer.victims], answer.violations) == (["free", "guarded"], 1)


def split(*docs: dict[str, object], budgets: list[dict[str, object]]) -> tuple[list[str], list[str]]:
    made = PreemptionScenario(node("n"))
    made.put(kinds.POD_DISRUPTION_BUDGET, *budgets)
    kept = tuple(made.cluster.object_index.of(kinds.POD_DISRUPTION_BUDGET).values())
    violating, others = split_by_budget([compiled(doc) for doc in docs], kept)
    return [p.name for p in violating], [p.name for p in others]


def test_a_budget_is_used_up_in_order() -> None:
    pods = [pod(f"v{i}", labels=DB) for i in range(3)]
    assert split(*pods, budgets=[budget("b", DB, allowed=2)]) == (["v2"], ["v0", "v1"])


def test_every_budget_that_covers_a_pod_is_charged() -> None:
    pods = [pod("v0", labels=DB), pod("v1", labels={**DB, "tier": "x"}), pod("v2", labels={"tier": "x"})]
    budgets = [budget("a", DB, allowed=1), budget("b", {"tier": "x"}, allowed=1)]
    assert split(*pods, budgets=budgets) == (["v1", "v2"], ["v0"])


def test_a_pod_that_the_budget_knows_to_be_going_is_not_charged_again() -> None:
    assert split(pod("v", labels=DB), budgets=[budget("b", DB, disrupted=["v"])]) == ([], ["v"])


def test_budgets_of_other_namespaces_and_empty_selectors_cover_nothing() -> None:
    elsewhere = {**budget("b", DB), "metadata": {"name": "b", "namespace": "other"}}
    assert split(pod("v", labels=DB), budgets=[elsewhere, budget("c", {})]) == ([], ["v"])


def test_pods_without_labels_are_never_covered() -> None:
    anything = budget("b", {})
    anything["spec"] = {"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}
    assert split(pod("v"), pod("w", labels={"x": "y"}), budgets=[anything]) == (["w"], ["v"])


def test_room_for_pods_that_are_promised_the_node_is_left() -> None:
    made = arena(pod("a", cpu="2", on="n"), pod("b", cpu="2", on="n"))
    promised = compiled(pod("promised", cpu="2", priority=9))
    found = made.challenge(pod("p", cpu="2", priority=9), nominated={0: [promised]})
    assert found is not None
    for by_sums in (False, True):
        answer = made.search(*found, 0, by_sums=by_sums)
        assert isinstance(answer, VictimNode)
        assert len(answer.victims) == 2
