from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.framework.refusals import trial_statement
from fairlead.core.model import kinds
from fairlead.core.model.events import NODE, PERSISTENT_VOLUME_CLAIM, POD, ActionType, ClusterEvent
from fairlead.core.model.flow import Doc
from fairlead.kube.volumes.restrictions import VolumeRestrictions
from tests.support.documents import EPHEMERAL, claim, claimed, pod_with
from tests.support.plugins import event_hint, verdicts
from tests.support.storage import StorageScenario, record

DISK = ("node(s) had no available disk",), False
_TEXT = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
IN_USE = (f"node(s) unavailable due to {_TEXT}",), False
POD_GONE = ClusterEvent(POD, ActionType.DELETE)


def gce(name: str, *, read_only: bool = False) -> Doc:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str) -> Doc:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": True}}


def rbd(image: str, *monitors: str, pool: str = "rbd", read_only: bool = False) -> Doc:
    return {"rbd": {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": read_only}}


@pytest.mark.parametrize(
    ("wanted", "mounted", "conflict"),
    [
        (gce("d"), gce("d"), True),
        (gce("d", read_only=True), gce("d"), True),
        (gce("d", read_only=True), gce("d", read_only=True), False),
        (gce("d"), gce("e"), False),
        (ebs("v"), ebs("v"), True),
        ({"iscsi": {"iqn": "q"}}, {"iscsi": {"iqn": "q", "readOnly": True}}, True),
        ({"iscsi": {"iqn": "q", "readOnly": True}}, {"iscsi": {"iqn": "q", "readOnly": True}}, False),
        (rbd("i", "a", "b"), rbd("i", "b", "c"), True),
        (rbd("i", "a"), rbd("i", "c"), False),
        (rbd("i", "a"), rbd("i", "a", pool="other"), False),
        (rbd("i", "a", read_only=True), rbd("i", "a", read_only=True), False),
        (gce("d"), ebs("d"), False),
    ],
)  # fmt: skip
def test_two_pods_mount_one_disk_on_a_node_only_if_it_allows_that(wanted: Doc, mounted: Doc, conflict: bool) -> None:
    yard = StorageScenario("a", "b")
    yard.pod("there", mounted, on="a")
    assert yard.says(VolumeRestrictions(), wanted) == {"a": DISK if conflict else None, "b": None}


def test_a_claim_for_one_pod_is_in_use_everywhere_once_a_pod_has_it() -> None:
    yard = StorageScenario("a", "b")
    yard.claim("only", modes=("ReadWriteOncePod",))
    assert yard.says(VolumeRestrictions(), claimed("only")) == "skip"
    yard.pod("there", claimed("only"), on="a")
    assert yard.says(VolumeRestrictions(), claimed("only")) == {"a": IN_USE, "b": IN_USE}


def test_a_disk_conflict_comes_before_a_claim_in_use() -> None:
    yard = StorageScenario("a", "b")
    yard.claim("only", modes=("ReadWriteOncePod",))
    yard.pod("there", claimed("only"), gce("d"), on="a")
    assert yard.says(VolumeRestrictions(), claimed("only"), gce("d")) == {"a": DISK, "b": IN_USE}


def test_the_claim_of_another_namespace_is_another_claim() -> None:
    yard = StorageScenario("a")
    yard.claim("only", modes=("ReadWriteOncePod",))
    yard.pod("there", claimed("only"), on="a", namespace="elsewhere")
    assert yard.says(VolumeRestrictions(), claimed("only")) == "skip"


def test_a_missing_claim_is_final_but_an_ephemeral_one_is_not_asked_for() -> None:
    yard = StorageScenario("a")
    assert yard.says(VolumeRestrictions(), claimed("nope")) == (
        "UnschedulableAndUnresolvable",
        ('persistentvolumeclaim "nope" not found',),
    )
    assert yard.says(VolumeRestrictions(), EPHEMERAL) == "skip"


def test_a_trial_counts_uses_by_name_whatever_the_namespace() -> None:
    """A quirk of the original that decisions follow from."""
    yard = StorageScenario("a")
    yard.claim("only", modes=("ReadWriteOncePod",))
    user = yard.pod("there", claimed("only"), on="a")
    stranger = yard.pod("stranger", claimed("only"), on="a", namespace="elsewhere")
    plugin = VolumeRestrictions()
    _, cycle = yard.asks(plugin, claimed("only"))
    trial = cycle.copy()
    statement = trial_statement(trial)
    statement.evict(user, 0)
    assert verdicts(plugin, trial) == {"a": None}
    statement.rollback()
    assert verdicts(plugin, trial) == {"a": IN_USE}
    statement.evict(stranger, 0)
    assert verdicts(plugin, trial) == {"a": None}
    statement.rollback()
    assert verdicts(plugin, cycle) == {"a": IN_USE}


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        (pod_with("p", claimed("c"), on="a"), Hint.QUEUE),
        (pod_with("p", gce("d"), on="a"), Hint.QUEUE),
        (pod_with("p", claimed("c"), on="a", namespace="elsewhere"), Hint.SKIP),
        (pod_with("p", claimed("x"), gce("e"), on="a"), Hint.SKIP),
    ],
)
def test_a_pod_that_goes_wakes_those_that_share_a_disk_or_a_claim_with_it(gone: Doc, expected: Hint) -> None:
    waiting = pod_with("w", claimed("c"), gce("d"))
    assert event_hint(VolumeRestrictions(), POD_GONE, waiting, record(kinds.POD, gone)) is expected


def test_new_nodes_wake_and_so_do_new_claims_that_the_pod_names() -> None:
    waiting = pod_with("w", claimed("c"), EPHEMERAL)
    assert event_hint(VolumeRestrictions(), ClusterEvent(NODE, ActionType.ADD), waiting) is Hint.QUEUE
    came = ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
    for name, expected in (("c", Hint.QUEUE), ("d", Hint.SKIP), ("w-v1", Hint.SKIP)):
        new = record(kinds.PERSISTENT_VOLUME_CLAIM, claim(name))
        assert event_hint(VolumeRestrictions(), came, waiting, new=new) is expected
    updated = ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.UPDATE)
    assert event_hint(VolumeRestrictions(), updated, waiting) is None
