"""Reservation: holds room for the pods that own it, and gives it to them."""

from __future__ import annotations

import json

from tests.support.documents import node
from tests.support.koordinator import (
    SCHEDULING,
    KoordScenario,
    koord_pod,
    koord_reservation,
)


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


def test_the_owners_of_a_reservation_are_reported_as_they_come_and_go() -> None:
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
