"""Gang: a group's live members and how many of them are where; and all gangs of the cluster.

A Gang is there while it has members or its PodGroup exists, whichever comes first. It gets every member that
comes, goes or changes its place, so counting costs nothing. `proposed` are members that an attempt has put on rows of
the table without promising anything yet; it is 0 outside of attempts.

A member that ends has done its part. While other members that were placed with it are still to be bound (their binds
failed, say), it goes on counting towards the minimum: a gang that once had all its places is not broken by its end.

A pod that belongs to no group has no Gang here: it is a gang of one, and the queue and the attempts treat it so.

Invariant: `counts[place]` is the number of members in that place, and `Gangs.check` recounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlead.core.model.pod import OWNER_GROUP_API
from fairlead.core.state.owned import Owned
from fairlead.core.state.pod_states import PodPlace

if TYPE_CHECKING:
    from fairlead.core.model.group import PodGroup
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.pod_states import PodState


class Gang:
    """`members` are by uid, in the order in which they came."""

    __slots__ = (
        "_ended", "_reported", "_unbound", "api", "counts", "group", "key", "members", "name", "namespace", "proposed",
        "sent_away",
    )  # fmt: skip

    def __init__(self, key: str, api: str, namespace: str, name: str) -> None:
        self.key = key
        self.api = api
        self.namespace = namespace
        self.name = name
        self.group: PodGroup | None = None
        self.members: dict[str, PodState] = {}
        self.counts: dict[PodPlace, int] = dict.fromkeys(PodPlace, 0)
        self.proposed = 0
        self.sent_away: set[str] = set()
        """Members that were evicted because the gang did not become whole: they do not count any more."""
        self._reported = ""
        """The uid of the group on which it was written that it is scheduled; the watch may not have shown it yet."""
        self._unbound: set[str] = set()
        """Members that were placed when the gang was whole, and are not bound yet."""
        self._ended = 0
        """The number of bound members that ended while others were unbound."""

    def __repr__(self) -> str:
        return f"<Gang {self.key}: {self.counts}>"

    def __len__(self) -> int:
        return len(self.members)

    @property
    def minimum(self) -> int:
        """How many members must have places. Once some of an owner's pods run, all that are there are enough: others
        have ended, and a pod that is made again does not wait for them."""
        if self.group is None:
            return 1
        if self.api == OWNER_GROUP_API and (self._ended or self.counts[PodPlace.BOUND] > len(self.sent_away)):
            return min(self.group.minimum, len(self.members))
        return max(0, self.group.minimum - self._ended)

    @property
    def scheduled(self) -> int:
        """Members that hold a place: promised or bound, and those an attempt is just proposing."""
        counts = self.counts
        return (
            counts[PodPlace.ASSUMED]
            + counts[PodPlace.BOUND]
            + counts[PodPlace.RELEASING]
            + self.proposed
            - len(self.sent_away)
        )

    @property
    def is_whole(self) -> bool:
        return self.scheduled >= self.minimum

    @property
    def is_half_bound(self) -> bool:
        """Some members have started and the minimum has not: nothing is more urgent than the others."""
        return self.counts[PodPlace.BOUND] > len(self.sent_away) and self.scheduled < self.minimum

    # ---- attempts ----

    def propose(self) -> None:
        """An attempt has put another member on a row."""
        self.proposed += 1

    def withdraw(self) -> None:
        """The attempt has taken one of them back."""
        self.proposed -= 1

    def end_proposals(self) -> None:
        """The attempt has kept all or taken all back."""
        self.proposed = 0

    def placed_whole(self, uids: Iterable[str]) -> None:
        """An attempt has given places to members, and enough have one now; they are unbound until they are on nodes."""
        self._unbound.update(uids)

    def evict(self, uids: Iterable[str]) -> None:
        """Members are evicted because the gang did not become whole."""
        self.sent_away.update(uids)

    def report_scheduled(self) -> None:
        """Its group is reported to be scheduled."""
        self._reported = self.group.uid if self.group is not None else ""

    @property
    def is_reported_scheduled(self) -> bool:
        return self.group is not None and self._reported == self.group.uid

    def regroup(self, group: PodGroup) -> None:
        """Its group has another size."""
        self.group = group

    # ---- members ----

    def ended(self, pod_state: PodState) -> None:
        """A member that ran has succeeded or failed, and is about to leave."""
        ran = pod_state.place is PodPlace.BOUND or pod_state.place is PodPlace.ASSUMED
        if self._unbound and ran and pod_state.seen.uid not in self.sent_away:
            self._ended += 1

    def bound_or_gone(self, uid: str) -> None:
        """A member is on its node or left: once none is unbound, those that ended count no more."""
        self._unbound.discard(uid)
        if not self._unbound:
            self._ended = 0

    def forget_attempts(self) -> None:
        """Another group has the name of the one that was whole."""
        self._unbound.clear()
        self._ended = 0

    def pending(self) -> list[Pod]:
        """Members without a place that are not leaving, in the order in which they came."""
        if not self.counts[PodPlace.PENDING]:
            return []
        return [
            pod_state.seen
            for pod_state in list(self.members.values())
            if pod_state.place is PodPlace.PENDING and not pod_state.seen.terminating
        ]

    def seated(self) -> Iterator[PodState]:
        return (pod_state for pod_state in self.members.values() if pod_state.place is not PodPlace.PENDING)


class Gangs:
    def __init__(self) -> None:
        self._gangs: dict[str, Gang] = {}
        self.owned = Owned()

    def __iter__(self) -> Iterator[Gang]:
        return iter(self._gangs.values())

    def __len__(self) -> int:
        return len(self._gangs)

    def get(self, key: str) -> Gang | None:
        return self._gangs.get(key)

    def named(self, namespace: str, name: str) -> list[Gang]:
        """Gangs of one name; groups of several APIs may share it. A gang by owner also goes by the owner's name."""
        there = [gang for gang in self if gang.namespace == namespace]
        exactly = [gang for gang in there if gang.name == name]
        return exactly or [
            gang for gang in there if gang.api == OWNER_GROUP_API and gang.name.partition("-")[2] == name
        ]

    def of(self, pod: Pod) -> Gang | None:
        """The gang that a pod belongs to; None if it stands alone."""
        ref = pod.group_ref
        return self._gangs.get(ref.key) if ref is not None else None

    # ---- members ----

    def join(self, pod_state: PodState) -> Gang | None:
        ref = pod_state.seen.group_ref
        if ref is None:
            return None
        gang = self._gang(ref.api, pod_state.seen.namespace, ref.name)
        gang.members[pod_state.seen.uid] = pod_state
        gang.counts[pod_state.place] += 1
        if ref.api == OWNER_GROUP_API and gang.group is None:
            gang.group = self.owned.group_for(pod_state.seen, gang)
        return gang

    def leave(self, gang: Gang, pod_state: PodState, last: Pod | None = None) -> None:
        """A member goes, and `last` is how it was last seen; None if it goes to another gang."""
        if last is not None and last.phase in ("Succeeded", "Failed") and last.node_name and not last.terminating:
            gang.ended(pod_state)
        del gang.members[pod_state.seen.uid]
        gang.sent_away.discard(pod_state.seen.uid)
        gang.bound_or_gone(pod_state.seen.uid)
        gang.counts[pod_state.place] -= 1
        if gang.api == OWNER_GROUP_API and not gang.members:
            gang.group = None
            self.owned.left(gang)
        self._drop_if_empty(gang)

    def moved(self, gang: Gang, pod_state: PodState, after: PodPlace) -> None:
        """A member's place is about to change."""
        gang.counts[pod_state.place] -= 1
        gang.counts[after] += 1
        if after is PodPlace.BOUND:
            gang.bound_or_gone(pod_state.seen.uid)

    # ---- groups ----

    def group_changed(self, old: PodGroup | None, new: PodGroup | None) -> Gang | None:
        """A PodGroup came, changed or went."""
        record = new if new is not None else old
        if record is None:
            return None
        gang = self._gang(record.api, record.namespace, record.name)
        if gang.group is not None and (new is None or new.uid != gang.group.uid):
            gang.forget_attempts()
        gang.group = new
        self._drop_if_empty(gang)
        return gang

    def _gang(self, api: str, namespace: str, name: str) -> Gang:
        key = f"{api}:{namespace}/{name}"
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Gang(key, api, namespace, name)
        return gang

    def _drop_if_empty(self, gang: Gang) -> None:
        if not gang.members and gang.group is None:
            self._gangs.pop(gang.key, None)

    def recount(self) -> None:
        """Count every gang's members anew, and forget what an attempt left behind."""
        for gang in self:
            gang.counts = dict.fromkeys(PodPlace, 0)
            for pod_state in gang.members.values():
                gang.counts[pod_state.place] += 1
            gang.proposed = 0

    def check(self) -> None:
        for gang in self:
            counted = Counter(pod_state.place for pod_state in gang.members.values())
            assert Counter(gang.counts) == counted, f"{gang.key} counts other members than it has"
            assert gang.proposed == 0, f"{gang.key} was left in the middle of an attempt"


def gang_key(pod: Pod) -> str:
    """The key of a pod's gang; the empty string for a pod that stands alone."""
    ref = pod.group_ref
    return ref.key if ref is not None else ""
