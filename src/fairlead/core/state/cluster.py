"""Cluster: the present state. The node table, the pods and their places, and the other objects that plugins read.

It is changed by `apply` (what the API says), by Statements (what scheduling decides) and by the TrialOverlay of a
round, and by nothing else.

    A pod's place:
                 assign            the watch shows the node
      PENDING ──────────▶ ASSUMED ─────────────────────────▶ BOUND ──deletion──▶ RELEASING ──▶ gone
         ▲                   │ forget: refused, bind failed, or rolled back
         └───────────────────┘

Invariant: for every row, the columns are the sums over the pods that are ASSUMED, BOUND or RELEASING there, and
`check` recounts them. One bad document never stops anything: it is put on `refused` with the reason, and skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from fairlead.core.family import PodLike, resolve
from fairlead.core.model import kinds
from fairlead.core.model.documents import ModelError, object_key
from fairlead.core.model.flow import Change, Happened
from fairlead.core.model.node import Node, compile_node
from fairlead.core.model.owners import as_namespace_says
from fairlead.core.model.pod import Pod, ReportedAs, Shapes, VolumeSource, compile_pod
from fairlead.core.model.records import record
from fairlead.core.state.gangs import Gangs
from fairlead.core.state.index_calls import call_occupied, call_vacated
from fairlead.core.state.object_index import COMPILERS, GROUP_KINDS, POD_LIKE, ObjectIndex
from fairlead.core.state.pod_states import (
    PodLog,
    counts_the_same,
    ended_by_itself,
    ends_unnoticed,
    is_noted,
    reads_the_same,
)
from fairlead.core.state.pod_states import PodPlace as PodPlace
from fairlead.core.state.pod_states import PodState as PodState
from fairlead.core.state.ports import HostPort, PortIndex
from fairlead.core.state.table import NodeTable

if TYPE_CHECKING:
    from fairlead.core.model.group import PodGroup
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.namespaces import Namespace
    from fairlead.core.model.shape import PodShape


_DELETED = Happened.DELETED
_PENDING, _ASSUMED, _BOUND, _RELEASING = PodPlace
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""
_SEATED = frozenset({_ASSUMED, _BOUND, _RELEASING})


@record(frozen=True, slots=True)
class Removal:
    """How a pod was taken off its row, with all that an exact undo needs."""

    row: int
    position: int
    freed_ports: tuple[HostPort, ...]


@record(frozen=True, slots=True)
class AppliedChange:
    """The result of a Change: compiled records before and after, either of which may be None. `was` is a pod's place
    before the change. `groups` are groups that changed because their owner did, `regrouped` those of waiting pods whose
    namespace changed; each before and after."""

    kind: Kind
    old: Any
    new: Any
    was: PodPlace | None = None
    groups: tuple[tuple[PodGroup, PodGroup], ...] = ()
    regrouped: tuple[tuple[Pod, Pod], ...] = ()


@runtime_checkable
class Index(Protocol):
    """Something kept up to date as pods come to rows and leave them, and as nodes change."""

    def occupied(self, pod: Pod, row: int) -> None: ...

    def vacated(self, pod: Pod, row: int) -> None: ...

    def node_changed(self, row: int) -> None: ...


@runtime_checkable
class PodIndex(Protocol):
    """Something kept up to date as pods come, change and go, whether they are on a row or not."""

    def pod_changed(self, uid: str) -> None:
        """A change of the pod was taken in; if it is gone, `Cluster.pods` does not have it any more."""
        ...


class PodLikeIndex(PodIndex, Protocol):
    """The index of a kind whose objects are scheduled as pods."""

    def object_changed(self, uid: str, record: Any) -> None:
        """An object came or changed, or is gone (no record). `uid` is that of its pod; `pod_changed` follows."""
        ...


AnyIndex = TypeVar("AnyIndex")


class Cluster:
    def __init__(self) -> None:
        self.table = NodeTable()
        self.pods: dict[str, PodState] = {}
        self.pods_by_key: dict[str, PodState] = {}
        """The same pods by `namespace/name`."""
        self.pod_log = PodLog()
        self.ports = PortIndex()
        self.claims_in_use: dict[str, int] = {}
        """How many pods on nodes use a claim, by `namespace/name`."""
        self.finished: dict[str, Pod] = {}
        """Pods of groups that count ended pods, by uid: they take up no room."""
        self.object_index = ObjectIndex()
        self.gangs = Gangs()
        self.shapes = Shapes()
        self.refused: list[str] = []
        self.applied = 0
        """How many changes the API has sent."""
        self.indexes: dict[tuple[type, Hashable], Any] = {}
        """What `index` made."""
        self._row_indexes: list[Index] = []
        self._pod_indexes: list[PodIndex] = []

    # ---- reading ----

    def seated(self) -> Iterator[tuple[Pod, int]]:
        """Pods that take up room, with their rows."""
        return ((pod_state.pod, pod_state.row) for pod_state in self.pods.values() if pod_state.place in _SEATED)

    def index(self, make: Callable[[Cluster], AnyIndex], key: type[AnyIndex], settings: Hashable = None) -> AnyIndex:
        """What somebody keeps about this cluster: made when first requested and kept from then on, over changes of the
        configuration too; one for each `settings`, where its content depends on some. It is called for changes if it
        is an Index or a PodIndex."""
        found = self.indexes.get((key, settings))
        if found is None:
            self.indexes[key, settings] = found = make(self)
            if isinstance(found, Index):
                for pods, row in zip(self.table.pods, range(self.table.high), strict=True):
                    for pod in pods:
                        found.occupied(pod, row)
                self._row_indexes.append(found)
            if isinstance(found, PodIndex):
                self._pod_indexes.append(found)
        assert isinstance(found, key)
        return found

    def begin_cycle(self) -> None:
        """Refresh what kube-scheduler refreshes with its snapshot: image counts of the rows that changed. For scores, a
        row whose counts changed is another node."""
        table = self.table
        for row in table.images.catch_up(table.counted, table.seen):
            table.static.touch(row)

    # ---- what the API says ----

    def apply(self, change: Change) -> AppliedChange | None:
        """Take in a change. None if it means nothing here, or cannot be understood (then `refused` says why)."""
        self.applied += 1
        try:
            if change.kind is kinds.POD:
                return self._apply_pod(change)
            if change.kind is kinds.NODE:
                return self.apply_node(change.happened, compile_node(change.doc))
            if change.kind in POD_LIKE:
                return self._apply_pod_like(change, POD_LIKE[change.kind])
            return self._apply_other(change)
        except ModelError as error:
            self.refused.append(str(error))
            return None

    def apply_node(self, happened: Happened, node: Node) -> AppliedChange | None:
        """Take in a change of a node that is compiled already."""
        row = self.table.row_of.get(node.name)
        old = self.table.nodes[row] if row is not None else None
        if happened is Happened.DELETED:
            if row is None:
                return None
            self.table.drop(node.name)
            self._node_changed(row)
            return AppliedChange(kinds.NODE, old, None)
        self._node_changed(self.table.put(node))
        return AppliedChange(kinds.NODE, old, node)

    def _node_changed(self, row: int) -> None:
        for index in self._row_indexes:
            index.node_changed(row)

    def _apply_pod_like(self, change: Change, pod_like: PodLike) -> AppliedChange | None:
        """An object that is scheduled as a pod is one for everybody else: the pod that stands for it."""
        old, new = self.object_index.apply(change)
        if old is None and new is None:
            return None
        document = pod_like.as_pod(new or old)
        if pod_like.index:
            make: type[PodLikeIndex] = resolve(pod_like.index)
            self.index(make, make).object_changed(document["metadata"]["uid"], new)
        metadata = change.doc["metadata"]
        shown = ReportedAs(change.kind, metadata.get("namespace") or "", metadata["name"])
        return self._apply_pod(Change(change.happened, kinds.POD, document), shown)

    def _apply_other(self, change: Change) -> AppliedChange | None:
        if change.kind not in COMPILERS:
            groups = self.gangs.owned.owner_changed(change)
            return AppliedChange(change.kind, None, None, groups=tuple(groups)) if groups else None
        old, new = self.object_index.apply(change)
        if change.kind is kinds.RESOURCE_CLAIM:  # the kind with the most changes, and with no part in what follows
            return AppliedChange(change.kind, old, new)
        if change.kind.stored_as is not None and object_key(change.doc) in self.object_index.of(change.kind.storage):
            return None  # the server shows it in two versions: the newer one counts
        if change.kind in GROUP_KINDS:
            self.gangs.group_changed(old, new)
        if change.kind is kinds.NAMESPACE:
            return AppliedChange(change.kind, old, new, regrouped=tuple(self._regroup(old or new, new)))
        return AppliedChange(change.kind, old, new)

    def _regroup(self, namespace: Namespace, now: Namespace | None) -> Iterator[tuple[Pod, Pod]]:
        """The namespace may request gangs, or not any more: pods whose group that changes, before and after."""
        if not self.gangs.owned.namespace_changed(namespace.name, now.labels if now is not None else {}):
            return
        opted_in = namespace.name in self.gangs.owned.namespaces
        for pod_state in [pod_state for pod_state in self.pods.values() if pod_state.seen.namespace == namespace.name]:
            old, new = pod_state.seen, as_namespace_says(pod_state.seen, opted_in=opted_in)
            if new is not old:
                pod_state.seen = new
                self._change_gang(pod_state)
                if pod_state.place is PodPlace.PENDING:
                    pod_state.pod = new
                    yield old, new

    def _apply_pod(self, change: Change, reported_as: ReportedAs | None = None) -> AppliedChange | None:
        metadata = change.doc.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, dict) else None
        known = self.pods.get(uid) if isinstance(uid, str) else None
        if known is None:
            if change.happened is _DELETED and isinstance(uid, str):  # it has ended before
                self._forget_ended(uid)
                return None
        elif change.happened is _DELETED or ends_unnoticed(known.seen, change.doc):  # no more of the document counts
            if known.gang is not None and ended_by_itself(change.doc):
                known.gang.ended(known)
            return self.apply_pod(_DELETED, known.seen)
        pod = compile_pod(change.doc, self.shapes, None if known is None else known.seen)
        if pod.namespace in self.gangs.owned.namespaces:
            pod = as_namespace_says(pod, opted_in=True)
        if reported_as is not None:
            pod = replace(pod, reported_as=reported_as)
        return self.apply_pod(change.happened, pod)

    def apply_pod(self, happened: Happened, pod: Pod) -> AppliedChange | None:
        """Take in a change of a pod that is compiled already: what `apply` does with its document."""
        applied = self._take_in_pod(happened, pod)
        for index in self._pod_indexes:
            index.pod_changed(pod.uid)
        return applied

    def _take_in_pod(self, happened: Happened, pod: Pod) -> AppliedChange | None:
        pod_state = self.pods.get(pod.uid)
        if self.pod_log.is_read:
            self.pod_log.touch(pod.uid)
        if happened is _DELETED or pod.phase in ("Succeeded", "Failed"):
            if happened is _DELETED:
                self.finished.pop(pod.uid, None)
            elif is_noted(pod):
                self.finished[pod.uid] = pod
            return self._pod_gone(kinds.POD, pod, pod_state)
        if pod_state is None:
            self.pods[pod.uid] = self.pods_by_key[pod.key] = pod_state = PodState(pod, pod, _PENDING)
            pod_state.gang = self.gangs.join(pod_state)
            if pod.node_name:
                self._occupy(pod_state, pod)
            return AppliedChange(kinds.POD, None, pod)
        old, was = pod_state.seen, pod_state.place
        pod_state.seen = pod
        if old.group_ref != pod.group_ref:
            self._change_gang(pod_state)
        if pod.node_name:
            self._move(pod_state, pod)
        elif was is not _ASSUMED:
            if was is not _PENDING:  # no API server takes a node away again, but a restored backup may
                self._vacate(pod_state)
                self._settle(pod_state, _PENDING, -1)
            pod_state.pod = pod
        return AppliedChange(kinds.POD, old, pod, was)

    def _forget_ended(self, uid: str) -> None:
        self.finished.pop(uid, None)
        if self.pod_log.is_read:
            self.pod_log.touch(uid)
        for index in self._pod_indexes:
            index.pod_changed(uid)

    def _pod_gone(self, kind: Kind, pod: Pod, pod_state: PodState | None) -> AppliedChange | None:
        if pod_state is None:
            return None
        del self.pods[pod.uid]
        if self.pods_by_key.get(pod.key) is pod_state:
            del self.pods_by_key[pod.key]
        old = self._as_placed(pod_state)
        if pod_state.place in _SEATED:
            self._vacate(pod_state)
        if pod_state.gang is not None:
            self.gangs.leave(pod_state.gang, pod_state, last=pod)
        return AppliedChange(kind, old, None, pod_state.place)

    def _change_gang(self, pod_state: PodState) -> None:
        """A label or annotation that names the group was edited."""
        if pod_state.gang is not None:
            self.gangs.leave(pod_state.gang, pod_state)
        pod_state.gang = self.gangs.join(pod_state)

    def _settle(self, pod_state: PodState, place: PodPlace, row: int) -> None:
        if pod_state.gang is not None and pod_state.place is not place:
            self.gangs.moved(pod_state.gang, pod_state, place)
        pod_state.place, pod_state.row = place, row

    def _as_placed(self, pod_state: PodState) -> Pod:
        """The pod as events show it: one that was assumed is shown on the node for which it was meant."""
        if pod_state.place is not _ASSUMED:
            return pod_state.seen
        return replace(pod_state.seen, node_name=self.table.name(pod_state.row))

    def _occupy(self, pod_state: PodState, pod: Pod) -> None:
        pod_state.pod = pod_state.seen = pod
        place = _RELEASING if pod.terminating else _BOUND
        self._settle(pod_state, place, self.table.row_for(pod.node_name))
        self.occupy(pod, pod_state.row)

    def _vacate(self, pod_state: PodState) -> None:
        self.vacate(pod_state.pod, pod_state.row)
        self.table.release_if_ghost(pod_state.row)

    def _move(self, pod_state: PodState, pod: Pod) -> None:
        """A pod on a node is seen again: the old copy goes, the new one comes, as the last on its node."""
        if pod_state.place in _SEATED:
            stays = self.table.row_of.get(pod.node_name) == pod_state.row
            if stays and counts_the_same(pod_state.pod, pod):
                self._exchange(pod_state, pod)
                return
            self._vacate(pod_state)
        self._occupy(pod_state, pod)

    def _exchange(self, pod_state: PodState, pod: Pod) -> None:
        """With a Binding the API server gives a pod the labels of its node's zone and region; indexes are notified."""
        if pod_state.pod.labels != pod.labels:
            call_vacated(self._row_indexes, pod_state.pod, pod_state.row)
            call_occupied(self._row_indexes, pod, pod_state.row)
        same = reads_the_same(pod_state.pod, pod, thoroughly=self.table.content_is_read)
        pods = self.table.pods[pod_state.row]
        if pods[-1] is not pod_state.pod:
            pods[_position(pods, pod_state.pod)] = pods[-1]
        pods[-1] = pod_state.pod = pod_state.seen = pod
        self._settle(pod_state, _RELEASING if pod.terminating else _BOUND, pod_state.row)
        (self.table.seen if same else self.table.counted).touch(pod_state.row)

    # ---- what scheduling decides (through a Statement) ----

    def occupy(self, pod: Pod, row: int) -> tuple[HostPort, ...]:
        """Add a pod to a row: its requests, ports and claims, and its place at the end of the row's pods."""
        self._count(pod, row, 1)
        if self.table.versions_are_read:
            self.table.version[row] += 1
        self.table.pods[row].append(pod)
        fresh = self.ports.add(row, pod.shape.host_ports) if pod.shape.host_ports else ()
        call_occupied(self._row_indexes, pod, row)
        return fresh

    def undo_occupy(self, pod: Pod, row: int, fresh_ports: tuple[HostPort, ...]) -> None:
        last = self.table.pods[row].pop()
        assert last is pod, "placements are undone in reverse order"
        self._count(pod, row, -1)
        if self.table.versions_are_read:
            self.table.version[row] -= 1
        self.ports.remove(row, fresh_ports)
        call_vacated(self._row_indexes, pod, row)

    def vacate(self, pod: Pod, row: int) -> Removal:
        """Take a pod off a row. The row's last pod takes its position, as in kube-scheduler, whose choice of victims
        depends on that order."""
        pods = self.table.pods[row]
        position = _position(pods, pod)
        pods[position] = pods[-1]
        pods.pop()
        self._count(pod, row, -1)
        freed = self.ports.remove(row, pod.shape.host_ports) if pod.shape.host_ports else ()
        call_vacated(self._row_indexes, pod, row)
        return Removal(row, position, freed)

    def undo_vacate(self, pod: Pod, removal: Removal) -> None:
        pods = self.table.pods[removal.row]
        if removal.position == len(pods):
            pods.append(pod)
        else:
            pods.append(pods[removal.position])
            pods[removal.position] = pod
        self._count(pod, removal.row, 1)
        self.ports.add(removal.row, removal.freed_ports)
        call_occupied(self._row_indexes, pod, removal.row)

    def restore_order(self, row: int, pods: Sequence[Pod]) -> None:
        """Put the pods of a row in the order that they had; those that are not named come last."""
        place = {pod.uid: at for at, pod in enumerate(pods)}
        self.table.pods[row].sort(key=lambda pod: place.get(pod.uid, len(pods)))

    def reshape(self, pod_state: PodState, shape: PodShape) -> None:
        """Count a pod that is on a row with another shape from now on."""
        self.vacate(pod_state.pod, pod_state.row)
        pod_state.pod = replace(pod_state.pod, shape=shape)
        self.occupy(pod_state.pod, pod_state.row)

    def assume(self, pod: Pod, row: int, pod_state: PodState) -> None:
        """A committed placement: the pod counts as on its row until the API confirms or refuses. `pod_state` is what
        `pending` answered."""
        self._settle(pod_state, _ASSUMED, row)
        if self.pod_log.is_read:
            self.pod_log.touch(pod.uid)
        pod_state.pod = pod

    def pending(self, pod: Pod) -> PodState:
        """The state of a pod that has no place yet; an AssertionError if it has one, or is gone."""
        pod_state = self.pods.get(pod.uid)
        if pod_state is None or pod_state.place is not _PENDING:
            place = "gone" if pod_state is None else pod_state.place.value
            raise AssertionError(f"pod {pod.key} is {place}, so can't be assumed")
        return pod_state

    def forget(self, uid: str) -> Pod | None:
        """Undo an assumed placement; the pod is pending again. Returns it as it was placed, for those who listen to
        pods leaving nodes; None if it is not assumed (any more)."""
        pod_state = self.pods.get(uid)
        if pod_state is None or pod_state.place is not _ASSUMED:
            return None
        left = self._as_placed(pod_state)
        self._vacate(pod_state)
        self._settle(pod_state, _PENDING, -1)
        if self.pod_log.is_read:
            self.pod_log.touch(uid)
        pod_state.pod = pod_state.seen
        return left

    def _count(self, pod: Pod, row: int, sign: int) -> None:
        table, shape = self.table, pod.shape
        requested = table.requested
        for resource, amount in shape.request.items():
            column = requested.get(resource)
            if column is None:
                column = table.requested_column(resource)
            if amount:
                column[row] += sign * amount
        table.nonzero_cpu[row] += sign * shape.nonzero_cpu
        table.nonzero_memory[row] += sign * shape.nonzero_memory
        table.pod_count[row] += sign
        table.counted.touch(row)
        if shape.volumes:
            self._count_claims(pod, sign)

    def _count_claims(self, pod: Pod, sign: int) -> None:
        for volume in pod.shape.volumes:
            if volume.source is VolumeSource.CLAIM:
                key = f"{pod.namespace}/{volume.name}"
                count = self.claims_in_use.get(key, 0) + sign
                if count:
                    self.claims_in_use[key] = count
                else:
                    del self.claims_in_use[key]

    # ---- invariant ----

    def check(self) -> None:
        """Recount the table from the pods and compare; an AssertionError names what differs."""
        table = self.table
        self.gangs.check()
        on_rows: dict[int, list[Pod]] = {}
        for pod, row in self.seated():
            on_rows.setdefault(row, []).append(pod)
        for row in range(table.high):
            here = {pod.uid for pod in on_rows.get(row, ())}
            listed = [pod.uid for pod in table.pods[row]]
            assert sorted(listed) == sorted(here), f"row {row} lists other pods than it has"
        for resource, column in table.requested.items():
            expected = np.zeros(table.capacity, dtype=np.int64)
            for row, pods in on_rows.items():
                expected[row] = sum(pod.shape.request.get(resource, 0) for pod in pods)
            expected += table.claimed.get(resource, 0)
            assert np.array_equal(column, expected), f"requested {resource} differs from the sum of the pods"
        for name, read in _SUMS:
            expected = np.zeros(table.capacity, dtype=np.int64)
            for row, pods in on_rows.items():
                expected[row] = sum(read(pod) for pod in pods)
            assert np.array_equal(getattr(table, name), expected), f"{name} differs from the sum of the pods"
        assert len(table) == int(table.alive.sum()), "a row is alive without a node, or the other way round"
        for name, row in table.row_of.items():
            node = table.nodes[row]
            assert isinstance(node, Node), f"{name} has a row without a node"
            assert node.name == name, f"row {row} is not {name}'s"
            assert table.alive[row], f"{name} has a dead row"


def _position(pods: Sequence[Pod], pod: Pod) -> int:
    return pods.index(pod) if pod in pods else next(at for at, other in enumerate(pods) if other.uid == pod.uid)


_SUMS: tuple[tuple[str, Callable[[Pod], int]], ...] = (
    ("pod_count", lambda pod: 1),
    ("nonzero_cpu", lambda pod: pod.shape.nonzero_cpu),
    ("nonzero_memory", lambda pod: pod.shape.nonzero_memory),
)
