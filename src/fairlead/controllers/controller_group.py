"""ControllerGroup: several controllers that share their watches and step in one thread, as one Controller.

Half a dozen controllers watch pods. If each had its own inbox, every change would be decoded once for each of them, in
as many threads. A group decodes a change once and shows it to all members before it decodes the next, so that the
documents of a large cluster are never in memory together.

Most pods of a large experiment have no owner. Members for which such pods do not exist (`only_owned_pods`) are not
shown them, unless the pod had an owner before.

Invariant: no member acts before all members have seen all changes of a step. A member whose watch is narrower than
another member's watch of the same kind also sees what the other one asked for, and must ignore it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.controllers.workqueue import Reconciler, Trouble
from fairlead.model.flow import Change, Reply, Watch, Write
from fairlead.model.kinds import POD

if TYPE_CHECKING:
    from fairlead.model.kinds import Kind

Member = Reconciler[Any]


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
        self._see_pods = [one.see for one in self._interested.get(POD, ())]
        self._see_all_pods = [one.see for one in self._interested.get(POD, ()) if not one.only_owned_pods]
        self._owned_pods: set[str] = set()

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        writes: list[Write] = []
        told: dict[Member, list[Reply]] = {}
        for reply in replies:
            if (writer := self._writers.pop(reply.write, None)) is not None:
                told.setdefault(writer, []).append(reply)
        for member in self.members:
            writes += member.hear(now, told.get(member, ()))
        for change in changes:
            if change.kind is POD:
                for see in self._concerned(change):
                    see(change)
            else:
                for member in self._interested[change.kind]:
                    member.see(change)
        for member in self.members:
            if acts := member.act(now):
                self._writers.update(dict.fromkeys(acts, member))
                writes += acts
        return writes

    def _concerned(self, change: Change) -> Sequence[Callable[[Change], None]]:
        """How the members that are to see a change of a pod see it."""
        metadata = change.doc.get("metadata") or {}
        uid: str = metadata.get("uid") or ""
        if metadata.get("ownerReferences"):
            if change.gone:
                self._owned_pods.discard(uid)
            else:
                self._owned_pods.add(uid)
        elif uid not in self._owned_pods:
            return self._see_all_pods
        else:
            self._owned_pods.discard(uid)
        return self._see_pods

    def wake_at(self) -> float | None:
        return min((due for member in self.members if (due := member.wake_at()) is not None), default=None)

    @property
    def errors(self) -> Iterator[Trouble]:
        """The latest troubles of all members."""
        return (trouble for member in self.members for trouble in member.errors)
