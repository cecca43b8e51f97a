"""RefusedPods: pods that a kubelet turned away because its node was full, though a scheduler had chosen the node.

Two schedulers that share nodes can both give away the last room. The kubelet then ends the later pod with the phase
Failed and a reason such as OutOfcpu, and there it stays. These pods are counted and reported; on request they are
replaced: a pod with a controller is deleted, so that its controller makes another, and a bare pod is deleted and made
again without a node. A bare pod that was replaced `MOST` times is left alone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import controller_of, create, delete, namespaced_name
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Watch, Write
from fairlead.core.model.kinds import POD
from fairlead.errors import AlreadyExists, NotFound

Key = tuple[str, str]
REPLACED = "scheduling.fairlead.io/replaced"
"""On a bare pod that was made again: how often."""
MOST = 5
_OWN = ("name", "namespace", "labels", "annotations", "ownerReferences", "finalizers")


class RefusedPods(Reconciler[Key]):
    name = "refused-pods"
    watches: Sequence[Watch] = (Watch(POD, field_selector="status.phase=Failed"),)

    def __init__(self, view: DocView, schedulers: Collection[str], *, replace: bool = False) -> None:
        """Looks after pods of these schedulers."""
        super().__init__(view, announce=False)
        self._schedulers, self._replace = schedulers, replace
        self._seen: dict[Key, str] = {}  # pod -> uid
        self.counts: Counter[str] = Counter()
        """By reason: pods that kubelets refused."""
        self.complaints: deque[str] = deque(maxlen=1000)

    def observe(self, change: Change) -> None:
        doc, key = change.doc, namespaced_name(change.doc)
        if change.gone:
            self._seen.pop(key, None)
            return
        reason = refusal_of(doc)
        if not reason or doc["spec"].get("schedulerName") not in self._schedulers:
            return
        if self._seen.get(key) == doc["metadata"]["uid"]:
            return
        self._seen[key] = doc["metadata"]["uid"]
        self.counts[reason] += 1
        node, what = doc["spec"].get("nodeName", ""), (doc["status"].get("message") or "").strip()
        self.complaints.append(
            f"a kubelet refused a pod ({reason}): {key[0]}/{key[1]} on node {node}: {what or 'no message'}"
        )
        if self._replace:
            self.queue.add(key)

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        doc = self.view.get(POD, *key)
        if doc is None or not refusal_of(doc) or doc["metadata"].get("deletionTimestamp"):
            return
        again = None if controller_of(doc) else made_again(doc)
        if again is not None and int(again["metadata"]["annotations"][REPLACED]) > MOST:
            return
        yield delete(POD, doc)
        if again is not None:
            yield create(POD, again)

    def forgives(self, key: Key, reply: Reply) -> bool:
        return isinstance(reply.error, NotFound | AlreadyExists)


def refusal_of(doc: Doc) -> str:
    """OutOfcpu, OutOfmemory, OutOfpods ...: the reason for which a kubelet did not admit a pod; empty if it did."""
    status = doc.get("status") or {}
    reason = str(status.get("reason") or "")
    return reason if status.get("phase") == "Failed" and reason.lower().startswith("outof") else ""


def made_again(doc: Doc) -> Doc:
    """The same pod, for another attempt."""
    metadata = {name: value for name, value in doc["metadata"].items() if name in _OWN}
    annotations = dict(metadata.get("annotations") or {})
    times = annotations.get(REPLACED, "0")
    annotations[REPLACED] = str((int(times) if times.isdecimal() else 0) + 1)
    spec = {name: value for name, value in doc["spec"].items() if name != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "annotations": annotations}, "spec": spec}
