"""How volumes are bound: what the API is told, and what ends the wait. Texts are the original's."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Happened, Reply, Write
from fairlead.core.model.reasons import SUCCESS, failed
from fairlead.errors import Conflict
from fairlead.kube.volumes.binding import VolumeBinding
from fairlead.kube.volumes.errand import BindVolumes
from fairlead.kube.volumes.storage import storage_of
from tests.support.documents import SELECTED, ZONE, claim, claimed, meta, pod_with, volume
from tests.support.storage import StorageScenario

NOW, TIMEOUT = 1000.0, 60.0
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
REFERENCE = {"namespace": "default", "name": "old", "uid": "uid-old"}


class VolumeErrandScenario:
    """A pod whose claim `old` gets the volume `disk` and whose claim `new` has to be provisioned, on node `n`."""

    def __init__(self, **disk: Any) -> None:
        self.yard = StorageScenario(n={ZONE: "a"})
        self.yard.storage_class("wait", "kubernetes.io/no-provisioner")
        self.yard.storage_class("make")
        self.yard.volume("disk", storage_class="wait", version="10", zones=("a",), **disk)
        self.yard.claim("old", storage_class="wait", version="11", annotations={"kept": "yes"})
        self.yard.claim("new", storage_class="make", version="12")
        self.plugin = VolumeBinding(bind_timeout=TIMEOUT)
        self.yard.put(kinds.POD, pod_with("new", claimed("old"), claimed("new")))
        _, self.cycle = self.yard.asks(self.plugin, claimed("old"), claimed("new"))
        self.plugin.reserve(self.cycle, 0)
        errand = self.plugin.pre_bind(self.cycle, 0)
        assert isinstance(errand, BindVolumes)
        self.errand = errand
        self.writes = errand.start(NOW)

    def agree(self, now: float = NOW) -> Any:
        """The API agrees to all writes, and answers with versions 20 and 21."""
        versions = {"disk": "20", "new": "21"}
        docs = [{"metadata": {"resourceVersion": versions[write.name]}} for write in self.writes]
        return self.progress(now, [Reply(write, doc) for write, doc in zip(self.writes, docs, strict=True)])

    def progress(self, now: float = NOW, replies: list[Reply] | None = None) -> Any:
        return self.errand.progress(now, self.yard.cluster, replies or [])

    def show(self, *, disk: Doc | None = None, old: Doc | None = None, new: Doc | None = None) -> None:
        """What the watch shows."""
        for kind, doc in (
            (kinds.PERSISTENT_VOLUME, disk),
            (kinds.PERSISTENT_VOLUME_CLAIM, old),
            (kinds.PERSISTENT_VOLUME_CLAIM, new),
        ):
            if doc is not None:
                self.yard.put(kind, doc, happened=Happened.MODIFIED)

    def show_writes(self) -> None:
        self.show(
            disk=volume("disk", storage_class="wait", version="20", zones=("a",), claimRef=REFERENCE),
            new=claim("new", storage_class="make", version="21", annotations={SELECTED: "n"}),
        )

    def show_all_bound(self) -> None:
        self.yard.volume("made", storage_class="make", version="30")
        self.show(
            old=claim("old", storage_class="wait", version="31", to="disk"),
            new=claim("new", storage_class="make", version="32", to="made", annotations={SELECTED: "n"}),
        )


def body_of(writes: list[Write], name: str) -> Doc:
    return next(write.body for write in writes if write.name == name)


def test_the_api_is_reported_exactly_what_changes_and_of_which_version() -> None:
    stage = VolumeErrandScenario()
    assert [write.name for write in stage.writes] == ["disk", "new"]
    assert body_of(stage.writes, "disk") == {
        "metadata": {"resourceVersion": "10", "annotations": {BY_CONTROLLER: "yes"}},
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": "old",
                "uid": "uid-old",
                "resourceVersion": "11",
            }
        },
    }
    assert body_of(stage.writes, "new") == {"metadata": {"resourceVersion": "12", "annotations": {SELECTED: "n"}}}


def test_a_volume_that_an_administrator_reserved_is_not_called_the_controllers() -> None:
    stage = VolumeErrandScenario(claimRef={"namespace": "default", "name": "old"})
    assert body_of(stage.writes, "disk")["metadata"] == {"resourceVersion": "10"}
    assert body_of(stage.writes, "disk")["spec"]["claimRef"]["uid"] == "uid-old"


def test_it_is_done_when_every_claim_is_completely_bound() -> None:
    stage = VolumeErrandScenario()
    assert stage.progress() is None
    assert stage.agree() is None
    stage.show_writes()
    assert stage.progress(NOW + 1) is None
    stage.show_all_bound()
    assert stage.progress(NOW + 2) is SUCCESS


def test_it_waits_for_the_watch_to_show_what_the_api_agreed_to() -> None:
    stage = VolumeErrandScenario()
    stage.show(old=claim("old", storage_class="wait", version="31", to="disk"))
    assert stage.agree() is None


def test_it_gives_up_when_the_time_is_over_which_begins_with_the_last_answer() -> None:
    stage = VolumeErrandScenario()
    assert stage.errand.wake_at() is None
    assert stage.agree(NOW + 5) is None
    assert stage.errand.wake_at() == NOW + 5 + TIMEOUT
    stage.show_writes()
    assert stage.progress(NOW + TIMEOUT) is None
    assert stage.progress(NOW + 5 + TIMEOUT) == failed("binding volumes: context deadline exceeded")


def test_a_refused_write_ends_it_with_the_servers_words_and_only_what_was_written_stays_pretended() -> None:
    stage = VolumeErrandScenario()
    disk, new = stage.writes
    assert stage.progress(replies=[Reply(new, {"metadata": {"resourceVersion": "21"}})]) is None
    assert stage.progress(replies=[Reply(disk, None, Conflict("taken"))]) == failed("taken")
    stage.plugin.unreserve(stage.cycle, 0)
    storage = storage_of(stage.yard.cluster)
    assert not storage.volumes.pretended()
    assert list(storage.claims.pretended()) == ["default/new"]
    stage.show_writes()
    assert not storage.claims.pretended()


def lose_the_pod(stage: VolumeErrandScenario) -> None:
    stage.yard.remove(kinds.POD, pod_with("new", claimed("old"), claimed("new")))


def lose_the_node(stage: VolumeErrandScenario) -> None:
    stage.yard.remove(kinds.NODE, {"metadata": meta("n")})


def move_the_node(stage: VolumeErrandScenario) -> None:
    stage.yard.node("n", {ZONE: "b"})


def reset_the_volume(stage: VolumeErrandScenario) -> None:
    stage.show(disk=volume("disk", storage_class="wait", version="22", zones=("a",)))


def lose_the_volume(stage: VolumeErrandScenario) -> None:
    stage.yard.remove(kinds.PERSISTENT_VOLUME, volume("disk"))


def lose_the_claim(stage: VolumeErrandScenario) -> None:
    stage.yard.remove(kinds.PERSISTENT_VOLUME_CLAIM, claim("old"))


def lose_the_new_claim(stage: VolumeErrandScenario) -> None:
    stage.show(old=claim("old", storage_class="wait", version="31", to="disk"))
    stage.yard.remove(kinds.PERSISTENT_VOLUME_CLAIM, claim("new"))


def fail_to_provision(stage: VolumeErrandScenario) -> None:
    stage.show(
        old=claim("old", storage_class="wait", version="31", to="disk"),
        new=claim("new", storage_class="make", version="22", annotations={"other": "left"}),
    )


def strip_the_claim(stage: VolumeErrandScenario) -> None:
    stage.show(
        old=claim("old", storage_class="wait", version="31", to="disk"),
        new=claim("new", storage_class="make", version="22"),
    )


def provision_out_of_reach(stage: VolumeErrandScenario) -> None:
    stage.yard.volume("made", storage_class="make", zones=("z",))
    stage.show(
        old=claim("old", storage_class="wait", version="31", to="disk"),
        new=claim("new", storage_class="make", version="22", to="made", annotations={SELECTED: "n"}),
    )


@pytest.mark.parametrize(
    ("happens", "text"),
    [
        (lose_the_pod, 'pod does not exist any more: pod "new" not found'),
        (lose_the_node, 'failed to get node "n": node "n" not found'),
        (move_the_node, 'pv "disk" node affinity doesn\'t match node "n": no matching NodeSelectorTerms'),
        (reset_the_volume, 'ClaimRef got reset for pv "disk"'),
        (lose_the_volume, 'failed to check binding: persistentvolumes "disk" not found'),
        (lose_the_claim, 'failed to check binding: persistentvolumeclaims "default/old" not found'),
        (lose_the_new_claim, 'failed to check provisioning pvc: persistentvolumeclaims "default/new" not found'),
        (fail_to_provision, 'provisioning failed for PVC "new"'),
        (strip_the_claim, 'selectedNode annotation reset for PVC "new"'),
        (provision_out_of_reach, 'pv "made" node affinity doesn\'t match node "n": no matching NodeSelectorTerms'),
    ],
)
def test_what_cannot_succeed_any_more_ends_with_the_reason(happens: Any, text: str) -> None:
    stage = VolumeErrandScenario()
    stage.agree()
    stage.show_writes()
    assert stage.progress() is None
    happens(stage)
    assert stage.progress() == failed(f"binding volumes: {text}")


def test_a_provisioned_volume_that_the_watch_has_not_shown_is_waited_for() -> None:
    stage = VolumeErrandScenario()
    stage.agree()
    stage.show_writes()
    stage.show(
        old=claim("old", storage_class="wait", version="31", to="disk"),
        new=claim("new", storage_class="make", version="22", to="late", annotations={SELECTED: "n"}),
    )
    assert stage.progress() is None
    stage.yard.volume("late", storage_class="make")
    assert stage.progress() is SUCCESS
