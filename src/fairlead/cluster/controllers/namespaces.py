"""Namespaces: one that is deleted loses its content, then its finalizer; each has a `default` service account.

Pods and objects with finalizers take their time, so the content is looked at again every second. Not reported: the
conditions that count what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import create, delete
from fairlead.core.model.flow import Change, DocView, Verb, Watch, Write
from fairlead.core.model.kinds import NAMESPACE, SERVICE_ACCOUNT, Registry

_FINALIZER = "kubernetes"
_PAUSE = 1.0


class Namespaces(Reconciler[str]):
    name = "namespace-controller"
    watches: Sequence[Watch] = (Watch(NAMESPACE),)

    def __init__(self, view: DocView, *, registry: Registry | None = None) -> None:
        super().__init__(view)
        kinds = registry or Registry()
        self._kinds = [kind for kind in kinds if kind.namespaced and kind.stored_as is None]
        self._terminating: set[str] = set()

    @classmethod
    def from_context(cls, context: ControllerContext) -> Namespaces:
        return cls(context.view, registry=context.registry)

    def observe(self, change: Change) -> None:
        metadata = change.doc["metadata"]
        if change.gone or not metadata.get("deletionTimestamp"):
            self._terminating.discard(metadata["name"])
        else:
            self._terminating.add(metadata["name"])
        self.queue.add(metadata["name"])

    def visit(self, key: str, now: float) -> Iterable[Write]:
        namespace = self.view.get(NAMESPACE, "", key)
        if namespace is None or key not in self._terminating:
            return
        is_empty = True
        for kind in self._kinds:
            for doc in self.view.list(kind, key):
                is_empty = False
                if not doc["metadata"].get("deletionTimestamp"):
                    yield delete(kind, doc, propagation="Background")
        if not is_empty:
            self.queue.add_at(key, now + _PAUSE)
            return
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        if _FINALIZER in finalizers:
            rest = [name for name in finalizers if name != _FINALIZER]
            body = {**namespace, "spec": {**namespace["spec"], "finalizers": rest}}
            yield Write(Verb.UPDATE, NAMESPACE, "", key, body=body, subresource="finalize")


class ServiceAccounts(Reconciler[str]):
    """The account that pods have which name none; one that is deleted comes back."""

    name = "serviceaccount-controller"
    watches: Sequence[Watch] = (Watch(NAMESPACE), Watch(SERVICE_ACCOUNT))

    def observe(self, change: Change) -> None:
        metadata = change.doc["metadata"]
        if change.kind is NAMESPACE:
            if not change.gone:
                self.queue.add(metadata["name"])
        elif change.gone and metadata["name"] == "default":
            self.queue.add(metadata["namespace"])

    def visit(self, key: str, now: float) -> Iterable[Write]:
        namespace = self.view.get(NAMESPACE, "", key)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return
        if self.view.get(SERVICE_ACCOUNT, key, "default") is None:
            yield create(SERVICE_ACCOUNT, {"metadata": {"namespace": key, "name": "default"}})
