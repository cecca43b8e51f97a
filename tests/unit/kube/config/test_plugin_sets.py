"""Merging and expansion of plugin sets, on small sets of invented plugins."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.kube.config.gates import DEFAULT_GATES, parse_feature_gates
from fairlead.kube.config.plugin_sets import (
    IN_TREE,
    PluginRef,
    Plugins,
    PluginSet,
    default_multi_point,
    expand,
    merge_plugins,
    read_plugins,
)
from fairlead.kube.config.shapes import POINTS

CAPABILITIES = {name: frozenset({"filter", "score"}) for name in ("A", "B", "C", "D")}


def plugins(multi: list[str], **points: PluginSet) -> Plugins:
    everywhere = {point: PluginSet() for point in POINTS}
    return {**everywhere, **points, "multiPoint": PluginSet(tuple(map(ref, multi)))}


def ref(text: str) -> PluginRef:
    name, _, weight = text.partition(":")
    return PluginRef(name, int(weight or 0))


def enabled(*names: str, disabled: tuple[str, ...] = ()) -> PluginSet:
    return PluginSet(tuple(map(ref, names)), disabled)


def names(listed: Plugins, point: str = "filter") -> list[str]:
    return [name for name, _ in expand(listed, CAPABILITIES)[point]]


def test_a_plugin_of_multi_point_runs_at_every_point_it_implements() -> None:
    points = expand(plugins(["A", "B:3"]), CAPABILITIES)
    assert points["filter"] == (("A", 0), ("B", 0))
    assert points["score"] == (("A", 1), ("B", 3))
    assert points["bind"] == ()


def test_relisted_plugins_come_first_then_multi_point_then_the_points_own() -> None:
    assert names(plugins(["A", "B", "C"], filter=enabled("D", "C", "B"))) == ["C", "B", "A", "D"]


def test_a_name_disabled_at_a_point_is_only_missing_there() -> None:
    listed = plugins(["A", "B"], filter=enabled(disabled=("A",)))
    assert names(listed) == ["B"]
    assert names(listed, "score") == ["A", "B"]


def test_a_star_at_a_point_leaves_only_what_the_point_lists() -> None:
    assert names(plugins(["A", "B"], filter=enabled("B", "D", disabled=("*",)))) == ["B", "D"]


def test_the_weight_of_the_point_counts_before_that_of_multi_point_and_none_is_one() -> None:
    listed = plugins(["A:5", "B:6", "C"], score=enabled("A:2", "B"))
    assert expand(listed, CAPABILITIES)["score"] == (("A", 2), ("B", 1), ("C", 1))


def test_a_default_listed_again_keeps_its_place_and_takes_the_new_weight() -> None:
    merged = merge_plugins(
        read_plugins({"multiPoint": {"enabled": [{"name": "NodeAffinity", "weight": 9}]}}), DEFAULT_GATES
    )
    default = default_multi_point(DEFAULT_GATES).enabled
    expected = tuple(PluginRef("NodeAffinity", 9) if each.name == "NodeAffinity" else each for each in default)
    assert merged["multiPoint"].enabled == expected


def test_a_disabled_default_goes_and_may_come_back_at_the_end() -> None:
    user = {"multiPoint": {"disabled": [{"name": "NodeName"}], "enabled": [{"name": "NodeName"}]}}
    merged = merge_plugins(read_plugins(user), DEFAULT_GATES)["multiPoint"]
    assert [each.name for each in merged.enabled].count("NodeName") == 1
    assert merged.enabled[-1].name == "NodeName"
    assert merged.disabled == ("NodeName",)


def test_a_star_in_multi_point_removes_every_default() -> None:
    user = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}}
    assert merge_plugins(read_plugins(user), DEFAULT_GATES)["multiPoint"].enabled == (PluginRef("ImageLocality"),)


def test_feature_gates_decide_over_the_last_defaults() -> None:
    gates = parse_feature_gates(
        "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,NodeDeclaredFeatures=false"
    )
    assert [each.name for each in default_multi_point(gates).enabled][-4:] == [
        "DefaultBinder",
        "GangScheduling",
        "TopologyPlacementGenerator",
        "PodGroupPodsCount",
    ]


set_of_plugins = st.builds(
    PluginSet,
    st.lists(st.builds(PluginRef, st.sampled_from("ABCD"), st.integers(0, 9)), max_size=5).map(tuple),
    st.lists(st.sampled_from(["A", "B", "C", "*"]), max_size=2).map(tuple),
)


@given(multi=set_of_plugins, at_filter=set_of_plugins, at_score=set_of_plugins)
def test_no_plugin_is_twice_at_a_point_and_every_score_has_a_weight(
    multi: PluginSet, at_filter: PluginSet, at_score: PluginSet
) -> None:
    listed = {**plugins([]), "multiPoint": multi, "filter": at_filter, "score": at_score}
    points = expand(listed, CAPABILITIES)
    for point in POINTS:
        found = [name for name, _ in points[point]]
        assert len(found) == len(set(found))
    assert all(weight != 0 for _, weight in points["score"])


@given(at=st.sampled_from(sorted(IN_TREE)), point=st.sampled_from(POINTS))
def test_disabling_one_default_at_one_point_changes_nothing_else(at: str, point: str) -> None:
    before = expand(merge_plugins(read_plugins({}), DEFAULT_GATES), IN_TREE)
    after = expand(merge_plugins(read_plugins({point: {"disabled": [{"name": at}]}}), DEFAULT_GATES), IN_TREE)
    assert after == {**before, point: tuple(entry for entry in before[point] if entry[0] != at)}
