"""Workloads: which pods belong together although they do not say so, because a Service or their owner selects them.

The default spread constraints need a selector for every pod that has no constraints of its own, so the answer for a
namespace without Services must cost next to nothing, and the others are remembered until some Service, controller or
set changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.selectors import EVERYTHING, LabelSelector, selector_from_map

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Owner, Pod
    from fairlead.core.model.workload_selectors import WorkloadSelector
    from fairlead.core.state.object_index import KindIndex, ObjectIndex

_OWNERS: Mapping[tuple[str, str], Kind] = {
    ("v1", "ReplicationController"): kinds.REPLICATION_CONTROLLER,
    ("apps/v1", "ReplicaSet"): kinds.REPLICA_SET,
    ("apps/v1", "StatefulSet"): kinds.STATEFUL_SET,
}
_REMEMBERED = 8192


class Workloads:
    def __init__(self, object_index: ObjectIndex) -> None:
        self._services: KindIndex = object_index.of(kinds.SERVICE)
        self._owners: dict[tuple[str, str], KindIndex] = {said: object_index.of(kind) for said, kind in _OWNERS.items()}
        self._shelves = (self._services, *self._owners.values())
        self._version = -1
        """The sum of the indexes' versions, none of which ever falls."""
        self._services_in: dict[str, list[WorkloadSelector]] = {}
        self._found: dict[object, LabelSelector] = {}

    def selector_for(self, pod: Pod) -> LabelSelector:
        """What selects a pod together with its like; everything, if nothing does."""
        self._catch_up()
        services = self._services_in.get(pod.namespace)
        owner = self._owner(pod)
        if services is None and owner is None:
            return EVERYTHING
        key = (pod.namespace, frozenset(pod.labels.items()), pod.owner if owner is not None else None)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            found = self._found[key] = _combined(pod, services or [], owner)
        return found

    def _catch_up(self) -> None:
        services, controllers, replica_sets, stateful_sets = self._shelves
        version = services.version + controllers.version + replica_sets.version + stateful_sets.version
        if version == self._version:
            return
        self._version = version
        self._found.clear()
        self._services_in.clear()
        for service in self._services.values():
            if service.labels is not None:
                self._services_in.setdefault(service.namespace, []).append(service)

    def _owner(self, pod: Pod) -> WorkloadSelector | None:
        owner: Owner | None = pod.owner
        kind_index = None if owner is None else self._owners.get((owner.api_version, owner.kind))
        return None if kind_index is None or owner is None else kind_index.get(f"{pod.namespace}/{owner.name}")


def _combined(pod: Pod, services: list[WorkloadSelector], owner: WorkloadSelector | None) -> LabelSelector:
    """The maps of all Services that select the pod and of its controller, as one; and what its set requires."""
    merged: dict[str, str] = {}
    for service in services:
        if service.selector.matches(pod.labels):
            merged |= dict(service.labels or ())
    if owner is not None and owner.labels is not None:
        merged |= dict(owner.labels)
        owner = None
    selector = selector_from_map(merged)
    return selector if owner is None else selector.plus(owner.selector.requirements)
