"""Status of scheduler-plugins' PodGroups (scheduling.x-k8s.io): phase, counts and occupant, as in the original.

phase   Pending      fewer pods exist than the minimum
        Scheduling   enough exist, fewer than the minimum run or have succeeded
        Running      as many as the minimum run or have succeeded
        Failed       a pod failed, and as many as the minimum run or have ended; final
        Finished     as many as the minimum succeeded; final

A group goes through the phases one write at a time, as in the original. One thing differs: the original counts pods of
the same label in all namespaces, this controller those of the group's own.

Invariant: a group in a final phase is never written again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import merge_patch, namespaced_name, patch_status
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import POD, X_POD_GROUP
from fairlead.core.model.pod import COSCHEDULING_GROUP_LABEL

Key = tuple[str, str]
_FINAL = ("Finished", "Failed")
_COUNTED = {"Running": "running", "Succeeded": "succeeded", "Failed": "failed"}
"""The phases of pods that are counted, and the field of each."""


class CoschedulingGroups(Reconciler[Key]):
    name = "scheduler-plugins-podgroup-controller"
    watches: Sequence[Watch] = (Watch(X_POD_GROUP), Watch(POD))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._pods: dict[Key, dict[str, str]] = {}  # group -> pod -> its phase

    @property
    def sees_plain_pods(self) -> bool:
        """What has no labels names no group."""
        return False

    def observe(self, change: Change) -> None:
        if change.kind is POD:
            self._observe_pod(change)
        elif not change.gone:
            self.queue.add(namespaced_name(change.doc))

    def _observe_pod(self, change: Change) -> None:
        group = (change.doc["metadata"].get("labels") or {}).get(COSCHEDULING_GROUP_LABEL)
        if not group:
            return
        namespace, name = namespaced_name(change.doc)
        pods = self._pods.setdefault((namespace, group), {})
        if change.gone:
            pods.pop(name, None)
            if not pods:
                del self._pods[namespace, group]
        else:
            pods[name] = (change.doc.get("status") or {}).get("phase") or ""
        self.queue.add((namespace, group))

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        group = self.view.get(X_POD_GROUP, *key)
        if group is None:
            return
        before = group.get("status") or {}
        if before.get("phase") in _FINAL:
            return
        changes = merge_patch(before, {**before, **self._status(key, group, before)})
        if changes:
            yield patch_status(X_POD_GROUP, group, changes)

    def _status(self, key: Key, group: Doc, before: Doc) -> Doc:
        minimum, pods = group["spec"].get("minMember") or 0, self._pods.get(key, {})
        phase = before.get("phase") or ""
        if not phase:
            return {"phase": "Pending"}
        if phase == "Pending":
            if len(pods) < minimum:
                return {}
            return {"phase": "Scheduling", **self._occupant(key[0], pods)}
        found = Counter(pods.values())
        counts = {field: found[phase] for phase, field in _COUNTED.items() if found[phase] or field in before}
        return {"phase": _phase(minimum, len(pods), found), **counts}

    def _occupant(self, namespace: str, pods: Iterable[str]) -> Doc:
        """The owners of one of the pods."""
        pod = self.view.get(POD, namespace, next(iter(pods), ""))
        owners = [] if pod is None else pod["metadata"].get("ownerReferences") or ()
        names = sorted(f"{namespace}/{owner['name']}" for owner in owners)
        return {"occupiedBy": ",".join(names)} if names else {}


def _phase(minimum: int, pods: int, found: Counter[str]) -> str:
    running, succeeded, failed = found["Running"], found["Succeeded"], found["Failed"]
    if pods < minimum:
        return "Pending"
    if succeeded >= minimum:
        return "Finished"
    if failed and failed + running + succeeded >= minimum:
        return "Failed"
    return "Running" if running + succeeded >= minimum else "Scheduling"
