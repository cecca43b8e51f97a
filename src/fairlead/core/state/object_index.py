"""ObjectIndex: the objects besides pods and nodes that policies read, compiled, by kind and name.

Which kinds are kept, and what compiles each, is one table. A kind that is not in it is ignored by the scheduler. A
KindIndex's `version` moves with every change, so that a plugin that derives something from it knows when to derive it
anew, and `since` returns what changed after a version, so that it need not start from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.core.family import KindEntry, PodLike, ReadBy, brought
from fairlead.core.model import (
    budgets,
    config_maps,
    device_claims,
    devices,
    events,
    group,
    kinds,
    namespaces,
    priorities,
    quota,
    storage,
    workload_selectors,
)
from fairlead.core.model.documents import object_key
from fairlead.core.model.flow import Watch

if TYPE_CHECKING:
    from fairlead.core.model.flow import Change, Doc
    from fairlead.core.model.kinds import Kind


def _always(kind: Kind, compile: Callable[[Doc], Any], event: str = "", read_by: ReadBy = ReadBy.ALL) -> KindEntry:
    """A kind that every server has."""
    return KindEntry(kind, compile, event, read_by, optional=False)


_WORKLOAD = workload_selectors.compile_workload_selector
_OWN = (
    _always(kinds.NAMESPACE, namespaces.compile_namespace),
    _always(kinds.CONFIG_MAP, config_maps.compile_config_map, read_by=ReadBy.PLUGINS),
    _always(kinds.PERSISTENT_VOLUME, storage.compile_volume, events.PERSISTENT_VOLUME),
    _always(kinds.PERSISTENT_VOLUME_CLAIM, storage.compile_claim, events.PERSISTENT_VOLUME_CLAIM),
    _always(kinds.STORAGE_CLASS, storage.compile_storage_class, events.STORAGE_CLASS),
    _always(kinds.CSI_NODE, storage.compile_csi_node, events.CSI_NODE),
    _always(kinds.CSI_DRIVER, storage.compile_csi_driver, events.CSI_DRIVER),
    _always(kinds.CSI_STORAGE_CAPACITY, storage.compile_storage_capacity, events.CSI_STORAGE_CAPACITY),
    _always(kinds.VOLUME_ATTACHMENT, storage.compile_volume_attachment, events.VOLUME_ATTACHMENT),
    KindEntry(kinds.RESOURCE_CLAIM, device_claims.compile_resource_claim, events.RESOURCE_CLAIM),
    KindEntry(kinds.RESOURCE_SLICE, devices.compile_slice, events.RESOURCE_SLICE),
    KindEntry(kinds.DEVICE_CLASS, devices.compile_device_class, events.DEVICE_CLASS),
    _always(kinds.POD_DISRUPTION_BUDGET, budgets.compile_disruption_budget),
    _always(kinds.RESOURCE_QUOTA, quota.compile_quota, read_by=ReadBy.MODES),
    KindEntry(kinds.PRIORITY_CLASS, priorities.compile_priority_class),
    KindEntry(kinds.SERVICE, _WORKLOAD),
    KindEntry(kinds.REPLICATION_CONTROLLER, _WORKLOAD),
    KindEntry(kinds.REPLICA_SET, _WORKLOAD),
    KindEntry(kinds.STATEFUL_SET, _WORKLOAD),
    KindEntry(kinds.POD_GROUP, group.compile_group, events.POD_GROUP),
    KindEntry(kinds.POD_GROUP_BETA, group.compile_group, events.POD_GROUP),
    KindEntry(kinds.X_POD_GROUP, group.compile_group, events.POD_GROUP),
)
"""Without workloads only the default spreading is missing, without priority classes only those of groups."""
_ENTRIES = {entry.kind: entry for entry in (*_OWN, *(entry for entries in brought("kinds") for entry in entries))}
COMPILERS: Mapping[Kind, Callable[[Doc], Any]] = {kind: entry.compile for kind, entry in _ENTRIES.items()}
EVENTS: Mapping[Kind, str] = {kind: entry.event for kind, entry in _ENTRIES.items() if entry.event}
"""The kinds whose changes may wake pods, with their events. Others (Services, budgets, namespaces) are only looked
up."""
_LATER: Mapping[Kind, Callable[[Any, Doc], Any]] = {kinds.RESOURCE_CLAIM: device_claims.later_resource_claim}
"""For kinds that change several times for each pod: what makes a record from the one before and a newer document."""
WATCHED = tuple(kind for kind, entry in _ENTRIES.items() if entry.read_by is not ReadBy.PLUGINS)
"""Kinds that schedulers watch even if no plugin names them."""
GROUP_KINDS = tuple(kind for kind, entry in _ENTRIES.items() if entry.event == events.POD_GROUP)
"""The kinds that say that pods belong together. Few servers have all of them."""
POD_LIKE: Mapping[Kind, PodLike] = {kind: entry.pod_like for kind, entry in _ENTRIES.items() if entry.pod_like}
"""The kinds whose objects are scheduled as pods."""

COUNTING_GROUPS = frozenset(kind.group for kind, entry in _ENTRIES.items() if entry.counts_ended)
"""The API groups whose groups count pods that have ended."""


def indexed_watches(*, modes: bool, more: Collection[Kind] = ()) -> list[Watch]:
    """What a scheduler watches for its index; `modes` says whether a profile has a scheduling mode of its own, `more`
    are kinds that plugins read besides."""
    wanted = [kind for kind in WATCHED if modes or _ENTRIES[kind].read_by is not ReadBy.MODES]
    wanted += [kind for kind in COMPILERS if kind in more and kind not in WATCHED]
    return [
        Watch(
            kind,
            optional=_ENTRIES[kind].optional,
            part=MODES if _ENTRIES[kind].read_by is ReadBy.MODES and kind not in more else "",
        )
        for kind in wanted
    ]


MODES = "modes"
"""The part of a scheduler that waits for kinds which only scheduling modes beside that of kube profiles read."""
_REMEMBERED = 1 << 14


class KindIndex(dict[str, Any]):
    """Records of one kind by `namespace/name`, or by name where there are no namespaces."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self._touched: list[str] = []

    def touch(self, key: str) -> None:
        """A record comes, changes or goes."""
        self.version += 1
        self._touched.append(key)
        if len(self._touched) > _REMEMBERED:
            del self._touched[: _REMEMBERED // 2]

    def since(self, version: int) -> list[str] | None:
        """Keys touched after a version, possibly with repetitions; None if that is too long ago."""
        missed = self.version - version
        if missed > len(self._touched):
            return None
        return self._touched[-missed:] if missed else []


class ObjectIndex:
    def __init__(self) -> None:
        self._by_kind: dict[Kind, KindIndex] = {kind: KindIndex() for kind in COMPILERS}

    def of(self, kind: Kind) -> KindIndex:
        return self._by_kind[kind]

    def apply(self, change: Change) -> tuple[Any, Any]:
        """Take in a change; returns the records before and after."""
        kind_index = self._by_kind[change.kind]
        key = object_key(change.doc)
        old = kind_index.get(key)
        if change.gone:
            kind_index.pop(key, None)
            kind_index.touch(key)
            return old, None
        later = _LATER.get(change.kind) if old is not None else None
        new = COMPILERS[change.kind](change.doc) if later is None else later(old, change.doc)
        kind_index[key] = new
        kind_index.touch(key)
        return old, new
