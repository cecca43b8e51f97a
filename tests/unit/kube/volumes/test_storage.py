from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.object_index import KindIndex, ObjectIndex
from fairlead.kube.volumes.storage import Storage, storage_of
from tests.support.documents import ZONE, claim, claimed, volume
from tests.support.storage import StorageScenario


def yard_with_a_claim() -> tuple[StorageScenario, Storage]:
    yard = StorageScenario("a")
    yard.claim("c", version="1")
    return yard, storage_of(yard.cluster)


def pretend(storage: Storage, node: str) -> None:
    current = storage.claims.get("default/c")
    assert current is not None
    storage.claims.assume("default/c", replace(current, selected_node=node))


def selected(storage: Storage) -> str | None:
    current = storage.claims.get("default/c")
    assert current is not None
    return current.selected_node


def test_a_pretence_counts_until_it_is_taken_back() -> None:
    _, storage = yard_with_a_claim()
    pretend(storage, "a")
    assert selected(storage) == "a"
    seen = storage.claims.seen("default/c")
    assert seen is not None
    assert seen.selected_node is None
    storage.claims.restore("default/c")
    storage.claims.restore("default/c")
    assert selected(storage) is None


def test_a_newer_version_ends_a_pretence_but_the_same_version_seen_again_does_not() -> None:
    yard, storage = yard_with_a_claim()
    pretend(storage, "a")
    yard.claim("c", version="1")
    assert selected(storage) == "a"
    yard.claim("c", version="2")
    assert selected(storage) is None
    assert not storage.claims.pretended()


def test_a_pretence_ends_with_its_object() -> None:
    yard, storage = yard_with_a_claim()
    pretend(storage, "a")
    yard.remove(kinds.PERSISTENT_VOLUME_CLAIM, claim("c"))
    assert storage.claims.get("default/c") is None
    yard.claim("c", version="1")
    assert selected(storage) is None


def test_one_cluster_has_one_storage_that_knows_the_pods_that_were_there_before() -> None:
    yard = StorageScenario("a")
    yard.csi_node("a", csi_x=1)
    yard.volume("v", csi={"driver": "csi.x", "volumeHandle": "h"})
    yard.claim("c", to="v")
    yard.pod("p", claimed("c"), {"iscsi": {"iqn": "q"}}, on="a")
    storage = storage_of(yard.cluster)
    assert storage_of(yard.cluster) is storage
    storage.attached.catch_up()
    assert storage.attached.count("csi.x")[0] == 1
    assert len(storage.disks) == 1


def test_the_last_pod_to_leave_takes_disks_and_attachments_with_it() -> None:
    yard = StorageScenario("a")
    yard.volume("v", csi={"driver": "csi.x", "volumeHandle": "h"})
    yard.claim("c", to="v")
    storage = storage_of(yard.cluster)
    pods = [yard.pod(name, claimed("c"), {"iscsi": {"iqn": "q"}}, on="a") for name in ("p", "q")]
    for left, one in zip((1, 0), pods, strict=True):
        yard.cluster.vacate(one, 0)
        assert storage.attached.count("csi.x")[0] == left
        assert len(storage.disks) == left
    assert list(storage.attached.rows_using(("csi.x", "h"))) == []


def test_counts_and_limits_grow_with_the_table() -> None:
    yard = StorageScenario(*(f"n{i}" for i in range(70)))
    storage = storage_of(yard.cluster)
    yard.csi_node("n69", csi_x=3)
    storage.attached.catch_up()
    before = storage.attached.limits.of("csi.x")
    assert (before[69], before[0]) == (3, -1)
    for i in range(70, 200):
        yard.node(f"n{i}")
    assert storage.attached.limits.of("csi.x")[69] == 3
    assert len(storage.attached.limits.of("csi.x")) >= 200


def test_volumes_of_a_class_follow_the_index_smallest_first_and_then_by_name() -> None:
    yard = StorageScenario("a")
    storage = storage_of(yard.cluster)
    for name in ("b", "a"):
        yard.volume(name, storage_class="s")
    yard.volume("c", storage_class="other")
    assert [v.name for v in storage.volumes_of_class("s")] == ["a", "b"]
    yard.volume("a", storage_class="other")
    yard.remove(kinds.PERSISTENT_VOLUME, volume("b"))
    assert storage.volumes_of_class("s") == []
    assert [v.name for v in storage.volumes_of_class("other")] == ["a", "c"]
    yard.volume("c", storage_class="other", size="1Gi")
    assert [v.name for v in storage.volumes_of_class("other")] == ["c", "a"]


def test_reach_is_worked_out_again_when_a_node_changes() -> None:
    yard = StorageScenario(a={ZONE: "x"}, b={ZONE: "y"})
    yard.volume("v", zones=("x",))
    storage = storage_of(yard.cluster)
    found = storage.volumes.get("v")
    assert found is not None
    assert storage.reach.mask_of(found).tolist() == [True, False]
    assert storage.reach.mask_of(found).tolist() == [True, False]
    yard.node("b", {ZONE: "x"})
    assert storage.reach.mask_of(found).tolist() == [True, True]
    yard.volume("v", zones=("y",))
    changed = storage.volumes.get("v")
    assert changed is not None
    assert storage.reach.mask_of(changed).tolist() == [False, False]
    assert storage.reach.of_affinity(None) is None
    assert np.all(storage.reach.mask(None))


def test_an_index_says_what_changed_after_a_version_or_that_it_is_too_long_ago() -> None:
    kind_index = KindIndex()
    for name in ("a", "b", "a"):
        kind_index.touch(name)
    assert kind_index.since(1) == ["b", "a"]
    assert kind_index.since(3) == []
    for _ in range(40_000):
        kind_index.touch("x")
    assert kind_index.since(3) is None
    assert kind_index.since(kind_index.version - 2) == ["x", "x"]


def test_every_change_of_an_index_is_in_its_log() -> None:
    object_index = ObjectIndex()
    kind_index = object_index.of(kinds.PERSISTENT_VOLUME)
    for happened in (Happened.ADDED, Happened.MODIFIED, Happened.DELETED):
        object_index.apply(Change(happened, kinds.PERSISTENT_VOLUME, volume("v")))
    assert (kind_index.version, kind_index.since(0)) == (3, ["v", "v", "v"])
