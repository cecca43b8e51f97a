"""Intake: what a watch event changes in the Cluster and in the Backlog. Every watch event goes through here, once.

It updates the Cluster and then tells the Backlog: a pod to queue, a pod that needs no queueing any more, or an event
that may wake parked pods. The routing is that of kube-scheduler's event handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.core.model import events, kinds
from fairlead.core.model.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
)
from fairlead.core.model.node import Node, node_changes
from fairlead.core.model.pod import Pod, pod_events
from fairlead.core.state.cluster import PodPlace
from fairlead.core.state.gangs import gang_key
from fairlead.core.state.object_index import GROUP_KINDS
from fairlead.koordinator.records.gangs import gang_id

if TYPE_CHECKING:
    from fairlead.core.engine.queue.backlog import Backlog
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.model.flow import Change, Happened
    from fairlead.core.model.group import PodGroup
    from fairlead.core.state.cluster import AppliedChange, Cluster

RESOURCES = {
    kinds.PERSISTENT_VOLUME: events.PERSISTENT_VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM: events.PERSISTENT_VOLUME_CLAIM,
    kinds.STORAGE_CLASS: events.STORAGE_CLASS,
    kinds.CSI_NODE: events.CSI_NODE,
    kinds.CSI_DRIVER: events.CSI_DRIVER,
    kinds.CSI_STORAGE_CAPACITY: events.CSI_STORAGE_CAPACITY,
    kinds.VOLUME_ATTACHMENT: events.VOLUME_ATTACHMENT,
    kinds.RESOURCE_CLAIM: events.RESOURCE_CLAIM,
    kinds.RESOURCE_SLICE: events.RESOURCE_SLICE,
    kinds.DEVICE_CLASS: events.DEVICE_CLASS,
    **dict.fromkeys(GROUP_KINDS, events.POD_GROUP),
    kinds.VC_HYPER_NODE: events.HYPER_NODE,
    kinds.KOORD_POD_GROUP: events.KOORD_POD_GROUP,
    kinds.KOORD_ELASTIC_QUOTA: events.ELASTIC_QUOTA,
    kinds.KOORD_DEVICE: events.KOORD_DEVICE,
    kinds.KOORD_NODE_METRIC: events.NODE_METRIC,
    kinds.KOORD_NODE_TOPOLOGY: events.NODE_TOPOLOGY,
}
"""The kinds whose changes may wake pods, with their events. Others (Services, budgets, namespaces) are only looked
up."""
_EVENTS = {
    kind: tuple(ClusterEvent(name, action) for action in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE))
    for kind, name in RESOURCES.items()
}
"""The events that an object of each of them came, changed or went."""
_PENDING, _ASSUMED = PodPlace.PENDING, PodPlace.ASSUMED
"""Asked for too often to be looked up on the Enum."""


class Intake:
    def __init__(
        self,
        cluster: Cluster,
        backlog: Backlog,
        *,
        serves: Callable[[str], bool],
        assumed_pod_goes: Callable[[Pod], Pod | None],
    ) -> None:
        self._cluster = cluster
        self._backlog = backlog
        self._serves = serves
        self._assumed_pod_goes = assumed_pod_goes
        self.documents = 0

    def take(self, change: Change, now: float) -> None:
        self.documents += 1
        applied = self._cluster.apply(change)
        if applied is None:
            return
        if applied.kind is kinds.POD:
            self._pod(applied, now)
            if change.kind is kinds.KOORD_RESERVATION:
                self._backlog.move(ClusterEvent(events.RESERVATION, _action(applied)), applied.old, applied.new, now)
            return  # no group changes with a pod
        if applied.kind is kinds.NODE:
            self._node(applied, now)
        elif applied.kind in RESOURCES:
            self._other(applied, now)
        for old, new in applied.regrouped:
            if self._serves(old.scheduler_name):
                self._backlog.update(old, new, now)
        for before, after in applied.groups:
            self._group_changed(before, after, ClusterEvent(events.POD_GROUP, ActionType.UPDATE), now)

    # ---- pods ----

    def take_pod(self, happened: Happened, pod: Pod, now: float) -> None:
        """The same for a pod that is compiled already. Trials of the future (core/engine/what_if) have no documents."""
        applied = self._cluster.apply_pod(happened, pod)
        if applied is not None:
            self._pod(applied, now)

    def _pod(self, applied: AppliedChange, now: float) -> None:
        old, new = applied.old, applied.new
        if old is None:
            self._pod_added(new, now)
        elif new is None:
            self._pod_deleted(old, applied.was, now)
        elif old.node_name:
            for event in pod_events(old, new):
                self._backlog.move(event, old, new, now)
        elif new.node_name:
            self._backlog.move(ASSIGNED_POD_ADD, None, new, now)
            if self._serves(old.scheduler_name):
                self._backlog.delete(old, now)
        elif self._serves(old.scheduler_name):
            self._pending_pod_changed(old, new, applied.was, now)
        pod = new or old
        if pod.group_ref is None:
            return
        if old is not None or pod.node_name or not self._serves(pod.scheduler_name):
            self._backlog.gang_changed(gang_key(pod), now)

    def _pod_added(self, pod: Pod, now: float) -> None:
        if pod.node_name:
            self._backlog.move(ASSIGNED_POD_ADD, None, pod, now)
        elif self._serves(pod.scheduler_name):
            self._backlog.add(pod, now)

    def _pending_pod_changed(self, old: Pod, new: Pod, was: PodPlace | None, now: float) -> None:
        if old.resource_version and old.resource_version == new.resource_version:
            return
        if was is _ASSUMED:
            if new.terminating and not old.terminating:
                left = self._assumed_pod_goes(new)
                self._backlog.move(ASSIGNED_POD_DELETE, left or new, None, now)
            return
        self._backlog.update(old, new, now)
        changed = old.nominated_node and old.nominated_node != new.nominated_node
        if changed and not self._backlog.nominator.had_place(old):
            self._promise_given_up(old, now)

    def _pod_deleted(self, pod: Pod, was: PodPlace | None, now: float) -> None:
        if was is not _PENDING and was is not _ASSUMED:
            self._backlog.move(ASSIGNED_POD_DELETE, pod, None, now)
            return
        if not self._serves(pod.scheduler_name):
            if was is _ASSUMED:  # placed by a round
                self._backlog.move(ASSIGNED_POD_DELETE, pod, None, now)
            return
        self._backlog.delete(pod, now)
        if was is _ASSUMED:
            self._assumed_pod_goes(pod)
            self._backlog.move(ASSIGNED_POD_DELETE, pod, None, now)
        elif pod.nominated_node:
            self._promise_given_up(pod, now)

    def _promise_given_up(self, pod: Pod, now: float) -> None:
        """A nominated pod gave up its node: wake the pods that had to leave room for it, those of no higher priority.
        Members of its own gang did not: the attempt that failed for all of them would be repeated at once."""
        gang = gang_id(pod)

        def waited(other: Entry) -> bool:
            return other.pod.priority <= pod.priority and not (gang and gang_id(other.pod) == gang)

        self._backlog.move(ASSIGNED_POD_DELETE, pod, None, now, only=waited)

    # ---- nodes and the rest ----

    def take_node(self, happened: Happened, node: Node, now: float) -> None:
        """A change of a node that is compiled already; see `take_pod`."""
        applied = self._cluster.apply_node(happened, node)
        if applied is not None:
            self._node(applied, now)

    def _node(self, applied: AppliedChange, now: float) -> None:
        old, new = applied.old, applied.new
        if old is None:
            self._backlog.move(NODE_ADD, None, new, now)
        elif new is None:
            self._backlog.move(NODE_DELETE, old, None, now)
        else:
            assert isinstance(old, Node)
            for action in node_changes(old, new):
                self._backlog.move(ClusterEvent(events.NODE, action), old, new, now)

    def _other(self, applied: AppliedChange, now: float) -> None:
        added, updated, deleted = _EVENTS[applied.kind]
        event = deleted if applied.new is None else added if applied.old is None else updated
        if applied.kind in GROUP_KINDS:
            self._group_changed(applied.old, applied.new, event, now)
        else:
            self._backlog.move(event, applied.old, applied.new, now)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None, event: ClusterEvent, now: float) -> None:
        """A group was added, changed or deleted. If its spec changed, its gang is tried again, whichever plugin refused
        it before."""
        self._backlog.move(event, old, new, now)
        group = new or old
        if group is None:
            return
        key = f"{group.api}:{group.key}"
        self._backlog.gang_changed(key, now, group=True)
        gang = self._cluster.gangs.get(key)
        if gang is not None and old is not None and new is not None and old.wishes != new.wishes:
            self._backlog.activate(gang.pending()[:1], now)


def _action(applied: AppliedChange) -> ActionType:
    if applied.new is None:
        return ActionType.DELETE
    return ActionType.ADD if applied.old is None else ActionType.UPDATE
