"""What becomes of pods on nodes that are tainted, not ready, or gone.

A NoExecute taint that a pod does not tolerate evicts it at once; one that it tolerates for a while evicts it when the
shortest such while is over, and not at all if the taint goes first. While its node is not ready, a pod is not ready
either. A pod on a node that does not exist is removed after a quarantine, because the node may only be late.

Kept per pod: its node. What a pod tolerates and whether it is ready is read when it is visited, because hardly any node
of a cluster is ever lost. Invariant: only pods on a node that is tainted, not ready or gone are visited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import condition, delete, patch_status, with_condition
from fairlead.core.model.flow import Change, Doc, DocView, Happened, Watch, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.core.model.times import seconds_of, timestamp

Key = tuple[str, str]
_ENDED = ("Succeeded", "Failed")
_DELETED = Happened.DELETED
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


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
        self._node_of: dict[Key, str] = {}  # pod -> name of its node

    def observe(self, change: Change) -> None:
        if change.kind is NODE:
            self._observe_node(change)
            return
        doc = change.doc
        metadata = doc["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        name = None if change.happened is _DELETED else (doc.get("spec") or {}).get("nodeName")
        before = self._node_of.get(key)
        if before != name:
            if before is not None:
                del self._node_of[key]
                self._nodes[before].pods.pop(key, None)
            if name:
                self._node_of[key] = name
                self._node(name).pods[key] = None
        if name:
            node = self._nodes[name]
            if node.taints or not node.exists or not node.ready:
                self.queue.add(key)

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

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        node_name = self._node_of.get(key)
        pod = self.view.get(POD, *key) if node_name is not None else None
        if node_name is None or pod is None or pod["spec"].get("nodeName") != node_name:
            return
        node, finished = self._nodes[node_name], (pod.get("status") or {}).get("phase") in _ENDED
        if not node.exists:
            yield from self._remove_stray(key, pod, node, now, finished=finished)
        elif not finished and not pod["metadata"].get("deletionTimestamp"):
            tolerations = [_toleration(one) for one in pod["spec"].get("tolerations") or ()] if node.taints else []
            due = _eviction_due(tolerations, node.taints)
            if due <= now:
                yield from self._evict(key, pod, now)
                return
            if due < float("inf"):
                self.queue.add_at(key, due)
            ready = condition(pod, "Ready") if not node.ready else None
            if ready is not None and ready.get("status") == "True":
                yield from self._mark_unready(pod, ready, now)

    def _remove_stray(self, key: Key, pod: Doc, node: _Node, now: float, *, finished: bool) -> Iterable[Write]:
        due = node.missing_since + self._quarantine
        if now < due:
            self.queue.add_at(key, due)
            return
        if not finished:
            disrupted = _disruption("DeletionByPodGC", "PodGC: node no longer exists", now)
            status = {"phase": "Failed", "conditions": _with(pod, disrupted)}
            yield patch_status(POD, pod, status)
        yield delete(POD, pod, grace_seconds=0)

    def _evict(self, key: Key, pod: Doc, now: float) -> Iterable[Write]:
        disrupted = _disruption("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now)
        yield patch_status(POD, pod, {"conditions": _with(pod, disrupted)})
        yield delete(POD, pod)
        yield from self.event(POD, pod, "TaintManagerEviction", f"Marking for deletion Pod {key[0]}/{key[1]}")

    def _mark_unready(self, pod: Doc, ready: Doc, now: float) -> Iterable[Write]:
        unready = {**ready, "status": "False", "lastTransitionTime": timestamp(now)}
        yield patch_status(POD, pod, {"conditions": _with(pod, unready)})
        yield from self.event(POD, pod, "NodeNotReady", "Node is not ready", warning=True, component="node-controller")


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
