"""koord-descheduler's configuration file: defaults, pools that inherit, and what is wrong with a file."""

from __future__ import annotations

import pytest

from fairlead.errors import ConfigError
from fairlead.koordinator.descheduling.reading import DESCHEDULER_PRESET, read_descheduler
from fairlead.koordinator.descheduling.settings import (
    AnomalyCondition,
    CustomPrioritySettings,
    LowNodeLoadSettings,
    MigrationSettings,
)

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\n"


def with_args(plugin: str, *lines: str, point: str = "balance") -> str:
    enabled = f"  plugins:\n    {point}:\n      enabled:\n      - name: {plugin}\n" if point else "  plugins: {}\n"
    body = "".join(f"      {line}\n" for line in lines)
    return f"{HEAD}profiles:\n- name: p\n{enabled}  pluginConfig:\n  - name: {plugin}\n    args:\n{body}"


def test_the_shipped_file_moves_by_load_every_ten_seconds() -> None:
    settings = read_descheduler(DESCHEDULER_PRESET)
    assert settings.interval == 10
    (load,) = settings.profile.balance
    assert isinstance(load, LowNodeLoadSettings)
    (pool,) = load.pools
    assert (pool.low, pool.high) == ({"cpu": 45, "memory": 55}, {"cpu": 75, "memory": 80})
    assert pool.anomaly == AnomalyCondition(60, 5, 3)
    assert (load.expiration, load.node_fit, load.detector_timeout) == (180, True, 300)
    migration = settings.profile.migration
    assert (migration.most_per_node, migration.ttl, migration.evictions_per_second) == (2, 300, 10)
    assert migration.limiters["workload"].window == 300


def test_without_anything_jobs_are_carried_out_and_none_is_made() -> None:
    settings = read_descheduler(HEAD)
    assert settings.profile.balance == ()
    assert settings.profile.migration == MigrationSettings()


def test_profiles_are_kept_in_the_order_of_the_file() -> None:
    text = HEAD + (
        "profiles:\n- name: a\n  plugins: {balance: {enabled: [{name: LowNodeLoad}]}}\n"
        "- name: b\n  nodeSelector: {matchLabels: {zone: b}}\n"
    )
    first, second = read_descheduler(text).profiles
    assert (first.name, len(first.balance), first.selector) == ("a", 1, None)
    assert (second.name, second.balance) == ("b", ())
    assert second.selector is not None


def test_a_pool_inherits_what_it_does_not_say() -> None:
    text = with_args(
        "LowNodeLoad",
        "lowThresholds: {cpu: 10}",
        "highThresholds: {cpu: 50}",
        "resourceWeights: {cpu: 3}",
        "anomalyCondition: {consecutiveAbnormalities: 1}",
        "nodePools:",
        "- name: gpu",
        "  nodeSelector: {matchLabels: {kind: gpu}}",
        "  highThresholds: {cpu: 60}",
        "  anomalyCondition: {timeout: 2m}",
    )
    (load,) = read_descheduler(text).profile.balance
    assert isinstance(load, LowNodeLoadSettings)
    whole, gpu = load.pools
    assert (whole.name, whole.selector) == ("__default_node_pool__", None)
    assert (gpu.low, gpu.high, gpu.weights) == ({"cpu": 10}, {"cpu": 60}, {"cpu": 3, "memory": 1})
    assert gpu.anomaly == AnomalyCondition(120, 1, 3)
    assert gpu.selector is not None
    assert gpu.selector.matches({"kind": "gpu"})


def test_tiers_and_numbers_in_quotes() -> None:
    text = with_args(
        "CustomPriority",
        "mode: DrainNode",
        "evictionOrder:",
        "- {name: a, nodeSelector: {matchLabels: {t: a}}}",
        "- {name: b, nodeSelector: {matchLabels: {t: b}}}",
    )
    (tiers,) = read_descheduler(text).profile.balance
    assert isinstance(tiers, CustomPrioritySettings)
    assert [tier.name for tier in tiers.order] == ["a", "b"]
    migration = read_descheduler(with_args("MigrationController", 'evictQPS: "2.5"', point="")).profile.migration
    assert migration.evictions_per_second == 2.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Pod", "not a configuration of koord-descheduler"),
        (HEAD + "intervall: 1s", 'unknown field "intervall"'),
        (HEAD + "deschedulingInterval: soon", "deschedulingInterval"),
        (HEAD + "profiles: [{name: a}, {name: a}]", 'profile "a" is there twice'),
        (
            HEAD + "profiles: [{name: a}, "
            "{name: b, pluginConfig: [{name: MigrationController, args: {dryRun: true}}]}]",
            "MigrationController has other arguments than in the first profile",
        ),
        (with_args("RemoveDuplicates"), 'plugin "RemoveDuplicates" is not one of those supported here'),
        (with_args("LowNodeLoad", "lowThresholds: {cpu: 80}", "highThresholds: {cpu: 50}"),
         "low percentage must be less than or equal to highThresholds"),
        (with_args("LowNodeLoad", "lowThresholds: {cpu: -1}"), "percentage must be greater than or equal to 0"),
        (with_args("LowNodeLoad", "nodeMetricExpirationSeconds: 0"), "should be a positive value"),
        (with_args("LowNodeLoad", "evictableNamespaces: {include: [a], exclude: [b]}"), "only one of Include/Exclude"),
        (with_args("LowNodeLoad", "lowTresholds: {cpu: 1}"), 'unknown field "lowTresholds"'),
        (with_args("CustomPriority", "evictionOrder: []"), "requires at least 2 resource priority levels"),
        (with_args("CustomPriority", "mode: Fast", "evictionOrder: []"), "invalid mode: Fast"),
        (with_args("MigrationController", "defaultJobMode: Fast", point=""), "defaultJobMode must be ReservationFirst"),
        (with_args("MigrationController", "skipEvictionGates: [All]", point=""), "unknown eviction gate"),
        (with_args("MigrationController", "maxMigratingPerWorkload: some", point=""), "PerWorkload is invalid"),
        (with_args("MigrationController", "evictBurst: 0", point=""), "evictBurst must be greater than 0"),
        (with_args("MigrationController", "evictionPolicy: Kill", point=""), "unsupported evicition policy"),
        (HEAD + "profiles:\n- plugins: {evict: {disabled: [{name: '*'}]}}", "nothing else evicts here"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_descheduler(text, "koord-descheduler.yaml")
    assert words in str(caught.value)
    assert "koord-descheduler.yaml" in str(caught.value)
