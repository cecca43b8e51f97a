"""Rolling back a Statement leaves everything exactly as it was; and the books balance after any sequence of changes."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster, PodPlace
from fairlead.core.state.statement import Statement
from tests.support.cluster_picture import picture

NODES = [f"n{i}" for i in range(4)]
PODS = [f"p{i}" for i in range(8)]


def node_doc(name: str, cpu: int, *, zone: str = "", tainted: bool = False) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"topology.kubernetes.io/zone": zone} if zone else {},
        },
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}] if tainted else []},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "10", "example.com/gpu": "2"}},
    }


def pod_doc(
    name: str, *, node: str = "", cpu: int = 1, gpu: int = 0, port: int = 0, deleting: bool = False
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    if gpu:
        container["resources"]["requests"]["example.com/gpu"] = str(gpu)
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}] if gpu else []
    return {"metadata": metadata, "spec": {"containers": [container], "nodeName": node or None, "volumes": volumes}}


names = st.sampled_from(NODES)
pod_names = st.sampled_from(PODS)
node_changes = st.builds(
    lambda happened, name, cpu, zone, tainted: Change(
        happened, kinds.NODE, node_doc(name, cpu, zone=zone, tainted=tainted)
    ),
    st.sampled_from([Happened.ADDED, Happened.MODIFIED, Happened.DELETED]),
    names,
    st.integers(1, 8),
    st.sampled_from(["", "a", "b"]),
    st.booleans(),
)
pod_changes = st.builds(
    lambda happened, name, node, cpu, gpu, port, deleting: Change(
        happened, kinds.POD, pod_doc(name, node=node, cpu=cpu, gpu=gpu, port=port, deleting=deleting)
    ),
    st.sampled_from([Happened.ADDED, Happened.MODIFIED, Happened.DELETED]),
    pod_names,
    st.sampled_from(["", *NODES]),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from([0, 80, 443]),
    st.booleans(),
)
changes = st.lists(st.one_of(node_changes, pod_changes), max_size=40)


@given(changes)
def test_the_sums_balance_after_any_sequence_of_changes(sequence: list[Change]) -> None:
    cluster = Cluster()
    for change in sequence:
        cluster.apply(change)
        cluster.check()
    assert cluster.refused == []


@given(changes, st.data())
@settings(max_examples=150)
def test_a_rollback_restores_table_ports_claims_and_the_order_of_pods(
    sequence: list[Change], data: st.DataObject
) -> None:
    cluster = Cluster()
    for name in NODES:
        cluster.apply(Change(Happened.ADDED, kinds.NODE, node_doc(name, 8)))
    for change in sequence:
        cluster.apply(change)
    statement = Statement(cluster)
    pictures = [picture(cluster)]
    for _ in range(data.draw(st.integers(0, 12))):
        seated = [(pod, row) for row in range(cluster.table.high) for pod in cluster.table.pods[row]]
        on_rows = {pod.uid for pod, _ in seated}
        waiting = [pod_state.seen for pod_state in cluster.pods.values() if pod_state.seen.uid not in on_rows]
        rows = sorted(cluster.table.row_of.values())
        if seated and data.draw(st.booleans()):
            statement.evict(*data.draw(st.sampled_from(seated)))
        elif waiting and rows:
            statement.assign(data.draw(st.sampled_from(waiting)), data.draw(st.sampled_from(rows)))
        else:
            continue
        pictures.append(picture(cluster))
    assert statement.checkpoint() == len(pictures) - 1
    halfway = data.draw(st.integers(0, len(pictures) - 1))
    statement.rollback(halfway)
    assert picture(cluster) == pictures[halfway]
    statement.rollback()
    assert picture(cluster) == pictures[0]
    cluster.check()


@given(changes, st.data())
def test_a_committed_placement_can_be_forgotten_without_a_trace(sequence: list[Change], data: st.DataObject) -> None:
    cluster = Cluster()
    for name in NODES:
        cluster.apply(Change(Happened.ADDED, kinds.NODE, node_doc(name, 8)))
    for change in sequence:
        cluster.apply(change)
    pending = [pod_state.pod for pod_state in cluster.pods.values() if pod_state.place is PodPlace.PENDING]
    rows = sorted(cluster.table.row_of.values())
    if not pending or not rows:
        return
    before = picture(cluster)
    pod, row = data.draw(st.sampled_from(pending)), data.draw(st.sampled_from(rows))
    taken = {port for other in cluster.table.pods[row] for port in other.shape.host_ports}
    assume(taken.isdisjoint(pod.shape.host_ports))  # as in the original, a shared port is free when the first one goes
    statement = Statement(cluster)
    statement.assign(pod, row)
    statement.commit()
    cluster.check()
    assert cluster.pods[pod.uid].place is PodPlace.ASSUMED
    left = cluster.forget(pod.uid)
    assert left is not None
    assert (left.uid, left.node_name) == (pod.uid, cluster.table.name(row))
    cluster.check()
    assert picture(cluster) == before
