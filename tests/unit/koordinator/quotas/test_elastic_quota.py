"""ElasticQuota: a pod is placed only if its quota, and the quotas above it, have enough left."""

from __future__ import annotations

import json

import pytest

from tests.support.koordinator import (
    QUOTA,
    KoordScenario,
    elastic_quota,
    koord_pod,
)


def test_a_pod_beyond_its_quota_waits_until_a_pod_of_it_goes() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(elastic_quota("team", least={"cpu": "1"}, most={"cpu": "2"}))
    first = koord_pod("a", quota="team")
    scenario.tell(first, koord_pod("b", quota="team"))
    scenario.settle()
    scenario.tell(koord_pod("c", quota="team"))
    scenario.settle()
    assert scenario.placed().keys() == {"a", "b"}
    assert scenario.message("c").startswith(
        "0/1 nodes are available: Insufficient quotas, quotaName: team, runtime: cpu:2"
    )
    scenario.gone(scenario.docs["pods", "default", "a"])
    scenario.run(after=20)
    scenario.settle()
    assert "c" in scenario.placed()


@pytest.mark.parametrize("compatible", [False, True])
def test_only_the_original_tries_a_pod_before_its_quota_counts_it(compatible: bool) -> None:
    scenario = KoordScenario(nodes=1, compatible=compatible)
    scenario.tell(elastic_quota("team", least={"cpu": "0"}, most={"cpu": "4"}))
    scenario.settle()
    scenario.run(after=5)
    scenario.settle()
    scenario.tell(koord_pod("a", quota="team"))
    scenario.settle()
    assert ("a" in scenario.placed()) is not compatible
    if compatible:
        assert "Insufficient quotas, quotaName: team, runtime: cpu:0" in scenario.message("a")
    for _ in range(4):
        scenario.run(after=3)
        scenario.settle()
    assert "a" in scenario.placed(), "what its quota shows changes, and it is tried again"


def test_a_quota_shows_what_is_requested_used_and_granted() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(elastic_quota("team", least={"cpu": "1"}, most={"cpu": "3"}))
    scenario.tell(koord_pod("a", quota="team"), koord_pod("b", quota="team", cpu="8"))
    scenario.settle()
    scenario.run(after=11)
    scenario.settle()
    quota = scenario.doc("elasticquotas", "team", "default")
    annotations = quota["metadata"]["annotations"]
    assert quota["status"]["used"] == {"cpu": "1"}
    assert json.loads(annotations[QUOTA + "request"]) == {"cpu": "9"}
    assert json.loads(annotations[QUOTA + "runtime"]) == {"cpu": "3"}


def test_a_status_that_nothing_changes_is_written_once() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(elastic_quota("team", least={"cpu": "1"}, most={"cpu": "3"}), koord_pod("a", quota="team"))
    scenario.settle()
    for _ in range(5):
        scenario.run(after=11)
        scenario.settle()
    before = len(scenario.writes)
    for _ in range(5):
        scenario.run(after=11)
        scenario.settle()
    assert len(scenario.writes) == before
    assert scenario.scheduler.wake_at() is None


def test_a_pod_takes_the_share_of_less_important_pods_of_its_own_quota_only() -> None:
    scenario = KoordScenario(nodes=2)
    scenario.tell(*(elastic_quota(name, least={"cpu": "2"}, most={"cpu": "2"}) for name in ("team", "other")))
    scenario.tell(koord_pod("low", quota="team", priority=5, cpu="2"), koord_pod("far", quota="other", cpu="2"))
    scenario.settle()
    scenario.tell(koord_pod("high", quota="team", priority=10, cpu="1"))
    scenario.settle()
    scenario.run(after=20)
    scenario.settle()
    assert scenario.placed().keys() == {"far", "high"}


def test_pods_that_are_not_preemptible_and_other_quotas_are_left_alone() -> None:
    fixed = {QUOTA + "preemptible": "false"}
    for compatible in (False, True):
        scenario = KoordScenario(nodes=1, compatible=compatible)
        scenario.tell(elastic_quota("team", least={"cpu": "2"}, most={"cpu": "2"}))
        scenario.tell(elastic_quota("other", least={"cpu": "2"}, most={"cpu": "2"}))
        scenario.tell(koord_pod("fixed", quota="team", cpu="2", labels=fixed), koord_pod("far", quota="other", cpu="2"))
        scenario.settle()
        scenario.tell(koord_pod("high", quota="team", priority=10, cpu="1"))
        scenario.settle()
        assert ({"fixed", "far"} == scenario.placed().keys()) is not compatible


def test_a_quota_that_uses_more_than_its_runtime_for_too_long_loses_its_least_important_pods() -> None:
    scenario = KoordScenario({"ElasticQuota": {"monitorAllQuotas": True, "delayEvictTime": "60s"}}, nodes=1)
    scenario.tell(elastic_quota("a", least={"cpu": "2"}, most={"cpu": "4"}))
    scenario.tell(elastic_quota("b", least={"cpu": "2"}, most={"cpu": "4"}))
    for at in range(4):
        scenario.tell(koord_pod(f"a{at}", quota="a", priority=at))
        scenario.settle()
    assert len(scenario.placed()) == 4, "it borrows what nobody else asks for"
    scenario.tell(koord_pod("b0", quota="b", cpu="2"))
    scenario.settle()
    for _ in range(8):
        scenario.run(after=15)
        scenario.settle()
    assert scenario.placed().keys() == {"a2", "a3", "b0"}


def test_pods_of_a_quota_go_as_soon_as_the_delay_allows() -> None:
    scenario = KoordScenario({"ElasticQuota": {"monitorAllQuotas": True, "delayEvictTime": "1s"}}, nodes=1)
    scenario.tell(elastic_quota("a", least={"cpu": "2"}, most={"cpu": "4"}))
    scenario.tell(elastic_quota("b", least={"cpu": "2"}, most={"cpu": "4"}))
    scenario.tell(koord_pod("a0", quota="a", cpu="2", priority=1), koord_pod("a1", quota="a", cpu="2"))
    scenario.settle()
    scenario.tell(koord_pod("b0", quota="b", cpu="2"))
    scenario.settle()
    for _ in range(3):
        scenario.run(after=1)
        scenario.settle()
    assert scenario.placed().keys() == {"a0", "b0"}


def test_a_quota_shows_no_use_of_pods_that_went_while_no_scheduler_ran() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell({**elastic_quota("a", least={"cpu": "2"}, most={"cpu": "4"}), "status": {"used": {"cpu": "3"}}})
    for _ in range(2):
        scenario.run(after=2)
        scenario.settle()
    assert not scenario.doc("elasticquotas", "a", "default")["status"]["used"]
