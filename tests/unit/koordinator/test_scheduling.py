"""Koordinator's profile in a running scheduler: plain pods, quotas, gangs, devices and reservations come to nodes."""

from __future__ import annotations

import json

import pytest

from fairlead.core.model.flow import Happened
from tests.support.documents import asking, node
from tests.support.koordinator import (
    GANG,
    GPU,
    QUOTA,
    SCHEDULING,
    KoordScenario,
    elastic_quota,
    gpu_devices,
    koord_group,
    koord_pod,
    koord_reservation,
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


# ---- quotas ----


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


# ---- gangs ----


def test_a_gang_that_fits_is_bound_together_with_its_number_written_on_each() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=3))
    for name in "abc":
        scenario.tell(koord_pod(name, gang="g"))
        scenario.settle()
        assert bool(scenario.placed()) == (name == "c")
    assert scenario.placed().keys() == {"a", "b", "c"}
    annotations = scenario.doc("pods", "a", "default")["metadata"]["annotations"]
    assert annotations["internal.scheduling.koordinator.sh/bind-gang-member-count"] == "3"


@pytest.mark.parametrize("first", ["pods", "group"])
def test_a_group_that_comes_again_under_the_same_name_has_not_started_yet(first: str) -> None:
    scenario = KoordScenario(nodes=1)
    group, pods = koord_group("g", least=2), [koord_pod(name, gang="g") for name in "ab"]
    scenario.tell(group, *pods)
    scenario.settle()
    assert scenario.placed().keys() == {"a", "b"}
    gone = [scenario.doc("pods", name, "default") for name in "ab"]
    for one in [group, *gone] if first == "group" else [*gone, group]:
        scenario.run(scenario.as_change(one, Happened.DELETED))
        scenario.settle()
    scenario.tell(koord_group("g", least=2), koord_pod("c", gang="g"))
    scenario.settle()
    assert scenario.placed() == {}


def test_of_a_gang_that_does_not_fit_nothing_is_bound_and_nothing_is_held() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=5), *(koord_pod(f"p{i}", gang="g") for i in range(5)))
    scenario.settle()
    assert scenario.placed() == {}
    assert int(scenario.cluster.table.pod_count[0]) == 0
    assert not scenario.scheduler.bindings
    said = [scenario.message(f"p{i}") for i in range(5)]
    assert sum("Insufficient cpu" in text for text in said) >= 1
    assert any("gets rejected due to member Pod" in text for text in said)
    scenario.tell(koord_pod("other", cpu="4"))
    scenario.settle()
    assert scenario.placed() == {"other": "n0"}


def test_a_gang_is_tried_again_when_there_is_room() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=5), *(koord_pod(f"p{i}", gang="g") for i in range(5)))
    scenario.settle()
    scenario.tell(node("n1"))
    scenario.run(after=20)
    scenario.settle()
    assert len(scenario.placed()) == 5


def test_gangs_that_find_half_of_their_room_do_not_wake_each_other() -> None:
    scenario = KoordScenario(nodes=2)
    scenario.tell(koord_pod("first", cpu="3"))
    scenario.settle()
    for name in ("a", "b", "c"):
        scenario.tell(koord_group(name, least=2), *(koord_pod(f"{name}{i}", gang=name, cpu="3") for i in range(2)))
    scenario.settle()
    before = scenario.backlog.cycle
    assert before <= 1 + 2 * (1 + 2 + 3), "only a new PodGroup is a reason to try those before it again"
    scenario.settle()
    scenario.run()
    assert scenario.backlog.cycle == before, "nothing has happened"
    scenario.gone(scenario.doc("pods", "first", "default"))
    scenario.settle()
    assert len(scenario.placed()) == 2
    assert scenario.backlog.cycle <= before + 2 * 3, "each gang was tried once"


def test_the_pod_group_may_come_last() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(*(koord_pod(f"p{i}", gang="g") for i in range(3)))
    scenario.settle()
    assert scenario.placed() == {}
    scenario.tell(koord_group("g", least=3))
    scenario.run(after=5)
    scenario.settle()
    assert len(scenario.placed()) == 3


def test_pods_beyond_the_minimum_follow_when_the_gang_has_started() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=2), *(koord_pod(f"p{i}", gang="g") for i in range(4)))
    scenario.settle()
    scenario.run(after=2)
    scenario.settle()
    assert len(scenario.placed()) == 4


def test_pods_beyond_the_minimum_stay_at_the_gate_as_in_the_original() -> None:
    scenario = KoordScenario(nodes=1, compatible=True)
    scenario.tell(koord_group("g", least=2), *(koord_pod(f"p{i}", gang="g") for i in range(4)))
    scenario.settle()
    scenario.run(after=2)
    scenario.settle()
    assert len(scenario.placed()) == 2


def test_gangs_of_a_group_start_together_or_not_at_all() -> None:
    together = {GANG + "groups": json.dumps(["default/g", "default/h"])}
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=2, annotations=together), koord_group("h", least=1, annotations=together))
    scenario.tell(koord_pod("a", gang="g"), koord_pod("b", gang="g"))
    scenario.settle()
    assert scenario.placed() == {}
    scenario.tell(koord_pod("c", gang="h"))
    scenario.settle()
    assert scenario.placed().keys() == {"a", "b", "c"}


def test_rejected_members_lose_their_nominations_unless_the_originals_way_is_kept() -> None:
    for compatible in (False, True):
        scenario = KoordScenario(nodes=1, compatible=compatible)
        scenario.tell(koord_group("g", least=5), *(koord_pod(f"p{i}", gang="g") for i in range(5)))
        scenario.settle()
        nominated = [
            name for (kind, _, name), doc in scenario.docs.items()
            if kind == "pods" and (doc.get("status") or {}).get("nominatedNodeName")
        ]  # fmt: skip
        assert bool(nominated) is compatible


# ---- devices ----


def test_a_pod_gets_a_gpu_and_has_it_written_before_it_is_bound() -> None:
    scenario = KoordScenario()
    scenario.tell(
        node("n0", **{GPU: "200", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"})
    )
    scenario.tell(gpu_devices("n0", count=2))
    for name in "ab":
        scenario.tell(koord_pod(name, containers=[asking({GPU: "100"})]))
        scenario.settle()
    given = [
        json.loads(scenario.doc("pods", name, "default")["metadata"]["annotations"][SCHEDULING + "device-allocated"])
        for name in "ab"
    ]
    assert sorted(one["gpu"][0]["minor"] for one in given) == [0, 1]
    scenario.tell(koord_pod("c", containers=[asking({GPU: "100"})]))
    scenario.settle()
    assert "c" not in scenario.placed()


# ---- reservations ----


def test_a_reservation_becomes_available_and_holds_its_room_for_its_owners() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_reservation("r", request={"cpu": "3"}, owners={"app": "web"}, allocateOnce=False))
    scenario.settle()
    status = scenario.doc("reservations", "r")["status"]
    assert (status["phase"], status["nodeName"]) == ("Available", "n0")
    scenario.tell(koord_pod("stranger", cpu="2"))
    scenario.settle()
    assert "stranger" not in scenario.placed()
    scenario.tell(koord_pod("owner", cpu="2", labels={"app": "web"}))
    scenario.settle()
    assert scenario.placed() == {"owner": "n0"}
    written = scenario.doc("pods", "owner", "default")["metadata"]["annotations"]
    assert json.loads(written[SCHEDULING + "reservation-allocated"])["name"] == "r"


def test_a_reservation_that_fits_nowhere_says_so_and_is_tried_again() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_reservation("r", request={"cpu": "8"}, owners={"app": "web"}))
    scenario.settle()
    condition = scenario.doc("reservations", "r")["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Scheduled", "False", "Unschedulable")
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu")
    scenario.tell(node("big", cpu=16))
    scenario.run(after=20)
    scenario.settle()
    assert scenario.doc("reservations", "r")["status"]["nodeName"] == "big"


def test_a_reservation_for_one_pod_has_succeeded_when_the_pod_is_bound() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_reservation("r", request={"cpu": "3"}, owners={"app": "web"}))
    scenario.settle()
    scenario.tell(koord_pod("owner", cpu="1", labels={"app": "web"}))
    scenario.settle()
    status = scenario.doc("reservations", "r")["status"]
    assert status["phase"] == "Succeeded"
    assert [owner["name"] for owner in status["currentOwners"]] == ["owner"]
    assert status["allocated"] == {"cpu": "1"}
    scenario.tell(koord_pod("stranger", cpu="3"))
    scenario.settle()
    assert "stranger" in scenario.placed(), "what is left of it is free again"


def test_the_owners_of_a_reservation_are_told_as_they_come_and_go() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_reservation("r", request={"cpu": "3"}, owners={"app": "web"}, allocateOnce=False))
    scenario.settle()
    for name in "ab":
        scenario.tell(koord_pod(name, cpu="1", labels={"app": "web"}))
        scenario.settle()
    status = scenario.doc("reservations", "r")["status"]
    assert (status["phase"], status["allocated"]) == ("Available", {"cpu": "2"})
    scenario.gone(scenario.doc("pods", "a", "default"))
    scenario.settle()
    status = scenario.doc("reservations", "r")["status"]
    assert [owner["name"] for owner in status["currentOwners"]] == ["b"]


def test_a_reservation_expires_and_gives_its_room_back_and_is_removed_a_day_later() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_reservation("r", request={"cpu": "4"}, owners={"app": "web"}, ttl="1h"))
    scenario.settle()
    scenario.tell(koord_pod("stranger", cpu="3"))
    scenario.settle()
    assert scenario.placed() == {}
    wake = scenario.scheduler.wake_at()
    assert wake is not None
    scenario.run(after=3601)
    scenario.settle()
    assert scenario.doc("reservations", "r")["status"]["phase"] == "Failed"
    scenario.run(after=20)
    scenario.settle()
    assert scenario.placed() == {"stranger": "n0"}
    scenario.run(after=86401)
    scenario.settle()
    assert ("reservations", "", "r") not in scenario.docs


# ---- statuses ----


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


def test_a_pod_group_goes_through_its_phases() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=2))
    scenario.settle()
    phases = []

    def look() -> None:
        scenario.run(after=2)
        scenario.settle()
        phases.append(scenario.doc("podgroups", "g", "default")["status"]["phase"])

    look()
    scenario.tell(koord_pod("a", gang="g"), koord_pod("b", gang="g"))
    scenario.settle()
    look()
    for phase in ("Running", "Succeeded"):
        for name in "ab":
            shown = scenario.doc("pods", name, "default")
            scenario.tell({**shown, "status": {"phase": phase}}, happened=Happened.MODIFIED)
        look()
    assert phases == ["Pending", "Scheduled", "Running", "Finished"]


# ---- preemption within quotas, and revocation ----


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


def test_pods_may_be_seen_before_the_reservation_that_they_use() -> None:
    """Lists of pods and of reservations come in any order when a scheduler starts."""
    owner = koord_pod("a", cpu="2", labels={"app": "web"}, nodeName="n0")
    text = json.dumps({"name": "r", "uid": "uid-r"})
    owner["metadata"]["annotations"] = {SCHEDULING + "reservation-allocated": text}
    reservation = koord_reservation("r", request={"cpu": "3"}, owners={"app": "web"}, allocateOnce=False)
    reservation["status"] = {"phase": "Available", "nodeName": "n0", "allocatable": {"cpu": "3"}}
    scenario = KoordScenario(nodes=1)
    scenario.tell(owner)
    scenario.tell(reservation)
    scenario.settle()
    assert int(scenario.cluster.table.requested["cpu"][0]) == 3000
    assert scenario.doc("reservations", "r")["status"]["allocated"] == {"cpu": "2"}
