"""ReplicaSets and ReplicationControllers: as many pods as wanted, adopted, created or deleted.

Both kinds are one controller class, given which kind to serve. Pods are counted from the records of pod_facts.py; the
owner's document is read from the view at each visit. Creation after a failure goes on with a single pod, so that a
quota that is used up is not asked hundreds of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fairlead.cluster.controllers.pod_facts import OwnedPods, PodFact, deletion_order
from fairlead.cluster.controllers.workloads.owners import Key, KnownOwners
from fairlead.cluster.controllers.workloads.pod_templates import pod_from_template
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import (
    controller_of,
    create,
    delete,
    identity,
    identity_of_controller,
    namespaced_name,
    owner_reference,
    patch,
    patch_status,
    with_condition,
)
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import POD, REPLICA_SET, REPLICATION_CONTROLLER, Kind
from fairlead.core.model.selectors import LabelSelector, SelectorError, selector_from_document, selector_from_map
from fairlead.core.model.times import timestamp

_BURST = 500
_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicaSets(Reconciler[Key]):
    name = "replicaset-controller"
    kind: Kind = REPLICA_SET
    counts: tuple[str, ...] = (*_COUNTS, "terminatingReplicas")
    watches: Sequence[Watch] = (Watch(REPLICA_SET), Watch(POD))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._pods = OwnedPods(self.kind)
        self._known = KnownOwners(self.queue)
        self._selectors: dict[str, dict[Key, LabelSelector]] = {}  # by namespace
        self._strays: dict[str, dict[Key, Mapping[str, str]]] = {}  # labels of pods that nobody controls
        self._parents: dict[str, str] = {}  # identity of a ReplicaSet -> of its Deployment
        self._siblings: dict[str, dict[str, None]] = {}  # and back
        self._failures: dict[Key, str] = {}

    @property
    def sees_plain_pods(self) -> bool:
        """What has no labels is nobody's to adopt."""
        return False

    def observe(self, change: Change) -> None:
        if change.kind is self.kind:
            self._observe_owner(change)
        elif change.kind is POD:
            self._observe_pod(change)

    def _observe_owner(self, change: Change) -> None:
        key, own = namespaced_name(change.doc), self._known.observe(change)
        parent = identity_of_controller(change.doc) if "spec" in change.doc else ""
        if change.gone:
            self._selectors.get(key[0], {}).pop(key, None)
            self._failures.pop(key, None)
            self.queue.forget(key)
            self._leave_siblings(own)
            return
        self._selectors.setdefault(key[0], {})[key] = self._selector(change.doc)
        if self._parents.get(own, "") != parent:
            self._leave_siblings(own)
            if parent:
                self._parents[own] = parent
                self._siblings.setdefault(parent, {})[own] = None

    def _leave_siblings(self, own: str) -> None:
        parent = self._parents.pop(own, None)
        if parent is not None:
            del self._siblings[parent][own]
            if not self._siblings[parent]:
                del self._siblings[parent]

    def _observe_pod(self, change: Change) -> None:
        for fact in self._pods.observe(change):
            if fact is not None:
                self._known.visit(fact.owner)
        key, metadata = namespaced_name(change.doc), change.doc["metadata"]
        strays = self._strays.get(key[0])
        if strays is None:
            strays = self._strays[key[0]] = {}
        labels = metadata.get("labels")
        if change.gone or not labels or ("ownerReferences" in metadata and controller_of(change.doc) is not None):
            strays.pop(key, None)
            return
        strays[key] = labels
        if selectors := self._selectors.get(key[0]):
            for owner, selector in selectors.items():
                if selector.matches(labels):
                    self.queue.add(owner)

    def _selector(self, owner: Doc) -> LabelSelector:
        try:
            return selector_from_document(owner["spec"].get("selector"))
        except SelectorError:
            return selector_from_document(None)

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        owner = self.view.get(self.kind, *key)
        if owner is None or not self._known.knows(owner):
            return
        is_leaving = bool(owner["metadata"].get("deletionTimestamp"))
        selector = self._selectors[key[0]][key]
        if not is_leaving:
            yield from self._claim(owner, selector)
        pods = [pod for pod in self._pods.of(identity(owner)) if selector.matches(pod.labels)]
        active = [pod for pod in pods if pod.is_active]
        excess = len(active) - owner["spec"].get("replicas", 1)
        if excess < 0 and not is_leaving:
            yield from self._create(key, owner, -excess)
        elif excess > 0 and not is_leaving:
            yield from self._delete(owner, active, excess, now)
        if excess == 0:
            self._failures.pop(key, None)
        yield from self._report(key, owner, pods, now)

    def _claim(self, owner: Doc, selector: LabelSelector) -> Iterable[Write]:
        """Adopt matching pods that nobody controls, release own pods that no longer match."""
        namespace, uid = owner["metadata"]["namespace"], owner["metadata"]["uid"]
        for key, labels in self._strays.get(namespace, {}).items():
            pod = self.view.get(POD, *key) if selector.matches(labels) else None
            if pod is not None and controller_of(pod) is None and _may_be_adopted(pod):
                references = [*(pod["metadata"].get("ownerReferences") or ()), owner_reference(self.kind, owner)]
                yield patch(POD, pod, {"metadata": {"ownerReferences": references}})
        for fact in self._pods.of(identity(owner)):
            pod = self.view.get(POD, *fact.key) if not fact.deleting and not selector.matches(fact.labels) else None
            if pod is not None:
                kept = [one for one in pod["metadata"].get("ownerReferences") or () if one["uid"] != uid]
                yield patch(POD, pod, {"metadata": {"ownerReferences": kept}})

    def _create(self, key: Key, owner: Doc, missing: int) -> Iterable[Write]:
        pod = pod_from_template(self.kind, owner, owner["spec"].get("template") or {})
        # After a refusal one at a time; each that comes names the owner again, and so the rest follows.
        limit = 1 if self.queue.failures(key) else _BURST
        return [create(POD, pod) for _ in range(min(missing, limit))]

    def _delete(self, owner: Doc, active: list[PodFact], excess: int, now: float) -> Iterable[Write]:
        related = self._siblings.get(identity_of_controller(owner), [identity(owner)])
        neighbours = Counter(pod.node for own in related for pod in self._pods.of(own) if pod.is_active and pod.node)
        for pod in deletion_order(active, neighbours)[: min(excess, _BURST)]:
            yield delete(POD, pod.doc)
            yield from self.event(self.kind, owner, "SuccessfulDelete", f"Deleted pod: {pod.name}")

    # Status and events

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
        if any((one["type"], one["status"]) == ("ReplicaFailure", "True") for one in conditions):
            return conditions  # each refusal names another pod; reporting all of them would never end
        condition = {
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": timestamp(now),
            "reason": "FailedCreate",
            "message": failure,
        }
        return with_condition(conditions, condition)

    def refused(self, key: Key, reply: Reply, now: float) -> None:
        if reply.error is not None and reply.write.verb is Verb.CREATE:
            self._failures[key] = reply.error.message

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        if reply.write.verb is Verb.CREATE and reply.doc is not None:
            owner = self.view.get(self.kind, *key)
            if owner is not None:
                yield from self.event(
                    self.kind, owner, "SuccessfulCreate", f"Created pod: {reply.doc['metadata']['name']}"
                )


class ReplicationControllers(ReplicaSets):
    name = "replication-controller"
    kind = REPLICATION_CONTROLLER
    counts = _COUNTS  # the old kind does not report terminating replicas
    watches: Sequence[Watch] = (Watch(REPLICATION_CONTROLLER), Watch(POD))

    def _selector(self, owner: Doc) -> LabelSelector:
        return selector_from_map(owner["spec"].get("selector"))


def _may_be_adopted(pod: Doc) -> bool:
    finished = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not finished and not pod["metadata"].get("deletionTimestamp")
