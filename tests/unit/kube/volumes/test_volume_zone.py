from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model import kinds
from fairlead.core.model.events import PERSISTENT_VOLUME, STORAGE_CLASS, ActionType, ClusterEvent
from fairlead.kube.volumes.zone import VolumeZone
from tests.support.documents import EPHEMERAL, OLD_ZONE, ZONE, claimed, meta, pod_with, volume
from tests.support.plugins import event_hint
from tests.support.storage import StorageScenario, record

ELSEWHERE = ("node(s) had no available volume zone",), True
FINAL = "UnschedulableAndUnresolvable"


def street() -> StorageScenario:
    return StorageScenario(
        here={ZONE: "a"},
        old={OLD_ZONE: "a"},
        there={ZONE: "b"},
        nowhere={},
        regional={"topology.kubernetes.io/region": "r"},
    )


def test_a_labelled_volume_is_for_nodes_in_its_zones_and_for_nodes_without_zones() -> None:
    yard = street()
    yard.volume("v", labels={ZONE: "a__c"})
    yard.claim("c", to="v")
    expected = {"here": None, "old": ELSEWHERE, "there": ELSEWHERE, "nowhere": None, "regional": ELSEWHERE}
    assert yard.says(VolumeZone(), claimed("c")) == expected


def test_an_old_label_of_a_volume_is_met_by_the_new_label_of_a_node() -> None:
    yard = street()
    yard.volume("v", labels={OLD_ZONE: "a"})
    yard.claim("c", to="v")
    expected = {"here": None, "old": None, "there": ELSEWHERE, "nowhere": None, "regional": ELSEWHERE}
    assert yard.says(VolumeZone(), claimed("c")) == expected


@pytest.mark.parametrize("value", ["", "a__", "a____b"])
def test_a_label_with_an_empty_part_is_ignored(value: str) -> None:
    yard = street()
    yard.volume("v", labels={ZONE: value})
    yard.claim("c", to="v")
    assert yard.says(VolumeZone(), claimed("c")) == "skip"


def test_claims_that_have_no_volume_are_refused_with_the_reason_unless_they_wait() -> None:
    yard = street()
    yard.storage_class("waits")
    yard.storage_class("now", mode="Immediate")
    yard.storage_class("modeless", mode=None)
    for name in ("waits", "now", "modeless", "gone", ""):
        yard.claim(f"c-{name}", storage_class=name)
    yard.claim("lost", to="nothing")
    texts = {
        "c-": "PersistentVolumeClaim had no pv name and storageClass name",
        "c-gone": 'storageclass.storage.k8s.io "gone" not found',
        "c-modeless": 'VolumeBindingMode not set for StorageClass "modeless"',
        "c-now": "PersistentVolume had no name",
        "nope": 'persistentvolumeclaim "nope" not found',
        "lost": 'persistentvolume "nothing" not found',
        "": "PersistentVolumeClaim had no name",
    }
    for name, text in texts.items():
        assert yard.says(VolumeZone(), claimed(name)) == (FINAL, (text,))
    assert yard.says(VolumeZone(), claimed("c-waits")) == "skip"
    assert yard.says(VolumeZone(), EPHEMERAL) == "skip"


def test_new_zones_of_a_volume_wake_and_so_do_classes_that_wait() -> None:
    waiting = pod_with("w", claimed("c"))
    changed = ClusterEvent(PERSISTENT_VOLUME, ActionType.UPDATE)
    plain, labelled, spoiled = (
        record(kinds.PERSISTENT_VOLUME, volume("v", labels=labels)) for labels in ({}, {ZONE: "a"}, {ZONE: "__"})
    )
    assert event_hint(VolumeZone(), changed, waiting, plain, labelled) is Hint.QUEUE
    assert event_hint(VolumeZone(), changed, waiting, plain, spoiled) is Hint.SKIP
    assert event_hint(VolumeZone(), ClusterEvent(PERSISTENT_VOLUME, ActionType.ADD), waiting, None, plain) is Hint.QUEUE
    came = ClusterEvent(STORAGE_CLASS, ActionType.ADD)
    for mode, expected in (("WaitForFirstConsumer", Hint.QUEUE), ("Immediate", Hint.SKIP)):
        new = record(kinds.STORAGE_CLASS, {"metadata": meta("s"), "volumeBindingMode": mode})
        assert event_hint(VolumeZone(), came, waiting, None, new) is expected
