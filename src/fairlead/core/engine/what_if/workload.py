"""Workload: what a question is about, objects as documents, with the pods that admission and controllers make of them.

A question carries documents, because the copy that answers it knows pods only as compiled records. Pods that their
controller would not make yet are held back, such as those of a group that is not let into its queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.engine.what_if.families import what_ifs
from fairlead.core.model import kinds
from fairlead.core.model.owner_sizes import owner_kind

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.trial import Trial
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_KINDS: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.kind): kind for kind in kinds.served_kinds()}


@dataclass(frozen=True, slots=True)
class Workload:
    """`objects` come before `pods`; `replaces` are uids of pods of the cluster that these pods stand for."""

    objects: tuple[Doc, ...]
    pods: tuple[Doc, ...]
    replaces: frozenset[str] = frozenset()

    @classmethod
    def of(cls, documents: Iterable[Doc], replaces: Iterable[str] = ()) -> Workload:
        documents = list(documents)
        pods = tuple(doc for doc in documents if doc["kind"] == "Pod" and doc["apiVersion"] == "v1")
        return cls(tuple(doc for doc in documents if doc not in pods), pods, frozenset(replaces))

    @property
    def uids(self) -> list[str]:
        return [pod["metadata"]["uid"] for pod in self.pods]

    def put_into(self, trial: Trial) -> None:
        """Give everything to a trial; pods of the cluster that these stand for go first."""
        known = trial.scheduler.cluster.pods
        trial.remove_pods([known[uid].seen for uid in self.replaces if uid in known])
        watched = {watch.kind for watch in trial.scheduler.watches}
        for document in self.objects:
            kind = kind_of(document)
            if kind is not None and (kind in watched or kind not in _KINDS.values()):
                trial.put(kind, document)
        for pod in self.pods:
            awaited = next((found for one in what_ifs() if (found := one.awaited_by(pod, self.objects))), None)
            if awaited is not None:
                trial.put_when_let_in(awaited, kinds.POD, pod)
            else:
                trial.put(kinds.POD, pod)


def kind_of(document: Doc) -> Kind | None:
    """The kind of a document, if anything in scheduling reads it."""
    api_version, name = document["apiVersion"], document["kind"]
    return _KINDS.get((api_version, name)) or owner_kind(api_version, name)
