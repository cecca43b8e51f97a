"""Deployments: one ReplicaSet per template, the newest grown while the others shrink.

How large each becomes is computed in rollout.py, what is reported in deployment_status.py; here are the visits. As in
the original, one visit takes one step (create the new ReplicaSet, grow it, or shrink old ones) and the next follows
when the ReplicaSets have answered. ReplicaSets are few, so their documents are kept, with replies observed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairlead.cluster.controllers.workloads.deployment_status import (
    deadline_of,
    deployment_status,
    founded,
    gives_up_at,
    is_complete,
    judged,
)
from fairlead.cluster.controllers.workloads.owners import Key, KnownOwners
from fairlead.cluster.controllers.workloads.pod_templates import HASH_LABEL, same_template, template_hash
from fairlead.cluster.controllers.workloads.rollout import (
    DESIRED,
    MAXIMUM,
    REVISION,
    Sizes,
    desired,
    first_size,
    is_rescaled,
    is_rolling,
    limits,
    next_new_size,
    next_old_sizes,
    reported,
    rescaled_sizes,
    revision_of,
)
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import (
    condition,
    create,
    delete,
    identity,
    identity_of_controller,
    namespaced_name,
    owner_reference,
    patch,
    patch_status,
)
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Watch, Write
from fairlead.core.model.kinds import DEPLOYMENT, REPLICA_SET
from fairlead.core.model.selectors import SelectorError, selector_from_document
from fairlead.errors import AlreadyExists

_SCALING = "ScalingReplicaSet"
_OWN_ANNOTATIONS = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        "deployment.kubernetes.io/revision-history",
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)


class Deployments(Reconciler[Key]):
    name = "deployment-controller"
    watches: Sequence[Watch] = (Watch(DEPLOYMENT), Watch(REPLICA_SET))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._known = KnownOwners(self.queue)
        self._sets: dict[Key, Doc] = {}
        self._owned: dict[str, dict[Key, None]] = {}  # identity of the owner, or "" -> ReplicaSets
        self._collided: set[Key] = set()

    def observe(self, change: Change) -> None:
        if change.kind is DEPLOYMENT:
            self._known.observe(change)
        elif change.kind is REPLICA_SET:
            self._observe_set(change)

    def _observe_set(self, change: Change) -> None:
        key = namespaced_name(change.doc)
        old = self._sets.pop(key, None)
        if old is not None:
            self._owned[identity_of_controller(old)].pop(key)
            self._name_owner(old)
        if not change.gone:
            self._sets[key] = change.doc
            self._owned.setdefault(identity_of_controller(change.doc), {})[key] = None
            self._name_owner(change.doc)

    def _name_owner(self, replica_set: Doc) -> None:
        self._known.visit(identity_of_controller(replica_set))

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        deployment = self.view.get(DEPLOYMENT, *key)
        if deployment is None or not self._known.knows(deployment):
            return
        sets = self._sets_of(deployment)
        template = deployment["spec"]["template"]
        alike = [one for one in sets if same_template(one["spec"]["template"], template)]
        new = min(alike, key=_age) if alike else None
        old = [one for one in sets if one is not new]
        if deployment["metadata"].get("deletionTimestamp"):
            yield from self._report(deployment, new, old, now)
            return
        yield from self._adopt(deployment)
        if deployment["spec"].get("paused") or is_rescaled(deployment, sets):
            yield from self._resize(deployment, rescaled_sizes(deployment, new, old), now)
            yield from self._report(deployment, new, old, now)
        else:
            yield from self._roll(key, deployment, new, old, now)

    def _sets_of(self, deployment: Doc) -> list[Doc]:
        return [self._sets[key] for key in self._owned.get(identity(deployment), ())]

    def _adopt(self, deployment: Doc) -> Iterable[Write]:
        """Take over matching ReplicaSets that nobody controls."""
        try:
            selector = selector_from_document(deployment["spec"].get("selector"))
        except SelectorError:
            return
        for key in self._owned.get("", ()):
            one = self._sets[key]
            if key[0] == deployment["metadata"]["namespace"] and selector.matches(one["metadata"].get("labels") or {}):
                references = one["metadata"].get("ownerReferences") or []
                reference = owner_reference(DEPLOYMENT, deployment)
                yield patch(REPLICA_SET, one, {"metadata": {"ownerReferences": [*references, reference]}})

    def _roll(self, key: Key, deployment: Doc, new: Doc | None, old: list[Doc], now: float) -> Iterable[Write]:
        if new is None:
            if is_rolling(deployment) or _all_gone(old):
                yield from self._found(key, deployment, old, now)
            else:
                yield from self._resize(deployment, {one["metadata"]["name"]: 0 for one in old if desired(one)}, now)
                yield from self._report(deployment, None, old, now)
            return
        yield from self._annotate(deployment, new, old)
        yield from self._resize(deployment, self._next_sizes(deployment, new, old), now)
        if is_complete(deployment, deployment_status(deployment, new, old)):
            yield from self._clean_up(deployment, old)
        yield from self._report(deployment, new, old, now)

    def _next_sizes(self, deployment: Doc, new: Doc, old: list[Doc]) -> Sizes:
        if not is_rolling(deployment):
            shrinking = {one["metadata"]["name"]: 0 for one in old if desired(one)}
            if shrinking or not _all_gone(old):
                return shrinking
        size = next_new_size(deployment, new, old)
        if size != desired(new):
            return {new["metadata"]["name"]: size}
        return next_old_sizes(deployment, new, old)

    # Writes

    def _found(self, key: Key, deployment: Doc, old: list[Doc], now: float) -> Iterable[Write]:
        """Create the ReplicaSet of the current template."""
        collisions = (deployment.get("status") or {}).get("collisionCount")
        if key in self._collided:
            self._collided.discard(key)
            collisions = (collisions or 0) + 1
            yield patch_status(DEPLOYMENT, deployment, {"collisionCount": collisions})
        replica_set = _new_set(deployment, old, template_hash(deployment["spec"]["template"], collisions))
        name = replica_set["metadata"]["name"]
        yield create(REPLICA_SET, replica_set)
        if desired(replica_set):
            text = f"Scaled up replica set {name} from 0 to {desired(replica_set)}"
            yield from self.event(DEPLOYMENT, deployment, _SCALING, text)
        yield from self._note_revision(deployment, revision_of(replica_set))
        if deadline_of(deployment) is not None:
            conditions = (deployment.get("status") or {}).get("conditions") or []
            yield patch_status(DEPLOYMENT, deployment, {"conditions": founded(conditions, name, now)})

    def _annotate(self, deployment: Doc, new: Doc, old: list[Doc]) -> Iterable[Write]:
        """Keep revision, copied annotations and minReadySeconds of the new ReplicaSet up to date."""
        revision = max([revision_of(new)] + [revision_of(one) + 1 for one in old])
        annotations = _copied(deployment) | {REVISION: str(revision)}
        known = new["metadata"].get("annotations") or {}
        changes: Doc = {}
        if any(known.get(name) != value for name, value in annotations.items()):
            if REVISION in known and known[REVISION] != str(revision):
                history = [*known.get("deployment.kubernetes.io/revision-history", "").split(","), known[REVISION]]
                annotations["deployment.kubernetes.io/revision-history"] = ",".join(filter(None, history))
            changes["metadata"] = {"annotations": annotations}
        ready = deployment["spec"].get("minReadySeconds") or 0
        if (new["spec"].get("minReadySeconds") or 0) != ready:
            changes["spec"] = {"minReadySeconds": ready}
        if changes:
            yield patch(REPLICA_SET, new, changes)
        yield from self._note_revision(deployment, revision)

    def _note_revision(self, deployment: Doc, revision: int) -> Iterable[Write]:
        if revision_of(deployment) != revision:
            # Through the status, as the original does: there an annotation does not make a new generation.
            noted = {"metadata": {"annotations": {REVISION: str(revision)}}}
            yield patch(DEPLOYMENT, deployment, noted, subresource="status")

    def _resize(self, deployment: Doc, sizes: Sizes, now: float) -> Iterable[Write]:
        """Set sizes, and note on every active ReplicaSet for which size of the Deployment they were made."""
        notes = _notes(deployment)
        for one in self._sets_of(deployment):
            name, size = one["metadata"]["name"], desired(one)
            annotations = one["metadata"].get("annotations") or {}
            if sizes.get(name, size) != size:
                changes = {"metadata": {"annotations": notes}, "spec": {"replicas": sizes[name]}}
                yield patch(REPLICA_SET, one, changes)
                direction = "up" if sizes[name] > size else "down"
                text = f"Scaled {direction} replica set {name} from {size} to {sizes[name]}"
                yield from self.event(DEPLOYMENT, deployment, _SCALING, text)
            elif size and any(annotations.get(note) != value for note, value in notes.items()):
                yield patch(REPLICA_SET, one, {"metadata": {"annotations": notes}})

    def _clean_up(self, deployment: Doc, old: list[Doc]) -> Iterable[Write]:
        """Forget revisions beyond the history limit, oldest first."""
        limit = deployment["spec"].get("revisionHistoryLimit")
        kept = 10 if limit is None else limit
        idle = [one for one in old if not one["metadata"].get("deletionTimestamp")]
        for one in sorted(idle, key=lambda one: (revision_of(one), _age(one)))[: max(0, len(idle) - kept)]:
            if not desired(one) and not reported(one, "replicas"):
                yield delete(REPLICA_SET, one)

    def _report(self, deployment: Doc, new: Doc | None, old: list[Doc], now: float) -> Iterable[Write]:
        known = deployment.get("status") or {}
        status = deployment_status(deployment, new, old)
        failures = (condition(one, "ReplicaFailure") for one in ([new] if new else []) + old)
        failure = next((one for one in failures if one is not None), None)
        status["conditions"] = judged(deployment, new, status, failure, now)
        if any((known.get(name) or None) != (value or None) for name, value in status.items()):
            yield patch_status(DEPLOYMENT, deployment, status)
        self._watch_progress({**deployment, "status": status}, now)

    def _watch_progress(self, deployment: Doc, now: float) -> None:
        progress = condition(deployment, "Progressing")
        due = gives_up_at(deployment, progress) if progress is not None else None
        if due is not None and due > now and not is_complete(deployment, deployment["status"]):
            self.queue.add_at(namespaced_name(deployment), due)

    def refused(self, key: Key, reply: Reply, now: float) -> None:
        if isinstance(reply.error, AlreadyExists):
            taken = self.view.get(REPLICA_SET, reply.write.namespace, reply.write.name)
            if taken is not None and not same_template(taken["spec"]["template"], reply.write.body["spec"]["template"]):
                self._collided.add(key)


def _new_set(deployment: Doc, old: list[Doc], hash_: str) -> Doc:
    metadata, spec, template = deployment["metadata"], deployment["spec"], deployment["spec"]["template"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: hash_}
    selector: dict[str, Any] = dict(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: hash_}
    revision = max((revision_of(one) for one in old), default=0) + 1
    return {
        "apiVersion": REPLICA_SET.api_version,
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": metadata["namespace"],
            "name": f"{metadata['name']}-{hash_}",
            "labels": labels,
            "annotations": _copied(deployment) | _notes(deployment) | {REVISION: str(revision)},
            "ownerReferences": [owner_reference(DEPLOYMENT, deployment)],
        },
        "spec": {
            "replicas": first_size(deployment, old),
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": selector,
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def _notes(deployment: Doc) -> dict[str, str]:
    replicas = desired(deployment)
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + limits(deployment)[0])}


def _copied(deployment: Doc) -> dict[str, str]:
    annotations = deployment["metadata"].get("annotations") or {}
    return {name: value for name, value in annotations.items() if name not in _OWN_ANNOTATIONS}


def _all_gone(old: Sequence[Doc]) -> bool:
    """Whether no pod of these ReplicaSets is left, not even one that is terminating."""
    return not any(
        desired(one)
        or reported(one, "replicas")
        or reported(one, "terminatingReplicas")
        or reported(one, "observedGeneration") < (one["metadata"].get("generation") or 0)
        for one in old
    )


def _age(doc: Doc) -> tuple[str, str]:
    return doc["metadata"].get("creationTimestamp") or "", doc["metadata"]["name"]
