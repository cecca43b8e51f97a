"""Reserve pods: how a Reservation is scheduled as a pod, and reported as what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.core.engine.cycle.events import EventRecorder, EventText
from fairlead.core.engine.cycle.outcome import status_patch
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened, Write
from fairlead.core.model.pod import Pod, ReportedAs
from fairlead.core.state.cluster import Cluster
from fairlead.koordinator.kinds import KOORD_RESERVATION
from fairlead.koordinator.records.reservations import ALLOCATED, RESERVE_POD
from fairlead.koordinator.reservations.holdings import Reservations, reservations_of
from tests.support.documents import node
from tests.support.koordinator import koord_pod, koord_reservation

AVAILABLE = {"phase": "Available", "nodeName": "n0"}


def reservation(**more: Any) -> Doc:
    return koord_reservation("r", request={"cpu": "3"}, owners={"app": "web"}, **more)


def apply(cluster: Cluster, doc: Doc, happened: Happened = Happened.ADDED) -> None:
    cluster.apply(Change(happened, KOORD_RESERVATION, doc))


def annotated(name: str, annotations: Mapping[str, str], **more: Any) -> Doc:
    doc = koord_pod(name, **more)
    return {**doc, "metadata": {**doc["metadata"], "annotations": dict(annotations)}}


def reserve_pod(cluster: Cluster) -> Pod:
    (uid,) = reservations_of(cluster).by_uid
    return cluster.pods[uid].seen


def test_a_cluster_has_an_index_of_reservations_from_the_first_on() -> None:
    cluster = Cluster()
    assert (Reservations, None) not in cluster.indexes
    apply(cluster, reservation())
    assert (Reservations, None) in cluster.indexes
    apply(cluster, reservation(), Happened.DELETED)
    assert not cluster.pods
    assert not reservations_of(cluster).by_uid


def test_events_are_about_the_reservation() -> None:
    cluster = Cluster()
    apply(cluster, reservation())
    pod = reserve_pod(cluster)
    assert pod.reported_as == ReportedAs(KOORD_RESERVATION, "", "r")
    (event,) = EventRecorder("i").record(
        pod,
        EventText(kind="Warning", reason="FailedScheduling", action="Scheduling", note="no room"),
        now=0.0,
        controller="c",
    )
    regarding = event.body["regarding"]
    assert (regarding["kind"], regarding["name"], regarding["namespace"]) == ("Reservation", "r", "")


def test_a_failed_attempt_is_written_into_the_reservation_once() -> None:
    cluster = Cluster()
    apply(cluster, reservation())
    patch = status_patch(reserve_pod(cluster), now=0.0, reason="Unschedulable", message="no room", nominated="n0")
    assert isinstance(patch, Write)
    assert (patch.kind, patch.name, patch.subresource) == (KOORD_RESERVATION, "r", "status")
    apply(cluster, {**reservation(), "status": patch.body["status"]}, Happened.MODIFIED)
    assert status_patch(reserve_pod(cluster), now=1.0, reason="Unschedulable", message="no room") is None
    assert status_patch(reserve_pod(cluster), now=1.0, nominated="n0") is None


def test_a_pod_with_the_annotation_of_reserve_pods_is_reported_as_itself() -> None:
    cluster = Cluster()
    cluster.apply(Change(Happened.ADDED, kinds.POD, annotated("p", {RESERVE_POD: "true"})))
    (pod_state,) = cluster.pods.values()
    assert pod_state.seen.reported_as is None


def test_a_reserve_pod_shrinks_by_what_its_owner_asks_for() -> None:
    cluster = Cluster()
    cluster.apply(Change(Happened.ADDED, kinds.NODE, node("n0", cpu=4)))
    doc = {**reservation(allocateOnce=False), "status": AVAILABLE}
    apply(cluster, doc)
    requested = cluster.table.requested_column("cpu")
    assert requested[0] == 3000
    used = f'{{"uid": "{reserve_pod(cluster).uid}"}}'
    owner = annotated("p", {ALLOCATED: used}, nodeName="n0")
    cluster.apply(Change(Happened.ADDED, kinds.POD, owner))
    assert requested[0] == 3000
    assert reservations_of(cluster).used_by(owner["metadata"]["uid"])
    apply(cluster, doc, Happened.DELETED)
    assert requested[0] == 1000
    cluster.check()
