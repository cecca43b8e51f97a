"""Snapshots: saved, read, redacted, restored; and what is said of files that are none."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest

from fairlead.cluster.store.snapshot import RedactionOptions, collect, read_snapshot, write_snapshot
from fairlead.cluster.store.snapshot_redaction import redacted
from fairlead.cluster.store.storeapi import StoreApi
from fairlead.core.model.kinds import CONFIG_MAP, DEPLOYMENT, NODE, POD, POD_GROUP, POD_GROUP_BETA, SECRET
from fairlead.errors import ScenarioError
from fairlead.testing.builders import deployment, pod
from fairlead.testing.harness import Harness
from fairlead.testing.storage_builders import claim, storage_class
from fairlead.testing.workload_builders import stateful_set
from tests.support.binder import TurnBinder

OPEN = RedactionOptions()


def busy() -> Harness:
    cluster = Harness(nodes=3, schedulers=[TurnBinder])
    cluster.apply(storage_class("fast").by_default(), claim("data"))
    cluster.apply(deployment("web").replicas(4), stateful_set("db").replicas(2).claiming("1Gi"))
    for kind, name in ((SECRET, "password"), (CONFIG_MAP, "settings")):
        metadata = {"name": name, "namespace": "default"}
        cluster.apply({"apiVersion": "v1", "kind": kind.kind, "metadata": metadata})
    cluster.run(10)
    return cluster


def saved(cluster: Harness, path: Path, redaction: RedactionOptions = OPEN) -> Path:
    documents = asyncio.run(collect(StoreApi(cluster.store), redaction))
    write_snapshot(path, documents, now=cluster.now, redaction=redaction)
    return path


def test_a_cluster_comes_back_as_it_was_and_goes_on(tmp_path: Path) -> None:
    before = busy()
    after = Harness.from_snapshot(saved(before, tmp_path / "s"), schedulers=[TurnBinder])
    assert after.now == before.now
    for kind in (POD, NODE, DEPLOYMENT):
        for one in before.list(kind):
            same = after.get(kind, one["metadata"]["name"])
            assert same is not None
            assert (same["metadata"]["uid"], same["status"]) == (one["metadata"]["uid"], one["status"])
    after.run(60)
    assert after.bindings() == before.bindings()
    after.apply(deployment("web").replicas(6))
    after.run(30)
    assert len(after.bindings()) == len(before.bindings()) + 2


def test_secrets_and_config_maps_are_never_saved(tmp_path: Path) -> None:
    kinds = read_snapshot(saved(busy(), tmp_path / "s")).counts
    assert kinds["Pod"] == 6
    assert not {"Secret", "ConfigMap", "Event", "Lease"} & set(kinds)


def test_the_same_cluster_saved_twice_is_the_same_file_but_for_versions(tmp_path: Path) -> None:
    first = read_snapshot(saved(busy(), tmp_path / "a"))
    again = read_snapshot(saved(Harness.from_snapshot(tmp_path / "a", schedulers=[]), tmp_path / "b"))
    assert again.counts == first.counts


def test_redaction_takes_out_what_is_private_and_leaves_what_schedules() -> None:
    doc = pod("a").asks(cpu="1").annotated({"team/phone": "123", "fairlead.io/run-time": "5s"}).doc()
    container = doc["spec"]["containers"][0]
    container |= {
        "command": ["run", "--password=x"],
        "args": ["y"],
        "image": "registry.corp:5000/team/app:v1",
        "env": [{"name": "TOKEN", "value": "secret"}, {"name": "FROM", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
    }
    kept = redacted(doc)
    assert kept["metadata"]["annotations"] == {"fairlead.io/run-time": "5s"}
    (shown,) = kept["spec"]["containers"]
    assert shown["env"][0] == {"name": "TOKEN", "value": "redacted"}
    assert "valueFrom" in shown["env"][1]
    assert not {"command", "args"} & set(shown)
    assert shown["resources"] == container["resources"]
    assert shown["image"] == "registry.corp:5000/team/app:v1"
    assert redacted(doc, images=True)["spec"]["containers"][0]["image"] == "registry.example/team/app:v1"


def test_templates_are_redacted_like_pods() -> None:
    web = deployment("web").doc()
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    assert redacted(web)["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "redacted"}]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"hello", "not gzipped"),
        (gzip.compress(b'{"kind": "Pod"}\n'), "its first line says nothing of one"),
        (gzip.compress(b'{"fairlead": "snapshot", "version": 9}\n'), "of version 9, and this program reads version 1"),
        (gzip.compress(b'{"fairlead": "snapshot", "version": 1, "objects": 2}\n'), "should hold 2 objects and holds 0"),
        (gzip.compress(b'{"fairlead": "snapshot", "version": 1, "objects": 1}\n{'), ":2 is not JSON"),
        (gzip.compress(b'{"fairlead": "snapshot", "version": 1, "objects": 1}\n{}\n'), ":2 is not an object"),
        (gzip.compress(b'{"fairlead": "snapshot", "version": 1, "objects": 1}\n{}\n')[:-12], "cut off or damaged"),
    ],
    ids=["plain", "other", "newer", "short", "broken", "empty", "cut"],  # compressed bytes have the time in them
)
def test_a_file_that_is_no_snapshot_is_refused_with_the_reason(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "s"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=complaint):
        read_snapshot(path)


def test_a_missing_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_snapshot(tmp_path / "nothing")


def test_a_group_is_saved_once_and_an_older_version_of_it_can_be_restored(tmp_path: Path) -> None:
    before = Harness(nodes=1)
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "PodGroup"}
    before.apply({"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec})
    documents = asyncio.run(collect(StoreApi(before.store), OPEN))
    (group,) = [doc for doc in documents if doc["kind"] == "PodGroup"]
    assert group["apiVersion"] == POD_GROUP_BETA.api_version
    old = before.get(POD_GROUP, "g")
    others = [doc for doc in documents if doc["kind"] != "PodGroup"]
    write_snapshot(tmp_path / "s", [*others, {**(old or {}), "kind": "PodGroup"}], now=before.now, redaction=OPEN)
    after = Harness.from_snapshot(tmp_path / "s")
    restored = after.get(POD_GROUP_BETA, "g")
    assert restored is not None
    assert restored["spec"]["disruptionMode"] == {"all": {}}


def test_a_snapshot_is_its_owners_alone_and_follows_no_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    (tmp_path / "a.snapshot.partial").symlink_to(elsewhere)
    write_snapshot(tmp_path / "a.snapshot", [], now=0, redaction=RedactionOptions())
    assert elsewhere.read_bytes() == b"precious"
    assert (tmp_path / "a.snapshot").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "a.snapshot").is_symlink()
