"""Workload: what a question is about, objects as documents, with the pods that admission and controllers make of them.

A question carries documents, because the copy that answers it knows pods only as compiled records. Pods that their
controller would not make yet are held back, such as those of a group that is not let into its queue. Of objects that
exist the pods are those that exist: what runs stays where it is, what waits is tried again, and what a changed template
replaces goes as its controller would let it go (rollout.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.engine.what_if.families import what_ifs
from fairlead.core.engine.what_if.rollout import Rollout, RolloutTrial
from fairlead.core.model import kinds
from fairlead.core.model.owner_sizes import owner_kind

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.trial import Trial
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_KINDS: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.kind): kind for kind in kinds.served_kinds()}


@dataclass(frozen=True, slots=True)
class Workload:
    """`objects` come before `pods`.

    `replaces` are uids of pods of the cluster that go before these come, `removes` objects that go with them, and
    `running` the uids of those of `pods` that have their nodes in the cluster already. `anew` is the same workload as
    it would be made from nothing; only what exists has it. `exists` names what does, as kind/name."""

    objects: tuple[Doc, ...]
    pods: tuple[Doc, ...]
    replaces: frozenset[str] = frozenset()
    removes: tuple[Doc, ...] = ()
    running: frozenset[str] = frozenset()
    rollouts: tuple[Rollout, ...] = ()
    anew: Workload | None = None
    exists: frozenset[str] = frozenset()
    in_file: bool = True
    """Whether a change of an object is made in a file and applied, and not by a command."""

    @classmethod
    def of(cls, documents: Iterable[Doc], replaces: Iterable[str] = ()) -> Workload:
        documents = list(documents)
        pods = tuple(doc for doc in documents if doc["kind"] == "Pod" and doc["apiVersion"] == "v1")
        return cls(tuple(doc for doc in documents if doc not in pods), pods, frozenset(replaces))

    @property
    def uids(self) -> list[str]:
        return [pod["metadata"]["uid"] for pod in self.pods]

    @property
    def own(self) -> frozenset[str]:
        """The uids of all pods that are the workload's, before it and after."""
        before = frozenset(uid for one in self.rollouts for uid in one.old)
        known = frozenset(self.uids) | self.replaces | before
        return known if self.anew is None else known | self.anew.own

    def at_once(self) -> Workload:
        """The same with nothing left of the old before the new comes."""
        gone = frozenset(uid for one in self.rollouts for uid in one.old)
        return replace(self, rollouts=(), replaces=self.replaces | gone)

    def put_into(self, trial: Trial) -> list[RolloutTrial]:
        """Give everything to a trial; what these stand for goes first. Returns the rollouts that go on in it."""
        known = trial.scheduler.cluster.pods
        trial.remove_pods([known[uid].seen for uid in self.replaces if uid in known])
        watched = {watch.kind for watch in trial.scheduler.watches}
        for document in self.removes:
            if (kind := kind_of(document)) is not None and kind in watched:
                trial.remove(kind, document)
        for document in self.objects:
            kind = kind_of(document)
            if kind is not None and (kind in watched or kind not in _KINDS.values()):
                trial.put(kind, document)
        rolling = {uid for one in self.rollouts for uid in one.new}
        self._put_pods(trial, self.running | rolling)
        pods = {pod["metadata"]["uid"]: pod for pod in self.pods}
        return [RolloutTrial(one, pods) for one in self.rollouts]

    def _put_pods(self, trial: Trial, but: Collection[str]) -> None:
        for pod in self.pods:
            if pod["metadata"]["uid"] in but:
                continue
            awaited = next((found for one in what_ifs() if (found := one.awaited_by(pod, self.objects))), None)
            if awaited is not None:
                trial.put_when_let_in(awaited, kinds.POD, pod)
            else:
                trial.put(kinds.POD, pod)


def kind_of(document: Doc) -> Kind | None:
    """The kind of a document, if anything in scheduling reads it."""
    api_version, name = document["apiVersion"], document["kind"]
    return _KINDS.get((api_version, name)) or owner_kind(api_version, name)
