"""What workload controllers remember of the pods they own: a compact record each, found by owner.

A controller over 50,000 pods cannot keep their documents, and listing them at every visit would decode them all.
OwnedPods keeps one PodFact per pod that an owner of the given kind controls. Invariant: a fact is as new as the newest
change or reply observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import condition, controller_of, identity_of_controller, namespaced_name
from fairlead.core.model.times import seconds_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Change, Doc
    from fairlead.core.model.kinds import Kind

Key = tuple[str, str]

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class PodFact:
    namespace: str
    name: str
    uid: str
    owner: str  # the `identity` of the controlling owner
    labels: Mapping[str, str]
    phase: str
    node: str
    ready_since: float | None
    created: str
    deleting: bool
    restarts: int
    deletion_cost: int
    index: int | None  # of an indexed Job's pod
    finished_at: float | None
    failure: str  # why a failed pod failed, if it says

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def doc(self) -> Doc:
        """Just enough of a document to write to this pod."""
        return {"metadata": {"namespace": self.namespace, "name": self.name, "uid": self.uid}}

    @property
    def is_finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_active(self) -> bool:
        return not self.is_finished and not self.deleting

    def is_available(self, now: float, min_ready_seconds: float) -> bool:
        return self.ready_since is not None and self.ready_since + min_ready_seconds <= now


class OwnedPods:
    """PodFacts by owner, each named by its `identity`."""

    def __init__(self, owner: Kind) -> None:
        self._kind = owner
        self._facts: dict[Key, PodFact] = {}
        self._by_owner: dict[str, dict[Key, None]] = {}

    def observe(self, change: Change) -> tuple[PodFact | None, PodFact | None]:
        """Take in a change of a pod; returns what was known and what is known now."""
        owned = "ownerReferences" in change.doc["metadata"]
        if not owned and not self._facts:
            return None, None
        key = namespaced_name(change.doc)
        old = self._forget(key) if key in self._facts else None
        if change.gone or not owned:
            return old, None
        owner = controller_of(change.doc)
        if owner is None or not self._is_ours(owner):
            return old, None
        new = pod_fact(change.doc, owner=identity_of_controller(change.doc))
        self._facts[key] = new
        self._by_owner.setdefault(new.owner, {})[key] = None
        return old, new

    def of(self, owner: str) -> list[PodFact]:
        return [self._facts[key] for key in self._by_owner.get(owner, ())]

    def _is_ours(self, reference: Doc) -> bool:
        group = reference.get("apiVersion", "").rpartition("/")[0]
        return bool(reference.get("kind") == self._kind.kind and group == self._kind.group)

    def _forget(self, key: Key) -> PodFact:
        old = self._facts.pop(key)
        siblings = self._by_owner[old.owner]
        del siblings[key]
        if not siblings:
            del self._by_owner[old.owner]
        return old


def pod_fact(pod: Doc, *, owner: str) -> PodFact:
    metadata, status = pod["metadata"], pod.get("status") or {}
    annotations = metadata.get("annotations") or {}
    ready = condition(pod, "Ready")
    statuses = status.get("containerStatuses") or ()
    return PodFact(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        owner=owner,
        labels=metadata.get("labels") or {},
        phase=status.get("phase") or "Pending",
        node=(pod.get("spec") or {}).get("nodeName") or "",
        ready_since=_since(ready) if ready is not None and ready.get("status") == "True" else None,
        created=metadata.get("creationTimestamp") or "",
        deleting=bool(metadata.get("deletionTimestamp")),
        restarts=max((one.get("restartCount", 0) for one in statuses), default=0),
        deletion_cost=_integer(annotations.get(DELETION_COST)) or 0,
        index=_integer(annotations.get(COMPLETION_INDEX)),
        finished_at=_finished_at(statuses),
        failure=status.get("reason") or "",
    )


def deletion_order(pods: Iterable[PodFact], neighbours: Mapping[str, int]) -> list[PodFact]:
    """The order in which surplus pods are deleted: the unassigned, the pending, the unready, the cheap, the crowded
    (by the number of `neighbours` on their node), the recently ready, the often restarted, the young."""
    phases = {"Pending": 0, "Unknown": 1}

    def rank(pod: PodFact) -> tuple[object, ...]:
        return (
            bool(pod.node),
            phases.get(pod.phase, 2),
            pod.ready_since is not None,
            pod.deletion_cost,
            -neighbours.get(pod.node, 0),
            -(pod.ready_since or 0.0),
            -pod.restarts,
        )

    return sorted(sorted(pods, key=lambda pod: (pod.created, pod.name), reverse=True), key=rank)


def _since(one: Doc) -> float:
    return seconds_of(one["lastTransitionTime"]) if one.get("lastTransitionTime") else 0.0


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _finished_at(statuses: Iterable[Doc]) -> float | None:
    ends = [
        seconds_of(ended["finishedAt"])
        for one in statuses
        if (ended := (one.get("state") or {}).get("terminated")) and ended.get("finishedAt")
    ]
    return max(ends, default=None)
