"""PodGroups for plain pods: what Volcano schedules must be in a group, so a pod without one gets one.

    pod of a Volcano scheduler, no group named ──▶ group `podgroup-<uid of its controller, or its own>` ──▶ pod names it

The pods of a ReplicaSet, StatefulSet or Job share one group, which their owner owns; a pod on its own owns its group.
The group's minimum is 1 unless the owner's annotation says more, and what it needs is what that many such pods request.
A ReplicaSet or StatefulSet that is scaled to nothing loses its group, so that it queues again when it comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import controller_of, create, delete, namespaced_name, owner_reference, patch
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import NAMESPACE, POD, REPLICA_SET, STATEFUL_SET, Kind, served_kinds
from fairlead.core.model.quota import spelled, usage_of
from fairlead.core.model.shape import DEFAULT_SCHEDULER
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.kinds import GROUP_ANNOTATION, VC_POD_GROUP
from fairlead.volcano.records.groups import MODE_ANNOTATION, TIER_ANNOTATION

Key = tuple[str, str]

QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
MINIMUM_ANNOTATION = "scheduling.volcano.sh/group-min-member"
_PREEMPTABLE, _COOLDOWN = "volcano.sh/preemptable", "volcano.sh/cooldown-time"
_FROM_POD = (
    _PREEMPTABLE, _COOLDOWN, "volcano.sh/revocable-zone", "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)  # fmt: skip
_NATIVE = ("cpu", "memory", "ephemeral-storage", "storage")


class PodGroups(Reconciler[Key]):
    """`scheduler_names` are those that have a Volcano profile."""

    name = "volcano-podgroup-controller"
    watches: Sequence[Watch] = (
        Watch(POD), Watch(VC_POD_GROUP), Watch(REPLICA_SET), Watch(STATEFUL_SET), Watch(NAMESPACE),
    )  # fmt: skip

    def __init__(self, view: DocView, *, scheduler_names: Sequence[str] = ("volcano",), inherits: bool = True) -> None:
        super().__init__(view)
        self._names, self._inherits = frozenset(scheduler_names), inherits
        self._without: dict[Key, dict[str, Doc]] = {}  # group -> its pods that do not name it yet, by uid
        self._group_of: dict[str, Key] = {}  # pod uid -> that group
        self._scaled_down: set[Key] = set()  # groups whose owners want no pods

    @classmethod
    def from_context(cls, context: ControllerContext) -> PodGroups:
        settings = context.of(VolcanoSettings)
        return cls(context.view, scheduler_names=settings.schedulers, inherits=settings.inherits_annotations)

    @property
    def sees_plain_pods(self) -> bool:
        """Whether the default scheduler has the Volcano profile."""
        return DEFAULT_SCHEDULER in self._names

    def observe(self, change: Change) -> None:
        doc, gone = change.doc, change.gone
        if change.kind is POD:
            self._observe_pod(doc, gone=gone)
        elif change.kind is VC_POD_GROUP:
            if namespaced_name(doc) in self._without or namespaced_name(doc) in self._scaled_down:
                self.queue.add(namespaced_name(doc))
        elif change.kind is not NAMESPACE:  # those are looked up when a group is made
            self._observe_owner(doc, gone=gone)

    def _observe_pod(self, pod: Doc, *, gone: bool) -> None:
        uid = pod["metadata"]["uid"]
        known = self._group_of.pop(uid, None)
        if known is not None:
            self._without[known].pop(uid)
            if not self._without[known]:
                del self._without[known]
        if gone or not self._lacks_group(pod):
            return
        key = _group_key(pod)
        self._without.setdefault(key, {})[uid] = pod
        self._group_of[uid] = key
        self.queue.add(key)

    def _lacks_group(self, pod: Doc) -> bool:
        metadata = pod["metadata"]
        ours = (pod.get("spec") or {}).get("schedulerName") in self._names
        return ours and not metadata.get("deletionTimestamp") and not _annotations(pod).get(GROUP_ANNOTATION)

    def _observe_owner(self, owner: Doc, *, gone: bool) -> None:
        key = (owner["metadata"].get("namespace", ""), f"podgroup-{owner['metadata']['uid']}")
        if not gone and (owner.get("spec") or {}).get("replicas") == 0:
            self._scaled_down.add(key)
            self.queue.add(key)
        else:
            self._scaled_down.discard(key)

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        group = self.view.get(VC_POD_GROUP, *key)
        waiting = self._without.get(key, {})
        if key in self._scaled_down and not waiting:
            if group is not None and not group["metadata"].get("deletionTimestamp"):
                yield delete(VC_POD_GROUP, group)
            return
        if not waiting:
            return
        if group is None:
            yield create(VC_POD_GROUP, self._group_for(key, next(iter(waiting.values()))))
            return
        for pod in waiting.values():
            yield patch(POD, pod, {"metadata": {"annotations": {GROUP_ANNOTATION: key[1]}}})

    def _group_for(self, key: Key, pod: Doc) -> Doc:
        owner = self._owner_of(pod) if self._inherits else None
        minimum = _minimum(owner)
        spec: Doc = {"minResources": quota_needs([(pod, minimum)])}
        if minimum:
            spec["minMember"] = minimum
        if queue := _annotations(pod).get(QUEUE_ANNOTATION) or self._queue_of_namespace(key[0]):
            spec["queue"] = queue
        if class_name := pod["spec"].get("priorityClassName"):
            spec["priorityClassName"] = class_name
        if topology := _topology(pod):
            spec["networkTopology"] = topology
        return {
            "apiVersion": VC_POD_GROUP.api_version,
            "kind": VC_POD_GROUP.kind,
            "metadata": {
                "namespace": key[0],
                "name": key[1],
                "ownerReferences": [controller_of(pod) or owner_reference(POD, pod)],
                "annotations": _inherited(pod, owner),
                "labels": {name: value for name in (_PREEMPTABLE, _COOLDOWN) if (value := _labels(pod).get(name))},
            },
            "spec": spec,
            "status": {"phase": "Pending"},
        }

    def _owner_of(self, pod: Doc) -> Doc | None:
        reference = controller_of(pod)
        kind = None if reference is None else _KINDS.get((reference["apiVersion"], reference["kind"]))
        if reference is None or kind is None:
            return None
        return self.view.get(kind, pod["metadata"].get("namespace", ""), reference["name"])

    def _queue_of_namespace(self, namespace: str) -> str:
        """What the admission of the original adds to groups that name no queue."""
        found = self.view.get(NAMESPACE, "", namespace)
        return "" if found is None else _annotations(found).get(QUEUE_ANNOTATION, "")


_KINDS: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.kind): kind for kind in served_kinds()}


def _group_key(pod: Doc) -> Key:
    owner = controller_of(pod)
    uid = owner["uid"] if owner is not None else pod["metadata"]["uid"]
    return pod["metadata"].get("namespace", ""), f"podgroup-{uid}"


def _annotations(doc: Doc) -> Mapping[str, str]:
    found: Mapping[str, str] = doc["metadata"].get("annotations") or {}
    return found


def _labels(doc: Doc) -> Mapping[str, str]:
    found: Mapping[str, str] = doc["metadata"].get("labels") or {}
    return found


def _minimum(owner: Doc | None) -> int:
    """What the owner's annotation says; below zero or unreadable counts as 1."""
    text = "1" if owner is None else _annotations(owner).get(MINIMUM_ANNOTATION, "1")
    try:
        minimum = int(text)
    except ValueError:
        return 1
    return minimum if minimum >= 0 else 1


def quota_needs(pods: Iterable[tuple[Doc, int]]) -> dict[str, str]:
    """What a quota would count for so many of each pod; resources of devices also by their plain names."""
    total: dict[str, int] = {}
    for pod, count in pods:
        for name, nanos in usage_of(POD, pod).items():
            plain = name.removeprefix("requests.")
            total[name] = total.get(name, 0) + nanos * count
            if plain != name and plain not in _NATIVE and not plain.startswith("hugepages-"):
                total[plain] = total.get(plain, 0) + nanos * count
    return {name: spelled(name, nanos) for name, nanos in total.items() if nanos}


def _inherited(pod: Doc, owner: Doc | None) -> dict[str, str]:
    """The owner's annotations that are Volcano's, and over them some of the pod's."""
    theirs = {} if owner is None else {k: v for k, v in _annotations(owner).items() if k.startswith("volcano.sh/")}
    return theirs | {name: value for name in _FROM_POD if (value := _annotations(pod).get(name))}


def _topology(pod: Doc) -> dict[str, Any] | None:
    """How close members must be: hard unless it says soft, in any case; a tier that is no number says nothing."""
    mode, tier = _annotations(pod).get(MODE_ANNOTATION), _annotations(pod).get(TIER_ANNOTATION)
    if mode is None and tier is None:
        return None
    topology: dict[str, Any] = {"mode": "soft" if (mode or "").lower() == "soft" else "hard"}
    return topology | ({"highestTierAllowed": int(tier)} if tier is not None and tier.isdigit() else {})
