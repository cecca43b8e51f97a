"""The volume plugins written plainly, one node at a time over documents: what the vectorised ones must agree with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from tests.support.documents import BOUND, OLD_ZONE, SELECTED, ZONE
from tests.support.plugins import Answer
from tests.support.random_storage import EBS_ZONE, MIGRATED, StorageObjects

FINAL = "UnschedulableAndUnresolvable"
ZONE_KEYS = (OLD_ZONE, "failure-domain.beta.kubernetes.io/region", ZONE, "topology.kubernetes.io/region")
EXCLUSIVE = {"gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi"}
ATTACHED = {"persistentVolumeClaim", "gcePersistentDisk", "awsElasticBlockStore"}
Verdict = tuple[tuple[str, ...], bool] | None


def claim_names(pod: Doc) -> list[str]:
    volumes = pod["spec"]["volumes"]
    return [v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v]


def claim_of(world: StorageObjects, name: str) -> Doc | None:
    return world.find(kinds.PERSISTENT_VOLUME_CLAIM, name, "default")


def gigabytes(doc: Doc, *path: str) -> int:
    for field in path:
        doc = doc.get(field) or {}
    return int(str(doc or "0Gi").removesuffix("Gi"))


def by_node(world: StorageObjects, judge: Any) -> dict[str, Verdict]:
    return {node["metadata"]["name"]: judge(node) for node in world.all(kinds.NODE)}


# ---- VolumeRestrictions ----


def restrictions(world: StorageObjects, pod: Doc) -> Answer:
    once = set()
    for name in claim_names(pod):
        claim = claim_of(world, name)
        if claim is None:
            return FINAL, (f'persistentvolumeclaim "{name}" not found',)
        if "ReadWriteOncePod" in claim["spec"]["accessModes"]:
            once.add(name)
    used = {name for other in world.existing for name in claim_names(other)}
    conflicts = len(once & used)
    disks = [
        v for v in pod["spec"]["volumes"] if {"gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi"} & set(v)
    ]
    if not conflicts and not disks:
        return "skip"

    def judge(node: Doc) -> Verdict:
        here = [other for other in world.existing if other["spec"]["nodeName"] == node["metadata"]["name"]]
        if any(same_disk(mine, theirs) for mine in disks for other in here for theirs in other["spec"]["volumes"]):
            return ("node(s) had no available disk",), False
        if conflicts:
            text = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
            return (f"node(s) unavailable due to {text}",), False
        return None

    return by_node(world, judge)


def same_disk(mine: Doc, theirs: Doc) -> bool:
    for field, identity in (("gcePersistentDisk", "pdName"), ("iscsi", "iqn")):
        if field in mine and field in theirs and mine[field][identity] == theirs[field][identity]:
            return not (mine[field]["readOnly"] and theirs[field]["readOnly"])
    if "awsElasticBlockStore" in mine and "awsElasticBlockStore" in theirs:
        return bool(mine["awsElasticBlockStore"] == theirs["awsElasticBlockStore"])
    if "rbd" in mine and "rbd" in theirs:
        a, b = mine["rbd"], theirs["rbd"]
        overlap = any(monitor in b["monitors"] for monitor in a["monitors"])
        return overlap and a["image"] == b["image"] and not (a["readOnly"] and b["readOnly"])
    return False


# ---- NodeVolumeLimits ----


def limits(world: StorageObjects, pod: Doc) -> Answer:
    if not any(
        {"persistentVolumeClaim", "gcePersistentDisk", "awsElasticBlockStore"} & set(v) for v in pod["spec"]["volumes"]
    ):
        return "skip"

    def judge(node: Doc) -> Verdict:
        name = node["metadata"]["name"]
        csi_node = world.find(kinds.CSI_NODE, name)
        for claim in claim_names(pod):
            if claim_of(world, claim) is None:
                return (f'looking up PVC default/{claim}: persistentvolumeclaim "{claim}" not found',), True
        new = dict(identities(world, pod, csi_node))
        most = {
            driver["name"]: driver["allocatable"]["count"]
            for driver in (csi_node or {"spec": {"drivers": []}})["spec"]["drivers"]
            if "count" in driver["allocatable"]
        }
        if not new or not most:
            return None
        attached: dict[str, str] = {}
        for other in world.existing:
            if other["spec"]["nodeName"] == name:
                attached |= dict(identities(world, other, csi_node))
        counted = {**attached, **dict(left_behind(world, name))}
        wanted = {identity: driver for identity, driver in new.items() if identity not in attached}
        for driver in set(wanted.values()) & set(most):
            here = sum(d == driver for d in counted.values()) + sum(d == driver for d in wanted.values())
            if here > most[driver]:
                return ("node(s) exceed max volume count",), False
        return None

    return by_node(world, judge)


def identities(world: StorageObjects, pod: Doc, csi_node: Doc | None) -> Iterator[tuple[str, str]]:
    for volume in pod["spec"]["volumes"]:
        if "persistentVolumeClaim" in volume:
            claim = claim_of(world, volume["persistentVolumeClaim"]["claimName"])
            found = identity_of(world, claim, csi_node) if claim is not None else None
        elif "awsElasticBlockStore" in volume and csi_node is not None:
            found = "ebs.csi.aws.com", volume["awsElasticBlockStore"]["volumeID"]
        elif "gcePersistentDisk" in volume and csi_node is not None:
            disk = volume["gcePersistentDisk"]["pdName"]
            found = "pd.csi.storage.gke.io", f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{disk}"
        else:
            found = None
        if found is not None:
            yield f"{found[0]}/{found[1]}", found[0]


def identity_of(world: StorageObjects, claim: Doc, csi_node: Doc | None) -> tuple[str, str] | None:
    volume = world.find(kinds.PERSISTENT_VOLUME, claim["spec"].get("volumeName", ""))
    if volume is not None:
        if "csi" in volume["spec"]:
            return volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]
        if "awsElasticBlockStore" in volume["spec"] and csi_node is not None:
            return "ebs.csi.aws.com", volume["spec"]["awsElasticBlockStore"]["volumeID"].removeprefix("aws://zone/")
        return None
    storage_class = world.find(kinds.STORAGE_CLASS, claim["spec"].get("storageClassName", ""))
    if storage_class is None:
        return None
    handle = f"random-default/{claim['metadata']['name']}"
    if storage_class["provisioner"] == "kubernetes.io/aws-ebs":
        return ("ebs.csi.aws.com", handle) if csi_node is not None else None
    return storage_class["provisioner"], handle


def left_behind(world: StorageObjects, node: str) -> Iterator[tuple[str, str]]:
    for attachment in world.all(kinds.VOLUME_ATTACHMENT):
        spec = attachment["spec"]
        volume = world.find(kinds.PERSISTENT_VOLUME, spec["source"]["persistentVolumeName"])
        if spec["nodeName"] == node and volume is not None and "csi" in volume["spec"]:
            yield f"{spec['attacher']}/{volume['spec']['csi']['volumeHandle']}", spec["attacher"]


# ---- VolumeZone ----


def zone(world: StorageObjects, pod: Doc) -> Answer:
    wanted: list[tuple[str, set[str]]] = []
    for name in claim_names(pod):
        claim = claim_of(world, name)
        if claim is None:
            return FINAL, (f'persistentvolumeclaim "{name}" not found',)
        volume_name, class_name = claim["spec"].get("volumeName", ""), claim["spec"].get("storageClassName", "")
        if not volume_name:
            if not class_name:
                return FINAL, ("PersistentVolumeClaim had no pv name and storageClass name",)
            storage_class = world.find(kinds.STORAGE_CLASS, class_name)
            if storage_class is None:
                return FINAL, (f'storageclass.storage.k8s.io "{class_name}" not found',)
            if storage_class["volumeBindingMode"] == "WaitForFirstConsumer":
                continue
            return FINAL, ("PersistentVolume had no name",)
        volume = world.find(kinds.PERSISTENT_VOLUME, volume_name)
        if volume is None:
            return FINAL, (f'persistentvolume "{volume_name}" not found',)
        labels = volume["metadata"]["labels"]
        wanted += [(key, set(labels[key].split("__"))) for key in ZONE_KEYS if key in labels]
    if not wanted:
        return "skip"

    def judge(node: Doc) -> Verdict:
        labels = node["metadata"]["labels"]
        if not any(key in labels for key in ZONE_KEYS):
            return None
        for key, values in wanted:
            value = labels.get(key, labels.get(ZONE) if key == OLD_ZONE else None)
            if value not in values:
                return ("node(s) had no available volume zone",), True
        return None

    return by_node(world, judge)


# ---- VolumeBinding ----


def binding(world: StorageObjects, pod: Doc) -> Answer:
    sorted_out = classify(world, pod)
    if not isinstance(sorted_out, tuple) or isinstance(sorted_out[0], str):
        return sorted_out  # type: ignore[return-value]
    bound, delayed = sorted_out

    def judge(node: Doc) -> Verdict:
        reasons = Plan(world, node, bound, delayed).reasons
        return (tuple(reasons), True) if reasons else None

    return by_node(world, judge)


def classify(world: StorageObjects, pod: Doc) -> str | tuple[str, tuple[str]] | tuple[list[Doc], list[Doc]]:
    names = claim_names(pod)
    if not names:
        return "skip"
    for name in names:
        claim = claim_of(world, name)
        if claim is None:
            return FINAL, (f'persistentvolumeclaim "{name}" not found',)
        if claim["status"]["phase"] == "Lost":
            volume = claim["spec"].get("volumeName", "")
            return FINAL, (f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"',)
        if "deletionTimestamp" in claim["metadata"]:
            return FINAL, (f'persistentvolumeclaim "{name}" is being deleted',)
    bound, delayed, immediate = [], [], False
    for claim in (claim_of(world, name) for name in names):
        assert claim is not None
        volume = claim["spec"].get("volumeName", "")
        storage_class = world.find(kinds.STORAGE_CLASS, claim["spec"].get("storageClassName", ""))
        if volume and BOUND in claim["metadata"]["annotations"]:
            bound.append(claim)
        elif storage_class and storage_class["volumeBindingMode"] == "WaitForFirstConsumer" and not volume:
            delayed.append(claim)
        else:
            immediate = True
    if immediate:
        return FINAL, ("pod has unbound immediate PersistentVolumeClaims",)
    return bound, delayed


class Plan:
    """What one node offers for the claims of a pod."""

    def __init__(self, world: StorageObjects, node: Doc, bound: list[Doc], delayed: list[Doc]) -> None:
        self.world, self.node, self.name = world, node, node["metadata"]["name"]
        self.matched: list[tuple[str, str]] = []
        self.made: list[str] = []
        affinity, found = self._check_bound(bound)
        bind, space = self._check_delayed(delayed)
        flags = (
            (affinity, "node(s) didn't match PersistentVolume's node affinity"),
            (bind, "node(s) didn't find available persistent volumes to bind"),
            (space, "node(s) did not have enough free storage"),
            (found, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
        )
        self.reasons = [text for fine, text in flags if not fine]

    def _check_bound(self, claims: list[Doc]) -> tuple[bool, bool]:
        for claim in claims:
            volume = self.world.find(kinds.PERSISTENT_VOLUME, claim["spec"]["volumeName"])
            if volume is None:
                return True, False
            if not self._reaches(self._translated(volume)):
                return False, True
        return True, True

    def _translated(self, volume: Doc) -> Doc | None:
        """The volume's affinity, in the driver's words where the node has moved to it."""
        affinity = volume["spec"].get("nodeAffinity")
        csi_node = self.world.find(kinds.CSI_NODE, self.name)
        migrated = csi_node is not None and MIGRATED in csi_node["metadata"]["annotations"]
        if not migrated or "awsElasticBlockStore" not in volume["spec"]:
            return affinity
        terms = [t for t in affinity["required"]["nodeSelectorTerms"] if t] if affinity else []
        keys = {e["key"] for t in terms for e in t["matchExpressions"]}
        labels = volume["metadata"]["labels"]
        key = next((k for known in (keys, labels) for k in (ZONE, OLD_ZONE) if k in known), ZONE)
        if key in keys:
            renamed = [
                [{**e, "key": EBS_ZONE if e["key"] == key else e["key"]} for e in t["matchExpressions"]] for t in terms
            ]
        elif key in labels:
            added = {"key": EBS_ZONE, "operator": "In", "values": labels[key].split("__")}
            renamed = [[*t["matchExpressions"], added] for t in terms or [{"matchExpressions": []}]]
        else:
            return affinity
        return {"required": {"nodeSelectorTerms": [{"matchExpressions": e} for e in renamed]}}

    def _reaches(self, affinity: Doc | None) -> bool:
        if affinity is None:
            return True
        labels = self.node["metadata"]["labels"]
        for term in affinity["required"]["nodeSelectorTerms"]:
            if term and all(
                (labels.get(e["key"]) in e["values"]) == (e["operator"] == "In") for e in term["matchExpressions"]
            ):
                return True
        return False

    def _check_delayed(self, claims: list[Doc]) -> tuple[bool, bool]:
        to_provision, to_match = [], []
        for claim in claims:
            selected = claim["metadata"]["annotations"].get(SELECTED)
            if selected is None:
                to_match.append(claim)
            elif selected != self.name:
                return False, True
            else:
                to_provision.append(claim)
        chosen: set[str] = set()
        for claim in sorted(to_match, key=lambda c: gigabytes(c, "spec", "resources", "requests", "storage")):
            volume = self._match(claim, chosen)
            if volume is None:
                to_provision.append(claim)
            else:
                chosen.add(volume)
                self.matched.append((claim["metadata"]["name"], volume))
        for claim in to_provision:
            fine = self._can_make(claim)
            if fine != (True, True):
                return fine
            self.made.append(claim["metadata"]["name"])
        return True, True

    def _match(self, claim: Doc, chosen: set[str]) -> str | None:
        request = gigabytes(claim, "spec", "resources", "requests", "storage")
        best: tuple[int, str] | None = None
        for volume in sorted(self.world.all(kinds.PERSISTENT_VOLUME), key=lambda v: v["metadata"]["name"]):
            spec, name = volume["spec"], volume["metadata"]["name"]
            size, reference = gigabytes(volume, "spec", "capacity", "storage"), spec.get("claimRef")
            mine = reference is not None and reference["name"] == claim["metadata"]["name"]
            mine = mine and reference.get("uid", claim["metadata"]["uid"]) == claim["metadata"]["uid"]
            if spec.get("storageClassName", "") != claim["spec"].get("storageClassName", ""):
                continue
            if name in chosen or (reference is not None and not mine) or size < request:
                continue
            if spec.get("volumeMode", "Filesystem") != claim["spec"].get("volumeMode", "Filesystem"):
                continue
            if "deletionTimestamp" in volume["metadata"]:
                continue
            reached = self._reaches(spec.get("nodeAffinity"))
            if mine:
                return name if reached else None
            wanted = (claim["spec"].get("selector") or {}).get("matchLabels", {})
            if volume["status"]["phase"] != "Available" or not wanted.items() <= volume["metadata"]["labels"].items():
                continue
            if not reached or not set(claim["spec"]["accessModes"]) <= set(spec["accessModes"]):
                continue
            if best is None or (size, name) < best:
                best = size, name
        return best[1] if best is not None else None

    def _can_make(self, claim: Doc) -> tuple[bool, bool]:
        storage_class = self.world.find(kinds.STORAGE_CLASS, claim["spec"]["storageClassName"])
        assert storage_class is not None
        labels = self.node["metadata"]["labels"]
        if storage_class["provisioner"] == "kubernetes.io/no-provisioner":
            return False, True
        allowed = storage_class["allowedTopologies"]
        if allowed and not any(labels.get(ZONE) in term["matchLabelExpressions"][0]["values"] for term in allowed):
            return False, True
        driver = self.world.find(kinds.CSI_DRIVER, storage_class["provisioner"])
        if "resources" not in claim["spec"] or driver is None or not driver["spec"]["storageCapacity"]:
            return True, True
        request = gigabytes(claim, "spec", "resources", "requests", "storage")
        for pool in self.world.all(kinds.CSI_STORAGE_CAPACITY):
            limit = gigabytes(pool, "maximumVolumeSize") or gigabytes(pool, "capacity")
            topology = pool.get("nodeTopology")
            served = topology is not None and topology.get("matchLabels", {}).items() <= labels.items()
            if pool["storageClassName"] == storage_class["metadata"]["name"] and limit >= request and served:
                return True, True
        return True, False
