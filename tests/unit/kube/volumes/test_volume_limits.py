from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model import kinds
from fairlead.core.model.events import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    ActionType,
    ClusterEvent,
)
from fairlead.core.model.flow import Doc
from fairlead.kube.volumes.limits import NodeVolumeLimits
from tests.support.documents import EPHEMERAL, claim, claimed, meta, pod_with
from tests.support.plugins import event_hint
from tests.support.storage import StorageScenario, record

FULL = ("node(s) exceed max volume count",), False


def handle(name: str, driver: str = "csi.x") -> Doc:
    return {"csi": {"driver": driver, "volumeHandle": name}}


def attachment(name: str, node: str, of: str, attacher: str = "csi.x") -> Doc:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": of}}
    return {"metadata": meta(name), "spec": spec}


def yard_with(*volumes: str, limit: int = 1) -> StorageScenario:
    """One node with a limit, one without; and bound claims `c-x` for volumes `x`."""
    yard = StorageScenario("tight", "loose")
    yard.csi_node("tight", csi_x=limit)
    for name in volumes:
        yard.volume(name, **handle(name))
        yard.claim(f"c-{name}", to=name)
    return yard


def test_a_node_takes_no_more_volumes_than_its_driver_can_attach() -> None:
    yard = yard_with("one", "two")
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": None, "loose": None}
    assert yard.says(NodeVolumeLimits(), claimed("c-one"), claimed("c-two")) == {"tight": FULL, "loose": None}
    yard.pod("there", claimed("c-one"), on="tight")
    assert yard.says(NodeVolumeLimits(), claimed("c-two")) == {"tight": FULL, "loose": None}


def test_a_volume_that_a_pod_on_the_node_uses_already_is_not_counted_again() -> None:
    yard = yard_with("one")
    yard.pod("there", claimed("c-one"), on="tight")
    yard.pod("there too", claimed("c-one"), on="tight")
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": None, "loose": None}


def test_a_volume_left_attached_counts_as_attached_and_as_new() -> None:
    """A quirk of the original that decisions follow from."""
    yard = yard_with("one", "two")
    yard.put(kinds.VOLUME_ATTACHMENT, attachment("att", "tight", "one"))
    assert yard.says(NodeVolumeLimits(), claimed("c-two")) == {"tight": FULL, "loose": None}
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": FULL, "loose": None}
    yard.pod("there", claimed("c-one"), on="tight")
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": None, "loose": None}
    yard.remove(kinds.VOLUME_ATTACHMENT, attachment("att", "tight", "one"))
    assert yard.says(NodeVolumeLimits(), claimed("c-two")) == {"tight": FULL, "loose": None}


def test_an_attachment_seen_before_its_node_counts_once_the_node_comes() -> None:
    yard = yard_with("one", "two")
    yard.put(kinds.VOLUME_ATTACHMENT, attachment("att", "late", "one"))
    yard.csi_node("late", csi_x=1)
    assert yard.says(NodeVolumeLimits(), claimed("c-two")) == {"tight": None, "loose": None}
    yard.node("late")
    assert yard.says(NodeVolumeLimits(), claimed("c-two")) == {"tight": None, "loose": None, "late": FULL}
    yard.remove(kinds.NODE, {"metadata": meta("late")})
    yard.node("other")
    assert yard.says(NodeVolumeLimits(), claimed("c-two")) == {"tight": None, "loose": None, "other": None}


def test_in_tree_disks_count_for_their_driver_wherever_there_is_a_csi_node() -> None:
    yard = StorageScenario("tight")
    yard.csi_node("tight", ebs_csi_aws_com=1)
    yard.volume("one", awsElasticBlockStore={"volumeID": "aws://zone/vol-1"})
    yard.claim("c", to="one")
    yard.pod("there", {"awsElasticBlockStore": {"volumeID": "vol-1"}}, on="tight")
    assert yard.says(NodeVolumeLimits(), claimed("c")) == {"tight": None}
    assert yard.says(NodeVolumeLimits(), {"awsElasticBlockStore": {"volumeID": "vol-2"}}) == {"tight": FULL}


def test_a_claim_without_a_volume_counts_for_the_driver_of_its_class() -> None:
    yard = yard_with("one")
    yard.storage_class("fast")
    yard.claim("unbound", storage_class="fast")
    yard.pod("there", claimed("c-one"), on="tight")
    assert yard.says(NodeVolumeLimits(), claimed("unbound")) == {"tight": FULL, "loose": None}
    yard.claim("classless")
    assert yard.says(NodeVolumeLimits(), claimed("classless")) == {"tight": None, "loose": None}


def test_counts_follow_a_claim_that_is_bound_after_its_pod_came() -> None:
    yard = yard_with("one", "two")
    yard.storage_class("fast")
    yard.claim("c", storage_class="fast")
    yard.pod("there", claimed("c"), on="tight")
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": FULL, "loose": None}
    yard.claim("c", storage_class="fast", to="one")
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": None, "loose": None}
    yard.remove(kinds.PERSISTENT_VOLUME_CLAIM, claim("c"))
    assert yard.says(NodeVolumeLimits(), claimed("c-two")) == {"tight": None, "loose": None}


def test_a_missing_claim_is_final() -> None:
    reasons = ('looking up PVC default/nope: persistentvolumeclaim "nope" not found',)
    assert StorageScenario("a").says(NodeVolumeLimits(), claimed("nope")) == {"a": (reasons, True)}


def test_a_pod_there_with_a_claim_of_somebody_else_is_an_error_where_there_are_limits() -> None:
    yard = yard_with("one")
    yard.claim("there-v0")
    yard.pod("there", EPHEMERAL, on="loose")
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": None, "loose": None}
    yard.csi_node("loose", csi_x=5)
    text = (
        'running "NodeVolumeLimits" filter plugin: PVC default/there-v0 was not created for pod default/there'
        " (pod is not owner)"
    )
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": None, "loose": ((text,), True)}
    yard.claim("there-v0", owner="uid-there")
    assert yard.says(NodeVolumeLimits(), claimed("c-one")) == {"tight": None, "loose": None}


def test_pods_without_such_volumes_are_ignored() -> None:
    assert StorageScenario("a").says(NodeVolumeLimits(), {"iscsi": {"iqn": "q"}}) == "skip"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"csi.x": 1}, {"csi.x": 2}, Hint.QUEUE),
        ({"csi.x": 2}, {"csi.x": 2}, Hint.SKIP),
        ({"csi.x": 2}, {"csi.x": 1}, Hint.SKIP),
        ({}, {"csi.x": 1}, Hint.QUEUE),
        ({"csi.x": 1}, {"csi.x": None}, Hint.SKIP),
    ],
)
def test_a_limit_that_grows_wakes(old: dict[str, int], new: dict[str, int], expected: Hint) -> None:
    def csi_node(limits: dict[str, int]) -> Doc:
        drivers = [{"name": name, "allocatable": {"count": count}} for name, count in limits.items()]
        return {"metadata": meta("n"), "spec": {"drivers": drivers}}

    records = [record(kinds.CSI_NODE, csi_node(limits)) for limits in (old, new)]
    event = ClusterEvent(CSI_NODE, ActionType.UPDATE)
    assert event_hint(NodeVolumeLimits(), event, pod_with("w", claimed("c")), *records) is expected


def test_pods_that_go_and_attachments_that_end_wake_whom_they_concern() -> None:
    gone = ClusterEvent(POD, ActionType.DELETE)
    waiting = pod_with("w", claimed("c"))
    cases = [
        (pod_with("p", claimed("x"), on="a"), Hint.QUEUE),
        (pod_with("p", EPHEMERAL, on="a"), Hint.QUEUE),
        (pod_with("p", {"cinder": {"volumeID": "v"}}, on="a"), Hint.QUEUE),
        (pod_with("p", claimed("x")), Hint.SKIP),
        (pod_with("p", {"iscsi": {"iqn": "q"}}, on="a"), Hint.SKIP),
    ]
    for old, expected in cases:
        assert event_hint(NodeVolumeLimits(), gone, waiting, record(kinds.POD, old)) is expected
    ended = ClusterEvent(VOLUME_ATTACHMENT, ActionType.DELETE)
    old_attachment = record(kinds.VOLUME_ATTACHMENT, attachment("a", "n", "v", "cinder.csi.openstack.org"))
    for wants, expected in (
        (claimed("c"), Hint.QUEUE),
        (EPHEMERAL, Hint.SKIP),
        ({"cinder": {"volumeID": "v"}}, Hint.QUEUE),
        ({"awsElasticBlockStore": {"volumeID": "v"}}, Hint.SKIP),
    ):
        assert event_hint(NodeVolumeLimits(), ended, pod_with("w", wants), old_attachment) is expected
    came = ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
    new = record(kinds.PERSISTENT_VOLUME_CLAIM, claim("w-v0"))
    assert event_hint(NodeVolumeLimits(), came, pod_with("w", EPHEMERAL), new=new) is Hint.QUEUE
