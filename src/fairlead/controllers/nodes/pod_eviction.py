"""What becomes of pods on nodes that are tainted, not ready, or gone.

A NoExecute taint that a pod does not tolerate evicts it at once; one that it tolerates for a while evicts it when the
shortest such while is over, and not at all if the taint goes first. While its node is not ready, a pod is not ready
either. A pod on a node that does not exist is removed after a quarantine, because the node may only be late.

Kept per pod: its node, its shared tolerations and whether it is ready. Invariant: only the pods of a node whose
taints or readiness changed are visited.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead.controllers.workqueue import Reconciler
from fairlead.controllers.writes import condition, delete, namespaced_name, patch_status, with_condition
from fairlead.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.model.kinds import NODE, POD
from fairlead.model.times import seconds_of, timestamp

Key = tuple[str, str]
_REMEMBERED = 64


class _Toleration(NamedTuple):
    key: str
    operator: str
    value: str
    effect: str
    seconds: float | None

    def tolerates(self, taint: _Taint) -> bool:
        if self.effect and self.effect != "NoExecute":
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


class _Taint(NamedTuple):
    key: str
    value: str
    since: float


class _Pod(NamedTuple):
    uid: str
    node: str
    tolerations: tuple[_Toleration, ...]
    ready: bool
    finished: bool
    deleting: bool


@dataclass(slots=True)
class _Node:
    exists: bool = False
    missing_since: float = 0.0
    ready: bool = True
    taints: tuple[_Taint, ...] = ()
    pods: dict[Key, None] = field(default_factory=dict)


class PodEviction(Reconciler[Key]):
    name = "taint-eviction-controller"
    watches: Sequence[Watch] = (Watch(NODE), Watch(POD, field_selector="spec.nodeName!="))

    def __init__(self, view: DocView, *, quarantine: float = 40.0, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._quarantine = quarantine
        self._nodes: dict[str, _Node] = {}
        self._pods: dict[Key, _Pod] = {}
        self._read: dict[bytes, tuple[_Toleration, ...]] = {}
        self._same: dict[int, tuple[list[Doc], tuple[_Toleration, ...]]] = {}  # an embedded Store shares them

    def observe(self, change: Change) -> None:
        if change.kind is NODE:
            self._observe_node(change)
        elif change.kind is POD:
            self._observe_pod(change)

    def _observe_node(self, change: Change) -> None:
        node = self._node(change.doc["metadata"]["name"])
        before = (node.exists, node.ready, node.taints)
        node.exists = not change.gone
        if node.exists:
            node.ready = (condition(change.doc, "Ready") or {}).get("status", "True") == "True"
            node.taints = self._taints(change.doc, node)
        else:
            node.missing_since = self.now
        if before != (node.exists, node.ready, node.taints):
            for key in node.pods:
                self.queue.add(key)

    def _taints(self, doc: Doc, node: _Node) -> tuple[_Taint, ...]:
        since = {(taint.key, taint.value): taint.since for taint in node.taints}
        taints = []
        for one in doc["spec"].get("taints") or ():
            if one["effect"] == "NoExecute":
                key, value = one["key"], one.get("value") or ""
                added = seconds_of(one["timeAdded"]) if one.get("timeAdded") else self.now
                taints.append(_Taint(key, value, since.get((key, value), added)))
        return tuple(taints)

    def _node(self, name: str) -> _Node:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = _Node(missing_since=self.now)
        return node

    def _observe_pod(self, change: Change) -> None:
        doc, gone = change.doc, change.gone
        key, name = namespaced_name(doc), (doc.get("spec") or {}).get("nodeName")
        old = self._pods.pop(key, None)
        if old is not None and (gone or old.node != name):
            self._nodes[old.node].pods.pop(key, None)
        if gone or not name:
            return
        status = doc.get("status") or {}
        pod = _Pod(
            uid=doc["metadata"]["uid"],
            node=name,
            tolerations=self._tolerations(doc["spec"].get("tolerations") or []),
            ready=(condition(doc, "Ready") or {}).get("status") == "True",
            finished=status.get("phase") in ("Succeeded", "Failed"),
            deleting=bool(doc["metadata"].get("deletionTimestamp")),
        )
        self._pods[key] = pod
        node = self._node(name)
        node.pods[key] = None
        if node.taints or not node.exists or not node.ready:
            self.queue.add(key)

    def _tolerations(self, documents: list[Doc]) -> tuple[_Toleration, ...]:
        """Read once for all pods that say the same: most have those that every pod is given."""
        same = self._same.get(id(documents))
        if same is not None and same[0] is documents:
            return same[1]
        encoding = marshal.dumps(documents, 2)
        known = self._read.get(encoding)
        if known is None:
            known = self._read[encoding] = tuple(map(_toleration, documents))
        if len(self._same) >= _REMEMBERED:
            self._same.clear()
        self._same[id(documents)] = documents, known
        return known

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        pod = self._pods.get(key)
        if pod is None:
            return
        node = self._nodes[pod.node]
        if not node.exists:
            yield from self._remove_stray(key, pod, node, now)
        elif not pod.deleting and not pod.finished:
            due = _eviction_due(pod.tolerations, node.taints)
            if due <= now:
                yield from self._evict(key, pod, now)
                return
            if due < float("inf"):
                self.queue.add_at(key, due)
            if pod.ready and not node.ready:
                yield from self._mark_unready(key, pod, now)

    def _remove_stray(self, key: Key, pod: _Pod, node: _Node, now: float) -> Iterable[Write]:
        due = node.missing_since + self._quarantine
        if now < due:
            self.queue.add_at(key, due)
            return
        doc = self._current(key, pod)
        if doc is None:
            return
        if not pod.finished:
            disrupted = _disruption("DeletionByPodGC", "PodGC: node no longer exists", now)
            status = {"phase": "Failed", "conditions": _with(doc, disrupted)}
            yield patch_status(POD, doc, status)
        yield delete(POD, doc, grace_seconds=0)

    def _evict(self, key: Key, pod: _Pod, now: float) -> Iterable[Write]:
        doc = self._current(key, pod)
        if doc is None:
            return
        disrupted = _disruption(
            "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now
        )  # fmt: skip
        yield patch_status(POD, doc, {"conditions": _with(doc, disrupted)})
        yield delete(POD, doc)
        yield from self.event(POD, doc, "TaintManagerEviction", f"Marking for deletion Pod {key[0]}/{key[1]}")

    def _mark_unready(self, key: Key, pod: _Pod, now: float) -> Iterable[Write]:
        doc = self._current(key, pod)
        ready = condition(doc, "Ready") if doc is not None else None
        if doc is None or ready is None:
            return
        unready = {**ready, "status": "False", "lastTransitionTime": timestamp(now)}
        yield patch_status(POD, doc, {"conditions": _with(doc, unready)})
        yield from self.event(
            POD, doc, "NodeNotReady", "Node is not ready", warning=True, component="node-controller"
        )  # fmt: skip

    def _current(self, key: Key, pod: _Pod) -> Doc | None:
        doc = self.view.get(POD, *key)
        return doc if doc is not None and doc["metadata"]["uid"] == pod.uid else None


def _toleration(doc: Doc) -> _Toleration:
    return _Toleration(
        key=doc.get("key") or "",
        operator=doc.get("operator") or "Equal",
        value=doc.get("value") or "",
        effect=doc.get("effect") or "",
        seconds=doc.get("tolerationSeconds"),
    )


def _eviction_due(tolerations: Sequence[_Toleration], taints: Sequence[_Taint]) -> float:
    """When the pod has to go: minus infinity for now, infinity for never."""
    due = float("inf")
    for taint in taints:
        matching = [one for one in tolerations if one.tolerates(taint)]
        if not matching:
            return float("-inf")
        limits = [one.seconds for one in matching if one.seconds is not None]
        if limits:
            due = min(due, taint.since + max(0.0, min(limits)))
    return due


def _disruption(reason: str, message: str, now: float) -> Doc:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
        "reason": reason,
        "message": message,
    }


def _with(pod: Doc, new: Doc) -> list[Doc]:
    return with_condition((pod.get("status") or {}).get("conditions") or [], new)
