"""The real kube-scheduler and kube-controller-manager 1.36.4 live on the embedded API, and kube-scheduler 1.37 with its
gangs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairlead.testing.builders import deployment, job, pod
from fairlead.testing.storage_builders import claim, storage_class
from tests.support.real.strangers import Strangers

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=25)]

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


def _gang(name: str, count: int, priority_class: str, **spec: Any) -> list[dict[str, Any]]:
    of_class = {"priorityClassName": priority_class}
    policy = {"schedulingPolicy": {"gang": {"minCount": count}}}
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name},
             "spec": policy | of_class | spec}  # fmt: skip
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
    pod = {"schedulingGroup": {"podGroupName": name}, "containers": [container], **of_class}
    return [
        group,
        *({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-{i}"}, "spec": pod} for i in range(count)),
    ]


def test_the_next_scheduler_starts_gangs_and_evicts_them_whole(tmp_path: Path) -> None:
    """Kubernetes 1.37 and its v1beta1 groups. (Its DeviceTaintRules are no kind of 1.36.)"""
    gates = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,DRADeviceTaintRules=false"
    with Strangers(tmp_path, "--nodes", "4", "--shape", "cpu=4,memory=8Gi", "--scheduler", "none") as cluster:
        cluster.start_next_scheduler(gates)
        for name, value in (("low", 10), ("high", 1000)):
            cluster.apply(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )

        def running() -> set[str]:
            return {pod["metadata"]["name"] for pod in cluster.all("pods") if pod["status"].get("phase") == "Running"}

        cluster.apply(*_gang("cheap", 3, "low", disruptionMode={"all": {}}))
        cluster.until(lambda: running() == {"cheap-0", "cheap-1", "cheap-2"})
        cluster.apply(*_gang("dear", 2, "high"))
        cluster.until(lambda: running() == {"dear-0", "dear-1"})
        groups = cluster.all("podgroups.scheduling.k8s.io")
        said = {group["metadata"]["name"]: group["status"]["conditions"] for group in groups}
        assert ("PodGroupInitiallyScheduled", "True") in [(c["type"], c["status"]) for c in said["dear"]]


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
        cluster.kubectl("rollout", "status", "deployment/web", "--timeout=180s")
        cluster.apply(deployment("web").replicas(4).of(pod("t").from_image("v2")).doc())
        cluster.kubectl("rollout", "status", "deployment/web", "--timeout=180s")
        cluster.until(lambda: {one["spec"]["containers"][0]["image"] for one in cluster.all("pods")} == {"v2"})
        cluster.kubectl("rollout", "undo", "deployment/web")
        cluster.until(lambda: {one["spec"]["containers"][0]["image"] for one in cluster.all("pods")} == {"v1"})
