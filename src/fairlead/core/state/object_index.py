"""ObjectIndex: the objects besides pods and nodes that policies read, compiled, by kind and name.

Which kinds are kept, and what compiles each, is one table. A kind that is not in it is none of scheduling's business.
A shelf's `version` moves with every change, so that whoever derives something from it knows when to derive it anew, and
`since` tells what changed after a version, so that it need not start from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.core.model import (
    budgets,
    config_maps,
    device_claims,
    devices,
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
from fairlead.koordinator.records import cards, cpu_topology, gangs, network, node_metrics, reservations
from fairlead.koordinator.records import quotas as koord_quotas
from fairlead.volcano.records import queues, topology

if TYPE_CHECKING:
    from fairlead.core.model.flow import Change, Doc
    from fairlead.core.model.kinds import Kind

COMPILERS: Mapping[Kind, Callable[[Doc], Any]] = {
    kinds.NAMESPACE: namespaces.compile_namespace,
    kinds.CONFIG_MAP: config_maps.compile_config_map,
    kinds.PERSISTENT_VOLUME: storage.compile_volume,
    kinds.PERSISTENT_VOLUME_CLAIM: storage.compile_claim,
    kinds.STORAGE_CLASS: storage.compile_storage_class,
    kinds.CSI_NODE: storage.compile_csi_node,
    kinds.CSI_DRIVER: storage.compile_csi_driver,
    kinds.CSI_STORAGE_CAPACITY: storage.compile_storage_capacity,
    kinds.VOLUME_ATTACHMENT: storage.compile_volume_attachment,
    kinds.RESOURCE_CLAIM: device_claims.compile_resource_claim,
    kinds.RESOURCE_SLICE: devices.compile_slice,
    kinds.DEVICE_CLASS: devices.compile_device_class,
    kinds.POD_DISRUPTION_BUDGET: budgets.compile_disruption_budget,
    kinds.RESOURCE_QUOTA: quota.compile_quota,
    kinds.PRIORITY_CLASS: priorities.compile_priority_class,
    kinds.SERVICE: workload_selectors.compile_workload_selector,
    kinds.REPLICATION_CONTROLLER: workload_selectors.compile_workload_selector,
    kinds.REPLICA_SET: workload_selectors.compile_workload_selector,
    kinds.STATEFUL_SET: workload_selectors.compile_workload_selector,
    kinds.POD_GROUP: group.compile_group,
    kinds.POD_GROUP_BETA: group.compile_group,
    kinds.X_POD_GROUP: group.compile_group,
    kinds.VC_POD_GROUP: group.compile_group,
    kinds.VC_QUEUE: queues.compile_queue,
    kinds.VC_HYPER_NODE: topology.compile_hyper_node,
    kinds.VC_NUMATOPOLOGY: topology.compile_numa_topology,
    kinds.VC_NODE_SHARD: topology.compile_node_shard,
    kinds.KOORD_ELASTIC_QUOTA: koord_quotas.compile_elastic_quota,
    kinds.KOORD_RESERVATION: reservations.compile_reservation,
    kinds.KOORD_POD_GROUP: gangs.compile_gang,
    kinds.KOORD_NETWORK_TOPOLOGY: network.compile_network,
    kinds.KOORD_DEVICE: cards.compile_devices,
    kinds.KOORD_NODE_METRIC: node_metrics.compile_node_metric,
    kinds.KOORD_NODE_TOPOLOGY: cpu_topology.compile_node_topology,
}
_LATER: Mapping[Kind, Callable[[Any, Doc], Any]] = {kinds.RESOURCE_CLAIM: device_claims.later_resource_claim}
"""For kinds that change several times for each pod: what makes a record from the one before and a newer document."""
_WORKLOADS = frozenset({kinds.SERVICE, kinds.REPLICATION_CONTROLLER, kinds.REPLICA_SET, kinds.STATEFUL_SET})
OPTIONAL = frozenset(
    kind
    for kind in COMPILERS
    if kind.kind in ("PodGroup", "PriorityClass")
    or kind.group.endswith(("volcano.sh", "koordinator.sh", "scheduling.sigs.k8s.io", "topology.node.k8s.io"))
    or kind.group == "resource.k8s.io"
    or kind in _WORKLOADS
)
"""Kinds that a server may not have, or that a scheduler of single pods may not be allowed to read. Without workloads
only the default spreading is missing, without priority classes only those of groups."""
WATCHED = tuple(kind for kind in COMPILERS if kind not in (*kinds.KOORDINATOR, kinds.CONFIG_MAP))
"""Kinds that every scheduler is told of; of others it is told if a plugin reads them."""
READ_BY_ROUNDS = frozenset({kinds.VC_QUEUE, kinds.VC_NUMATOPOLOGY, kinds.VC_NODE_SHARD, kinds.RESOURCE_QUOTA})
"""Kinds that only profiles in Volcano's manner read."""


def indexed_watches(*, rounds: bool, more: Collection[Kind] = ()) -> list[Watch]:
    """What a scheduler watches for its index; `rounds` tells whether a profile is in Volcano's manner, `more` what
    plugins read besides."""
    wanted = [kind for kind in WATCHED if rounds or kind not in READ_BY_ROUNDS]
    wanted += [kind for kind in COMPILERS if kind in more and kind not in WATCHED]
    return [Watch(kind, optional=kind in OPTIONAL) for kind in wanted]


GROUP_KINDS = (kinds.POD_GROUP, kinds.POD_GROUP_BETA, kinds.X_POD_GROUP, kinds.VC_POD_GROUP)
"""The kinds that say that pods belong together. Few servers have all of them."""

_REMEMBERED = 1 << 14


class Shelf(dict[str, Any]):
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
        """Keys touched after a version, possibly with repetitions; None if that is too long ago to tell."""
        missed = self.version - version
        if missed > len(self._touched):
            return None
        return self._touched[-missed:] if missed else []


class ObjectIndex:
    def __init__(self) -> None:
        self._by_kind: dict[Kind, Shelf] = {kind: Shelf() for kind in COMPILERS}

    def of(self, kind: Kind) -> Shelf:
        return self._by_kind[kind]

    def apply(self, change: Change) -> tuple[Any, Any]:
        """Take in a change; returns the records before and after."""
        shelf = self._by_kind[change.kind]
        key = object_key(change.doc)
        old = shelf.get(key)
        if change.gone:
            shelf.pop(key, None)
            shelf.touch(key)
            return old, None
        later = _LATER.get(change.kind) if old is not None else None
        new = COMPILERS[change.kind](change.doc) if later is None else later(old, change.doc)
        shelf[key] = new
        shelf.touch(key)
        return old, new
