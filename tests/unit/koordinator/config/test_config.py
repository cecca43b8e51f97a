"""Koordinator's part of a configuration: read and checked like any other, and mended where it forgets something."""

from __future__ import annotations

import pytest

from fairlead.assembly.assemble import profiles_of
from fairlead.assembly.recorded import recorded_profile
from fairlead.assembly.registry import PluginRegistry
from fairlead.core.model.flow import Doc
from fairlead.errors import ConfigError
from fairlead.kube.config.kube import kube_config_from


def configuration(plugin: str, point: str, args: Doc) -> Doc:
    profile = {
        "schedulerName": "koord-scheduler",
        "plugins": {point: {"enabled": [{"name": plugin}]}},
        "pluginConfig": [{"name": plugin, "args": args}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def test_a_file_that_leaves_reservation_out_under_reserve_is_mended_unless_compatible() -> None:
    for compatible in (False, True):
        document = configuration("Reservation", "filter", {})
        config = kube_config_from(document, capabilities=PluginRegistry().capabilities)
        (profile,) = profiles_of(config, compatible=compatible)
        assert ("Reservation" in {plugin.name for plugin in profile.at("reserve")}) is not compatible


def test_a_misspelt_argument_of_koordinator_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError) as found:
        recorded_profile(configuration("LoadAwareScheduling", "filter", {"usageThreshold": {"cpu": 65}}), frozenset())
    assert "usageThreshold" in str(found.value)
    assert "usageThresholds" in str(found.value)


@pytest.mark.parametrize(
    ("plugin", "point", "args", "said"),
    [
        ("LoadAwareScheduling", "filter", {"usageThresholds": {"cpu": "65"}}, r"usageThresholds\[cpu\]"),
        ("NodeNUMAResource", "filter", {"defaultCPUBindPolicy": "Half"}, "defaultCPUBindPolicy: 'Half'"),
        ("NodeNUMAResource", "filter", {"scoringStrategy": {"type": "Other"}}, "scoringStrategy.type: 'Other'"),
        ("NodeResourcesFitPlus", "score", {"resources": {"cpu": {"type": "No"}}}, r"resources\[cpu\].type: 'No'"),
        ("Coscheduling", "permit", {"defaultMatchPolicy": "never"}, "defaultMatchPolicy: 'never'"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(plugin: str, point: str, args: Doc, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        recorded_profile(configuration(plugin, point, args), frozenset())


def test_a_plugin_at_a_point_where_it_does_not_take_part_is_an_error() -> None:
    with pytest.raises(ConfigError, match="ElasticQuota"):
        recorded_profile(configuration("ElasticQuota", "score", {}), frozenset())
