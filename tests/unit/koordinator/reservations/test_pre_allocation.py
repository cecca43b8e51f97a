"""Pre-allocation: a reservation is placed on top of pods that run already, and they become its owners."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fairlead.errors import Conflict
from tests.support.documents import asking, node
from tests.support.koordinator import (
    SCHEDULING,
    KoordScenario,
    given_gpus,
    gpu_node,
    koord_pod,
    koord_reservation,
)

MARK = "pod.koordinator.sh/is-pre-allocatable"
PRIORITY = "pod.koordinator.sh/pre-allocatable-priority"
WEB = {"app": "web"}
CLUSTER_MODE = {"enableClusterMode": True}


def started(config: Mapping[str, Any] | None = None, *nodes: int, **options: Any) -> KoordScenario:
    scenario = KoordScenario({"Reservation": {"preAllocationConfig": dict(config or {})}}, **options)
    for number, cpu in enumerate(nodes or (4,)):
        scenario.tell(node(f"n{number}", cpu=cpu))
    return scenario


def reserved(cpu: int, name: str = "r", *, required: bool = False, **spec: Any) -> Any:
    spec = {"allocatePolicy": "Restricted", "preAllocation": True, "allocateOnce": False, **spec}
    document = koord_reservation(name, request={"cpu": str(cpu)}, owners=WEB, **spec)
    if required:
        document["metadata"]["labels"] = {SCHEDULING + "pre-allocation-required": "true"}
    return document


def running(
    scenario: KoordScenario,
    name: str,
    cpu: int,
    on: str = "n0",
    *,
    labels: Mapping[str, str] = WEB,
    annotations: Mapping[str, str] | None = None,
) -> None:
    document = koord_pod(name, cpu=str(cpu), nodeName=on, labels=labels)
    document["metadata"]["annotations"] = dict(annotations or {})
    scenario.tell(document)


def status(scenario: KoordScenario, name: str = "r") -> Any:
    return scenario.doc("reservations", name).get("status") or {}


def said(scenario: KoordScenario) -> str:
    return str(status(scenario)["conditions"][-1]["message"]).partition(" preemption:")[0]


def owners(scenario: KoordScenario, name: str = "r") -> set[str]:
    """The pods that are marked as owners of a reservation."""
    found = set()
    for key, doc in scenario.docs.items():
        text = (doc["metadata"].get("annotations") or {}).get(SCHEDULING + "reservation-allocated")
        if key[0] == "pods" and text and json.loads(text) == {"name": name, "uid": f"uid-{name}"}:
            found.add(key[2])
    return found


def requested(scenario: KoordScenario) -> int:
    return int(scenario.cluster.table.requested["cpu"][0])


def test_a_reservation_takes_over_a_running_pod_and_keeps_its_room() -> None:
    scenario = started()
    running(scenario, "a", 3)
    scenario.tell(reserved(4))
    scenario.settle()
    assert (status(scenario)["phase"], status(scenario)["nodeName"]) == ("Available", "n0")
    assert owners(scenario) == {"a"}
    assert status(scenario)["allocated"] == {"cpu": "3"}
    assert requested(scenario) == 4000
    scenario.gone(scenario.doc("pods", "a", "default"))
    scenario.settle()
    assert requested(scenario) == 4000, "the reservation keeps what the pod had"
    scenario.tell(koord_pod("stranger", cpu="1"), koord_pod("b", cpu="4", labels=WEB))
    scenario.settle()
    assert scenario.placed() == {"b": "n0"}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"allocatePolicy": "Aligned"}, "node(s) reservation pre allocation is unsupported with current attributes"),
        (
            {"preAllocationPolicy": {"mode": "Cluster"}},
            "reservation requires cluster mode pre-allocation which is disabled",
        ),
    ],
)
def test_what_cannot_be_pre_allocated_says_so(spec: Mapping[str, Any], why: str) -> None:
    scenario = started()
    running(scenario, "a", 3)
    scenario.tell(reserved(4, **spec))
    scenario.settle()
    assert said(scenario) == f"0/1 nodes are available: {why}."
    assert owners(scenario) == set()


def test_only_owners_that_are_in_no_reservation_are_taken_over() -> None:
    scenario = started()
    running(scenario, "other", 2, labels={"app": "db"})
    running(scenario, "a", 2)
    scenario.tell(reserved(2, "first"))
    scenario.settle()
    assert owners(scenario, "first") == {"a"}
    scenario.tell(reserved(2))
    scenario.settle()
    assert owners(scenario) == set()
    assert said(scenario) == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_that_does_not_fit_into_the_reservation_is_not_taken_over() -> None:
    scenario = started()
    running(scenario, "large", 3)
    scenario.tell(reserved(2))
    scenario.settle()
    assert owners(scenario) == set()
    assert said(scenario) == "0/1 nodes are available: 1 Insufficient cpu by node."


def test_of_one_pod_too_little_is_said_of_the_node_and_of_the_reservation() -> None:
    scenario = started()
    for name, cpu in (("a", 2), ("b", 2)):
        running(scenario, name, cpu)
    scenario.tell(reserved(3, required=True))
    scenario.settle()
    assert said(scenario) == "0/1 nodes are available: 1 Insufficient cpu by node."


def test_the_pod_that_fills_the_reservation_most_is_taken_over() -> None:
    scenario = started()
    for name, cpu in (("a", 1), ("b", 2)):
        running(scenario, name, cpu)
    scenario.tell(reserved(3))
    scenario.settle()
    assert owners(scenario) == {"b"}


def test_the_node_whose_pod_fills_the_reservation_most_is_taken() -> None:
    scenario = started(None, 4, 4)
    running(scenario, "a", 2, "n0")
    running(scenario, "b", 3, "n1")
    scenario.tell(reserved(4))
    scenario.settle()
    assert (owners(scenario), status(scenario)["nodeName"]) == ({"b"}, "n1")


@pytest.mark.parametrize("prefers", [False, True])
def test_a_pod_is_taken_over_although_there_is_room_unless_the_configuration_says_otherwise(prefers: bool) -> None:
    scenario = started({"preferNoPreAllocatedPods": prefers})
    running(scenario, "a", 1)
    scenario.tell(reserved(2))
    scenario.settle()
    assert status(scenario)["phase"] == "Available"
    assert owners(scenario) == (set() if prefers else {"a"})
    assert requested(scenario) == (3000 if prefers else 2000)


def test_a_reservation_that_needs_a_pod_is_placed_only_with_one() -> None:
    scenario = started(None, 4, 8)
    scenario.tell(reserved(2, required=True))
    scenario.settle()
    assert said(scenario) == ("0/2 nodes are available: node(s) no pod match reservation with pre allocation required.")
    scenario.gone(scenario.doc("reservations", "r"))
    running(scenario, "a", 1)
    scenario.tell(reserved(2, "again", required=True))
    scenario.settle()
    assert (status(scenario, "again")["nodeName"], owners(scenario, "again")) == ("n0", {"a"})


# ---- several pods ----


def test_as_many_pods_are_taken_over_as_are_needed() -> None:
    scenario = started(None, 5)
    for name, cpu in (("a", 1), ("b", 2), ("c", 2)):
        running(scenario, name, cpu)
    scenario.tell(reserved(4, preAllocationPolicy={"enableMultiple": True}))
    scenario.settle()
    assert owners(scenario) == {"b", "c"}
    assert requested(scenario) == 5000


def test_pods_that_are_too_many_for_the_reservation_are_left_out() -> None:
    scenario = started(None, 5)
    for name, cpu in (("a", 1), ("b", 2), ("c", 2)):
        running(scenario, name, cpu)
    scenario.tell(reserved(3, preAllocationPolicy={"enableMultiple": True}))
    scenario.settle()
    assert owners(scenario) == {"a", "b"}, "b and c together do not fit into the reservation"


@pytest.mark.parametrize("compatible", [False, True])
def test_only_the_original_does_not_look_at_how_many_pods_are_taken_over(compatible: bool) -> None:
    taken = set()
    for seed in range(8):
        scenario = started(None, 4, 4, compatible=compatible, seed=seed)
        for name in ("a", "b", "c", "d"):
            running(scenario, name, 1, "n0")
        running(scenario, "e", 4, "n1")
        scenario.tell(reserved(4, preAllocationPolicy={"enableMultiple": True}))
        scenario.settle()
        taken.add(len(owners(scenario)))
    assert taken == ({1, 4} if compatible else {1})


# ---- any marked pod ----


def test_in_cluster_mode_marked_pods_are_taken_over_in_their_order() -> None:
    scenario = started(CLUSTER_MODE, 6)
    for name, mark, priority in (("a", "true", "1"), ("b", "true", "7"), ("c", "false", "9"), ("d", "true", "3")):
        labels = {MARK: mark, "app": "batch"}
        running(scenario, name, 1, labels=labels, annotations={PRIORITY: priority})
    running(scenario, "rest", 2, labels={})
    policy = {"mode": "Cluster", "enableMultiple": True}
    scenario.tell(reserved(2, preAllocationPolicy=policy))
    scenario.settle()
    assert owners(scenario) == {"b", "d"}
    assert requested(scenario) == 6000


# ---- failures ----


def test_pods_are_given_back_when_the_reservation_cannot_be_bound() -> None:
    scenario = started()
    running(scenario, "a", 3)
    scenario.tell(reserved(4))
    marks = [write for write in scenario.writes if write.name == "a"]
    assert len(marks) == 1
    scenario.answer(Conflict("refused by the test"))
    assert requested(scenario) == 3000
    for _ in range(3):
        scenario.settle()
        scenario.run(after=15)
    scenario.settle()
    assert (status(scenario)["phase"], owners(scenario)) == ("Available", {"a"})
    assert requested(scenario) == 4000
    assert not scenario.backlog.complaints


def test_marks_of_an_attempt_that_was_cut_off_are_taken_away() -> None:
    """The scheduler was killed when the pod was marked and the reservation was not bound yet."""
    scenario = started()
    text = json.dumps({"name": "r", "uid": "uid-r"})
    running(scenario, "a", 3, annotations={SCHEDULING + "reservation-allocated": text})
    too_large = reserved(5)
    scenario.tell(too_large)
    scenario.settle()
    assert owners(scenario) == set()
    assert requested(scenario) == 3000


def test_devices_of_the_pod_become_those_of_the_reservation() -> None:
    scenario = KoordScenario()
    scenario.tell(*gpu_node("n0", cpu=4))
    for name in ("a", "other"):
        labels = WEB if name == "a" else {}
        scenario.tell(koord_pod(name, labels=labels, containers=[asking({"koordinator.sh/gpu": "100"})]))
        scenario.settle()
    request = {"koordinator.sh/gpu": "100"}
    scenario.tell(
        koord_reservation(
            "r", request=request, owners=WEB, allocatePolicy="Restricted", preAllocation=True, allocateOnce=False
        )
    )
    scenario.settle()
    assert (status(scenario)["phase"], owners(scenario)) == ("Available", {"a"})
    assert given_gpus(scenario.doc("reservations", "r")) == given_gpus(scenario.doc("pods", "a", "default"))
