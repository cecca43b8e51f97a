"""Objects that nobody acts on are told so by an Event."""

from __future__ import annotations

from fairlead.cluster.controllers.unattended import Unattended
from fairlead.core.model import kinds
from fairlead.core.model.attendance import Attendance
from fairlead.testing.builders import pod, queue
from fairlead.testing.harness import Harness
from fairlead.volcano.kinds import UNATTENDED, VC_JOB


def told(cluster: Harness) -> list[tuple[str, str, str]]:
    events = [one for one in cluster.list(kinds.EVENT) if one["source"].get("component") == Unattended.name]
    return [(one["involvedObject"]["name"], one["type"], one["reason"]) for one in events]


def test_a_pod_of_an_unknown_scheduler_has_one_event() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(pod("fine"), pod("lost").scheduled_by("volcanoo"))
    cluster.run(60)
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lost", "labels": {"a": "b"}}})
    cluster.run(60)
    assert told(cluster) == [("lost", "Warning", "NoScheduler")]
    (event,) = (one for one in cluster.list(kinds.EVENT) if one["reason"] == "NoScheduler")
    assert event["message"] == 'nobody schedules pods with schedulerName "volcanoo" here (served: default-scheduler)'


def test_a_new_pod_of_the_same_name_is_reported_again() -> None:
    cluster = Harness(nodes=1)
    for _ in range(2):
        cluster.apply(pod("lost").scheduled_by("volcanoo"))
        cluster.run(5)
        cluster.delete(kinds.POD, "lost")
        cluster.run(5)
    assert sum(event["reason"] == "NoScheduler" for event in cluster.list(kinds.EVENT)) == 2


def test_an_autoscaler_says_that_nobody_scales() -> None:
    cluster = Harness(nodes=1)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    cluster.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {"scaleTargetRef": target, "maxReplicas": 3},
        }
    )
    cluster.run(5)
    assert told(cluster) == [("web", "Warning", "NobodyActs")]


def test_a_queue_gets_the_reason_that_nobody_schedules_with_the_volcano_profile() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(queue("team"))
    cluster.run(5)
    assert told(cluster) == [("team", "Warning", "NobodyActs")]


def test_a_volcano_job_is_about_the_scheduler_that_it_names() -> None:
    served = Attendance(frozenset({"default-scheduler"}), UNATTENDED)
    (complaint,) = served.complaints(VC_JOB, {"spec": {}})
    assert "start with --volcano-conf" in complaint
    assert list(served.complaints(VC_JOB, {"spec": {"schedulerName": "default-scheduler"}})) == []
