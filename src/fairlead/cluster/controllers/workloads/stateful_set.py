"""StatefulSets: pods with names, one after the other (or, if configured so, all at once), each with its own claims.

    missing ──create──▶ pending ──▶ ready ──▶ next ordinal ... all ready ──▶ surplus goes, highest first
                                                                        └──▶ old revisions go, highest first

Pods are created in the order of their numbers and removed in the reverse; with OrderedReady nothing happens while
one of them is not ready. A visit decides from the records of pod_facts.py; revisions.py keeps the templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairlead.cluster.controllers.pod_facts import OwnedPods, PodFact
from fairlead.cluster.controllers.workloads.owners import Key, KnownOwners
from fairlead.cluster.controllers.workloads.revisions import HASH_LABEL, RevisionHistory, template_of
from fairlead.cluster.controllers.workloads.shares import share
from fairlead.cluster.controllers.workloads.stateful_pods import (
    claim_names,
    ordinal_of,
    ordinals,
    pod_name,
    retention,
    stateful_claims,
    stateful_pod,
)
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import (
    controller_of,
    create,
    delete,
    identity,
    namespaced_name,
    owner_reference,
    patch,
    patch_status,
)
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from fairlead.core.model.selectors import SelectorError, selector_from_document

_BURST = 500
"""Pods that one visit creates at most, so that others have their turn."""


@dataclass(frozen=True, slots=True)
class _Set:
    """One StatefulSet as a visit sees it."""

    key: Key
    doc: Doc
    pods: dict[int, PodFact]
    current: Doc
    update: Doc
    collisions: int
    now: float

    @property
    def ordered(self) -> bool:
        return bool(self.doc["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady")

    @property
    def rolls(self) -> bool:
        return bool(self._strategy.get("type", "RollingUpdate") == "RollingUpdate")

    @property
    def partition(self) -> int:
        return int((self._strategy.get("rollingUpdate") or {}).get("partition") or 0) if self.rolls else 0

    @property
    def may_be_away(self) -> int:
        """How many pods a rolling update may have unready at a time."""
        most = (self._strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
        return max(1, share(most, len(self.wanted), round_up=True))

    @property
    def wanted(self) -> range:
        return ordinals(self.doc)

    @property
    def patience(self) -> float:
        return float(self.doc["spec"].get("minReadySeconds") or 0)

    @property
    def _strategy(self) -> Doc:
        strategy: Doc = self.doc["spec"].get("updateStrategy") or {}
        return strategy

    def is_healthy(self, pod: PodFact) -> bool:
        return not pod.deleting and pod.phase == "Running" and pod.is_available(self.now, self.patience)

    def revision_for(self, ordinal: int) -> Doc:
        """New pods below the partition are still made from the current revision."""
        return self.current if self.rolls and ordinal < self.wanted.start + self.partition else self.update


class StatefulSets(Reconciler[Key]):
    name = "statefulset-controller"
    only_owned_pods = True
    watches: Sequence[Watch] = (Watch(STATEFUL_SET), Watch(POD), Watch(CONTROLLER_REVISION))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._pods = OwnedPods(STATEFUL_SET)
        self._history = RevisionHistory(STATEFUL_SET, label="controller.kubernetes.io/hash")
        self._known = KnownOwners(self.queue)

    def observe(self, change: Change) -> None:
        if change.kind is STATEFUL_SET:
            self._known.observe(change)
        elif change.kind is POD:
            for fact in self._pods.observe(change):
                if fact is not None:
                    self._known.visit(fact.owner)
        elif change.kind is CONTROLLER_REVISION:
            self._history.observe(change)

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        doc = self.view.get(STATEFUL_SET, *key)
        if doc is None or not self._known.knows(doc) or doc["metadata"].get("deletionTimestamp"):
            return
        own, status = identity(doc), doc.get("status") or {}
        plan = self._history.plan(self.view, doc, status.get("collisionCount") or 0)
        yield from plan.writes
        current = self._history.named(own, status.get("currentRevision") or "") or plan.update
        pods = {ordinal: pod for pod in self._pods.of(own) if (ordinal := ordinal_of(doc, pod.name)) is not None}
        seen = _Set(key, doc, pods, current, plan.update, plan.collisions, now)
        yield from self._progress(seen)
        yield from self._report(seen)
        alive = {pod.labels.get(HASH_LABEL, "") for pod in pods.values()}
        alive |= {current["metadata"]["name"], plan.update["metadata"]["name"]}
        yield from self._history.surplus(doc, alive)

    def _progress(self, seen: _Set) -> Iterable[Write]:
        may_come = 1 if self.queue.failures(seen.key) else _BURST
        for ordinal in seen.wanted:
            writes, may_go_on = self._attend(seen, ordinal)
            yield from writes
            if seen.ordered and not may_go_on:
                return
            if ordinal not in seen.pods:
                may_come -= 1
                if not may_come:
                    return  # each pod that comes names its owner again, and so the rest follows
        surplus = sorted((ordinal for ordinal in seen.pods if ordinal not in seen.wanted), reverse=True)
        for ordinal in surplus:
            yield from self._dismiss(seen, ordinal)
            if seen.ordered:
                return
        if seen.rolls:
            yield from self._roll(seen)

    def _attend(self, seen: _Set, ordinal: int) -> tuple[list[Write], bool]:
        """What one pod needs; and whether those with higher numbers may have their turn."""
        pod = seen.pods.get(ordinal)
        if pod is None:
            return list(self._bring(seen, ordinal)), False
        if pod.deleting:
            return [], False
        if pod.is_finished:
            return list(self._replace(seen, pod)), False
        if pod.ready_since is not None and not pod.is_available(seen.now, seen.patience):
            self.queue.add_at(seen.key, pod.ready_since + seen.patience)
        missing = [create(PERSISTENT_VOLUME_CLAIM, claim) for claim in self._missing_claims(seen, ordinal)]
        return missing, seen.is_healthy(pod)

    def _bring(self, seen: _Set, ordinal: int) -> Iterable[Write]:
        stranger = self.view.get(POD, seen.key[0], pod_name(seen.doc, ordinal))
        if stranger is not None:
            yield from self._adopt(seen, stranger)
            return
        for claim in self._missing_claims(seen, ordinal):
            yield create(PERSISTENT_VOLUME_CLAIM, claim)
        revision = seen.revision_for(ordinal)
        yield create(POD, stateful_pod(seen.doc, template_of(revision), ordinal, revision["metadata"]["name"]))

    def _missing_claims(self, seen: _Set, ordinal: int) -> list[Doc]:
        claims = stateful_claims(seen.doc, ordinal) if seen.doc["spec"].get("volumeClaimTemplates") else []
        return [one for one in claims if self.view.get(PERSISTENT_VOLUME_CLAIM, *namespaced_name(one)) is None]

    def _adopt(self, seen: _Set, pod: Doc) -> Iterable[Write]:
        """Take a pod of the right name and labels that nobody controls; wait for any other to go."""
        try:
            matches = selector_from_document(seen.doc["spec"].get("selector")).matches(
                pod["metadata"].get("labels") or {}
            )
        except SelectorError:
            matches = False
        if matches and controller_of(pod) is None and not pod["metadata"].get("deletionTimestamp"):
            references = [*(pod["metadata"].get("ownerReferences") or ()), owner_reference(STATEFUL_SET, seen.doc)]
            yield patch(POD, pod, {"metadata": {"ownerReferences": references}})
        else:
            self.queue.add_at(seen.key, seen.now + 1.0)

    def _replace(self, seen: _Set, pod: PodFact) -> Iterable[Write]:
        """A pod that has ended goes, so that another of its name can come."""
        if pod.phase == "Failed":
            text = f"StatefulSet {seen.key[0]}/{seen.key[1]} is recreating failed Pod {pod.name}"
            yield from self.event(STATEFUL_SET, seen.doc, "RecreatingFailedPod", text, warning=True)
        else:
            text = f"StatefulSet {seen.key[0]}/{seen.key[1]} is recreating terminated Pod {pod.name}"
            yield from self.event(STATEFUL_SET, seen.doc, "RecreatingTerminatedPod", text)
        yield from self._delete(seen, pod)

    def _dismiss(self, seen: _Set, ordinal: int) -> Iterable[Write]:
        pod = seen.pods[ordinal]
        if pod.deleting:
            return
        if retention(seen.doc, "whenScaled") == "Delete":
            yield from self._tie_claims(seen, ordinal, pod)
        yield from self._delete(seen, pod)

    def _tie_claims(self, seen: _Set, ordinal: int, pod: PodFact) -> Iterable[Write]:
        """Let the claims of a pod that goes for good go with it."""
        for name in claim_names(seen.doc, ordinal).values():
            claim = self.view.get(PERSISTENT_VOLUME_CLAIM, seen.key[0], name)
            if claim is not None:
                reference = owner_reference(POD, pod.doc)
                yield patch(PERSISTENT_VOLUME_CLAIM, claim, {"metadata": {"ownerReferences": [reference]}})

    def _roll(self, seen: _Set) -> Iterable[Write]:
        """Remove pods of other revisions, the highest number first, as many as may be away at a time."""
        left = seen.may_be_away
        rolled = seen.wanted[seen.partition :]
        for ordinal in sorted((one for one in seen.pods if one in rolled), reverse=True):
            pod = seen.pods[ordinal]
            if left <= 0:
                return
            if not pod.deleting and pod.labels.get(HASH_LABEL) != seen.update["metadata"]["name"]:
                yield from self._delete(seen, pod)
                left -= 1
            elif not seen.is_healthy(pod):
                left -= 1

    def _delete(self, seen: _Set, pod: PodFact) -> Iterable[Write]:
        yield delete(POD, pod.doc)
        text = f"Delete Pod {pod.name} in StatefulSet {seen.key[1]} successful"
        yield from self.event(STATEFUL_SET, seen.doc, "SuccessfulDelete", text)

    # Status and events

    def _report(self, seen: _Set) -> Iterable[Write]:
        status, known = _status(seen), seen.doc.get("status") or {}
        if any((known.get(name) or None) != (value or None) for name, value in status.items()) or not known:
            yield patch_status(STATEFUL_SET, seen.doc, status)

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        owner = self.view.get(STATEFUL_SET, *key) if reply.write.verb is Verb.CREATE else None
        if owner is None:
            return
        name = reply.write.name
        if reply.write.kind is POD:
            text = f"Create Pod {name} in StatefulSet {key[1]} successful"
        elif reply.write.kind is PERSISTENT_VOLUME_CLAIM:
            number = name.rpartition("-")[2]
            text = f"Create Claim {name} Pod {key[1]}-{number} in StatefulSet {key[1]} success"
        else:
            return
        yield from self.event(STATEFUL_SET, owner, "SuccessfulCreate", text)


def _status(seen: _Set) -> Doc:
    current, update = seen.current["metadata"]["name"], seen.update["metadata"]["name"]
    pods = list(seen.pods.values())
    staying = [pod for pod in pods if not pod.deleting]
    ready = [pod for pod in staying if pod.phase == "Running" and pod.ready_since is not None]
    updated = sum(pod.labels.get(HASH_LABEL) == update for pod in staying)
    is_complete = seen.rolls and updated == len(pods) == len(ready) == len(seen.wanted)
    if is_complete:
        current = update
    return {
        "observedGeneration": seen.doc["metadata"].get("generation") or 0,
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(pod.is_available(seen.now, seen.patience) for pod in ready),
        "currentReplicas": sum(pod.labels.get(HASH_LABEL) == current for pod in staying),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": seen.collisions,
    }
