"""BindVolumes: writes which claims get which volumes, then waits until the claims are bound.

Volumes that exist are given to their claims, claims whose volumes have to be made get the node they are wanted on;
the rest is done by the volume controller and the provisioners, and shows when every claim is completely bound. What
goes wrong meanwhile ends the errand, and the pod is tried again.

Where the original puts whole objects, these are merge patches that change exactly the fields in question and name the
version they were worked out from, so that a volume that somebody else took meanwhile is a conflict just the same. All
are sent at once; the original stops at the first that fails, but undoes none either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.reasons import SUCCESS, Status, failed
from fairlead.core.model.storage import BOUND_BY_CONTROLLER, SELECTED_NODE
from fairlead.kube.volumes.csi_migration import MigrationError, affinity_after_migration

if TYPE_CHECKING:
    from fairlead.core.model.flow import Reply
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.storage import Claim, CsiNode, Volume
    from fairlead.core.state.cluster import Cluster


@dataclass(slots=True, eq=False)
class Reserved:
    """What is reserved for a pod on a node, as the objects will look: volumes bound to claims, and claims to provision.
    `accepted` are the names and keys of those that the API has accepted."""

    pod: Pod
    node: str
    bindings: list[tuple[Claim, Volume]]
    provisions: list[Claim]
    accepted: set[str] = field(default_factory=set)


Record = TypeVar("Record")


class _Broken(Exception):
    """Binding cannot succeed any more."""


class BindVolumes:
    def __init__(self, reserved: Reserved, *, timeout: float) -> None:
        self._reserved = reserved
        self._timeout = timeout
        self._unanswered: dict[Write, str] = {}
        self._versions: dict[str, str] = {}
        self._deadline: float | None = None

    def start(self, now: float) -> list[Write]:
        for claim, volume in self._reserved.bindings:
            self._unanswered[volume_patch(claim, volume)] = volume.name
        for claim in self._reserved.provisions:
            self._unanswered[claim_patch(claim)] = claim.key
        return list(self._unanswered)

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | None:
        for reply in replies:
            key = self._unanswered.pop(reply.write, None)
            if key is None:
                continue
            if reply.error is not None:
                return failed(reply.error.message)
            self._reserved.accepted.add(key)
            self._versions[key] = _version(reply.doc)
        if self._unanswered:
            return None
        if self._deadline is None:
            self._deadline = now + self._timeout
        return self._look(now, cluster)

    def wake_at(self) -> float | None:
        return self._deadline

    def _look(self, now: float, cluster: Cluster) -> Status | None:
        try:
            if self._all_bound(cluster):
                return SUCCESS
        except _Broken as broken:
            return failed(f"binding volumes: {broken}")
        assert self._deadline is not None
        return failed("binding volumes: context deadline exceeded") if now >= self._deadline else None

    # ---- how far are they ----

    def _all_bound(self, cluster: Cluster) -> bool:
        reserved = self._reserved
        row = cluster.table.row_of.get(reserved.node)
        node = cluster.table.nodes[row] if row is not None else None
        if node is None:
            raise _Broken(f'failed to get node "{reserved.node}": node "{reserved.node}" not found')
        if reserved.pod.uid not in cluster.pods:
            raise _Broken(f'pod does not exist any more: pod "{reserved.pod.name}" not found')
        return all(self._is_bound(cluster, node, claim, volume.name) for claim, volume in reserved.bindings) and all(
            self._is_provisioned(cluster, node, claim) for claim in reserved.provisions
        )

    def _is_bound(self, cluster: Cluster, node: Node, claim: Claim, volume_name: str) -> bool:
        volume = _found(_volume(cluster, volume_name), f'failed to check binding: persistentvolumes "{volume_name}"')
        now = _found(_claim(cluster, claim.key), f'failed to check binding: persistentvolumeclaims "{claim.key}"')
        if self._is_older(volume, volume_name):
            return False
        _check_reach(cluster, volume, node, "failed to translate pv to csi: ")
        if volume.claim is None or not volume.claim.uid:
            raise _Broken(f'ClaimRef got reset for pv "{volume_name}"')
        if now.fully_bound and now.volume_name != volume_name:
            # kube-scheduler goes on. The claim was given the volume of an earlier attempt, which another node may hold.
            raise _Broken(f'claim "{claim.key}" was bound to pv "{now.volume_name}" meanwhile')
        return now.fully_bound

    def _is_provisioned(self, cluster: Cluster, node: Node, claim: Claim) -> bool:
        missing = f'failed to check provisioning pvc: persistentvolumeclaims "{claim.key}"'
        now = _found(_claim(cluster, claim.key), missing)
        if self._is_older(now, claim.key):
            return False
        if not now.annotations:
            raise _Broken(f'selectedNode annotation reset for PVC "{claim.name}"')
        if now.selected_node != node.name:
            raise _Broken(f'provisioning failed for PVC "{claim.name}"')
        if now.volume_name:
            volume = _volume(cluster, now.volume_name)
            if volume is None:
                return False
            _check_reach(cluster, volume, node, "")
        return now.fully_bound

    def _is_older(self, record: Volume | Claim, key: str) -> bool:
        """Whether the watch has not shown yet what the API accepted."""
        return _number(record.resource_version) < _number(self._versions[key])


def _found(record: Record | None, what: str) -> Record:
    if record is None:
        raise _Broken(f"{what} not found")
    return record


def _volume(cluster: Cluster, name: str) -> Volume | None:
    return cluster.object_index.of(kinds.PERSISTENT_VOLUME).get(name)


def _claim(cluster: Cluster, key: str) -> Claim | None:
    return cluster.object_index.of(kinds.PERSISTENT_VOLUME_CLAIM).get(key)


def _check_reach(cluster: Cluster, volume: Volume, node: Node, prefix: str) -> None:
    """The node may have lost the label that the volume wants."""
    csi_node: CsiNode | None = cluster.object_index.of(kinds.CSI_NODE).get(node.name)
    affinity = volume.node_affinity
    if volume.in_tree is not None and csi_node is not None and volume.in_tree[0] in csi_node.migrated:
        try:
            affinity = affinity_after_migration(volume)
        except MigrationError as error:
            raise _Broken(f"{prefix}could not translate pv: {error}") from None
    if affinity is not None and not affinity.matches(node.labels, ""):
        why = affinity.error or "no matching NodeSelectorTerms"
        raise _Broken(f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": {why}')


# ---- writes ----


def volume_patch(claim: Claim, volume: Volume) -> Write:
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.resource_version,
    }
    chosen = volume.annotations.get(BOUND_BY_CONTROLLER)
    annotations = {BOUND_BY_CONTROLLER: chosen} if chosen is not None else {}
    body = {
        "metadata": _metadata(volume.resource_version, annotations),
        "spec": {"claimRef": {name: value for name, value in reference.items() if value}},
    }
    return Write(Verb.PATCH, kinds.PERSISTENT_VOLUME, "", volume.name, body=body)


def claim_patch(claim: Claim) -> Write:
    annotations = {SELECTED_NODE: claim.annotations[SELECTED_NODE]}
    body = {"metadata": _metadata(claim.resource_version, annotations)}
    return Write(Verb.PATCH, kinds.PERSISTENT_VOLUME_CLAIM, claim.namespace, claim.name, body=body)


def _metadata(version: str, annotations: dict[str, str]) -> Doc:
    fields = {"resourceVersion": version, "annotations": annotations}
    return {name: value for name, value in fields.items() if value}


def _version(doc: Doc | None) -> str:
    return str((doc or {}).get("metadata", {}).get("resourceVersion") or "")


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
