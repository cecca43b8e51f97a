from __future__ import annotations

import pytest

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.plugin import Hint
from fairlead.core.model import events, kinds
from fairlead.core.model.events import ActionType, ClusterEvent
from fairlead.core.model.flow import Doc
from fairlead.core.state.nodes import Nodes
from fairlead.kube.volumes.binding import VolumeBinding
from fairlead.kube.volumes.storage import storage_of
from tests.support.documents import EPHEMERAL, SELECTED, ZONE, claim, claimed, meta, pod_with, volume
from tests.support.plugins import Answer, event_hint
from tests.support.storage import StorageScenario, record

FINAL = "UnschedulableAndUnresolvable"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NOTHING = "node(s) didn't find available persistent volumes to bind"
SPACE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def refused(*texts: str) -> tuple[tuple[str, ...], bool]:
    return texts, True


@pytest.fixture
def yard() -> StorageScenario:
    """Two nodes in two zones; `wait` binds disks that are there, `make` makes volumes."""
    yard = StorageScenario(a={ZONE: "a"}, b={ZONE: "b"})
    yard.storage_class("wait", "kubernetes.io/no-provisioner")
    yard.storage_class("make")
    return yard


def chosen(yard: StorageScenario, cycle: Cycle, node: str) -> tuple[dict[str, str], list[str]]:
    """What a pod would get on a node: volumes by claim, and claims to provision."""
    layout = cycle.notes["VolumeBinding"].layout
    row = yard.cluster.table.row_of[node]
    bindings = {claim.name: volume.name for claim, volume in layout.bindings(row)}
    return bindings, [claim.name for claim in layout.to_provision(row)]


# ---- before any node ----


def test_what_is_wrong_with_a_claim_is_said_in_the_order_of_the_volumes(yard: StorageScenario) -> None:
    yard.put(kinds.PERSISTENT_VOLUME_CLAIM, {**claim("lost", to="pv"), "status": {"phase": "Lost"}})
    yard.claim("going", deletionTimestamp="2026-01-01T00:00:00Z")
    yard.claim("new-v0")
    cases: list[tuple[Doc, str]] = [
        (claimed("nope"), 'persistentvolumeclaim "nope" not found'),
        (claimed("lost"), 'persistentvolumeclaim "lost" bound to non-existent persistentvolume "pv"'),
        (claimed("going"), 'persistentvolumeclaim "going" is being deleted'),
        (EPHEMERAL, "PVC default/new-v0 was not created for pod default/new (pod is not owner)"),
    ]
    for one, text in cases:
        assert yard.says(VolumeBinding(), one, claimed("nope")) == (FINAL, (text,))
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "other-v0"'
    assert yard.says(VolumeBinding(), EPHEMERAL, name="other") == (FINAL, (waiting,))
    assert yard.says(VolumeBinding(), {"iscsi": {"iqn": "q"}}) == "skip"


def test_claims_that_somebody_else_must_bind_first_are_refused_at_once(yard: StorageScenario) -> None:
    yard.storage_class("now", mode="Immediate")
    yard.claim("now", storage_class="now")
    yard.claim("classless")
    yard.claim("class-gone", storage_class="gone")
    half = claim("half", storage_class="wait")
    half["spec"]["volumeName"] = "v"
    yard.put(kinds.PERSISTENT_VOLUME_CLAIM, half)
    for name in ("now", "classless", "class-gone", "half"):
        assert yard.says(VolumeBinding(), claimed(name)) == (
            FINAL,
            ("pod has unbound immediate PersistentVolumeClaims",),
        )


def test_a_class_without_a_mode_is_an_error(yard: StorageScenario) -> None:
    yard.storage_class("modeless", mode=None)
    yard.claim("c", storage_class="modeless")
    expected = "Error", ('VolumeBindingMode not set for StorageClass "modeless"',)
    assert yard.says(VolumeBinding(), claimed("c")) == expected


# ---- claims with a volume ----


def test_bound_claims_lead_to_the_nodes_that_reach_their_volumes(yard: StorageScenario) -> None:
    yard.volume("v", zones=("a",))
    yard.claim("c", to="v")
    yard.claim("lost", to="gone")
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": None, "b": refused(AFFINITY)}
    assert yard.says(VolumeBinding(), claimed("lost")) == {"a": refused(MISSING), "b": refused(MISSING)}
    assert yard.says(VolumeBinding(), claimed("c"), claimed("lost")) == {"a": refused(MISSING), "b": refused(AFFINITY)}


def test_the_fields_of_a_volumes_affinity_do_not_count(yard: StorageScenario) -> None:
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
    yard.volume("v", nodeAffinity={"required": {"nodeSelectorTerms": fields}})
    yard.volume("w", nodeAffinity={"required": {"nodeSelectorTerms": [{}]}})
    yard.claim("c", to="v")
    yard.claim("d", to="w")
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": None, "b": None}
    assert yard.says(VolumeBinding(), claimed("d")) == {"a": refused(AFFINITY), "b": refused(AFFINITY)}


def test_an_in_tree_volume_is_where_its_driver_says_once_the_node_has_moved(yard: StorageScenario) -> None:
    yard.volume("v", labels={ZONE: "a"}, awsElasticBlockStore={"volumeID": "vol-1"})
    yard.claim("c", to="v")
    yard.csi_node("a")
    yard.csi_node("b", migrated="kubernetes.io/gce-pd,kubernetes.io/aws-ebs")
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": None, "b": refused(AFFINITY)}
    yard.node("b", {"topology.ebs.csi.aws.com/zone": "a"})
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": None, "b": None}


# ---- claims that wait ----


def test_a_waiting_claim_takes_the_smallest_volume_within_reach_and_the_first_by_name(yard: StorageScenario) -> None:
    for name, size, zones in (
        ("big", "9Gi", ()),
        ("small-b", "2Gi", ("b",)),
        ("y", "5Gi", ("a",)),
        ("x", "5Gi", ("a",)),
        ("tiny", "1Gi", ()),
    ):
        yard.volume(name, storage_class="wait", size=size, zones=zones)
    yard.claim("c", storage_class="wait", asks="2Gi")
    answer, cycle = yard.asks(VolumeBinding(), claimed("c"))
    assert answer == {"a": None, "b": None}
    assert chosen(yard, cycle, "a") == ({"c": "x"}, [])
    assert chosen(yard, cycle, "b") == ({"c": "small-b"}, [])


@pytest.mark.parametrize(
    "unsuited",
    [
        volume("v", storage_class="make"),
        volume("v", storage_class="wait", size="1Gi"),
        volume("v", storage_class="wait", phase="Released"),
        volume("v", storage_class="wait", modes=("ReadOnlyMany",)),
        volume("v", storage_class="wait", volumeMode="Block"),
        volume("v", storage_class="wait", volumeAttributesClassName="gold"),
        volume("v", storage_class="wait", claimRef={"namespace": "default", "name": "other"}),
        volume("v", storage_class="wait", claimRef={"namespace": "default", "name": "c", "uid": "of-another-time"}),
        volume("v", storage_class="wait", labels={"tier": "b"}),
    ],
)
def test_a_waiting_claim_does_not_take_just_any_volume(yard: StorageScenario, unsuited: Doc) -> None:
    wanting = claim("c", storage_class="wait", asks="2Gi")
    wanting["spec"]["selector"] = {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["b"]}]}
    yard.put(kinds.PERSISTENT_VOLUME_CLAIM, wanting)
    yard.put(kinds.PERSISTENT_VOLUME, unsuited)
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": refused(NOTHING), "b": refused(NOTHING)}
    yard.volume("suited", storage_class="wait")
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": None, "b": None}


def test_a_volume_that_names_the_claim_is_the_one_or_there_is_none(yard: StorageScenario) -> None:
    meant = {"namespace": "default", "name": "c"}
    yard.volume("meant", storage_class="wait", zones=("a",), claimRef=meant, phase="Pending", size="9Gi")
    yard.volume("anywhere", storage_class="wait", size="1Gi")
    yard.claim("c", storage_class="wait")
    answer, cycle = yard.asks(VolumeBinding(), claimed("c"))
    assert answer == {"a": None, "b": refused(NOTHING)}
    assert chosen(yard, cycle, "a") == ({"c": "meant"}, [])


def test_small_claims_choose_first_and_no_volume_is_given_twice(yard: StorageScenario) -> None:
    yard.volume("two", storage_class="wait", size="2Gi")
    yard.volume("three", storage_class="wait", size="3Gi", zones=("a",))
    yard.claim("large", storage_class="wait", asks="2Gi")
    yard.claim("small", storage_class="wait", asks="1Gi")
    answer, cycle = yard.asks(VolumeBinding(), claimed("large"), claimed("small"))
    assert answer == {"a": None, "b": refused(NOTHING)}
    assert chosen(yard, cycle, "a") == ({"small": "two", "large": "three"}, [])


# ---- volumes to be made ----


def test_a_class_makes_volumes_only_where_its_topologies_allow(yard: StorageScenario) -> None:
    terms: list[Doc] = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "c"]}]}, {}]
    yard.storage_class("zonal", allowedTopologies=terms)
    yard.claim("c", storage_class="zonal")
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": None, "b": refused(NOTHING)}


def test_a_claim_with_a_node_selected_goes_nowhere_else(yard: StorageScenario) -> None:
    yard.volume("suited", storage_class="make")
    yard.claim("c", storage_class="make", annotations={SELECTED: "b"})
    answer, cycle = yard.asks(VolumeBinding(), claimed("c"))
    assert answer == {"a": refused(NOTHING), "b": None}
    assert chosen(yard, cycle, "b") == ({}, ["c"])


def pool(name: str, zone: str | None, **amounts: str) -> Doc:
    topology = {} if zone is None else {"nodeTopology": {"matchLabels": {ZONE: zone}} if zone else {}}
    return {"metadata": meta(name, "kube-system"), "storageClassName": "make", **topology, **amounts}


def test_a_driver_that_shows_its_capacity_must_have_enough_of_it(yard: StorageScenario) -> None:
    yard.claim("c", storage_class="make", asks="3Gi")
    yard.put(kinds.CSI_STORAGE_CAPACITY, pool("p", "a", capacity="9Gi", maximumVolumeSize="2Gi"))
    yard.put(kinds.CSI_STORAGE_CAPACITY, pool("q", "b", capacity="3Gi"))
    yard.put(kinds.CSI_STORAGE_CAPACITY, pool("nowhere", None, capacity="99Gi"))
    yard.put(kinds.CSI_STORAGE_CAPACITY, pool("unknown", ""))
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": None, "b": None}
    yard.put(kinds.CSI_DRIVER, {"metadata": meta("csi.x"), "spec": {"storageCapacity": True}})
    assert yard.says(VolumeBinding(), claimed("c")) == {"a": refused(SPACE), "b": None}


def test_all_reasons_of_a_node_are_given_in_their_order(yard: StorageScenario) -> None:
    yard.volume("v", zones=("b",))
    yard.claim("bound", to="v")
    yard.claim("lost", to="gone")
    yard.claim("c", storage_class="wait")
    answer = yard.says(VolumeBinding(), claimed("bound"), claimed("lost"), claimed("c"))
    assert answer == {"a": refused(AFFINITY, NOTHING), "b": refused(NOTHING, MISSING)}


# ---- reserving ----


def test_what_is_reserved_is_gone_for_the_next_pod_until_it_is_given_back(yard: StorageScenario) -> None:
    plugin = VolumeBinding()
    yard.volume("v", storage_class="wait", zones=("a",))
    yard.claim("c", storage_class="wait")
    yard.claim("d", storage_class="wait")
    _, cycle = yard.asks(plugin, claimed("c"))
    none: Answer = {"a": refused(NOTHING), "b": refused(NOTHING)}
    assert plugin.reserve(cycle, 0) is None
    assert yard.says(plugin, claimed("d"), name="next") == none
    plugin.unreserve(cycle, 0)
    assert yard.says(plugin, claimed("d"), name="next") == {"a": None, "b": refused(NOTHING)}
    plugin.unreserve(cycle, 0)


def test_a_claim_to_provision_is_pretended_to_have_its_node(yard: StorageScenario) -> None:
    plugin = VolumeBinding()
    yard.claim("c", storage_class="make")
    _, cycle = yard.asks(plugin, claimed("c"))
    plugin.reserve(cycle, 1)
    assert yard.says(plugin, claimed("c"), name="next") == {"a": refused(NOTHING), "b": None}
    yard.claim("c", storage_class="make", version="2")
    assert yard.says(plugin, claimed("c"), name="next") == {"a": None, "b": None}


def test_a_pod_whose_claims_are_bound_has_nothing_to_reserve_and_nothing_to_wait_for(yard: StorageScenario) -> None:
    plugin = VolumeBinding()
    yard.volume("v")
    yard.claim("c", to="v")
    _, cycle = yard.asks(plugin, claimed("c"))
    assert plugin.reserve(cycle, 0) is None
    assert plugin.pre_bind(cycle, 0) is None
    assert not storage_of(yard.cluster).volumes.pretended()


# ---- scoring, for those who turn it on ----

LEAST_FULL = ((0, 10), (100, 0))
MOST_FULL = ((0, 0), (100, 10))


@pytest.mark.parametrize(("shape", "expected"), [(LEAST_FULL, [50, 80]), (MOST_FULL, [50, 20])])
def test_nodes_are_scored_by_how_much_of_their_volumes_would_be_used(
    yard: StorageScenario, shape: tuple[tuple[int, int], ...], expected: list[int]
) -> None:
    plugin = VolumeBinding(shape=shape)
    yard.volume("half", storage_class="wait", size="2Gi", zones=("a",))
    yard.volume("fifth", storage_class="wait", size="5Gi", zones=("b",))
    yard.claim("c", storage_class="wait", asks="1Gi")
    _, cycle = yard.asks(plugin, claimed("c"))
    nodes = Nodes(yard.cluster.table)
    assert plugin.pre_score(cycle, nodes) is None
    assert plugin.score(cycle, nodes).tolist() == expected


def test_two_claims_of_one_pool_share_its_capacity_and_classes_are_averaged(yard: StorageScenario) -> None:
    plugin = VolumeBinding(shape=MOST_FULL)
    yard.storage_class("other", "csi.x")
    yard.put(kinds.CSI_DRIVER, {"metadata": meta("csi.x"), "spec": {"storageCapacity": True}})
    yard.put(kinds.CSI_STORAGE_CAPACITY, pool("p", "a", capacity="10Gi"))
    yard.put(kinds.CSI_STORAGE_CAPACITY, pool("q", "b", capacity="20Gi"))
    yard.put(kinds.CSI_STORAGE_CAPACITY, {**pool("r", "", capacity="4Gi"), "storageClassName": "other"})
    for name in ("c", "d"):
        yard.claim(name, storage_class="make", asks="2Gi")
    yard.claim("e", storage_class="other", asks="1Gi")
    _, cycle = yard.asks(plugin, claimed("c"), claimed("d"), claimed("e"))
    assert plugin.score(cycle, Nodes(yard.cluster.table)).tolist() == [33, 23]


def test_without_a_shape_nothing_is_scored(yard: StorageScenario) -> None:
    yard.claim("c", storage_class="make")
    _, cycle = yard.asks(VolumeBinding(), claimed("c"))
    status = VolumeBinding().pre_score(cycle, Nodes(yard.cluster.table))
    assert status is not None
    assert status.code.label == "Skip"


# ---- what wakes ----


def csi_node(migrated: str) -> Doc:
    return {"metadata": meta("n", annotations={"storage.alpha.kubernetes.io/migrated-plugins": migrated})}


def driver(*, tells: bool) -> Doc:
    return {"metadata": meta("csi.x"), "spec": {"storageCapacity": tells}}


def storage_class(*zones: str) -> Doc:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    return {"metadata": meta("s"), "provisioner": "p", "allowedTopologies": terms}


HINTS: list[tuple[kinds.Kind, str, Doc | None, Doc, Hint]] = [
    (kinds.STORAGE_CLASS, events.STORAGE_CLASS, None, storage_class(), Hint.QUEUE),
    (kinds.STORAGE_CLASS, events.STORAGE_CLASS, storage_class("a"), storage_class("b"), Hint.QUEUE),
    (kinds.STORAGE_CLASS, events.STORAGE_CLASS, storage_class("a"), storage_class("a"), Hint.SKIP),
    (kinds.PERSISTENT_VOLUME_CLAIM, events.PERSISTENT_VOLUME_CLAIM, None, claim("c"), Hint.QUEUE),
    (kinds.PERSISTENT_VOLUME_CLAIM, events.PERSISTENT_VOLUME_CLAIM, claim("w-v1"), claim("w-v1"), Hint.QUEUE),
    (kinds.PERSISTENT_VOLUME_CLAIM, events.PERSISTENT_VOLUME_CLAIM, None, claim("w-v0"), Hint.SKIP),
    (kinds.PERSISTENT_VOLUME, events.PERSISTENT_VOLUME, None, volume("v"), Hint.QUEUE),
    (kinds.CSI_NODE, events.CSI_NODE, None, csi_node(""), Hint.QUEUE),
    (kinds.CSI_NODE, events.CSI_NODE, csi_node(""), csi_node("kubernetes.io/gce-pd"), Hint.QUEUE),
    (kinds.CSI_NODE, events.CSI_NODE, csi_node(""), csi_node(""), Hint.SKIP),
    (kinds.CSI_DRIVER, events.CSI_DRIVER, driver(tells=True), driver(tells=False), Hint.QUEUE),
    (kinds.CSI_DRIVER, events.CSI_DRIVER, driver(tells=False), driver(tells=True), Hint.SKIP),
    (kinds.CSI_STORAGE_CAPACITY, events.CSI_STORAGE_CAPACITY, None, pool("p", "a"), Hint.QUEUE),
    (kinds.CSI_STORAGE_CAPACITY, events.CSI_STORAGE_CAPACITY, pool("p", "a"), pool("p", "a", capacity="1"), Hint.QUEUE),
    (kinds.CSI_STORAGE_CAPACITY, events.CSI_STORAGE_CAPACITY, pool("p", "a", capacity="1"), pool("p", "a"), Hint.SKIP),
    (
        kinds.CSI_STORAGE_CAPACITY, events.CSI_STORAGE_CAPACITY,
        pool("p", "a", capacity="2"), pool("p", "a", capacity="2", maximumVolumeSize="1"), Hint.SKIP,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "resource", "old", "new", "expected"), HINTS)
def test_changes_wake_a_waiting_pod_only_if_they_may_help(
    kind: kinds.Kind, resource: str, old: Doc | None, new: Doc, expected: Hint
) -> None:
    waiting = pod_with("w", claimed("c"), EPHEMERAL, {"csi": {"driver": "csi.x"}})
    event = ClusterEvent(resource, ActionType.ADD if old is None else ActionType.UPDATE)
    assert event_hint(VolumeBinding(), event, waiting, record(kind, old), record(kind, new)) is expected


def test_a_driver_whose_capacity_counts_no_more_wakes_only_pods_that_use_it_inline() -> None:
    event = ClusterEvent(events.CSI_DRIVER, ActionType.UPDATE)
    records = [record(kinds.CSI_DRIVER, driver(tells=tells)) for tells in (True, False)]
    assert event_hint(VolumeBinding(), event, pod_with("w", claimed("c")), *records) is Hint.SKIP
