"""The affinity index: what it counts, what it keeps and what it lets go."""

from __future__ import annotations

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.selectors import selector_from_map
from fairlead.kube.affinity import selected
from fairlead.kube.affinity.index import AffinityIndex, affinity_index
from fairlead.kube.affinity.selected import PodSelection
from tests.support.documents import ZONE, apart, plain_pod, term
from tests.support.plugins import PluginScenario

WEB = {"app": "web"}
WEBS = PodSelection(frozenset({"default"}), selector_from_map(WEB))


def counts(
    street: PluginScenario, index: AffinityIndex, reach: PodSelection = WEBS, *, live: bool = True
) -> dict[str, int]:
    column = index.selected.count(reach, live=live).column()
    return {street.cluster.table.name(row): int(n) for row, n in enumerate(column) if n}


def zones(street: PluginScenario, index: AffinityIndex) -> dict[str, int]:
    sums = index.selected.count(WEBS, live=False).domains(ZONE)
    return {v: int(n) for v, n in zip(street.cluster.table.label(ZONE).values, sums, strict=False) if n}


@pytest.fixture
def street() -> PluginScenario:
    made = PluginScenario()
    made.node("n1", "a")
    made.node("n2", "b")
    return made


def test_it_counts_what_was_there_before_it_was_asked(street: PluginScenario) -> None:
    street.fill("n1", 2, WEB)
    street.put_on(plain_pod("leaving", WEB), "n2", terminating=True)
    index = affinity_index(street.cluster)
    assert counts(street, index) == {"n1": 2}
    assert counts(street, index, live=False) == {"n1": 2, "n2": 1}


def test_a_pod_that_begins_to_terminate_is_no_longer_live(street: PluginScenario) -> None:
    index = affinity_index(street.cluster)
    street.put_on(plain_pod("p", WEB), "n1")
    assert counts(street, index) == {"n1": 1}
    street.put_on(plain_pod("p", WEB), "n1", terminating=True)
    assert counts(street, index) == {}
    assert counts(street, index, live=False) == {"n1": 1}


def test_a_pod_whose_labels_change_is_found_under_the_new_ones_alone(street: PluginScenario) -> None:
    index = affinity_index(street.cluster)
    apis = PodSelection(frozenset({"default"}), selector_from_map({"app": "api"}))
    street.put_on(plain_pod("p", WEB), "n1")
    assert counts(street, index) == {"n1": 1}
    street.put_on(plain_pod("p", {"app": "api"}), "n1")
    assert counts(street, index) == {}
    assert counts(street, index, apis) == {"n1": 1}
    assert int(street.cluster.table.pod_count[0]) == 1
    street.cluster.check()


def test_columns_grow_with_the_table(street: PluginScenario) -> None:
    index = affinity_index(street.cluster)
    street.put_on(plain_pod("p", WEB), "n1")
    assert zones(street, index) == {"a": 1}
    for number in range(200):
        street.node(f"more{number}", f"z{number}")
    street.put_on(plain_pod("q", WEB), "more199")
    assert counts(street, index) == {"n1": 1, "more199": 1}
    assert zones(street, index) == {"a": 1, "z199": 1}


def test_pods_on_a_node_that_is_gone_are_in_no_domain(street: PluginScenario) -> None:
    index = affinity_index(street.cluster)
    street.put_on(plain_pod("p", WEB), "n1")
    assert zones(street, index) == {"a": 1}
    street.remove(kinds.NODE, {"metadata": {"name": "n1"}})
    assert zones(street, index) == {}
    street.node("n1", "b")
    assert zones(street, index) == {"b": 1}


def test_counts_not_asked_for_in_a_long_time_are_let_go_and_made_anew(
    street: PluginScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selected, "_MEMORY_BYTES", 0)
    index = affinity_index(street.cluster)
    street.put_on(plain_pod("p", WEB), "n1")
    assert counts(street, index) == {"n1": 1}
    for number in range(100):
        counts(street, index, PodSelection(None, selector_from_map({"app": str(number)})))
    assert len(index.selected) == 64
    street.put_on(plain_pod("q", WEB), "n2")
    assert counts(street, index) == {"n1": 1, "n2": 1}


def test_label_sets_and_terms_without_pods_are_let_go(street: PluginScenario) -> None:
    index = affinity_index(street.cluster)
    for number in range(600):
        shy = plain_pod("p", {"number": str(number)}, affinity=apart(term(ZONE, {"number": str(number)})))
        street.put_on(shy, "n1")
    assert len(index.selected._sets) < 300
    assert len(index.terms.anti) < 300
    assert len(index.terms.anti.counts()) == 1


def test_namespace_labels_follow_the_namespace(street: PluginScenario) -> None:
    index = affinity_index(street.cluster)
    assert index.namespace_labels("unheard-of") == {}
    street.namespace("other", team="a")
    assert index.namespace_labels("other") == {"team": "a"}
