"""Volumes as a resource: what Volcano counts beside cpu and memory where a driver attaches volumes to nodes.

A pod requests one `attachable-volumes-csi-<driver>` for every claim of that driver, and two if it uses a claim twice; a
node has as many as its CSINode says. So a pod that requests only a volume does not count as requesting nothing.
kube-scheduler's filter counts distinct volumes instead; a pod has to pass both.

Volumes of a driver that no node has registered (hostpath's, those of local disks) are not counted, unless
`counts_unregistered`: then a pod requests them, and no node has any, as in Volcano.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from hashlib import sha1
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model import kinds
from fairlead.kube.volumes.pod_claims import claim_uses, not_owned, uses_claims
from fairlead.volcano.records.amounts import ATTACHABLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.model.storage import Claim
    from fairlead.core.state.cluster import Cluster

_PREFIX = f"{ATTACHABLE}csi-"
_LONGEST_NAME = 63
"""Names that would be as long or longer are shortened, as Kubernetes does (GetCSIAttachLimitKey)."""
_NO_LIMIT = 2**31 - 1
"""What a node has of a driver that states no limit: Go's largest int32."""


class AttachableVolumes:
    """Volumes as the cluster is now. `ignored` are drivers whose volumes are never attached."""

    def __init__(self, cluster: Cluster, ignored: Collection[str], *, counts_unregistered: bool) -> None:
        object_index = cluster.object_index
        self._claims = object_index.of(kinds.PERSISTENT_VOLUME_CLAIM)
        self._volumes = object_index.of(kinds.PERSISTENT_VOLUME)
        self._classes = object_index.of(kinds.STORAGE_CLASS)
        self._csi_nodes = object_index.of(kinds.CSI_NODE)
        self._table = cluster.table
        self._ignored = ignored
        self._counts_unregistered = counts_unregistered
        self._known_drivers: set[str] | None = None

    def asked_by(self, pod: Pod) -> Mapping[str, int]:
        """By resource, how many a pod requests; none while one of its claims is missing or belongs to another pod."""
        counted: Counter[str] = Counter()
        if not uses_claims(pod):
            return counted
        for use in claim_uses(pod):
            claim: Claim | None = self._claims.get(use.key)
            if claim is None or (use.ephemeral and not_owned(pod, claim)):
                return {}
            driver = self._driver_of(claim)
            if driver and driver not in self._ignored and (self._counts_unregistered or driver in self._drivers()):
                counted[attach_limit_name(driver)] += 1
        return counted

    def _drivers(self) -> set[str]:
        """The drivers that some node has registered."""
        if self._known_drivers is None:
            self._known_drivers = {driver for node in self._csi_nodes.values() for driver in node.drivers}
        return self._known_drivers

    def _driver_of(self, claim: Claim) -> str:
        """The driver of a claim's volume, else of its class; empty if neither has one."""
        volume = self._volumes.get(claim.volume_name) if claim.volume_name else None
        if volume is not None:
            return volume.csi[0] if volume.csi is not None else ""
        found = self._classes.get(claim.storage_class)
        return "" if found is None else found.driver_name or found.provisioner

    def offered(self) -> dict[str, NDArray[np.float64]]:
        """By resource, what each row has."""
        columns: dict[str, NDArray[np.float64]] = {}
        for name, node in self._csi_nodes.items():
            row = self._table.row_of.get(name)
            for driver, count in node.drivers.items() if row is not None else ():
                resource = attach_limit_name(driver)
                if resource not in columns:
                    columns[resource] = np.zeros(self._table.capacity, dtype=np.float64)
                columns[resource][row] = _NO_LIMIT if count is None else count
        return columns


def attach_limit_name(driver: str) -> str:
    """The name under which a driver's volumes are counted; long ones are cut and distinguished by a hash."""
    if len(_PREFIX) + len(driver) < _LONGEST_NAME:
        return _PREFIX + driver
    return f"{_PREFIX}{driver[:23]}{sha1(driver.encode(), usedforsecurity=False).hexdigest()[:16]}"
