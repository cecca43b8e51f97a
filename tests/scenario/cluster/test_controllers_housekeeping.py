"""Failing nodes, owners that go, and namespaces that are emptied, on a whole virtual cluster."""

from __future__ import annotations

import pytest

from fairlead.core.model.kinds import CONFIG_MAP, DEPLOYMENT, LEASE, NAMESPACE, NODE, POD, REPLICA_SET, SERVICE_ACCOUNT
from fairlead.testing.builders import deployment, namespace, node, pod
from fairlead.testing.harness import Harness
from tests.support.binder import TurnBinder


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=3, schedulers=[TurnBinder])


def ready(cluster: Harness, name: str) -> str:
    conditions = cluster.node(name)["status"]["conditions"]
    return str(next(one["status"] for one in conditions if one["type"] == "Ready"))


def taints(cluster: Harness, name: str) -> set[tuple[str, str]]:
    return {(one["key"], one["effect"]) for one in cluster.node(name)["spec"].get("taints") or ()}


def fail(cluster: Harness, name: str, how: str | None = "true") -> None:
    cluster.patch(NODE, name, {"metadata": {"annotations": {"fairlead.io/fail": how}}})


def test_simulated_nodes_stay_ready_until_they_are_set_to_fail(cluster: Harness) -> None:
    cluster.run(600)
    assert {ready(cluster, f"node-{index}") for index in range(3)} == {"True"}
    assert taints(cluster, "node-0") == set()


def test_a_real_node_stays_ready_as_long_as_its_lease_is_renewed(cluster: Harness) -> None:
    real = node("real").doc()
    del real["metadata"]["annotations"]["fairlead.io/simulated"]
    cluster.apply(real)

    def renew(second: int) -> None:
        spec = {
            "holderIdentity": "real",
            "leaseDurationSeconds": 40,
            "renewTime": f"2026-01-01T00:0{second // 60}:00.{second:06d}Z",
        }
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        cluster.apply({**lease, "metadata": {"name": "real", "namespace": "kube-node-lease"}})

    for second in range(0, 200, 10):
        renew(second)
        cluster.run(10)
    assert ready(cluster, "real") == "True"
    cluster.run(35)
    assert ready(cluster, "real") == "True", "the grace period is not over"
    cluster.run(20)
    assert ready(cluster, "real") == "Unknown"


def test_a_failed_node_is_tainted_and_its_pods_are_replaced_elsewhere(cluster: Harness) -> None:
    cluster.apply(deployment("web").replicas(6))
    cluster.run(5)
    lost = {name for name, where in cluster.bindings().items() if where == "node-1"}
    assert len(lost) == 2
    fail(cluster, "node-1")
    cluster.run(70)
    assert ready(cluster, "node-1") == "Unknown"
    unreachable = "node.kubernetes.io/unreachable"
    assert taints(cluster, "node-1") == {(unreachable, "NoSchedule"), (unreachable, "NoExecute")}
    assert cluster.get(DEPLOYMENT, "web")["status"]["readyReplicas"] == 4  # type: ignore[index]
    cluster.run(310)
    told = cluster.get(DEPLOYMENT, "web")["status"]  # type: ignore[index]
    assert told["readyReplicas"] == 6
    for name in lost:  # nobody is there to say that they have ended
        assert cluster.pod(name)["metadata"]["deletionTimestamp"]
    alive = {name: where for name, where in cluster.bindings().items() if name not in lost}
    assert set(alive.values()) == {"node-0", "node-2"}


def test_a_node_that_recovers_in_time_keeps_its_pods(cluster: Harness) -> None:
    cluster.apply(deployment("web").replicas(3))
    cluster.run(5)
    before = cluster.bindings()
    fail(cluster, "node-1")
    cluster.run(120)
    fail(cluster, "node-1", None)
    cluster.run(400)
    assert cluster.bindings() == before
    assert taints(cluster, "node-1") == set()
    assert cluster.get(DEPLOYMENT, "web")["status"]["readyReplicas"] == 3  # type: ignore[index]


def test_a_node_may_fail_at_a_given_time(cluster: Harness) -> None:
    fail(cluster, "node-0", "2026-01-01T00:05:00Z")
    cluster.run(290)
    assert ready(cluster, "node-0") == "True"
    cluster.run(80)
    assert ready(cluster, "node-0") == "Unknown"


def test_a_cordoned_node_is_tainted_and_untainted(cluster: Harness) -> None:
    cluster.patch(NODE, "node-0", {"spec": {"unschedulable": True}})
    cluster.run(1)
    assert taints(cluster, "node-0") == {("node.kubernetes.io/unschedulable", "NoSchedule")}
    cluster.patch(NODE, "node-0", {"spec": {"unschedulable": None}})
    cluster.run(1)
    assert taints(cluster, "node-0") == set()


def test_a_no_execute_taint_evicts_only_those_that_do_not_tolerate_it(cluster: Harness) -> None:
    cluster.apply(
        pod("stays").tolerates("fire").on("node-0"),
        pod("lingers").tolerates("fire", "NoExecute", seconds=60).on("node-0"),
        pod("goes").on("node-0"),
    )
    cluster.run(5)
    cluster.apply(node("node-0").tainted("fire", "NoExecute"))
    cluster.run(5)
    assert set(cluster.phases()) == {"stays", "lingers"}
    cluster.run(60)
    assert set(cluster.phases()) == {"stays"}


def test_pods_on_a_deleted_node_are_removed_and_so_is_its_lease(cluster: Harness) -> None:
    cluster.apply(pod("lonely").on("node-2"))
    cluster.run(20)
    cluster.delete(NODE, "node-2")
    cluster.run(30)
    assert cluster.phases() == {"lonely": "Running"}
    cluster.run(30)
    assert cluster.phases() == {}
    assert cluster.get(LEASE, "node-2", namespace="kube-node-lease") is None


def test_deleting_a_deployment_collects_its_replica_sets_and_pods(cluster: Harness) -> None:
    cluster.apply(deployment("web").replicas(5))
    cluster.run(5)
    cluster.delete(DEPLOYMENT, "web")
    cluster.run(5)
    assert cluster.list(REPLICA_SET) == []
    assert cluster.list(POD) == []


def test_foreground_deletion_keeps_the_owner_until_its_dependents_are_gone(cluster: Harness) -> None:
    cluster.apply(deployment("web").replicas(2).of(pod("t").ending_after("10s")))
    cluster.run(5)
    cluster.delete(DEPLOYMENT, "web", propagation="Foreground")
    cluster.run(5)
    assert cluster.get(DEPLOYMENT, "web") is not None
    assert len(cluster.list(REPLICA_SET)) == 1
    cluster.run(10)
    assert cluster.get(DEPLOYMENT, "web") is None
    assert cluster.list(POD) == []


def test_orphaning_deletion_leaves_the_dependents_without_an_owner(cluster: Harness) -> None:
    cluster.apply(deployment("web").replicas(2))
    cluster.run(5)
    cluster.delete(DEPLOYMENT, "web", propagation="Orphan")
    cluster.run(5)
    assert cluster.get(DEPLOYMENT, "web") is None
    (left,) = cluster.list(REPLICA_SET)
    assert not left["metadata"].get("ownerReferences")
    assert len(cluster.list(POD)) == 2
    cluster.apply(deployment("web").replicas(2))
    cluster.run(5)
    (adopted,) = cluster.list(REPLICA_SET)
    assert adopted["metadata"]["uid"] == left["metadata"]["uid"]
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "web"


def test_an_object_with_a_living_owner_only_loses_the_reference_to_the_dead_one(cluster: Harness) -> None:
    first = cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}})
    second = cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "second"}})
    cluster.apply(pod("child").owned_by(first, controller=False).owned_by(second, controller=False).on("node-0"))
    cluster.run(1)
    cluster.delete(CONFIG_MAP, "first")
    cluster.run(1)
    (reference,) = cluster.pod("child")["metadata"]["ownerReferences"]
    assert reference["name"] == "second"
    cluster.delete(CONFIG_MAP, "second")
    cluster.run(1)
    assert cluster.phases() == {}


def test_an_object_born_with_a_dead_owner_is_deleted(cluster: Harness) -> None:
    dead = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dead", "uid": "gone"}}
    cluster.apply(pod("child").owned_by(dead))
    cluster.run(1)
    assert cluster.phases() == {}


def test_a_deleted_namespace_is_emptied_and_then_gone(cluster: Harness) -> None:
    cluster.apply(namespace("lab"), deployment("web", "lab").replicas(3).of(pod("t").ending_after("5s")))
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "lab"}})
    cluster.run(5)
    assert len(cluster.phases(namespace="lab")) == 3
    cluster.delete(NAMESPACE, "lab")
    cluster.run(30)
    assert cluster.get(NAMESPACE, "lab") is None
    assert cluster.list(POD, namespace="lab") == []
    assert cluster.list(CONFIG_MAP, namespace="lab") == []
    assert cluster.list(DEPLOYMENT, namespace="lab") == []


def test_a_new_namespace_has_a_default_service_account(cluster: Harness) -> None:
    cluster.apply(namespace("lab"))
    cluster.run(1)
    assert cluster.get(SERVICE_ACCOUNT, "default", namespace="lab") is not None


def test_idle_nodes_write_nothing_while_time_passes() -> None:
    cluster = Harness(nodes=20)
    cluster.run(60)
    before = cluster.store.resource_version
    cluster.run(1800)
    assert cluster.store.resource_version == before


def test_leases_are_renewed_for_a_node_controller_of_somebody_else() -> None:
    cluster = Harness(nodes=1, housekeeping="-node-lifecycle-controller")
    cluster.run(60)
    before = cluster.list(LEASE, namespace="kube-node-lease")
    cluster.run(60)
    after = cluster.list(LEASE, namespace="kube-node-lease")
    assert len(before) == len(after) == 1
    assert before[0]["spec"]["renewTime"] < after[0]["spec"]["renewTime"]
