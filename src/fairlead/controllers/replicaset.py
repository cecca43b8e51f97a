"""ReplicaSets and ReplicationControllers: as many pods as wished, adopted, created or deleted.

Both kinds are one controller class, told which kind to serve. Pods are counted from the records of pod_facts.py; the
owner's document is read from the view at each visit. Creation after a failure goes on with a single pod, so that a
quota that is used up is not asked hundreds of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fairlead.controllers.pod_facts import OwnedPods, PodFact, deletion_order
from fairlead.controllers.pod_templates import pod_from_template
from fairlead.controllers.stamps import stamp
from fairlead.controllers.workqueue import Reconciler
from fairlead.controllers.writes import (
    announcement,
    controller_of,
    create,
    delete,
    key_of,
    owner_reference,
    patch,
    patch_status,
    with_condition,
)
from fairlead.model.flow import Change, Doc, DocView, Happened, Reply, Verb, Watch, Write
from fairlead.model.kinds import POD, REPLICA_SET, REPLICATION_CONTROLLER, Kind
from fairlead.model.selectors import LabelSelector, SelectorError, selector_from_document, selector_from_map

Key = tuple[str, str]

_BURST = 500
_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicaSets(Reconciler[Key]):
    name = "replicaset-controller"
    kind: Kind = REPLICA_SET
    counts: tuple[str, ...] = (*_COUNTS, "terminatingReplicas")
    watches: Sequence[Watch] = (Watch(REPLICA_SET), Watch(POD))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view)
        self._announce = announce
        self._pods = OwnedPods(self.kind)
        self._keys: dict[str, Key] = {}  # uid -> owner
        self._selectors: dict[Key, LabelSelector] = {}
        self._siblings: dict[str, set[str]] = {}  # uid of a Deployment -> uids of its ReplicaSets
        self._failures: dict[Key, str] = {}

    def observe(self, change: Change) -> None:
        if change.kind is self.kind:
            self._observe_owner(change)
        elif change.kind is POD:
            self._observe_pod(change)

    def _observe_owner(self, change: Change) -> None:
        key, uid = key_of(change.doc), change.doc["metadata"]["uid"]
        parent = controller_of(change.doc) if "spec" in change.doc else None
        if change.happened is Happened.DELETED:
            self._keys.pop(uid, None)
            self._selectors.pop(key, None)
            self._failures.pop(key, None)
            self.queue.forget(key)
            for siblings in self._siblings.values():
                siblings.discard(uid)
            return
        self._keys[uid] = key
        self._selectors[key] = self._selector(change.doc)
        if parent is not None:
            self._siblings.setdefault(parent["uid"], set()).add(uid)
        self.queue.add(key)

    def _observe_pod(self, change: Change) -> None:
        old, new = self._pods.observe(change)
        for fact in (old, new):
            if fact is None:
                continue
            if fact.owner in self._keys:
                self.queue.add(self._keys[fact.owner])
            elif not fact.owner and fact is new:
                for key, selector in self._selectors.items():
                    if key[0] == fact.namespace and selector.matches(fact.labels):
                        self.queue.add(key)

    def _selector(self, owner: Doc) -> LabelSelector:
        try:
            return selector_from_document(owner["spec"].get("selector"))
        except SelectorError:
            return selector_from_document(None)

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        owner = self.view.get(self.kind, *key)
        if owner is None or owner["metadata"]["uid"] not in self._keys:
            return
        is_leaving = bool(owner["metadata"].get("deletionTimestamp"))
        if not is_leaving:
            yield from self._claim(key, owner)
        pods = [pod for pod in self._pods.of(owner["metadata"]["uid"]) if self._selectors[key].matches(pod.labels)]
        active = [pod for pod in pods if pod.is_active]
        excess = len(active) - owner["spec"].get("replicas", 1)
        if excess < 0 and not is_leaving:
            yield from self._create(key, owner, -excess)
        elif excess > 0 and not is_leaving:
            yield from self._delete(owner, active, excess, now)
        if excess == 0:
            self._failures.pop(key, None)
        yield from self._report(key, owner, pods, now)

    def _claim(self, key: Key, owner: Doc) -> Iterable[Write]:
        """Adopt matching pods that nobody controls, release own pods that no longer match."""
        selector = self._selectors[key]
        for pod in self._pods.uncontrolled(key[0]):
            if pod.is_active and selector.matches(pod.labels):
                references = self._references(pod)
                yield patch(
                    POD, pod.doc, {"metadata": {"ownerReferences": [*references, owner_reference(self.kind, owner)]}}
                )
        for pod in self._pods.of(owner["metadata"]["uid"]):
            if not pod.deleting and not selector.matches(pod.labels):
                kept = [one for one in self._references(pod) if one["uid"] != owner["metadata"]["uid"]]
                yield patch(POD, pod.doc, {"metadata": {"ownerReferences": kept}})

    def _references(self, pod: PodFact) -> list[Doc]:
        document = self.view.get(POD, pod.namespace, pod.name) or {"metadata": {}}
        return list(document["metadata"].get("ownerReferences") or ())

    def _create(self, key: Key, owner: Doc, missing: int) -> Iterable[Write]:
        pod = pod_from_template(self.kind, owner, owner["spec"].get("template") or {})
        limit = 1 if self.queue.failures(key) else _BURST
        if missing > limit:
            self.queue.add(key)
        return [create(POD, pod) for _ in range(min(missing, limit))]

    def _delete(self, owner: Doc, active: list[PodFact], excess: int, now: float) -> Iterable[Write]:
        related = self._siblings.get((controller_of(owner) or {}).get("uid", ""), {owner["metadata"]["uid"]})
        neighbours = Counter(pod.node for uid in related for pod in self._pods.of(uid) if pod.is_active and pod.node)
        for pod in deletion_order(active, neighbours)[: min(excess, _BURST)]:
            yield delete(POD, pod.doc)
            yield from self._tell(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}", now)

    # Telling

    def _report(self, key: Key, owner: Doc, pods: list[PodFact], now: float) -> Iterable[Write]:
        status = self._status(key, owner, pods, now)
        known = owner.get("status") or {}
        if any((known.get(name) or None) != (value or None) for name, value in status.items()):
            yield patch_status(self.kind, owner, status)

    def _status(self, key: Key, owner: Doc, pods: list[PodFact], now: float) -> Doc:
        active = [pod for pod in pods if pod.is_active]
        wait = owner["spec"].get("minReadySeconds") or 0
        template_labels = ((owner["spec"].get("template") or {}).get("metadata") or {}).get("labels")
        fully_labelled = selector_from_map(template_labels)
        for pod in active:
            if pod.ready_since is not None and not pod.is_available(now, wait):
                self.queue.add_at(key, pod.ready_since + wait)
        counts = (
            len(active),
            sum(fully_labelled.matches(pod.labels) for pod in active),
            sum(pod.ready_since is not None for pod in active),
            sum(pod.is_available(now, wait) for pod in active),
            sum(pod.deleting and not pod.is_finished for pod in pods),
        )
        conditions = self._conditions(key, owner, now)
        generation = owner["metadata"].get("generation") or 0
        status = dict(zip(self.counts, counts, strict=False))
        return {**status, "conditions": conditions, "observedGeneration": generation}

    def _conditions(self, key: Key, owner: Doc, now: float) -> list[Doc]:
        conditions = (owner.get("status") or {}).get("conditions") or []
        failure = self._failures.get(key)
        if failure is None:
            return [one for one in conditions if one["type"] != "ReplicaFailure"]
        told = {
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": stamp(now),
            "reason": "FailedCreate",
            "message": failure,
        }
        return with_condition(conditions, told)

    def refused(self, key: Key, reply: Reply, now: float) -> None:
        if reply.error is not None and reply.write.verb is Verb.CREATE:
            self._failures[key] = reply.error.message

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        if reply.write.verb is Verb.CREATE and reply.doc is not None:
            owner = self.view.get(self.kind, *key)
            if owner is not None:
                yield from self._tell(owner, "SuccessfulCreate", f"Created pod: {reply.doc['metadata']['name']}", now)

    def _tell(self, owner: Doc, reason: str, message: str, now: float) -> Iterable[Write]:
        if self._announce:
            yield announcement(self.kind, owner, reason=reason, message=message, now=now, component=self.name)


class ReplicationControllers(ReplicaSets):
    name = "replication-controller"
    kind = REPLICATION_CONTROLLER
    counts = _COUNTS  # the old kind does not tell of terminating replicas
    watches: Sequence[Watch] = (Watch(REPLICATION_CONTROLLER), Watch(POD))

    def _selector(self, owner: Doc) -> LabelSelector:
        return selector_from_map(owner["spec"].get("selector"))
