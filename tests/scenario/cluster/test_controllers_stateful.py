"""StatefulSets and DaemonSets on a whole virtual cluster, with the default scheduler."""

from __future__ import annotations

import pytest
import yaml

from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import CONTROLLER_REVISION, DAEMON_SET, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET, Kind
from fairlead.errors import Invalid
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness
from fairlead.testing.storage_builders import storage_class
from fairlead.testing.workload_builders import daemon_set, stateful_set

HASH = "controller-revision-hash"


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=3)


def status(cluster: Harness, kind: Kind, name: str) -> Doc:
    found = cluster.get(kind, name)
    assert found is not None
    told: Doc = found["status"]
    return told


def running(cluster: Harness) -> list[str]:
    return sorted(name for name, phase in cluster.phases().items() if phase == "Running")


def images(cluster: Harness) -> dict[str, str]:
    return {one["metadata"]["name"]: one["spec"]["containers"][0]["image"] for one in cluster.list(POD)}


def slow(image: str = "v1") -> object:
    return pod("t").starting_after("3s").from_image(image)


def no_trouble(cluster: Harness) -> None:
    for controller in cluster.runtime.controllers:
        assert not list(getattr(controller, "errors", ())), controller.name


def test_pods_come_one_after_the_other_and_go_in_the_reverse(cluster: Harness) -> None:
    cluster.apply(stateful_set("db").replicas(3).of(slow()))  # type: ignore[arg-type]
    cluster.run(2)
    assert list(cluster.phases()) == ["db-0"]
    cluster.run(3)
    assert cluster.phases() == {"db-0": "Running", "db-1": "Pending"}
    cluster.run(10)
    assert running(cluster) == ["db-0", "db-1", "db-2"]
    cluster.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
    gone: list[str] = []

    def is_down() -> bool:
        gone.extend(name for name in ("db-2", "db-1") if name not in cluster.phases() and name not in gone)
        return running(cluster) == ["db-0"] and len(cluster.phases()) == 1

    cluster.until(is_down, limit=120)
    assert gone == ["db-2", "db-1"]
    no_trouble(cluster)


def test_parallel_pods_come_all_at_once(cluster: Harness) -> None:
    cluster.apply(stateful_set("db").replicas(4).in_parallel().of(slow()))  # type: ignore[arg-type]
    cluster.run(1)
    assert sorted(cluster.phases()) == [f"db-{number}" for number in range(4)]


def test_each_pod_has_a_name_an_index_and_its_own_claim(cluster: Harness) -> None:
    cluster.apply(storage_class("fast").by_default())
    cluster.apply(stateful_set("db").replicas(2).claiming("1Gi"))
    cluster.run(10)
    second = cluster.pod("db-1")
    labels = second["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert (second["spec"]["hostname"], second["spec"]["subdomain"]) == ("db-1", "db")
    assert second["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-db-1"
    mine = cluster.get(PERSISTENT_VOLUME_CLAIM, "data-db-1")
    assert mine is not None
    assert mine["status"]["phase"] == "Bound"
    assert mine["metadata"]["labels"] == {"app": "db"}
    assert running(cluster) == ["db-0", "db-1"]
    told = cluster.events("db")
    assert ("SuccessfulCreate", "Create Claim data-db-1 Pod db-1 in StatefulSet db success") in told
    assert ("SuccessfulCreate", "Create Pod db-1 in StatefulSet db successful") in told


def test_a_pod_that_comes_back_gets_its_old_claim(cluster: Harness) -> None:
    cluster.apply(storage_class("fast").by_default(), stateful_set("db").replicas(1).claiming("1Gi"))
    cluster.run(10)
    before = cluster.get(PERSISTENT_VOLUME_CLAIM, "data-db-0")
    cluster.delete(POD, "db-0")
    cluster.run(60)
    assert running(cluster) == ["db-0"]
    assert cluster.get(PERSISTENT_VOLUME_CLAIM, "data-db-0") == before


def test_claims_go_with_their_pods_if_configured_so(cluster: Harness) -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    cluster.apply(storage_class("fast").by_default())
    cluster.apply(stateful_set("db").replicas(2).claiming("1Gi").having(persistentVolumeClaimRetentionPolicy=policy))
    cluster.run(10)
    cluster.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
    cluster.run(60)
    assert [one["metadata"]["name"] for one in cluster.list(PERSISTENT_VOLUME_CLAIM)] == ["data-db-0"]
    cluster.delete(STATEFUL_SET, "db")
    cluster.run(60)
    assert list(cluster.list(PERSISTENT_VOLUME_CLAIM)) == []


def test_an_update_replaces_the_highest_number_first_and_one_at_a_time(cluster: Harness) -> None:
    db = stateful_set("db").replicas(3)
    cluster.apply(db.of(slow("v1")))  # type: ignore[arg-type]
    cluster.run(20)
    first = status(cluster, STATEFUL_SET, "db")["currentRevision"]
    cluster.apply(db.of(slow("v2")))  # type: ignore[arg-type]
    order: list[str] = []

    def is_done() -> bool:
        assert len(running(cluster)) >= 2
        order.extend(name for name, image in images(cluster).items() if image == "v2" and name not in order)
        return len(order) == 3 and len(running(cluster)) == 3

    cluster.until(is_done, limit=200)
    cluster.run(1)
    assert order == ["db-2", "db-1", "db-0"]
    told = status(cluster, STATEFUL_SET, "db")
    assert told["currentRevision"] == told["updateRevision"] != first
    assert (told["currentReplicas"], told["updatedReplicas"], told["readyReplicas"]) == (3, 3, 3)
    assert [one["revision"] for one in cluster.list(CONTROLLER_REVISION)].count(2) == 1
    no_trouble(cluster)


def test_a_partition_keeps_the_lower_numbers_as_they_are_even_if_they_are_recreated(cluster: Harness) -> None:
    db = stateful_set("db").replicas(3).updating_from(2)
    cluster.apply(db.of(pod("t").from_image("v1")))
    cluster.run(20)
    cluster.apply(db.of(pod("t").from_image("v2")))
    cluster.run(60)
    assert images(cluster) == {"db-0": "v1", "db-1": "v1", "db-2": "v2"}
    cluster.delete(POD, "db-0")
    cluster.run(60)
    assert images(cluster)["db-0"] == "v1"
    told = status(cluster, STATEFUL_SET, "db")
    assert (told["currentReplicas"], told["updatedReplicas"]) == (2, 1)
    assert told["currentRevision"] != told["updateRevision"]


def test_going_back_to_an_old_template_takes_its_old_revision(cluster: Harness) -> None:
    db = stateful_set("db").replicas(1)
    names = []
    for image in ("v1", "v2", "v1"):
        cluster.apply(db.of(pod("t").from_image(image)))
        cluster.run(60)
        names.append(status(cluster, STATEFUL_SET, "db")["updateRevision"])
    assert names[0] == names[2] != names[1]
    assert sorted(one["revision"] for one in cluster.list(CONTROLLER_REVISION)) == [2, 3]


def test_revisions_beyond_the_history_limit_go(cluster: Harness) -> None:
    for number in range(5):
        template = pod("t").from_image(f"v{number}")
        cluster.apply(stateful_set("db").replicas(1).having(revisionHistoryLimit=2).of(template))
        cluster.run(60)
    assert len(cluster.list(CONTROLLER_REVISION)) == 3


def test_a_failed_pod_is_replaced_by_another_of_its_name(cluster: Harness) -> None:
    cluster.apply(stateful_set("db").replicas(1))
    cluster.run(5)
    before = cluster.pod("db-0")["metadata"]["uid"]
    cluster.perform(_failed("db-0"))
    cluster.run(5)
    assert cluster.pod("db-0")["metadata"]["uid"] != before
    assert "RecreatingFailedPod" in {reason for reason, _ in cluster.events("db")}


def test_an_orphaned_pod_of_the_right_name_is_adopted(cluster: Harness) -> None:
    cluster.apply(stateful_set("db").replicas(1))
    cluster.run(5)
    before = cluster.pod("db-0")["metadata"]["uid"]
    cluster.delete(STATEFUL_SET, "db", propagation="Orphan")
    cluster.run(5)
    cluster.apply(stateful_set("db").replicas(1))
    cluster.run(5)
    assert cluster.pod("db-0")["metadata"]["uid"] == before
    assert cluster.pod("db-0")["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"


# -- DaemonSets -------------------------------------------------------------------------------------------------------


def test_a_daemon_runs_on_every_node_and_on_one_that_comes_later(cluster: Harness) -> None:
    cluster.apply(daemon_set("agent"))
    cluster.run(5)
    assert sorted(cluster.bindings().values()) == ["node-0", "node-1", "node-2"]
    cluster.apply(node("late"))
    cluster.run(5)
    assert sorted(cluster.bindings().values()) == ["late", "node-0", "node-1", "node-2"]
    told = status(cluster, DAEMON_SET, "agent")
    assert (told["desiredNumberScheduled"], told["numberReady"], told["updatedNumberScheduled"]) == (4, 4, 4)
    assert "numberUnavailable" not in told
    no_trouble(cluster)


def test_a_daemons_pod_names_its_node_and_tolerates_troubled_ones(cluster: Harness) -> None:
    cluster.apply(daemon_set("agent"))
    cluster.run(5)
    first = cluster.list(POD)[0]
    required = first["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [first["spec"]["nodeName"]]}]}
    tolerated = {one["key"].partition("/")[2] for one in first["spec"]["tolerations"]}
    assert tolerated == {
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    }
    assert first["metadata"]["labels"]["pod-template-generation"] == "1"


def test_daemons_keep_off_nodes_they_do_not_select_or_tolerate_and_leave_when_that_changes() -> None:
    nodes = [node("a").labelled(disk="ssd"), node("b"), node("c").labelled(disk="ssd").tainted("gpu")]
    cluster = Harness(nodes=nodes)
    cluster.apply(daemon_set("agent").of(pod("t").selects(disk="ssd")))
    cluster.run(5)
    assert list(cluster.bindings().values()) == ["a"]
    cluster.apply(node("b").labelled(disk="ssd"))
    cluster.run(5)
    assert sorted(cluster.bindings().values()) == ["a", "b"]
    cluster.apply(node("a").labelled(disk="hdd"))
    cluster.run(60)
    assert list(cluster.bindings().values()) == ["b"]


def test_a_taint_that_only_keeps_new_pods_away_leaves_daemons_alone(cluster: Harness) -> None:
    cluster.apply(daemon_set("agent"))
    cluster.run(5)
    cluster.apply(node("node-0").tainted("gpu"))
    cluster.run(30)
    assert len(cluster.bindings()) == 3
    told = status(cluster, DAEMON_SET, "agent")
    assert (told["desiredNumberScheduled"], told["numberMisscheduled"]) == (2, 1)


def test_a_rolling_update_of_daemons_has_no_more_away_than_allowed(cluster: Harness) -> None:
    agent = daemon_set("agent").rolling(unavailable=1)
    cluster.apply(agent.of(slow("v1")))  # type: ignore[arg-type]
    cluster.run(10)
    cluster.apply(agent.of(slow("v2")))  # type: ignore[arg-type]

    def is_done() -> bool:
        assert len(running(cluster)) >= 2
        return set(images(cluster).values()) == {"v2"} and len(running(cluster)) == 3

    cluster.until(is_done, limit=200)
    assert len({one["metadata"]["labels"][HASH] for one in cluster.list(POD)}) == 1


def test_an_update_with_a_surge_never_has_a_node_without_its_daemon(cluster: Harness) -> None:
    agent = daemon_set("agent").rolling(surge=1, unavailable=0)
    cluster.apply(agent.of(slow("v1")))  # type: ignore[arg-type]
    cluster.run(10)
    cluster.apply(agent.of(slow("v2")))  # type: ignore[arg-type]

    def is_done() -> bool:
        staying = [one for one in cluster.list(POD) if one["status"]["phase"] == "Running"]
        assert {one["spec"]["nodeName"] for one in staying} == {"node-0", "node-1", "node-2"}
        return set(images(cluster).values()) == {"v2"}

    cluster.until(is_done, limit=300)


def test_a_failed_daemon_is_replaced_ever_more_slowly(cluster: Harness) -> None:
    cluster.apply(daemon_set("agent").of(pod("t").selects({"kubernetes.io/hostname": "node-0"})))
    cluster.run(5)
    assert len(cluster.list(POD)) == 1
    for waits in (False, True):
        cluster.perform(_failed(cluster.list(POD)[0]["metadata"]["name"]))
        cluster.settle()
        assert ([one["status"]["phase"] for one in cluster.list(POD)] == ["Failed"]) is waits
    cluster.run(3)
    assert running(cluster) != []
    assert "FailedDaemonPod" in {reason for reason, _ in cluster.events("agent")}


def _failed(name: str) -> object:
    from fairlead.core.model.flow import Verb, Write

    body = {"status": {"phase": "Failed", "containerStatuses": None}}
    return Write(Verb.PATCH, POD, "default", name, body=body, subresource="status")


MOUNTING = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      subdomain: Chosen_By_The_Set
      containers:
      - {name: db, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def test_containers_mount_the_volumes_of_claim_templates(cluster: Harness) -> None:
    cluster.apply(storage_class("standard").by_default(), yaml.safe_load(MOUNTING))
    cluster.run(20)
    assert running(cluster) == ["db-0", "db-1"]
    assert {one["metadata"]["name"] for one in cluster.list(PERSISTENT_VOLUME_CLAIM)} == {"data-db-0", "data-db-1"}


def test_a_mount_that_no_volume_and_no_claim_template_has_is_refused(cluster: Harness) -> None:
    with pytest.raises(Invalid, match=r"volumeMounts\[0\].name: Not found: \"data\""):
        cluster.apply(yaml.safe_load(MOUNTING.replace("metadata: {name: data}", "metadata: {name: other}")))
