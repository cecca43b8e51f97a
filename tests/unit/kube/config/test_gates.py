"""Feature gates: what they change in plugins and arguments, and which combinations are refused."""

from __future__ import annotations

import pytest

from fairlead.assembly.loading import load_config
from fairlead.config.problems import ConfigErrors
from fairlead.errors import ConfigError
from fairlead.kube.config.gates import DEFAULT_GATES, parse_feature_gates
from fairlead.kube.config.plugin_args import DynamicResourcesArgs, ShapePoint, VolumeBindingArgs

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_gates_are_set_over_the_defaults() -> None:
    gates = parse_feature_gates("StorageCapacityScoring=true, OpportunisticBatching=F")
    assert gates == DEFAULT_GATES - {"OpportunisticBatching"} | {"StorageCapacityScoring"}


def test_all_alpha_turns_on_what_is_alpha_and_a_gate_of_its_own_counts_more() -> None:
    gates = parse_feature_gates("AllAlpha=true,StorageCapacityScoring=false")
    assert "GenericWorkload" in gates
    assert "StorageCapacityScoring" not in gates


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("GangSchedulin=true", 'unrecognized feature gate: GangSchedulin (did you mean "GangScheduling"?)'),
        ("GangScheduling", "missing bool value for GangScheduling"),
        (
            "GangScheduling=x",
            'invalid value of GangScheduling=x, err: strconv.ParseBool: parsing "x": invalid syntax',
        ),
        (
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
    ],
)
def test_wrong_gates_are_refused_in_the_words_of_the_original(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_feature_gates(text)
    assert str(caught.value) == words


def test_storage_capacity_scoring_gives_volume_binding_a_shape() -> None:
    config = load_config(HEADER, gates=parse_feature_gates("StorageCapacityScoring=true"))
    shape = (ShapePoint(0, 10), ShapePoint(100, 0))
    assert config.profiles[0].args["VolumeBinding"] == VolumeBindingArgs(600, shape)


def test_a_timeout_of_a_feature_that_is_off_is_forbidden() -> None:
    gates = parse_feature_gates("DRASchedulerFilterTimeout=false")
    config = load_config(HEADER, gates=gates)
    assert config.profiles[0].args["DynamicResources"] == DynamicResourcesArgs(None, 600.0)
    text = HEADER + "profiles: [{pluginConfig: [{name: DynamicResources, args: {filterTimeout: 5s}}]}]"
    with pytest.raises(ConfigErrors) as caught:
        load_config(text, gates=gates)
    assert caught.value.original == (
        "profiles[0].pluginConfig[0].args.filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled"
    )
