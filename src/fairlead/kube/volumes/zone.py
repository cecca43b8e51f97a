"""VolumeZone: restricts a pod to the zones and regions that its volumes are labelled with.

A node without any of the four labels is taken to be in a cluster without zones, and accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Hint, Interest, Plugin
from fairlead.core.model import kinds
from fairlead.core.model.events import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
    ClusterEvent,
)
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status, unresolvable
from fairlead.core.model.storage import ZONE_LABELS, Claim, StorageClass, Volume
from fairlead.core.state.columns import ABSENT
from fairlead.kube.volumes.pod_claims import (
    claim_not_found,
    class_not_found,
    mode_not_set,
    uses_claims,
    volume_not_found,
)
from fairlead.kube.volumes.restrictions import after_claim_named, claims_named_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.nodes import Nodes
    from fairlead.core.state.object_index import KindIndex, ObjectIndex

_NEW_NAME = dict(zip(ZONE_LABELS[:2], ZONE_LABELS[2:], strict=True))
"""The labels under whose new names a node may have what a volume has under the old ones."""
_ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE
Zones = tuple[tuple[str, frozenset[str]], ...]


class VolumeZone(Plugin):
    name = "VolumeZone"
    _REASON = Reason(name, "node(s) had no available volume zone", final=True)

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(STORAGE_CLASS, ActionType.ADD), _after_class),
            Interest(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            Interest(ClusterEvent(PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE), after_claim_named),
            Interest(ClusterEvent(PERSISTENT_VOLUME, _ADD_OR_UPDATE), _after_volume),
        )

    def concerns(self, pod: Pod) -> bool:
        return uses_claims(pod, ephemeral=False)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        object_index = cycle.cluster.object_index
        claims = object_index.of(kinds.PERSISTENT_VOLUME_CLAIM)
        wanted: list[tuple[str, frozenset[str]]] = []
        for name in claims_named_by(cycle.pod):
            if not name:
                return unresolvable("PersistentVolumeClaim had no name")
            claim: Claim | None = claims.get(f"{cycle.pod.namespace}/{name}")
            if claim is None:
                return unresolvable(claim_not_found(name))
            zones = _zones_of(claim, object_index)
            if isinstance(zones, Status):
                return zones
            wanted += zones
        if not wanted:
            return SKIP
        cycle.notes[self.name] = tuple(wanted)
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        wanted: Zones = cycle.notes[self.name]
        labelled = nodes.none()
        for key in ZONE_LABELS:
            labelled |= nodes.label(key) != ABSENT
        found = nodes.all()
        for key, values in wanted:
            found &= _rows_in(nodes, key, values)
        return (Reject(self._REASON, labelled & ~found),)


def _rows_in(nodes: Nodes, key: str, values: frozenset[str]) -> NDArray[np.bool_]:
    """Rows with one of these values; where the old label is absent its new name counts."""
    found = _rows_with(nodes, key, values)
    new_name = _NEW_NAME.get(key)
    if new_name is None:
        return found
    return np.where(nodes.label(key) == ABSENT, _rows_with(nodes, new_name, values), found)


def _rows_with(nodes: Nodes, key: str, values: frozenset[str]) -> NDArray[np.bool_]:
    column = nodes.table.label(key)
    return np.isin(nodes.label(key), [column.code(value) for value in values])


def _zones_of(claim: Claim, object_index: ObjectIndex) -> Zones | Status:
    """The zones of a claim's volume; none if it will get one when a node is chosen."""
    if not claim.volume_name:
        return _unbound(claim, object_index.of(kinds.STORAGE_CLASS))
    volume: Volume | None = object_index.of(kinds.PERSISTENT_VOLUME).get(claim.volume_name)
    return unresolvable(volume_not_found(claim.volume_name)) if volume is None else volume.zones


def _unbound(claim: Claim, classes: KindIndex) -> Zones | Status:
    name = claim.storage_class
    if not name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class: StorageClass | None = classes.get(name)
    if storage_class is None:
        return unresolvable(class_not_found(name))
    if not storage_class.binding_mode:
        return unresolvable(mode_not_set(name))
    return () if storage_class.waits else unresolvable("PersistentVolume had no name")


def _after_class(pod: Pod, old: object, new: object) -> Hint:
    return Hint.QUEUE if isinstance(new, StorageClass) and new.waits else Hint.SKIP


def _after_volume(pod: Pod, old: object, new: object) -> Hint:
    unchanged = isinstance(old, Volume) and isinstance(new, Volume) and old.zones == new.zones
    return Hint.SKIP if unchanged else Hint.QUEUE
