"""Intake: what a watch event changes in the Cluster and in the Backlog. Every watch event goes through here, once.

It updates the Cluster and then notifies the Backlog: a pod to queue, a pod that needs no queueing any more, or an event
that may wake parked pods. The routing is that of kube-scheduler's event handlers.
"""

from __future__ import annotations

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
from fairlead.core.state.object_index import EVENTS, GROUP_KINDS

if TYPE_CHECKING:
    from fairlead.core.engine.binding_driver import BindingDriver
    from fairlead.core.engine.queue.backlog import Backlog
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.model.flow import Change, Happened
    from fairlead.core.model.group import PodGroup
    from fairlead.core.model.kinds import Kind
    from fairlead.core.state.cluster import AppliedChange, Cluster

_EVENTS = {
    kind: tuple(ClusterEvent(name, action) for action in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE))
    for kind, name in EVENTS.items()
}
"""The events that an object of each of them came, changed or went."""
_PENDING, _ASSUMED = PodPlace.PENDING, PodPlace.ASSUMED
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


class Intake:
    def __init__(self, cluster: Cluster, backlog: Backlog, binding_driver: BindingDriver) -> None:
        self._cluster = cluster
        self._backlog = backlog
        self._binding_driver = binding_driver
        self.documents = 0

    def take(self, change: Change, now: float) -> None:
        self.documents += 1
        applied = self._cluster.apply(change)
        if applied is None:
            return
        if applied.kind is kinds.POD:
            self._pod(applied, now)
            if change.kind is not kinds.POD and change.kind in EVENTS:  # a pod that stands for an object of this kind
                self._backlog.move(_event(change.kind, applied), applied.old, applied.new, now)
            return  # no group changes with a pod
        if applied.kind is kinds.NODE:
            self._node(applied, now)
        elif applied.kind in EVENTS:
            self._other(applied, now)
        for old, new in applied.regrouped:
            if self._backlog.serves(old.scheduler_name):
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
            if self._backlog.serves(old.scheduler_name):
                self._backlog.delete(old, now)
        elif self._backlog.serves(old.scheduler_name):
            self._pending_pod_changed(old, new, applied.was, now)
        pod = new or old
        if pod.group_ref is None:
            return
        if old is not None or pod.node_name or not self._backlog.serves(pod.scheduler_name):
            self._backlog.gang_changed(gang_key(pod), now)

    def _pod_added(self, pod: Pod, now: float) -> None:
        if pod.node_name:
            self._backlog.move(ASSIGNED_POD_ADD, None, pod, now)
        elif self._backlog.serves(pod.scheduler_name):
            self._backlog.add(pod, now)

    def _pending_pod_changed(self, old: Pod, new: Pod, was: PodPlace | None, now: float) -> None:
        if old.resource_version and old.resource_version == new.resource_version:
            return
        if was is _ASSUMED:
            if new.terminating and not old.terminating:
                left = self._binding_driver.assumed_pod_goes(new)
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
        if not self._backlog.serves(pod.scheduler_name):
            if was is _ASSUMED:  # placed by a round
                self._backlog.move(ASSIGNED_POD_DELETE, pod, None, now)
            return
        self._backlog.delete(pod, now)
        if was is _ASSUMED:
            self._binding_driver.assumed_pod_goes(pod)
            self._backlog.move(ASSIGNED_POD_DELETE, pod, None, now)
        elif pod.nominated_node:
            self._promise_given_up(pod, now)

    def _promise_given_up(self, pod: Pod, now: float) -> None:
        """A nominated pod gave up its node: wake the pods that had to leave room for it, those of no higher priority.
        Members of its own gang did not: the attempt that failed for all of them would be repeated at once."""

        def waited(other: Entry) -> bool:
            return other.pod.priority <= pod.priority and not _in_one_group(pod, other.pod)

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
        event = _event(applied.kind, applied)
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
        if gang is not None and old is not None and new is not None and old.preferences != new.preferences:
            self._backlog.activate(gang.pending()[:1], now)


def _in_one_group(pod: Pod, other: Pod) -> bool:
    return bool(pod.group) and pod.group == other.group and pod.namespace == other.namespace


def _event(kind: Kind, applied: AppliedChange) -> ClusterEvent:
    added, updated, deleted = _EVENTS[kind]
    return deleted if applied.new is None else added if applied.old is None else updated
