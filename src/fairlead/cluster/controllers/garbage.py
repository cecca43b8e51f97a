"""Garbage collection by owner: what is owned goes when its owners are gone.

    owner vanished ───────────────────▶ dependents are deleted, unless another owner lives: then only the reference goes
    owner waits with `orphan` ────────▶ dependents lose the reference, then the owner its finalizer
    owner waits with `foregroundDeletion` ▶ dependents are deleted; when none that blocks is left, the finalizer goes

An owner counts only in its own namespace: a namespaced one holds nothing elsewhere, and nobody elsewhere holds it up.
Only objects with owners are remembered, by uid. Owners are looked up in the view, which must not lag behind the
changes: this controller is for the embedded Store, a real cluster has its own. Leases of nodes belong to
node_lifecycle.py, because they change far too often to be looked at here.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import delete, namespaced_name, patch
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import EVENT, LEASE, Kind, Registry
from fairlead.core.model.records import record

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


@record(frozen=True, slots=True)
class _Object:
    kind: Kind
    namespace: str
    name: str
    owners: tuple[str, ...]
    blocks: frozenset[str]  # owners that may not go before this object
    deleting: bool


class GarbageCollector(Reconciler[str]):
    name = "garbage-collector-controller"

    def __init__(self, view: DocView, *, registry: Registry | None = None) -> None:
        super().__init__(view)
        self._registry = registry or Registry()
        self.watches = [Watch(kind) for kind in self._registry if kind.stored_as is None and kind not in (EVENT, LEASE)]
        self._owned: dict[str, _Object] = {}
        self._waiting: dict[str, _Object] = {}  # owners with one of the two finalizers
        self._dependents: dict[str, dict[str, None]] = {}
        self._alive: dict[str, set[str]] = {}  # owners that were seen to exist, with the namespaces of their dependents

    @classmethod
    def from_context(cls, context: ControllerContext) -> GarbageCollector:
        return cls(context.view, registry=context.registry)

    @property
    def sees_plain_pods(self) -> bool:
        """Pods may be owners, as long as anything has one."""
        return bool(self._dependents or self._alive)

    def observe(self, change: Change) -> None:
        metadata = change.doc["metadata"]
        uid = metadata["uid"]
        if change.gone:
            self._vanished(uid)
            return
        references = metadata.get("ownerReferences")
        if references or uid in self._owned:
            self._relate(uid, _object(change.kind, change.doc))
        if metadata.get("deletionTimestamp"):
            if _finalizer(change.doc):
                self._waiting[uid] = _object(change.kind, change.doc)
                self.queue.add(uid)
            else:
                self._waiting.pop(uid, None)

    def _relate(self, uid: str, new: _Object) -> None:
        old = self._owned.get(uid)
        if old == new:
            return
        self._unrelate(uid)
        if new.owners:
            self._owned[uid] = new
            for owner in new.owners:
                self._dependents.setdefault(owner, {})[uid] = None
            known = (new.namespace in self._alive.get(owner, ()) and owner not in self._waiting for owner in new.owners)
            if not all(known):
                self.queue.add(uid)

    def _unrelate(self, uid: str) -> None:
        old = self._owned.pop(uid, None)
        for owner in old.owners if old is not None else ():
            siblings = self._dependents[owner]
            siblings.pop(uid, None)
            if not siblings:
                del self._dependents[owner]
            if owner in self._waiting:
                self.queue.add(owner)

    def _vanished(self, uid: str) -> None:
        self._unrelate(uid)
        self._waiting.pop(uid, None)
        self._alive.pop(uid, None)
        for dependent in self._dependents.get(uid, ()):
            self.queue.add(dependent)

    # Visits

    def visit(self, key: str, now: float) -> Iterable[Write]:
        if key in self._waiting:
            yield from self._release(key, self._waiting[key])
        elif key in self._owned:
            yield from self._judge(key, self._owned[key])

    def _judge(self, uid: str, dependent: _Object) -> Iterable[Write]:
        """Delete an object that no living owner holds; or drop its references to the others."""
        doc = self._current(uid, dependent)
        if doc is None or dependent.deleting:
            return
        references = doc["metadata"].get("ownerReferences") or []
        solid = [one for one in references if self._is_alive(one, dependent.namespace)]
        if len(solid) == len(references):
            return
        if solid:
            yield patch(dependent.kind, doc, {"metadata": {"ownerReferences": solid}})
        else:
            yield delete(dependent.kind, doc, propagation=self._propagation(uid, doc))

    def _propagation(self, uid: str, doc: Doc) -> str:
        policy = _finalizer(doc)
        if policy:
            return "Orphan" if policy == ORPHAN else "Foreground"
        waits = any(owner in self._waiting for owner in self._owned[uid].owners)
        return "Foreground" if waits and self._dependents.get(uid) else "Background"

    def _is_alive(self, reference: Doc, namespace: str) -> bool:
        """Whether an owner exists and does not wait for its dependents to go."""
        uid = reference["uid"]
        if uid in self._waiting:
            return False
        if namespace in self._alive.get(uid, ()):
            return True
        kind = self._registry.by_kind(reference["apiVersion"], reference["kind"])
        if kind is None:
            return True  # of a kind that is not served here: nobody can say that it is gone
        owner = self.view.get(kind, namespace if kind.namespaced else "", reference["name"])
        if owner is None or owner["metadata"]["uid"] != uid:
            return False
        self._alive.setdefault(uid, set()).add(namespace)
        return True

    def _release(self, uid: str, owner: _Object) -> Iterable[Write]:
        """Do what the owner's finalizer waits for, then take it off."""
        doc = self._current(uid, owner)
        if doc is None:
            return
        known = ((child, self._owned[child]) for child in self._dependents.get(uid, ()))
        dependents = [(child, one) for child, one in known if owner.namespace in ("", one.namespace)]
        if _finalizer(doc) == ORPHAN:
            yield from self._orphan(uid, dependents)
            is_done = not dependents
        else:
            for child, _ in dependents:
                self.queue.add(child)
            is_done = not any(uid in dependent.blocks for _, dependent in dependents)
        if is_done:
            rest = [name for name in doc["metadata"]["finalizers"] if name != _finalizer(doc)]
            version = doc["metadata"]["resourceVersion"]
            yield patch(owner.kind, doc, {"metadata": {"finalizers": rest, "resourceVersion": version}})

    def _orphan(self, uid: str, dependents: Iterable[tuple[str, _Object]]) -> Iterable[Write]:
        for child, dependent in dependents:
            doc = self._current(child, dependent)
            if doc is not None:
                kept = [one for one in doc["metadata"].get("ownerReferences") or () if one["uid"] != uid]
                yield patch(dependent.kind, doc, {"metadata": {"ownerReferences": kept}})

    def _current(self, uid: str, known: _Object) -> Doc | None:
        doc = self.view.get(known.kind, known.namespace, known.name)
        return doc if doc is not None and doc["metadata"]["uid"] == uid else None


def _object(kind: Kind, doc: Doc) -> _Object:
    references = doc["metadata"].get("ownerReferences") or ()
    return _Object(
        kind,
        *namespaced_name(doc),
        owners=tuple(one["uid"] for one in references),
        blocks=frozenset(one["uid"] for one in references if one.get("blockOwnerDeletion")),
        deleting=bool(doc["metadata"].get("deletionTimestamp")),
    )


def _finalizer(doc: Doc) -> str:
    """Which of the two finalizers of garbage collection an object has."""
    finalizers = doc["metadata"].get("finalizers") or ()
    return ORPHAN if ORPHAN in finalizers else FOREGROUND if FOREGROUND in finalizers else ""
