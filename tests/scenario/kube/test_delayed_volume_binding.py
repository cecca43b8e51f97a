"""Claims that wait for their first consumer, end to end on virtual time. The tests play the volume controller."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.kube.binder import DefaultBinder
from fairlead.kube.nodes.basics import PrioritySort, SchedulingGates
from fairlead.kube.resources.plugin import NodeResourcesFit
from fairlead.kube.volumes.binding import VolumeBinding
from fairlead.kube.volumes.limits import NodeVolumeLimits
from fairlead.kube.volumes.restrictions import VolumeRestrictions
from fairlead.kube.volumes.storage import storage_of
from fairlead.kube.volumes.zone import VolumeZone
from fairlead.runtime.virtual import Latencies
from fairlead.testing.builders import PodBuilder, node, pod
from fairlead.testing.harness import Harness

Doc = dict[str, Any]
SELECTED, BOUND = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"
HOST = "kubernetes.io/hostname"
TIMEOUT = 30.0
WAITED_TOO_LONG = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'


class DelayedBinding:
    """A cluster of two nodes with a class for local disks and one whose driver makes volumes."""

    def __init__(self, latencies: Latencies | None = None) -> None:
        plugins = [
            PrioritySort(), SchedulingGates(), NodeResourcesFit(), VolumeRestrictions(), NodeVolumeLimits(),
            VolumeBinding(bind_timeout=TIMEOUT), VolumeZone(), DefaultBinder(),
        ]  # fmt: skip
        self.scheduler = Scheduler([profile_of("default-scheduler", plugins)])
        nodes = [node(name).labelled({HOST: name}) for name in ("left", "right")]
        self.cluster = Harness(
            nodes=nodes,
            schedulers=[lambda view: self.scheduler],
            latencies=latencies,
            housekeeping="-persistentvolume-binder-controller,-volume-provisioner",
        )
        for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "csi.example.com")):
            self.cluster.apply(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": name},
                    "provisioner": provisioner,
                    "volumeBindingMode": "WaitForFirstConsumer",
                }
            )

    def disk(self, name: str, at: str, size: str = "5Gi") -> None:
        """A local disk of a node, ready to be used."""
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [at]}]}
        spec = {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "local": {"path": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }  # fmt: skip
        self.volume(name, spec, "Available")

    def volume(self, name: str, spec: Doc, phase: str) -> None:
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
        self.cluster.store.perform(_status(kinds.PERSISTENT_VOLUME, name, phase))

    def claim(self, name: str, storage_class: str) -> None:
        spec = {
            "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        }  # fmt: skip
        metadata = {"name": name, "namespace": "default"}
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})

    def bind(self, claim: str, volume: str) -> None:
        """What the volume controller does when a volume names a claim."""
        changes = {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": volume}}
        self.cluster.patch(kinds.PERSISTENT_VOLUME_CLAIM, claim, changes)
        self.cluster.store.perform(_status(kinds.PERSISTENT_VOLUME, volume, "Bound"))
        self.cluster.settle()

    def annotations(self, claim: str) -> Doc:
        found = self.cluster.get(kinds.PERSISTENT_VOLUME_CLAIM, claim)
        assert found is not None
        return dict(found["metadata"].get("annotations") or {})

    def messages(self, name: str) -> list[str]:
        return [message for reason, message in self.cluster.events(name) if reason == "FailedScheduling"]


def _status(kind: Kind, name: str, phase: str) -> Write:
    return Write(Verb.PATCH, kind, "", name, body={"status": {"phase": phase}}, subresource="status")


def using(name: str, *claims: str) -> PodBuilder:
    volumes = [{"name": f"v-{claim}", "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return pod(name).having(volumes=volumes)


@pytest.fixture
def scenario() -> DelayedBinding:
    return DelayedBinding()


def test_a_pod_waits_until_its_claim_is_bound_to_the_disk_it_was_given(scenario: DelayedBinding) -> None:
    scenario.disk("disk-right", at="right")
    scenario.claim("data", "local")
    scenario.cluster.apply(using("db", "data"))
    scenario.cluster.settle()
    volume = scenario.cluster.get(kinds.PERSISTENT_VOLUME, "disk-right")
    claim = scenario.cluster.get(kinds.PERSISTENT_VOLUME_CLAIM, "data")
    assert volume is not None
    assert claim is not None
    reference = volume["spec"]["claimRef"]
    assert (reference["namespace"], reference["name"], reference["uid"]) == (
        "default",
        "data",
        claim["metadata"]["uid"],
    )
    assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert scenario.cluster.bindings() == {}
    assert scenario.cluster.pod("db")["status"]["nominatedNodeName"] == "right"
    scenario.cluster.run(10)
    assert scenario.cluster.bindings() == {}
    scenario.bind("data", "disk-right")
    assert scenario.cluster.bindings() == {"db": "right"}


def test_a_volume_is_made_for_the_node_that_was_chosen(scenario: DelayedBinding) -> None:
    scenario.claim("data", "made")
    scenario.cluster.apply(using("db", "data"))
    scenario.cluster.settle()
    chosen = scenario.annotations("data")[SELECTED]
    assert chosen in ("left", "right")
    assert scenario.cluster.bindings() == {}
    spec = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "made",
        "csi": {"driver": "csi.example.com", "volumeHandle": "h"},
        "claimRef": {"namespace": "default", "name": "data"},
    }  # fmt: skip
    scenario.volume("pvc-1", spec, "Bound")
    scenario.bind("data", "pvc-1")
    assert scenario.cluster.bindings() == {"db": chosen}


def test_two_pods_do_not_get_the_same_disk_while_the_first_is_being_bound(scenario: DelayedBinding) -> None:
    scenario.disk("only", at="left")
    for name in ("one", "two"):
        scenario.claim(f"data-{name}", "local")
    scenario.cluster.apply(using("one", "data-one"), using("two", "data-two"))
    scenario.cluster.settle()
    assert set(scenario.messages("two")) == {
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    }
    scenario.bind("data-one", "only")
    assert scenario.cluster.bindings() == {"one": "left"}
    scenario.disk("another", at="right")
    scenario.cluster.run(15)
    scenario.bind("data-two", "another")
    assert scenario.cluster.bindings() == {"one": "left", "two": "right"}


def test_a_pod_whose_claim_is_not_bound_in_time_gets_that_reason_and_tried_again(scenario: DelayedBinding) -> None:
    scenario.disk("disk", at="left")
    scenario.claim("data", "local")
    scenario.cluster.apply(using("db", "data"))
    scenario.cluster.run(TIMEOUT - 1)
    assert scenario.messages("db") == []
    scenario.cluster.run(2)
    assert scenario.messages("db") == [WAITED_TOO_LONG]
    scenario.cluster.run(5)
    assert list(scenario.scheduler.bindings) == [scenario.cluster.pod("db")["metadata"]["uid"]]
    scenario.bind("data", "disk")
    assert scenario.cluster.bindings() == {"db": "left"}


def test_a_provisioner_that_gives_up_sends_the_pod_back(scenario: DelayedBinding) -> None:
    scenario.claim("data", "made")
    scenario.cluster.apply(using("db", "data"))
    scenario.cluster.settle()
    scenario.cluster.patch(
        kinds.PERSISTENT_VOLUME_CLAIM, "data", {"metadata": {"annotations": {SELECTED: "", "x": "y"}}}
    )
    scenario.cluster.patch(kinds.PERSISTENT_VOLUME_CLAIM, "data", {"metadata": {"annotations": {SELECTED: None}}})
    scenario.cluster.settle()
    failure = 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"'
    assert scenario.messages("db") == [failure]
    assert SELECTED not in scenario.annotations("data")
    scenario.cluster.run(15)
    assert scenario.annotations("data")[SELECTED] in ("left", "right")


def test_a_pod_that_is_deleted_meanwhile_leaves_nothing_behind(scenario: DelayedBinding) -> None:
    scenario.claim("data", "made")
    scenario.cluster.apply(using("db", "data"))
    scenario.cluster.settle()
    assert len(scenario.scheduler.bindings) == 1
    scenario.cluster.delete(kinds.POD, "db")
    scenario.cluster.settle()
    assert scenario.scheduler.bindings == {}
    assert scenario.cluster.bindings() == {}
    storage = storage_of(scenario.scheduler.cluster)
    assert not storage.claims.pretended()
    assert not storage.volumes.pretended()
    scenario.scheduler.cluster.check()


def test_a_disk_that_somebody_else_took_in_the_same_moment_is_a_conflict_and_the_pod_finds_another() -> None:
    scenario = DelayedBinding(Latencies(watch=lambda rng: 0.3))
    scenario.disk("first", at="left", size="1Gi")
    scenario.disk("second", at="left", size="2Gi")
    scenario.claim("data", "local")
    scenario.claim("other", "local")
    scenario.cluster.run(1)
    scenario.cluster.apply(using("db", "data"))
    scenario.cluster.run(0.2)
    taken = {"spec": {"claimRef": {"namespace": "default", "name": "other"}}}
    scenario.cluster.patch(kinds.PERSISTENT_VOLUME, "first", taken)
    scenario.cluster.run(0.2)
    text = 'Operation cannot be fulfilled on persistentvolumes "first": the object has been modified'
    assert text in scenario.messages("db")[0]
    scenario.cluster.run(15)
    scenario.bind("data", "second")
    scenario.cluster.run(1)
    assert scenario.cluster.bindings() == {"db": "left"}


def test_a_pod_with_bound_claims_does_not_wait(scenario: DelayedBinding) -> None:
    scenario.disk("disk", at="right")
    scenario.claim("data", "local")
    scenario.bind("data", "disk")
    scenario.cluster.apply(using("db", "data"))
    scenario.cluster.settle()
    assert scenario.cluster.bindings() == {"db": "right"}
    assert "nominatedNodeName" not in scenario.cluster.pod("db")["status"]
