"""GangIndex: the gangs of a cluster, their pods by place, and the attempt at one group of gangs that is under way.

Gangs that name each other form a group. Of a group one pod at a time stands for all in the queue; when its turn comes,
an attempt begins, in which all pending pods of the group are tried one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.state.pod_states import PodPlace
from fairlead.koordinator.kinds import KOORD_POD_GROUP
from fairlead.koordinator.records.gangs import GROUP_LABEL, GangSpec, gang_id, gang_of_pod

if TYPE_CHECKING:
    from fairlead.core.model.gang_explanation import Domain
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.pod_states import PodState


@dataclass(slots=True, eq=False)
class GangState:
    """One gang. `spec` is None while nothing describes it. `members` are its pods, by uid."""

    id: str
    spec: GangSpec | None = None
    members: dict[str, PodState] = field(default_factory=dict)

    def in_place(self, *places: PodPlace) -> list[PodState]:
        return [member for member in self.members.values() if member.place in places]

    @property
    def pending(self) -> list[PodState]:
        return self.in_place(PodPlace.PENDING)

    @property
    def waiting(self) -> list[PodState]:
        return self.in_place(PodPlace.ASSUMED)

    @property
    def bound(self) -> list[PodState]:
        return self.in_place(PodPlace.BOUND, PodPlace.RELEASING)


@dataclass(slots=True)
class GroupAttempt:
    """An attempt at a group: which pods were tried, why it failed if it has, and the plan that it follows."""

    group: tuple[str, ...]
    first: str
    tried: set[str]
    failed: str = ""
    preempted: str = ""
    """What came of making room for the group by evictions; empty if it was not tried."""
    plan: Mapping[str, str] | None = None


@dataclass(slots=True)
class GroupState:
    """What is remembered of a group: whether it was satisfied once, and the pod that stands for it in the queue."""

    satisfied: bool = False
    representative: str = ""
    looked_at: tuple[Domain, ...] = ()
    """The parts of the network that the last attempt looked at, if none had room for the group; the best first."""


class GangIndex:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kind_index = cluster.object_index.of(KOORD_POD_GROUP)
        self._version = self._pod_mark = -1
        self._gang_of: dict[str, str] = {}
        self.gangs: dict[str, GangState] = {}
        self.groups: dict[str, GroupState] = {}
        self.attempt: GroupAttempt | None = None
        self.touched: set[str] = set()
        """Gangs that came or changed; the writer of their status empties it."""

    def catch_up(self) -> None:
        cluster = self._cluster
        changed = cluster.pod_log.since(self._pod_mark) if self._pod_mark >= 0 else None
        self._pod_mark = cluster.pod_log.mark
        uids = [*cluster.pods, *self._gang_of] if changed is None else changed
        for uid in dict.fromkeys(uids):
            self._take_in(uid, cluster.pods.get(uid))
        if self._version != self._kind_index.version:
            keys = self._kind_index.since(self._version) if self._version >= 0 else None
            self._version = self._kind_index.version
            self._describe([*self._kind_index, *self.gangs] if keys is None else keys)

    def _take_in(self, uid: str, pod_state: PodState | None) -> None:
        before = self._gang_of.get(uid, "")
        now = gang_id(pod_state.seen) if pod_state is not None else ""
        self.touched.update(one for one in (before, now) if one)
        if before and before != now:
            self._leave(uid, before)
        if not now or pod_state is None:
            return
        self._gang_of[uid] = now
        gang = self.gangs.setdefault(now, GangState(now, self._kind_index.get(now)))
        if gang.spec is None and not pod_state.seen.labels.get(GROUP_LABEL):
            gang.spec = gang_of_pod(pod_state.seen)
        gang.members[uid] = pod_state
        if pod_state.place in (PodPlace.BOUND, PodPlace.RELEASING):
            self.group_of(gang).satisfied = True

    def _leave(self, uid: str, gang: str) -> None:
        self._gang_of.pop(uid, None)
        state = self.gangs[gang]
        state.members.pop(uid, None)
        group = self.group_of(state)
        if group.representative == uid:
            group.representative = ""
        if not state.members and (state.spec is None or not state.spec.by_object):
            self._drop(gang, state.spec)

    def _describe(self, keys: Iterable[str]) -> None:
        """PodGroups came, changed or went."""
        for name in dict.fromkeys(keys):
            spec, gang = self._kind_index.get(name), self.gangs.get(name)
            self.touched.add(name)
            if spec is not None:
                self.gangs.setdefault(name, GangState(name)).spec = spec
            elif gang is not None and gang.spec is not None and gang.spec.by_object:
                before = gang.spec
                gang.spec = next((s for m in gang.members.values() if (s := gang_of_pod(m.seen)) is not None), None)
                if not gang.members:
                    self._drop(gang.id, before)

    def _drop(self, gang: str, spec: GangSpec | None) -> None:
        """A gang is gone, and with the last gang of its group what was remembered of the group: one that comes later
        under the same name has not been satisfied."""
        del self.gangs[gang]
        if spec is None:
            self.groups.pop(gang, None)
        elif not any(one in self.gangs for one in spec.groups):
            self.groups.pop(spec.group_id, None)

    def gang_of(self, pod: Pod) -> GangState | None:
        return self.gangs.get(gang_id(pod))

    def group_of(self, gang: GangState) -> GroupState:
        key = gang.spec.group_id if gang.spec is not None else gang.id
        return self.groups.setdefault(key, GroupState())

    def members_of(self, group: tuple[str, ...]) -> Iterator[GangState]:
        """The gangs of a group that are there."""
        return (self.gangs[one] for one in group if one in self.gangs)

    def waiting(self, group: tuple[str, ...]) -> list[PodState]:
        """The pods of a group that have a place and wait for the others."""
        return [member for gang in self.members_of(group) for member in gang.waiting]

    def complaint(self, gang: GangState, pod: Pod) -> str:
        """Why a group cannot be tried yet; empty if it can."""
        assert gang.spec is not None, "asked before"
        group = gang.spec.groups
        missing = [one for one in group if one not in self.gangs]
        bare = [one for one in group if one in self.gangs and self.gangs[one].spec is None]
        few = [one.id for one in self.members_of(group) if one.spec is not None and len(one.members) < one.spec.least]
        said = []
        listed = f"[{' '.join(group)}]"
        if missing:
            said.append(f"memberGangs [{' '.join(missing)}] doesn't exists")
        if bare:
            said.append(f"memberGangs [{' '.join(bare)}] has not init")
        if few:
            said.append(f"memberGangs {listed} child pod not collect enough")
        if not said:
            return ""
        return f"gangGroup {listed} basic check: {', '.join(said)}, current gang: {gang.id}, podName: {pod.key}"


def gang_index_of(cluster: Cluster) -> GangIndex:
    """The gangs of a cluster, up to date."""
    gang_index = cluster.index(GangIndex, GangIndex)
    gang_index.catch_up()
    return gang_index
