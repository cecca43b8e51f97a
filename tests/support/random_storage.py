"""Small random clusters full of storage, as documents."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import Kind
from fairlead.core.state.cluster import Cluster
from tests.support.documents import BOUND, OLD_ZONE, SELECTED, ZONE, meta, pod_with
from tests.support.scenario import put

EBS_ZONE = "topology.ebs.csi.aws.com/zone"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
NODES = ("n0", "n1", "n2")
CLAIMS = ("c0", "c1", "c2", "c3")
VOLUMES = ("v0", "v1", "v2", "v3", "v4")
DRIVERS = ("csi.x", "ebs.csi.aws.com")
MODES = ("ReadWriteOnce", "ReadWriteOncePod")


@dataclass
class StorageObjects:
    """Documents by kind; each list in the order in which they are put into a cluster."""

    objects: dict[Kind, list[Doc]] = field(default_factory=dict)
    existing: list[Doc] = field(default_factory=list)

    def all(self, kind: Kind) -> list[Doc]:
        return self.objects.get(kind, [])

    def find(self, kind: Kind, name: str, namespace: str = "") -> Doc | None:
        for doc in self.all(kind):
            if doc["metadata"]["name"] == name and doc["metadata"].get("namespace", "") == namespace:
                return doc
        return None

    def cluster(self) -> Cluster:
        cluster = Cluster()
        for kind, docs in self.objects.items():
            for doc in docs:
                put(cluster, kind, doc)
        for doc in self.existing:
            put(cluster, kinds.POD, doc)
        assert not cluster.refused
        return cluster


# ---- documents ----


def _without_nothing(doc: Doc) -> Doc:
    return {key: value for key, value in doc.items() if value not in (None, {}, [])}


zones = st.sampled_from(["a", "b", "c"])
zone_lists = st.lists(zones, min_size=1, max_size=2, unique=True)
sizes = st.integers(1, 4).map(lambda gigabytes: f"{gigabytes}Gi")
mode_lists = st.lists(st.sampled_from(MODES), min_size=1, max_size=2, unique=True)
classes = st.sampled_from(["wait", "make"])
odd_classes = st.sampled_from(["wait", "make", "now", "none", ""])
marks = st.fixed_dictionaries({}, optional={"tier": st.sampled_from(["x", "y"])})


@st.composite
def node_docs(draw: st.DrawFn, name: str) -> Doc:
    labels = {"kubernetes.io/hostname": name}
    for key in (ZONE, OLD_ZONE, EBS_ZONE):
        if draw(st.booleans()):
            labels[key] = draw(zones)
    return {"metadata": meta(name, labels=labels), "status": {"allocatable": {"pods": "10"}}}


@st.composite
def affinities(draw: st.DrawFn) -> Doc | None:
    if draw(st.booleans()):
        return None
    key = draw(st.sampled_from([ZONE, ZONE, OLD_ZONE, "kubernetes.io/hostname"]))
    values = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=2) if key.endswith("hostname") else zone_lists)
    expressions = [{"key": key, "operator": draw(st.sampled_from(["In", "In", "NotIn"])), "values": values}]
    term: Doc = {"matchExpressions": expressions}
    if draw(st.booleans()):
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": ["elsewhere"]}]
    terms = [term, *draw(st.lists(st.just({}), max_size=1))]
    return {"required": {"nodeSelectorTerms": terms}}


@st.composite
def volume_docs(draw: st.DrawFn, name: str) -> Doc:
    labels = draw(marks)
    for key in (ZONE, OLD_ZONE):
        if draw(st.integers(0, 3)) == 0:
            labels[key] = "__".join(draw(zone_lists))
    reference = None
    if draw(st.integers(0, 3)) == 0:
        reference = {"namespace": "default", "name": draw(st.sampled_from(CLAIMS))}
        reference |= draw(st.sampled_from([{}, {"uid": f"uid-{reference['name']}"}, {"uid": "uid-other"}]))
    source = draw(
        st.sampled_from(
            [
                {"csi": {"driver": "csi.x", "volumeHandle": "h0"}},
                {"csi": {"driver": "csi.x", "volumeHandle": f"h-{name}"}},
                {"awsElasticBlockStore": {"volumeID": f"aws://zone/vol-{name}"}},
                {"local": {"path": "/disk"}},
            ]
        )
    )
    spec = {
        "capacity": {"storage": draw(sizes)}, "accessModes": draw(mode_lists), "storageClassName": draw(classes),
        "claimRef": reference, "nodeAffinity": draw(affinities()), **source,
        "volumeMode": draw(st.sampled_from([None, "Filesystem", "Filesystem", "Block"])),
    }  # fmt: skip
    metadata = meta(name, labels=labels)
    if draw(st.integers(0, 9)) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    phase = draw(st.sampled_from([*["Available"] * 5, "Bound"]))
    return {"metadata": metadata, "spec": _without_nothing(spec), "status": {"phase": phase}}


@st.composite
def claim_docs(draw: st.DrawFn, name: str) -> Doc:
    """Half of them wait for a volume, most others have one, a few are in some other state."""
    state = draw(st.sampled_from(["waiting"] * 5 + ["selected"] + ["bound"] * 4 + ["odd"]))
    annotations = {}
    if state in ("bound", "odd"):
        annotations[BOUND] = "yes"
    if state == "selected" or (state == "odd" and draw(st.booleans())):
        annotations[SELECTED] = draw(st.sampled_from(NODES))
    spec = {
        "storageClassName": draw(odd_classes if state == "odd" else classes),
        "accessModes": draw(mode_lists),
        "volumeName": draw(st.sampled_from([*VOLUMES, "gone"])) if state == "bound" else "",
        "volumeMode": draw(st.sampled_from([None, None, None, "Block"])),
        "selector": draw(st.sampled_from([None, None, None, {"matchLabels": {"tier": "x"}}])),
    }
    if draw(st.integers(0, 5)):
        spec["resources"] = {"requests": {"storage": draw(sizes)}}
    metadata = meta(name, "default", annotations=annotations)
    if state == "odd" and draw(st.booleans()):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    phase = draw(st.sampled_from(["Pending", "Lost"])) if state == "odd" else "Pending"
    return {"metadata": metadata, "spec": _without_nothing(spec), "status": {"phase": phase}}


@st.composite
def class_docs(draw: st.DrawFn) -> list[Doc]:
    topologies = draw(st.lists(zone_lists.map(_topology), max_size=2))
    waiting, at_once = "WaitForFirstConsumer", "Immediate"
    listed = [
        ("wait", "kubernetes.io/no-provisioner", waiting, []),
        ("make", draw(st.sampled_from(["csi.x", "kubernetes.io/aws-ebs"])), waiting, topologies),
        ("now", "csi.x", at_once, []),
    ]
    return [
        {"metadata": meta(n), "provisioner": p, "volumeBindingMode": m, "allowedTopologies": t} for n, p, m, t in listed
    ]


def _topology(values: list[str]) -> Doc:
    return {"matchLabelExpressions": [{"key": ZONE, "values": values}]}


@st.composite
def csi_node_docs(draw: st.DrawFn, name: str) -> Doc:
    drivers = []
    for driver in DRIVERS:
        if draw(st.booleans()):
            count = draw(st.sampled_from([None, 0, 1, 2, 3]))
            drivers.append({"name": driver, "allocatable": {} if count is None else {"count": count}})
    annotations = {MIGRATED: "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"} if draw(st.booleans()) else {}
    return {"metadata": meta(name, annotations=annotations), "spec": {"drivers": drivers}}


@st.composite
def capacity_docs(draw: st.DrawFn, name: str) -> Doc:
    topology = draw(st.sampled_from([None, {}, {"matchLabels": {ZONE: "a"}}, {"matchLabels": {ZONE: "b"}}]))
    doc = {"nodeTopology": topology, "storageClassName": draw(st.sampled_from(["make", "make", "wait"]))}
    doc |= {"capacity": draw(sizes), "maximumVolumeSize": draw(st.one_of(st.none(), sizes))}
    return {"metadata": meta(name, "kube-system"), **{k: v for k, v in doc.items() if v is not None}}


def attachment_docs(name: str) -> SearchStrategy[Doc]:
    return st.builds(
        lambda driver, node, volume: {
            "metadata": meta(name),
            "spec": {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}},
        },
        st.sampled_from(DRIVERS),
        st.sampled_from([*NODES, "far"]),
        st.sampled_from([*VOLUMES, "gone"]),
    )


rbd_disks = st.builds(
    lambda monitor, image, read_only: {"rbd": {"monitors": [monitor, "m"], "image": image, "readOnly": read_only}},
    st.sampled_from(["m0", "m1"]),
    st.sampled_from(["i0", "i1"]),
    st.booleans(),
)
inline_disks = st.one_of(
    st.builds(lambda d: {"awsElasticBlockStore": {"volumeID": d}}, st.sampled_from(["vol-v0", "vol-1"])),
    st.builds(
        lambda d, r: {"gcePersistentDisk": {"pdName": d, "readOnly": r}}, st.sampled_from(["d0", "d1"]), st.booleans()
    ),
    st.builds(lambda d, r: {"iscsi": {"iqn": d, "readOnly": r}}, st.sampled_from(["q0", "q1"]), st.booleans()),
    rbd_disks,
)
named_claims = st.sampled_from([*CLAIMS] * 8 + ["nope"]).map(
    lambda claim: {"persistentVolumeClaim": {"claimName": claim}}
)


def pod_docs(name: str, node: str = "", *, most: int = 3) -> SearchStrategy[Doc]:
    one = st.integers(0, 4).flatmap(lambda roll: named_claims if roll else inline_disks)
    volumes = st.integers(1, most).flatmap(lambda count: st.lists(one, min_size=count, max_size=count))
    return volumes.map(lambda listed: pod_with(name, *listed, on=node))


@st.composite
def storage_objects(draw: st.DrawFn) -> StorageObjects:
    objects: dict[Kind, list[Doc]] = {
        kinds.NODE: [draw(node_docs(name)) for name in NODES],
        kinds.STORAGE_CLASS: draw(class_docs()),
        kinds.PERSISTENT_VOLUME: [draw(volume_docs(name)) for name in VOLUMES if draw(st.integers(0, 3))],
        kinds.PERSISTENT_VOLUME_CLAIM: [draw(claim_docs(name)) for name in CLAIMS],
        kinds.CSI_NODE: [draw(csi_node_docs(name)) for name in NODES if draw(st.integers(0, 3))],
        kinds.CSI_DRIVER: [{"metadata": meta("csi.x"), "spec": {"storageCapacity": draw(st.booleans())}}],
        kinds.CSI_STORAGE_CAPACITY: [draw(capacity_docs(f"pool{i}")) for i in range(draw(st.integers(0, 2)))],
        kinds.VOLUME_ATTACHMENT: [draw(attachment_docs(f"att{i}")) for i in range(draw(st.integers(0, 3)))],
    }
    count = draw(st.sampled_from([0, 1, 2, 3, 4]))
    existing = [draw(pod_docs(f"e{index}", draw(st.sampled_from(NODES)), most=2)) for index in range(count)]
    return StorageObjects(objects, existing)
