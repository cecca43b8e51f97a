"""Koordinator's profile in a running scheduler. What each plugin does stands in the file of the plugin."""

from __future__ import annotations

from tests.support.koordinator import (
    KoordScenario,
    koord_pod,
)


def test_plain_pods_of_both_profiles_are_placed() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_pod("a"), koord_pod("b", schedulerName="default-scheduler"))
    scenario.settle()
    assert scenario.placed() == {"a": "n0", "b": "n0"}


def test_koordinator_kinds_are_watched_only_where_a_plugin_reads_them() -> None:
    from tests.support.scheduling import SchedulerScenario

    watched = {watch.kind.kind for watch in KoordScenario().scheduler.watches}
    assert {"ElasticQuota", "Reservation", "Device", "NodeMetric", "NodeResourceTopology"} <= watched
    assert "Reservation" not in {watch.kind.kind for watch in SchedulerScenario().scheduler.watches}
