"""Records of the storage objects that scheduling reads: classes, volumes, claims, drivers, capacities, attachments.

Amounts are bytes. An old annotation may name the class of a claim or volume; it counts before the field. A node
affinity that cannot be parsed is no error, because it only means that no node matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model.documents import EMPTY, FieldError, compiler, created_at, read_units
from fairlead.core.model.quantity import QuantityError, read_quantity
from fairlead.core.model.selectors import NOTHING, SelectorError, parse_node_selector, selector_from_document

if TYPE_CHECKING:
    from fairlead.core.model.selectors import LabelSelector, NodeSelector

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
CSI_DRIVER_OF_PLUGIN = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""In-tree volume plugins that have moved to a driver."""
_DRIVER_PARAMETER = "csi.storage.k8s.io/csi-driver-name"
_IN_TREE = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "volumeID"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pdName"),
    "azureDisk": ("kubernetes.io/azure-disk", "diskURI"),
    "cinder": ("kubernetes.io/cinder", "volumeID"),
    "portworxVolume": ("kubernetes.io/portworx-volume", "volumeID"),
}


@dataclass(frozen=True, slots=True)
class StorageClass:
    """`binding_mode` is empty if there is none. `allowed_topologies` are alternatives, each a conjunction of a key and
    the values it may have; without any, all nodes are allowed. `driver_name` is a CSI driver that goes by another name
    than the provisioner."""

    name: str
    provisioner: str
    binding_mode: str
    allowed_topologies: tuple[tuple[tuple[str, frozenset[str]], ...], ...]
    driver_name: str = ""

    @property
    def waits(self) -> bool:
        """Whether claims are bound only when a pod needs them."""
        return self.binding_mode == WAIT_FOR_FIRST_CONSUMER

    def allows(self, labels: Mapping[str, str]) -> bool:
        """Whether a volume may be made for a node with these labels; an empty alternative allows nothing."""
        if not self.allowed_topologies:
            return True
        return any(term and all(labels.get(key) in values for key, values in term) for term in self.allowed_topologies)


@compiler("StorageClass")
def compile_storage_class(document: Mapping[str, Any]) -> StorageClass:
    return StorageClass(
        name=document["metadata"]["name"],
        provisioner=document.get("provisioner") or "",
        binding_mode=document.get("volumeBindingMode") or "",
        allowed_topologies=tuple(
            tuple((e["key"], frozenset(e.get("values") or ())) for e in term.get("matchLabelExpressions") or ())
            for term in document.get("allowedTopologies") or ()
        ),
        driver_name=(document.get("parameters") or {}).get(_DRIVER_PARAMETER) or "",
    )


def default_storage_class(classes: Iterable[Mapping[str, Any]]) -> str:
    """The class of claims that name none: the newest that is marked so, and of those made in one second the first by
    name, as in the original; empty if there is none."""
    marked = [
        one["metadata"] for one in classes if (one["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]
    newest = max((one.get("creationTimestamp") or "" for one in marked), default="")
    return min((one["name"] for one in marked if (one.get("creationTimestamp") or "") == newest), default="")


@dataclass(frozen=True, slots=True)
class ClaimRef:
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, eq=False)
class Volume:
    """A PersistentVolume. `csi` is (driver, handle); `in_tree` is (plugin, id) of a plugin that has moved to a driver.
    `zones` are the zone labels that can be used, each with the values a node may have."""

    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    storage_class: str
    capacity: int
    access_modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    claim: ClaimRef | None
    phase: str
    node_affinity: NodeSelector | None
    csi: tuple[str, str] | None
    in_tree: tuple[str, str] | None
    zones: tuple[tuple[str, frozenset[str]], ...]
    terminating: bool
    created: float
    resource_version: str


@compiler("PersistentVolume")
def compile_volume(document: Mapping[str, Any]) -> Volume:
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    labels, annotations = metadata.get("labels") or EMPTY, metadata.get("annotations") or EMPTY
    affinity, csi, claim = (spec.get("nodeAffinity") or {}).get("required"), spec.get("csi"), spec.get("claimRef")
    return Volume(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        labels=labels,
        annotations=annotations,
        storage_class=_class_name(annotations, spec),
        capacity=read_units(spec.get("capacity"), "spec.capacity").get("storage", 0),
        access_modes=frozenset(spec.get("accessModes") or ()),
        volume_mode=spec.get("volumeMode") or "Filesystem",
        attributes_class=spec.get("volumeAttributesClassName") or "",
        claim=_claim_ref(claim) if claim else None,
        phase=status.get("phase") or "",
        node_affinity=None if affinity is None else parse_node_selector(affinity),
        csi=(csi.get("driver") or "", csi.get("volumeHandle") or "") if csi else None,
        in_tree=_in_tree(spec),
        zones=tuple(_zones(labels)),
        terminating=bool(metadata.get("deletionTimestamp")),
        created=created_at(metadata),
        resource_version=metadata.get("resourceVersion") or "",
    )


def _class_name(annotations: Mapping[str, str], spec: Mapping[str, Any]) -> str:
    return annotations[CLASS_ANNOTATION] if CLASS_ANNOTATION in annotations else spec.get("storageClassName") or ""


def _claim_ref(claim: Mapping[str, Any]) -> ClaimRef:
    return ClaimRef(claim.get("namespace") or "", claim.get("name") or "", claim.get("uid") or "")


def _in_tree(spec: Mapping[str, Any]) -> tuple[str, str] | None:
    for field, (plugin, identity) in _IN_TREE.items():
        if (details := spec.get(field)) is not None:
            return plugin, details.get(identity) or ""
    return None


def _zones(labels: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    """A label may hold several zones, separated by two underscores; one empty part spoils it."""
    for key in ZONE_LABELS:
        if key in labels:
            parts = [part.strip() for part in labels[key].split("__")]
            if all(parts):
                yield key, frozenset(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A PersistentVolumeClaim. `selected_node` is None if none was chosen; `owner_uid` is its controller's."""

    namespace: str
    name: str
    key: str
    uid: str
    annotations: Mapping[str, str]
    storage_class: str
    volume_name: str
    access_modes: frozenset[str]
    request: int
    has_request: bool
    selector: LabelSelector | None
    selector_error: str
    volume_mode: str
    attributes_class: str
    phase: str
    bind_completed: bool
    selected_node: str | None
    owner_uid: str
    terminating: bool
    created: float
    resource_version: str

    @property
    def fully_bound(self) -> bool:
        return self.volume_name != "" and self.bind_completed


@compiler("PersistentVolumeClaim")
def compile_claim(document: Mapping[str, Any]) -> Claim:
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    namespace, name = metadata.get("namespace") or "", metadata["name"]
    annotations = metadata.get("annotations") or EMPTY
    requests = read_units((spec.get("resources") or {}).get("requests"), "spec.resources.requests")
    selector, error = _claim_selector(spec.get("selector"))
    return Claim(
        namespace=namespace,
        name=name,
        key=f"{namespace}/{name}",
        uid=metadata.get("uid") or "",
        annotations=annotations,
        storage_class=_class_name(annotations, spec),
        volume_name=spec.get("volumeName") or "",
        access_modes=frozenset(spec.get("accessModes") or ()),
        request=requests.get("storage", 0),
        has_request="storage" in requests,
        selector=selector,
        selector_error=error,
        volume_mode=spec.get("volumeMode") or "Filesystem",
        attributes_class=spec.get("volumeAttributesClassName") or "",
        phase=status.get("phase") or "",
        bind_completed=BIND_COMPLETED in annotations,
        selected_node=annotations.get(SELECTED_NODE),
        owner_uid=next((o.get("uid") or "" for o in metadata.get("ownerReferences") or () if o.get("controller")), ""),
        terminating=bool(metadata.get("deletionTimestamp")),
        created=created_at(metadata),
        resource_version=metadata.get("resourceVersion") or "",
    )


def _claim_selector(document: Mapping[str, Any] | None) -> tuple[LabelSelector | None, str]:
    """The volumes that a claim wants; None if it does not say. (Here, unlike elsewhere, that means any.)"""
    if document is None:
        return None, ""
    try:
        return selector_from_document(document), ""
    except SelectorError as error:
        return NOTHING, str(error)


@dataclass(frozen=True, slots=True)
class CsiNode:
    """The drivers on a node with the number of volumes each can attach (None for no limit)."""

    name: str
    drivers: Mapping[str, int | None]
    migrated: frozenset[str]


@compiler("CSINode")
def compile_csi_node(document: Mapping[str, Any]) -> CsiNode:
    metadata = document["metadata"]
    migrated = (metadata.get("annotations") or {}).get(MIGRATED_PLUGINS) or ""
    return CsiNode(
        name=metadata["name"],
        drivers={
            driver["name"]: (driver.get("allocatable") or {}).get("count")
            for driver in (document.get("spec") or {}).get("drivers") or ()
        },
        migrated=frozenset(plugin for plugin in migrated.split(",") if plugin),
    )


@dataclass(frozen=True, slots=True)
class CsiDriver:
    name: str
    storage_capacity: bool
    required_on_node: bool


@compiler("CSIDriver")
def compile_csi_driver(document: Mapping[str, Any]) -> CsiDriver:
    spec = document.get("spec") or {}
    return CsiDriver(
        name=document["metadata"]["name"],
        storage_capacity=bool(spec.get("storageCapacity")),
        required_on_node=bool(spec.get("preventPodSchedulingIfMissing")),
    )


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """How much of a class can be had where. `topology` is NOTHING if it is not said where, so it is no use."""

    namespace: str
    name: str
    storage_class: str
    capacity: int | None
    maximum_volume_size: int | None
    topology: LabelSelector

    @property
    def largest_volume(self) -> int | None:
        """The size of the largest volume that can be had, None if that is unknown."""
        return self.capacity if self.maximum_volume_size is None else self.maximum_volume_size


@compiler("CSIStorageCapacity")
def compile_storage_capacity(document: Mapping[str, Any]) -> StorageCapacity:
    metadata = document["metadata"]
    try:
        topology = selector_from_document(document.get("nodeTopology"))
    except SelectorError as error:
        raise FieldError("nodeTopology", str(error)) from None
    return StorageCapacity(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        storage_class=document.get("storageClassName") or "",
        capacity=_optional_bytes(document, "capacity"),
        maximum_volume_size=_optional_bytes(document, "maximumVolumeSize"),
        topology=topology,
    )


def _optional_bytes(document: Mapping[str, Any], field: str) -> int | None:
    try:
        return None if document.get(field) is None else read_quantity(document[field]).value()
    except QuantityError as error:
        raise FieldError(field, str(error)) from None


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    name: str
    attacher: str
    node_name: str
    volume_name: str


@compiler("VolumeAttachment")
def compile_volume_attachment(document: Mapping[str, Any]) -> VolumeAttachment:
    spec = document.get("spec") or {}
    return VolumeAttachment(
        name=document["metadata"]["name"],
        attacher=spec.get("attacher") or "",
        node_name=spec.get("nodeName") or "",
        volume_name=(spec.get("source") or {}).get("persistentVolumeName") or "",
    )
