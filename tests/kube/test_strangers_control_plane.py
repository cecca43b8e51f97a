"""The real kube-scheduler and kube-controller-manager 1.36.4 live on the embedded API."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fairlead.testing.builders import deployment, job, pod
from fairlead.testing.storage_builders import claim, storage_class
from tests.kube.strangers import Strangers

pytestmark = pytest.mark.kube

THEIRS = (
    "garbage-collector-controller", "job-controller", "deployment-controller", "replicaset-controller",
    "persistentvolume-binder-controller",
)  # fmt: skip


def test_the_real_scheduler_places_the_200_pods_of_a_deployment(tmp_path: Path) -> None:
    with Strangers(tmp_path, "--nodes", "20", "--scheduler", "none") as cluster:
        cluster.start_scheduler()
        cluster.apply(deployment("web").replicas(200).of(pod("t").asks(cpu="100m")).doc())
        cluster.until(lambda: sum(bool(one["spec"].get("nodeName")) for one in cluster.all("pods")) == 200)
        cluster.until(lambda: all(one["status"]["phase"] == "Running" for one in cluster.all("pods")))
        per_node = Counter(one["spec"]["nodeName"] for one in cluster.all("pods"))
        assert set(per_node.values()) <= {9, 10, 11}  # they are alike, and so are the nodes
        reasons = Counter(one["reason"] for one in cluster.all("events"))
        assert reasons["Scheduled"] == 200


def test_the_real_controllers_take_over_from_ours(tmp_path: Path) -> None:
    left_out = ",".join(f"-{name}" for name in THEIRS)
    with Strangers(tmp_path, "--nodes", "3", "--scheduler", "none", f"--controllers={left_out}") as cluster:
        cluster.start_scheduler()
        cluster.apply(deployment("web").replicas(6).doc())
        cluster.apply(job("sum").times(4, at_once=2).of(pod("t").running_for("1s")).doc())
        cluster.apply(storage_class("made").by_default().doc(), claim("data", "2Gi").doc())
        assert cluster.all("pods") == []  # nobody does their work yet
        cluster.start_controllers(THEIRS)
        cluster.until(lambda: cluster.all("deployments")[0]["status"].get("availableReplicas") == 6)
        cluster.until(lambda: "completionTime" in cluster.all("jobs")[0]["status"])
        cluster.until(lambda: cluster.all("persistentvolumeclaims")[0]["status"]["phase"] == "Bound")
        done = cluster.all("jobs")[0]["status"]
        assert (done["succeeded"], done["conditions"][-1]["type"]) == (4, "Complete")
        (volume,) = cluster.all("persistentvolumes")
        assert volume["spec"]["claimRef"]["name"] == "data"
        cluster.kubectl("delete", "deployment", "web")
        cluster.kubectl("delete", "job", "sum", "--cascade=foreground")
        cluster.until(lambda: cluster.all("pods") == [] and cluster.all("replicasets") == [])


def test_a_rolling_update_by_the_real_controllers_gets_through(tmp_path: Path) -> None:
    names = ("deployment-controller", "replicaset-controller")
    left_out = ",".join(f"-{name}" for name in names)
    with Strangers(tmp_path, "--nodes", "3", f"--controllers={left_out}") as cluster:
        cluster.start_controllers(names)
        cluster.apply(deployment("web").replicas(4).of(pod("t").from_image("v1")).doc())
        cluster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        cluster.apply(deployment("web").replicas(4).of(pod("t").from_image("v2")).doc())
        cluster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        cluster.until(lambda: {one["spec"]["containers"][0]["image"] for one in cluster.all("pods")} == {"v2"})
        cluster.kubectl("rollout", "undo", "deployment/web")
        cluster.until(lambda: {one["spec"]["containers"][0]["image"] for one in cluster.all("pods")} == {"v1"})
