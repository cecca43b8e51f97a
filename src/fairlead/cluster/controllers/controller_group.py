"""ControllerGroup: several controllers that share their watches and step in one thread, as one Controller.

Half a dozen controllers watch pods. If each had its own inbox, every change would be decoded once for each of them, in
as many threads. A group decodes a change once and shows it to all members before it decodes the next, so that the
documents of a large cluster are never in memory together.

Most pods of a large experiment are plain: they have no owner, no labels, no volumes and the default scheduler. Hardly
any member does something about those, so members say whether they do (`sees_plain_pods`, `only_owned_pods`), and a pod
is shown to the others only if it is, or was before the change, of a sort that concerns them.

Invariant: no member acts before all members have seen all changes of a step. A member whose watch is narrower than
another member's watch of the same kind also sees what the other one requested, and must ignore it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cluster.controllers.workqueue import Reconciler, Trouble
from fairlead.core.model.flow import Change, Doc, Reply, Watch, Write
from fairlead.core.model.kinds import POD
from fairlead.core.model.shape import DEFAULT_SCHEDULER

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind

Member = Reconciler[Any]
_PLAIN, _LONE, _OWNED = 0, 1, 2
"""The sorts of pods; of each, members are concerned that are concerned by the one before, and others."""


class ControllerGroup:
    def __init__(self, name: str, members: Sequence[Member]) -> None:
        self.name = name
        self.members = list(members)
        self._interested: dict[Kind, list[Member]] = {}
        self._writers: dict[Write, Member] = {}  # of writes that are not answered yet
        watches: dict[Kind, Watch] = {}
        for member in self.members:
            for watch in member.watches:
                self._interested.setdefault(watch.kind, []).append(member)
                known = watches.setdefault(watch.kind, watch)
                if known != watch:
                    watches[watch.kind] = Watch(watch.kind)
        self.watches: Sequence[Watch] = list(watches.values())
        see_pods = self._interested.get(POD, [])
        self._see_pods = {_OWNED: see_pods, _LONE: [one for one in see_pods if not one.only_owned_pods]}
        self._sorts: dict[str, int] = {}  # uid -> of pods that are not plain

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        writes: list[Write] = []
        replies_of: dict[Member, list[Reply]] = {}
        for reply in replies:
            if (writer := self._writers.pop(reply.write, None)) is not None:
                replies_of.setdefault(writer, []).append(reply)
        for member in self.members:
            writes += member.take_replies(now, replies_of.get(member, ()))
        see_plain: Sequence[Member] | None = None  # not asked since something else changed
        for change in changes:
            kind = change.kind
            if kind is not POD:
                concerned: Sequence[Member] = self._interested[kind]
            elif sort := self._sort(change):
                concerned = self._see_pods[sort]
            else:
                if see_plain is None:
                    see_plain = [one for one in self._see_pods[_LONE] if one.sees_plain_pods]
                for member in see_plain:
                    member.see(change)
                continue
            see_plain = None
            for member in concerned:
                member.see(change)
        for member in self.members:
            if acts := member.act(now):
                self._writers.update(dict.fromkeys(acts, member))
                writes += acts
        return writes

    def _sort(self, change: Change) -> int:
        """The sort of a pod: what it is or what it was before this change, whichever concerns more members."""
        metadata = change.doc.get("metadata") or {}
        uid: str = metadata.get("uid") or ""
        sort = _sort_of(change.doc, metadata)
        if not sort and not self._sorts:
            return sort
        before = self._sorts.pop(uid, _PLAIN)
        if sort and not change.gone:
            self._sorts[uid] = sort
        return max(sort, before)

    def wake_at(self) -> float | None:
        return min((due for member in self.members if (due := member.wake_at()) is not None), default=None)

    @property
    def errors(self) -> Iterator[Trouble]:
        """The latest troubles of all members."""
        return (trouble for member in self.members for trouble in member.errors)


def _sort_of(pod: Doc, metadata: Doc) -> int:
    if metadata.get("ownerReferences"):
        return _OWNED
    if metadata.get("labels") or "finalizers" in metadata:
        return _LONE
    spec = pod.get("spec") or {}
    if "volumes" in spec or "resourceClaims" in spec or spec.get("schedulerName") != DEFAULT_SCHEDULER:
        return _LONE
    return _PLAIN
