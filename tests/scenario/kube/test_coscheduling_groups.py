"""The status of scheduler-plugins' PodGroups follows their pods, as the original's controller writes it."""

from __future__ import annotations

from typing import Any

from fairlead.core.model import kinds
from fairlead.testing.builders import job, pod
from fairlead.testing.harness import Harness

LABEL = "scheduling.x-k8s.io/pod-group"


def group(minimum: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": minimum},
    }


def status(cluster: Harness) -> dict[str, Any]:
    found = cluster.get(kinds.X_POD_GROUP, "g")
    assert found is not None
    return dict(found["status"])


def member(name: str) -> Any:
    return pod(name).labelled({LABEL: "g"}).restarting("Never")


def test_a_group_waits_for_its_pods_then_for_nodes_then_runs_and_finishes() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(group(2))
    cluster.run(1)
    assert status(cluster) == {"phase": "Pending"}
    cluster.apply(job("train").times(2, at_once=2).of(member("t").running_for("20s").asks(cpu="500m")))
    cluster.run(5)
    assert status(cluster) == {"phase": "Running", "running": 2, "occupiedBy": "default/train"}
    cluster.run(60)
    assert status(cluster) == {"phase": "Finished", "running": 0, "succeeded": 2, "occupiedBy": "default/train"}


def test_a_group_without_room_stays_in_scheduling_and_falls_back_to_pending_without_pods() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(group(1), member("huge").asks(cpu="99"))
    cluster.run(5)
    assert status(cluster) == {"phase": "Scheduling"}
    cluster.delete(kinds.POD, "huge")
    cluster.run(5)
    assert status(cluster) == {"phase": "Pending"}


def test_a_group_of_which_a_pod_failed_has_failed_for_good() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(group(2), member("good"), member("bad").running_for("5s").exiting(1))
    cluster.run(30)
    assert status(cluster) == {"phase": "Failed", "running": 1, "failed": 1}
    cluster.delete(kinds.POD, "bad")
    cluster.run(5)
    assert status(cluster)["phase"] == "Failed"
