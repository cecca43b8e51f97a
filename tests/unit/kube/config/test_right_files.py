"""Files that must load, against what kube-scheduler 1.36.4 wrote for them in effective/: document and points."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.assembly.loading import load_config
from fairlead.kube.config.document import diff, to_document
from fairlead.kube.config.kube import default_kube_config, kube_config_from
from fairlead.kube.config.records import KubeConfig
from fairlead.kube.config.shapes import API_VERSION, KIND

HERE = Path(__file__).parent
PARITY = HERE.parents[2] / "parity" / "data" / "kube" / "scheduler-config.yaml"
RIGHT = [*sorted((HERE / "right").glob("*.yaml")), PARITY]
HEADER = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


def load(file: Path) -> KubeConfig:
    return load_config(file.read_text(), file=file.name)


def written_by_kube_scheduler(file: Path) -> dict[str, Any]:
    golden: dict[str, Any] = yaml.safe_load((HERE / "effective" / file.name).read_text())
    return golden


@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_the_effective_document_is_the_one_that_kube_scheduler_writes(file: Path) -> None:
    document = to_document(load(file))
    if document["percentageOfNodesToScore"] is None:
        document["percentageOfNodesToScore"] = 0  # the one difference: not written means every node here
    assert document == written_by_kube_scheduler(file)["document"]


@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_the_plugins_of_every_point_have_the_order_and_weights_of_kube_scheduler(file: Path) -> None:
    points = {
        str(at): {point: [list(ref) for ref in refs] for point, refs in profile.points.items()}
        for at, profile in enumerate(load(file).profiles)
    }
    assert points == written_by_kube_scheduler(file)["points"]


@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_the_effective_document_loads_again_to_the_same_configuration(file: Path) -> None:
    config = load(file)
    assert kube_config_from(to_document(config)) == config
    assert load_config(yaml.safe_dump(to_document(config))) == config


def test_an_absent_percentage_is_every_node_and_zero_is_the_adaptive_formula() -> None:
    assert load_config(HEADER).percentage_of_nodes_to_score is None
    assert load_config(HEADER + "percentageOfNodesToScore: 0").percentage_of_nodes_to_score == 0
    assert to_document(load_config(HEADER))["percentageOfNodesToScore"] is None


def test_a_profile_takes_its_own_percentage_before_the_common_one() -> None:
    config = load(HERE / "right" / "two-profiles.yaml")
    assert [profile.percentage_of_nodes_to_score for profile in config.profiles] == [0, 30]


def test_a_profile_without_a_percentage_has_the_common_one() -> None:
    config = load_config(HEADER + "percentageOfNodesToScore: 70\nprofiles: [{schedulerName: a}]")
    assert config.profiles[0].percentage_of_nodes_to_score == 70
    assert config.profiles[0].own_percentage_of_nodes_to_score is None


def test_the_built_in_configuration_is_that_of_an_empty_file() -> None:
    assert default_kube_config() == load_config(HEADER)


def test_extenders_that_may_be_ignored_are_called_last() -> None:
    config = load(HERE / "right" / "everything-else.yaml")
    assert [extender.url_prefix[-5:] for extender in config.extenders] == ["first", "econd"]
    assert [extender.url_prefix[-5:] for extender in config.extenders_in_order] == ["econd", "first"]


def test_what_an_extender_manages_alone_replaces_the_ignored_resources() -> None:
    config = load(HERE / "right" / "everything-else.yaml")
    args = config.profiles[0].args["NodeResourcesFit"]
    assert dataclasses.asdict(args)["ignored_resources"] == ("example.com/foo",)  # type: ignore[call-overload]


def test_a_default_score_plugin_listed_without_a_weight_weighs_one_and_that_is_said_aloud() -> None:
    config = load(HERE / "right" / "score-set.yaml")
    assert config.profiles[0].weights["TaintToleration"] == 1
    assert config.notices == (
        "default-scheduler: plugins.score.enabled: "
        "TaintToleration is listed without a weight and weighs 1 instead of 3",
    )


def test_args_of_a_plugin_that_is_not_enabled_are_no_error_but_said_aloud() -> None:
    config = load_config(HEADER + "profiles: [{pluginConfig: [{name: GangScheduling, args: {a: 1}}]}]")
    assert config.notices == (
        "default-scheduler: pluginConfig[0]: plugin GangScheduling is not enabled, its args have no effect",
    )
    assert "GangScheduling" not in config.profiles[0].args


def test_disabling_a_plugin_that_earlier_versions_had_is_no_error() -> None:
    config = load_config(HEADER + "profiles: [{plugins: {score: {disabled: [{name: NodePreferAvoidPods}]}}}]")
    assert config.notices == (
        "default-scheduler: plugins.score.disabled[0]: plugin NodePreferAvoidPods no longer exists",
    )


def test_only_the_first_document_is_read_as_in_the_original_and_that_is_said_aloud() -> None:
    config = load_config(HEADER + "podMaxBackoffSeconds: 13\n---\npodMaxBackoffSeconds: 14\n")
    assert config.pod_max_backoff_seconds == 13
    assert config.notices == ("only the first document of the file is read",)


def test_args_of_a_users_plugin_stay_as_they_are() -> None:
    text = HEADER + (
        "profiles: [{plugins: {score: {enabled: [{name: Mine, weight: 2}]}},"
        " pluginConfig: [{name: Mine, args: {threshold: 3, labels: [a, b]}}]}]"
    )
    config = load_config(text, capabilities={**_in_tree(), "Mine": frozenset({"score"})})
    assert config.profiles[0].args["Mine"] == {"threshold": 3, "labels": ["a", "b"]}
    assert config.profiles[0].points["score"][-1] == ("Mine", 2)


def test_diff_names_what_changed_and_matches_by_name() -> None:
    before = load_config(HEADER + "profiles: [{schedulerName: a}, {schedulerName: b}]")
    after = load_config(
        HEADER + "parallelism: 4\nprofiles: [{schedulerName: b}, "
        "{schedulerName: a, plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 5}]}}}]"
    )
    assert [(entry.path, entry.before, entry.after) for entry in diff(before, after)] == [
        ("parallelism", 16, 4),
        ("profiles (order)", ["a", "b"], ["b", "a"]),
        ("profiles[a].plugins.multiPoint.enabled[ImageLocality].weight", 1, 5),
    ]


def test_equal_configurations_have_no_difference() -> None:
    assert diff(default_kube_config(), load_config(HEADER + "parallelism: 16")) == []


def _in_tree() -> dict[str, frozenset[str]]:
    from fairlead.kube.config.plugin_sets import IN_TREE

    return dict(IN_TREE)
