"""Owners count only in their own namespace: nobody deletes, holds or completes what is somebody else's."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP, JOB, NAMESPACE, POD, REPLICA_SET
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness


@pytest.fixture
def cluster() -> Harness:
    made = Harness(nodes=2)
    for name in ("alice", "bob"):
        made.store.perform(Write(Verb.CREATE, NAMESPACE, "", name, body={}))
    return made


def template(**labels: str) -> Doc:
    spec = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "64"}}}],
    }
    return {"metadata": {"labels": labels}, "spec": spec}


def planted(owner: Doc, kind: str, api_version: str, **labels: str) -> Doc:
    """A pod of bob's that names alice's object as its controller, and that has a node already."""
    reference = {"apiVersion": api_version, "kind": kind, "name": owner["metadata"]["name"],
                 "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}  # fmt: skip
    doc = pod("planted").doc()
    doc["metadata"] |= {"namespace": "bob", "labels": labels, "ownerReferences": [reference]}
    doc["spec"]["nodeName"] = "node-0"
    return doc


def test_a_pod_of_another_namespace_does_not_complete_a_job(cluster: Harness) -> None:
    spec = {"completions": 1, "parallelism": 1, "template": template()}
    job = cluster.store.perform(Write(Verb.CREATE, JOB, "alice", "work", body={"spec": spec}))
    cluster.run(1)
    before = [one["metadata"]["name"] for one in cluster.store.list(POD, "alice")]
    assert len(before) == 1
    body = planted(job, "Job", "batch/v1", **job["spec"]["selector"]["matchLabels"])
    cluster.store.perform(Write(Verb.CREATE, POD, "bob", "planted", body=body))
    cluster.store.perform(
        Write(Verb.PATCH, POD, "bob", "planted", body={"status": {"phase": "Succeeded"}}, subresource="status")
    )
    cluster.run(5)
    status = cluster.store.read(JOB, "alice", "work")["status"]
    assert not status.get("succeeded")
    assert not status.get("conditions")
    assert [one["metadata"]["name"] for one in cluster.store.list(POD, "alice")] == before


def test_a_pod_of_another_namespace_is_no_replica(cluster: Harness) -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template(app="web")}
    spec["template"]["spec"].pop("restartPolicy")
    owner = cluster.store.perform(Write(Verb.CREATE, REPLICA_SET, "alice", "web", body={"spec": spec}))
    cluster.run(1)
    body = planted(owner, "ReplicaSet", "apps/v1", app="web")
    cluster.store.perform(Write(Verb.CREATE, POD, "bob", "planted", body=body))
    cluster.run(5)
    assert len(list(cluster.store.list(POD, "alice"))) == 2
    assert cluster.store.read(REPLICA_SET, "alice", "web")["status"]["replicas"] == 2
    # Its owner does not exist where it is, so it is collected like any other orphan.
    cluster.run(60)
    assert not list(cluster.store.list(POD, "bob"))


def test_an_object_of_another_namespace_does_not_hold_up_a_deletion(cluster: Harness) -> None:
    owner = cluster.store.perform(Write(Verb.CREATE, CONFIG_MAP, "alice", "owner", body={}))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
                 "blockOwnerDeletion": True}  # fmt: skip
    held = {"metadata": {"ownerReferences": [reference], "finalizers": ["example.com/hold"]}}
    cluster.store.perform(Write(Verb.CREATE, CONFIG_MAP, "bob", "blocker", body=held))
    cluster.run(1)
    options = {"propagationPolicy": "Foreground"}
    cluster.store.perform(Write(Verb.DELETE, CONFIG_MAP, "alice", "owner", body=options))
    cluster.run(5)
    assert cluster.store.get(CONFIG_MAP, "alice", "owner") is None
