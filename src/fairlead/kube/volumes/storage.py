"""Storage: what the volume plugins know of a cluster besides the ObjectIndex. It is an Index, made when first needed.

Its parts: `volumes` and `claims`, the records with the changes that are assumed of them since a pod was reserved;
`disks`, the disks that pods on nodes name themselves; `attached`, what is attached where; `reach`, from which rows
something can be used; and volumes by class.

Invariant: an assumed change is about one version of a record. It holds until it is undone or until the API shows
another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairlead.core.model import kinds
from fairlead.core.state.matching import rows_meeting
from fairlead.core.state.nodes import Nodes
from fairlead.kube.volumes.attached import AttachedVolumes
from fairlead.kube.volumes.disks import InlineDisks

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.requirements import Requirement
    from fairlead.core.model.selectors import NodeSelector
    from fairlead.core.model.storage import Claim, StorageCapacity, Volume
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.object_index import KindIndex
    from fairlead.core.state.table import NodeTable


class Versioned(Protocol):
    @property
    def resource_version(self) -> str: ...


Record = TypeVar("Record", bound=Versioned)


class Assumed(Generic[Record]):
    """The records of a kind, some of them as a reserved pod will have changed them."""

    def __init__(self, kind_index: KindIndex) -> None:
        self._kind_index = kind_index
        self._pretended: dict[str, tuple[Record, Record]] = {}

    def get(self, key: str) -> Record | None:
        current: Record | None = self._kind_index.get(key)
        pretence = self._pretended.get(key) if self._pretended else None
        if pretence is None:
            return current
        record, basis = pretence
        if current is not None and _same_version(current, basis):
            return record
        del self._pretended[key]
        return current

    def seen(self, key: str) -> Record | None:
        """What the API shows, whatever is pretended."""
        return self._kind_index.get(key)

    def assume(self, key: str, record: Record) -> None:
        self._pretended[key] = record, self._kind_index[key]

    def restore(self, key: str) -> None:
        """Take a pretence back; it may be gone already."""
        self._pretended.pop(key, None)

    def pretended(self) -> dict[str, Record]:
        """What is pretended now, by key."""
        found = {key: self.get(key) for key in tuple(self._pretended)}
        return {key: record for key, record in found.items() if record is not None and key in self._pretended}


def _same_version(current: Versioned, basis: Versioned) -> bool:
    """Whether a record is the one that something is pretended of: the same object, or seen again unchanged."""
    return current is basis or (current.resource_version != "" and current.resource_version == basis.resource_version)


class VolumesByClass:
    """The names of the volumes of each storage class, smallest first, kept up by the index's log of changes."""

    def __init__(self, kind_index: KindIndex) -> None:
        self._kind_index = kind_index
        self._version = -1
        self._place_of: dict[str, tuple[str, int]] = {}
        self._names: dict[str, set[str]] = {}
        self._sorted: dict[str, list[str]] = {}

    def names(self, storage_class: str) -> list[str]:
        self._catch_up()
        found = self._sorted.get(storage_class)
        if found is None:
            names, place_of = self._names.get(storage_class, ()), self._place_of
            found = self._sorted[storage_class] = sorted(names, key=lambda name: (place_of[name][1], name))
        return found

    def _catch_up(self) -> None:
        if self._version == self._kind_index.version:
            return
        touched = self._kind_index.since(self._version) if self._version >= 0 else None
        self._version = self._kind_index.version
        for name in {*self._place_of, *self._kind_index} if touched is None else set(touched):
            self._follow(name)

    def _follow(self, name: str) -> None:
        volume: Volume | None = self._kind_index.get(name)
        before, after = self._place_of.get(name), (volume.storage_class, volume.capacity) if volume else None
        if before == after:
            return
        if before is not None:
            self._names[before[0]].discard(name)
            self._sorted.pop(before[0], None)
            del self._place_of[name]
        if after is not None:
            self._names.setdefault(after[0], set()).add(name)
            self._sorted.pop(after[0], None)
            self._place_of[name] = after


Rows = NDArray[np.intp]


class VolumeReach:
    """From which rows a volume or a pool of storage can be used, remembered until some node changes."""

    _LIMIT = 1 << 15

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._mark = (-1, -1)
        self._rows: dict[str, tuple[object, Rows]] = {}

    def of_volumes(self, volumes: Iterable[Volume]) -> Iterator[Rows | None]:
        """For each volume the rows that its node affinity accepts, None for all. Fields do not count: a volume looks
        at labels only."""
        self._forget_if_nodes_changed()
        known = self._rows
        for volume in volumes:
            affinity = volume.node_affinity
            if affinity is None:
                yield None
                continue
            remembered = known.get(volume.name)
            if remembered is None or remembered[0] is not affinity:
                remembered = known[volume.name] = affinity, self._matching(_alternatives(affinity))
            yield remembered[1]

    def of_affinity(self, affinity: NodeSelector | None) -> Rows | None:
        """The same for an affinity that is not the volume's own."""
        return None if affinity is None else self._matching(_alternatives(affinity))

    def of_pool(self, capacity: StorageCapacity) -> Rows:
        """Rows that a pool of storage serves."""
        self._forget_if_nodes_changed()
        topology, key = capacity.topology, f"{capacity.namespace}/{capacity.name}"
        remembered = self._rows.get(key)
        if remembered is None or remembered[0] is not topology:
            found = self._matching(() if topology.nothing else (topology.requirements,))
            remembered = self._rows[key] = topology, found
        return remembered[1]

    def mask(self, rows: Rows | None) -> NDArray[np.bool_]:
        if rows is None:
            return np.ones(self._table.high, dtype=np.bool_)
        found = np.zeros(self._table.high, dtype=np.bool_)
        found[rows] = True
        return found

    def mask_of(self, volume: Volume) -> NDArray[np.bool_]:
        return self.mask(next(self.of_volumes((volume,))))

    def _forget_if_nodes_changed(self) -> None:
        mark = self._table.static.mark, self._table.high
        if mark != self._mark or len(self._rows) > self._LIMIT:
            self._mark = mark
            self._rows.clear()

    def _matching(self, alternatives: Iterable[Iterable[Requirement]]) -> Rows:
        nodes = Nodes(self._table)
        found = nodes.none()
        for requirements in alternatives:
            here = nodes.all()
            for requirement in requirements:
                here &= rows_meeting(nodes, requirement)
            found |= here
        return np.flatnonzero(found)


def _alternatives(affinity: NodeSelector) -> Iterator[tuple[Requirement, ...]]:
    return (term.expressions for term in affinity.terms if not term.error)


class Storage:
    """All of it, for one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        object_index = cluster.object_index
        self._volumes: KindIndex = object_index.of(kinds.PERSISTENT_VOLUME)
        self._by_class = VolumesByClass(self._volumes)
        self.volumes: Assumed[Volume] = Assumed(self._volumes)
        self.claims: Assumed[Claim] = Assumed(object_index.of(kinds.PERSISTENT_VOLUME_CLAIM))
        self.classes = object_index.of(kinds.STORAGE_CLASS)
        self.drivers = object_index.of(kinds.CSI_DRIVER)
        self.capacities = object_index.of(kinds.CSI_STORAGE_CAPACITY)
        self.disks = InlineDisks()
        self.attached = AttachedVolumes(cluster.table, object_index)
        self.reach = VolumeReach(cluster.table)

    def volumes_of_class(self, storage_class: str) -> list[Volume]:
        """Volumes of a class, smallest first and equals by name, with what is pretended of them."""
        kind_index, pretended = self._volumes, self.volumes.pretended()
        names = self._by_class.names(storage_class)
        if not pretended:
            return [kind_index[name] for name in names]
        return [pretended.get(name) or kind_index[name] for name in names]

    # ---- Index ----

    def occupied(self, pod: Pod, row: int) -> None:
        if pod.shape.volumes:
            self.disks.add(pod, row)
            self.attached.add(pod, row)

    def vacated(self, pod: Pod, row: int) -> None:
        if pod.shape.volumes:
            self.disks.remove(pod, row)
            self.attached.remove(pod, row)

    def node_changed(self, row: int) -> None:
        self.attached.node_changed(row)


def storage_of(cluster: Cluster) -> Storage:
    return cluster.index(Storage, Storage)
