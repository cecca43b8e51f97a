"""Coscheduling: pods of a gang are bound together or not at all, one attempt at a whole group after the other.

The queue holds one pod of a group. When it is tried an attempt at the group begins: its other pending pods are tried
next, before anybody else (`next_pod`). Each that finds a node waits there; when every gang of the group has enough, all
are let go. The first failure ends the attempt: those not tried yet fail with its message, and those that wait give
their places back, at once or, where the gang is not strict, when all were tried.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.effects import PermitOrder
from fairlead.core.framework.explainers import GangFacts
from fairlead.core.framework.extended_plugin import ExtendedPlugin
from fairlead.core.framework.plugin import Hint, Interest, PostFilterResult, Wait
from fairlead.core.model import kinds
from fairlead.core.model.events import ASSIGNED_POD, ActionType, ClusterEvent
from fairlead.core.model.gang_explanation import Domain
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import SKIP, SUCCESS, Status, failed, fit_message, unresolvable, unschedulable
from fairlead.koordinator.gangs.index import GangIndex, GroupAttempt, gang_index_of
from fairlead.koordinator.gangs.network import (
    NetworkPart,
    NetworkSearch,
    add_slots,
    count_pods,
    network_tree,
    ordered,
    slots_of,
)
from fairlead.koordinator.gangs.preemption import JobVictims
from fairlead.koordinator.gangs.status import GangStatusWriter
from fairlead.koordinator.kinds import KOORD_NETWORK_TOPOLOGY, KOORD_POD_GROUP, POD_GROUP_EVENTS
from fairlead.koordinator.pod_annotations import write_annotation
from fairlead.koordinator.records.gangs import (
    ONCE_SATISFIED,
    ONLY_WAITING,
    SELECTOR,
    STRICT,
    TOPOLOGY_INDEX,
    gang_id,
    gang_name,
)
from fairlead.kube.scoring import to_hundred

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.effects import Effects
    from fairlead.core.framework.extended_plugin import RowTrial
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.flow import Write
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.nodes import Nodes
    from fairlead.koordinator.gangs.index import GangState
    from fairlead.koordinator.records.network import ClusterNetwork

GROUP_ID = "internal.scheduling.koordinator.sh/bind-gang-group-id"
MEMBER_COUNT = "internal.scheduling.koordinator.sh/bind-gang-member-count"
_ALL_TRIED = "all pending pods is already been attempted"
_NAMED = 100
_TOPOLOGY = "default"
"""The name of the one ClusterNetworkTopology that counts."""


@dataclass(frozen=True, slots=True)
class GangSettings:
    timeout: float = 600.0
    policy: str = ONCE_SATISFIED
    follows_network: bool = False
    preempts: bool = False
    preempts_for_each_alone: bool = False
    keeps_nominations: bool = False
    rest_stays_gated: bool = False


class Coscheduling(ExtendedPlugin):
    name = "Coscheduling"
    kinds_read = (KOORD_POD_GROUP, KOORD_NETWORK_TOPOLOGY, kinds.POD)
    """Of pods also those that have ended, which its groups count."""

    def __init__(self, settings: GangSettings) -> None:
        self._settings = settings
        self._gang_index: GangIndex | None = None
        self._status_writer: GangStatusWriter | None = None
        self._binding: dict[str, tuple[str, int]] = {}
        """Group and number of the pods that were let go together, by uid, until they are bound."""

    def events(self) -> Sequence[Interest]:
        groups = Interest(ClusterEvent(POD_GROUP_EVENTS, ActionType.ALL), _described_anew)
        if self._settings.rest_stays_gated:
            return (groups,)
        return groups, Interest(ClusterEvent(ASSIGNED_POD, ActionType.ADD), self._after_other)

    def _after_other(self, pod: Pod, old: object, new: object) -> Hint:
        """A pod was bound: does one of its group, which waits at the gate, come next?"""
        gang = self._gang_index.gang_of(pod) if self._gang_index is not None else None
        group = gang.spec.groups if gang is not None and gang.spec is not None else ()
        return Hint.QUEUE if isinstance(new, Pod) and gang_id(new) in group else Hint.SKIP

    def looks_at_pods(self, cycle: Cycle) -> bool:
        return bool(gang_name(cycle.pod) or cycle.pod.annotations.get(SELECTOR))

    def _index_of(self, cluster: Cluster) -> GangIndex:
        self._gang_index = gang_index_of(cluster)
        return self._gang_index

    def sync(self, cluster: Cluster, now: float) -> Iterable[Write]:
        gang_index, self._status_writer = self._index_of(cluster), cluster.index(GangStatusWriter, GangStatusWriter)
        return self._status_writer.step(gang_index, now)

    def sync_at(self) -> float | None:
        return self._status_writer.wake_at() if self._status_writer is not None else None

    def gang_facts(self, namespace: str, name: str, cluster: Cluster) -> GangFacts | None:
        """What explanations of a gang need to know."""
        gang_index = self._index_of(cluster)
        gang = gang_index.gangs.get(f"{namespace}/{name}")
        if gang is None or gang.spec is None:
            return None
        pods = tuple(member.seen for member in gang.members.values())
        looked_at = gang_index.group_of(gang).looked_at if gang.spec.gather is not None else ()
        return GangFacts(pods, gang.spec.least, KOORD_POD_GROUP.group, looked_at)

    # ---- the queue ----

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        if not gang_name(pod):
            return None
        gang_index = self._index_of(cluster)
        gang = gang_index.gang_of(pod)
        if gang is None:
            return unresolvable(f"can't find gang, gangName: {gang_id(pod)}, podName: {pod.key}")
        if gang.spec is None:
            return unresolvable(f"gang has not init, gangName: {gang.id}, podName: {pod.key}")
        if self._is_free(gang_index, gang):
            return None
        group = gang_index.group_of(gang)
        complaint = gang_index.complaint(gang, pod)
        if complaint:
            if group.representative == pod.uid:
                group.representative = ""
            return unresolvable(complaint)
        attempt = gang_index.attempt
        if attempt is not None and gang.id in attempt.group and pod.uid not in attempt.tried:
            return unresolvable(
                f"pod has not been attempted in current gang scheduling cycle, gangGroup: {gang.spec.group_id}"
            )
        if group.representative and group.representative != pod.uid and group.representative in cluster.pods:
            return unresolvable(
                f"representative pod {cluster.pods[group.representative].seen.key} of gangGroup {gang.spec.group_id}"
                " already exists"
            )
        group.representative = pod.uid
        return None

    def _is_free(self, gang_index: GangIndex, gang: GangState) -> bool:
        """Whether pods of a gang need not wait for each other any more."""
        return self._policy(gang) == ONCE_SATISFIED and gang_index.group_of(gang).satisfied

    def _policy(self, gang: GangState) -> str:
        return (gang.spec.policy if gang.spec is not None else "") or self._settings.policy

    def next_pod(self, cluster: Cluster, effects: Effects) -> str:
        """The uid of the pod to try next while an attempt at a group is under way; empty if none is. When all were
        tried, the attempt ends and those that wait give their places back."""
        gang_index = self._index_of(cluster)
        attempt = gang_index.attempt
        if attempt is None:
            return ""
        for gang in gang_index.members_of(attempt.group):
            for member in gang.pending:
                if member.seen.uid not in attempt.tried:
                    attempt.tried.add(member.seen.uid)
                    return member.seen.uid
        self._reject(effects, gang_index, attempt.group, _ALL_TRIED)
        gang_index.attempt = None
        return ""

    def _reject(
        self,
        effects: Effects,
        gang_index: GangIndex,
        group: tuple[str, ...],
        message: str,
        *,
        but: str = "",
        stays_nominated: bool = False,
    ) -> None:
        keeps = self._settings.keeps_nominations or stays_nominated
        together = frozenset(uid for gang in gang_index.members_of(group) for uid in gang.members)
        for member in [member for member in gang_index.waiting(group) if member.seen.uid != but]:
            effects.permit_orders.append(PermitOrder(member.seen.uid, self.name, message, keeps, together))

    # ---- the cycle ----

    def before_pre_filter(self, cycle: Cycle) -> Status | None:
        pod = cycle.pod
        if not gang_name(pod):
            return None
        gang_index = self._index_of(cycle.cluster)
        gang = gang_index.gang_of(pod)
        if gang is None or gang.spec is None:
            return self.pre_enqueue(pod, cycle.cluster)
        if self._is_free(gang_index, gang):
            return None
        complaint = gang_index.complaint(gang, pod)
        if complaint:
            return unresolvable(complaint)
        attempt = gang_index.attempt
        if attempt is None:
            if gang.spec.gather is not None and self._settings.follows_network and self._network(cycle) is None:
                return unresolvable("no cluster network topology")
            gang_index.attempt = GroupAttempt(gang.spec.groups, pod.uid, {pod.uid})
            gang_index.group_of(gang).representative = ""
            return None
        attempt.tried.add(pod.uid)
        return unresolvable(attempt.failed) if attempt.failed else None

    def pre_filter(self, cycle: Cycle) -> Status | frozenset[str] | None:
        attempt = self._own_attempt(cycle)
        if attempt is None or attempt.failed or len(attempt.tried) < 2 or not self._gathers(cycle):
            return SKIP
        planned = (attempt.plan or {}).get(cycle.pod.key)
        return frozenset({planned}) if planned else failed("no planned pods")

    def _own_attempt(self, cycle: Cycle) -> GroupAttempt | None:
        """The attempt that is under way, if it is at the pod's own group."""
        if not gang_name(cycle.pod):
            return None
        attempt = self._index_of(cycle.cluster).attempt
        return attempt if attempt is not None and gang_id(cycle.pod) in attempt.group else None

    def _gathers(self, cycle: Cycle) -> bool:
        if not self._settings.follows_network:
            return False
        gang = self._index_of(cycle.cluster).gang_of(cycle.pod)
        return gang is not None and gang.spec is not None and gang.spec.gather is not None

    # ---- the network ----

    def _network(self, cycle: Cycle) -> ClusterNetwork | None:
        found: ClusterNetwork | None = cycle.cluster.object_index.of(KOORD_NETWORK_TOPOLOGY).get(_TOPOLOGY)
        return found

    def preferred_nodes(self, cycle: Cycle, names: frozenset[str] | None, trial: RowTrial) -> Sequence[str] | Status:
        attempt = self._own_attempt(cycle)
        if attempt is None or attempt.failed or len(attempt.tried) > 1 or not self._gathers(cycle):
            return ()
        gang_index = self._index_of(cycle.cluster)
        pods = [member.seen for gang in gang_index.members_of(attempt.group) for member in gang.pending]
        network, gang = self._network(cycle), gang_index.gang_of(cycle.pod)
        assert network is not None
        assert gang is not None
        assert gang.spec is not None
        table = cycle.cluster.table
        pods.sort(key=lambda pod: (int(pod.annotations.get(TOPOLOGY_INDEX) or 0), pod.name))
        own = frozenset(pod.uid for pod in pods)
        rows = [row for row, node in table.alive_rows() if names is None or node.name in names]
        slots, refused = slots_of(rows, len(pods), lambda row, count: trial(row, pods[:count], own))
        root, leaves = network_tree(network, table)
        add_slots(leaves, slots)
        count_pods(leaves, table, pods[0].annotations.get(SELECTOR, ""))
        layers = [layer.name for layer in network.layers]
        search = NetworkSearch(root, layers, gang.spec.gather or ())
        by_name = {pod.name: pod for pod in pods}
        plan = search.plan(list(by_name))
        best = sorted(plan.looked_at, key=lambda part: (-part.slots, part.name))
        gang_index.group_of(gang).looked_at = tuple(Domain(part.name, part.slots, part.layer) for part in best[:_NAMED])
        if plan.nodes:
            attempt.plan = {by_name[name].key: node for name, node in plan.nodes.items()}
            return (attempt.plan[cycle.pod.key],)
        return self._no_plan(plan.looked_at, len(pods), refused, len(rows), search.multiples, cycle)

    def _no_plan(
        self,
        looked_at: Sequence[NetworkPart],
        wanted: int,
        refused: Mapping[int, int],
        total: int,
        multiples: Mapping[str, int],
        cycle: Cycle,
    ) -> Status:
        parts = sorted(f"topology topologyNode {part.layer}/{part.name}: {part.slots}" for part in looked_at)
        results = cycle.results
        assert results is not None
        histogram: dict[str, int] = {}
        for code in refused.values():
            for reason in results.codes.verdict(code).reasons:
                histogram[reason] = histogram.get(reason, 0) + 1
        said = fit_message(total, histogram)
        words = ", ".join(f"{layer}={multiple}" for layer, multiple in sorted(multiples.items()))
        constraints = f"; podCountMultiple constraints: {words}" if words else ""
        return unschedulable(
            f"no candidate topology nodes can accommodate job, desiredOfferSlot: {wanted}, {';'.join(parts)}, {said}"
            + constraints
        )

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        if not cycle.pod.annotations.get(SELECTOR) or self._network(cycle) is None:
            return SKIP
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        """The place of each node in the order of the network, the best first."""
        network, table = self._network(cycle), cycle.cluster.table
        assert network is not None, "it stepped aside otherwise"
        _, leaves = network_tree(network, table)
        rows = nodes.row_numbers().tolist()
        add_slots(leaves, dict.fromkeys(rows, 1))
        count_pods(leaves, table, cycle.pod.annotations[SELECTOR])
        known = {leaves[row].name: at for at, row in enumerate(rows) if row in leaves}
        scores = np.zeros(len(rows), dtype=np.int64)
        for place, part in enumerate(ordered([leaves[row] for row in rows if row in leaves], small=True)):
            scores[known[part.name]] = place
        return scores

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_hundred(raw, reverse=True)

    # ---- failure ----

    def post_filter(self, cycle: Cycle, refusals: Refusals) -> PostFilterResult:
        """The attempt at a group has failed: try to make room, remember why it failed, and let go of the places of a
        strict gang. Pods of a group that room was made for stay nominated to their nodes."""
        pod = cycle.pod
        gang_index = self._index_of(cycle.cluster)
        gang = gang_index.gang_of(pod) if gang_name(pod) else None
        together = gang is not None and gang.spec is not None and not self._is_free(gang_index, gang)
        said = self._make_room(cycle, refusals, gang_index.attempt if together else None)
        if together and gang is not None and gang.spec is not None:
            message = self._failure(gang_index, gang, pod, refusals)
            if gang.spec.mode == STRICT or said.status.ok:
                self._reject(cycle.effects, gang_index, gang.spec.groups, message, stays_nominated=said.status.ok)
        return said

    def _make_room(self, cycle: Cycle, refusals: Refusals, attempt: GroupAttempt | None) -> PostFilterResult:
        """Evict for the whole group at once, or for the pod if it is of none; once in an attempt at a group."""
        if not self._settings.preempts:
            return PostFilterResult(unschedulable())
        if attempt is not None and attempt.preempted:
            return PostFilterResult(unschedulable(f"preemption: {attempt.preempted}"))
        pods, waiting = [cycle.pod], 0
        if attempt is not None:
            gang_index = self._index_of(cycle.cluster)
            others = [member.seen for gang in gang_index.members_of(attempt.group) for member in gang.pending]
            pods += [pod for pod in others if pod.uid != cycle.pod.uid]
            waiting = len(gang_index.waiting(attempt.group))
        victims = JobVictims(cycle, refusals, pods, each_alone=self._settings.preempts_for_each_alone)
        ineligible = victims.ineligible()
        room = ineligible or victims.search()
        success = f"preempt success, alreadyWaitingForBound: {waiting}/{len(pods) + waiting}"
        said = room if isinstance(room, str) else success
        if attempt is not None:
            attempt.preempted = f"preemption already attempted by {cycle.pod.key} with message {said}"
        if isinstance(room, str):
            return PostFilterResult(unschedulable(f"preemption: {said}"), nominated=None if ineligible else "")
        return PostFilterResult(SUCCESS, room.nodes[cycle.pod.uid], room.victims)

    def _failure(self, gang_index: GangIndex, gang: GangState, pod: Pod, refusals: Refusals) -> str:
        attempt = gang_index.attempt
        assert gang.spec is not None
        if attempt is None:
            return f"gets rejected due to member pod {json.dumps(pod.key)} is unschedulable"
        if not attempt.failed:
            said = replace(refusals.diagnosis, early=None).message
            waiting = len(gang_index.waiting(attempt.group))
            attempt.failed = (
                f"GangGroup {_quoted(gang.spec.group_id)} gets rejected due to member Pod {_quoted(pod.key)} is"
                f" unschedulable with reason {_quoted(said)}, alreadyWaitForBound: {waiting}"
            )
        return attempt.failed

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        return None

    def permit(self, cycle: Cycle, row: int) -> Status | Wait | None:
        pod = cycle.pod
        if not gang_name(pod):
            return None
        gang_index = self._index_of(cycle.cluster)
        gang = gang_index.gang_of(pod)
        if gang is None or gang.spec is None:
            return unschedulable("Gang not found")
        group = gang.spec.groups
        if not all(one in gang_index.gangs and self._has_enough(gang_index, gang_index.gangs[one]) for one in group):
            return Wait(gang.spec.wait or self._settings.timeout)
        together = gang_index.waiting(group)
        for member in together:
            self._binding[member.seen.uid] = (gang.spec.group_id, len(together))
            if member.seen.uid != pod.uid:
                cycle.effects.permit_orders.append(PermitOrder(member.seen.uid, self.name))
        if gang_index.attempt is not None and gang.id in gang_index.attempt.group:
            gang_index.attempt = None
        return None

    def _has_enough(self, gang_index: GangIndex, gang: GangState) -> bool:
        if gang.spec is None:
            return False
        policy, waiting = self._policy(gang), len(gang.waiting)
        if policy == ONLY_WAITING:
            return waiting >= gang.spec.least
        if policy == ONCE_SATISFIED:
            return waiting >= gang.spec.least or gang_index.group_of(gang).satisfied
        return waiting + len(gang.bound) >= gang.spec.least

    def unreserve(self, cycle: Cycle, row: int) -> None:
        pod = cycle.pod
        self._binding.pop(pod.uid, None)
        gang_index = self._index_of(cycle.cluster) if gang_name(pod) else None
        gang = gang_index.gang_of(pod) if gang_index is not None else None
        if gang_index is None or gang is None or gang.spec is None or self._is_free(gang_index, gang):
            return
        if gang.spec.mode == STRICT:
            message = f"Gang {_quoted(gang.id)} gets rejected due to Pod {_quoted(pod.name)} in Unreserve"
            self._reject(cycle.effects, gang_index, gang.spec.groups, message, but=pod.uid)

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status:
        return SUCCESS if gang_name(cycle.pod) else SKIP

    def pre_bind(self, cycle: Cycle, row: int) -> None:
        """Write on a pod that was let go with others how many there are."""
        group, count = self._binding.get(cycle.pod.uid, ("", 0))
        if count < 2:
            return
        for key, text in ((GROUP_ID, group), (MEMBER_COUNT, str(count))):
            write_annotation(cycle, key, text)
            write_annotation(cycle, key.removeprefix("internal."), text)

    def post_bind(self, cycle: Cycle, row: int) -> None:
        self._binding.pop(cycle.pod.uid, None)


def _described_anew(pod: Pod, old: object, new: object) -> Hint:
    """A PodGroup came or changed: its status, which changes with every pod, is no news."""
    return Hint.QUEUE if old != new else Hint.SKIP


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
