"""A Scheduler with Koordinator's preset, step by step, and documents of Koordinator's kinds.

scenario = KoordScenario(nodes=2)
scenario.tell(koord_group("g", least=2), koord_pod("a", gang="g"), koord_pod("b", gang="g"))
scenario.settle()
assert scenario.binds().keys() == {"a", "b"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fairlead.assembly.assemble import profiles_of
from fairlead.assembly.registry import PluginRegistry
from fairlead.config.source import parse_source
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Verb
from fairlead.core.model.kinds import Registry
from fairlead.errors import Conflict
from fairlead.koordinator.config.preset import KOORDINATOR_PRESET
from fairlead.koordinator.gates import COMPATIBLE
from fairlead.koordinator.kinds import KOORD_DEVICE, KOORD_ELASTIC_QUOTA, KOORD_POD_GROUP, KOORD_RESERVATION
from fairlead.kube.config.gates import DEFAULT_GATES, parse_feature_gates
from fairlead.kube.config.kube import kube_config_from
from tests.support.documents import node, pod
from tests.support.scheduling import SchedulerScenario

GANG = "gang.scheduling.koordinator.sh/"
QUOTA = "quota.scheduling.koordinator.sh/"
SCHEDULING = "scheduling.koordinator.sh/"
GPU = "koordinator.sh/gpu"
KOORD_REGISTRY = Registry()


def koord_config(arguments: Mapping[str, Doc] | None = None, *, gates: str = "", compatible: bool = False) -> Any:
    """The preset with some plugins' arguments laid over it."""
    document = parse_source(KOORDINATOR_PRESET, "koordinator").value
    listed = document["profiles"][0]["pluginConfig"]
    for name, args in (arguments or {}).items():
        entry = next((entry for entry in listed if entry["name"] == name), None)
        if entry is None:
            listed.append({"name": name, "args": dict(args)})
        else:
            entry["args"].update(args)
    on = parse_feature_gates(gates, defaults=DEFAULT_GATES)
    on = on | {COMPATIBLE} if compatible else on
    return kube_config_from(document, capabilities=PluginRegistry().capabilities, gates=on)


class KoordScenario(SchedulerScenario):
    def __init__(
        self,
        arguments: Mapping[str, Doc] | None = None,
        *,
        nodes: int = 0,
        gates: str = "",
        compatible: bool = False,
        **options: Any,
    ) -> None:
        profiles = profiles_of(koord_config(arguments, gates=gates, compatible=compatible))
        self.docs: dict[tuple[str, str, str], Doc] = {}
        super().__init__(profiles=profiles, nodes=nodes, **options)

    def as_change(self, doc: Doc, happened: Happened = Happened.ADDED) -> Change:
        kind = KOORD_REGISTRY.by_kind(doc.get("apiVersion", "v1"), doc["kind"])
        assert kind is not None, doc
        metadata = doc["metadata"]
        key = (kind.plural, metadata.get("namespace") or "", metadata["name"])
        if happened is Happened.DELETED:
            self.docs.pop(key, None)
        else:
            self.docs[key] = doc
        return Change(happened, kind, self._versioned(doc))

    def delete_a_pod(self, number: int) -> None:
        """Delete the pod at this place of their names, counted round; nothing if there is none."""
        pods = sorted(key for key in self.docs if key[0] == "pods")
        if pods:
            self.gone(self.docs[pods[number % len(pods)]])

    def follow_on(self, before: KoordScenario) -> KoordScenario:
        """This scenario with a new scheduler that is shown what there was before it: a restart."""
        self.run(*[self.as_change(doc, Happened.ADDED) for doc in list(before.docs.values())])
        return self

    def settle(self, rounds: int = 20) -> None:
        """Perform the writes to pods and to Koordinator's objects, answer, and show what came of them, until nothing
        more is written."""
        for _ in range(rounds):
            writes, self._unanswered_before = list(self._unanswered), len(self._unanswered)
            changes = [change for write in writes if (change := self._performed(write)) is not None]
            if writes:
                self.answer()
            if changes:
                self.run(*changes)
            if not self._unanswered:
                return

    def refuse(self, plural: str) -> None:
        """Refuse the writes to one kind that have no answer yet, and perform the others."""
        writes, self._unanswered = list(self._unanswered), []
        error = Conflict("refused by the test")
        replies = [Reply(write, {}, error if write.kind.plural == plural else None) for write in writes]
        kept = [reply.write for reply in replies if reply.error is None]
        changes = [change for write in kept if (change := self._performed(write)) is not None]
        self.run(*changes, replies=replies)

    def _performed(self, write: Any) -> Change | None:
        key = (write.kind.plural, write.namespace if write.kind.namespaced else "", write.name)
        found = self.docs.get(key)
        if found is None:
            return None
        if write.verb is Verb.DELETE or write.subresource == "eviction":
            del self.docs[key]
            return Change(Happened.DELETED, write.kind, found)
        if write.subresource == "binding":
            new = {**found, "spec": {**found["spec"], "nodeName": write.body["target"]["name"]}}
        elif write.verb is Verb.PATCH:
            new = _merged(found, write.body)
        else:
            return None
        self.docs[key] = new
        return Change(Happened.MODIFIED, write.kind, self._versioned(new))

    def play_out(self) -> None:
        """Settle, and again after each of three backoffs."""
        for _ in range(3):
            self.settle()
            self.run(after=15)
        self.settle()

    def pods_left(self) -> set[str]:
        """The names of the pods that are not deleted."""
        return {key[2] for key in self.docs if key[0] == "pods"}

    def doc(self, plural: str, name: str, namespace: str = "") -> Doc:
        return self.docs[plural, namespace, name]

    def placed(self) -> dict[str, str]:
        """The nodes of the pods that are bound, by name."""
        return {
            key[2]: doc["spec"]["nodeName"]
            for key, doc in self.docs.items()
            if key[0] == "pods" and doc["spec"].get("nodeName")
        }

    def message(self, name: str) -> str:
        return str(self.conditions(name)[-1]["message"])


def _merged(document: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    base = document if isinstance(document, dict) else {}
    merged = {**base, **{key: _merged(base.get(key), value) for key, value in patch.items()}}
    return {key: value for key, value in merged.items() if value is not None}


def koord_pod(
    name: str, *, gang: str = "", quota: str = "", labels: Mapping[str, str] | None = None, **more: Any
) -> Doc:
    """A pod of Koordinator's scheduler."""
    own = dict(labels or {})
    if gang:
        own["pod-group.scheduling.sigs.k8s.io"] = gang
    if quota:
        own[QUOTA + "name"] = quota
    return pod(name, labels=own, **{"schedulerName": "koord-scheduler", **more})


def koord_group(name: str, *, least: int, annotations: Mapping[str, str] | None = None, seconds: int = 0) -> Doc:
    spec: Doc = {"minMember": least}
    if seconds:
        spec["scheduleTimeoutSeconds"] = seconds
    metadata = {"name": name, "namespace": "default", "uid": f"group-{name}", "annotations": dict(annotations or {})}
    return _document(KOORD_POD_GROUP, metadata, spec)


def elastic_quota(
    name: str,
    *,
    least: Mapping[str, str],
    most: Mapping[str, str],
    parent: str = "",
    is_parent: bool = False,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Doc:
    own = {QUOTA + "is-parent": str(is_parent).lower(), **(labels or {})}
    if parent:
        own[QUOTA + "parent"] = parent
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"quota-{name}",
        "labels": own,
        "annotations": dict(annotations or {}),
    }
    return _document(KOORD_ELASTIC_QUOTA, metadata, {"min": dict(least), "max": dict(most)})


def koord_reservation(name: str, *, request: Mapping[str, str], owners: Mapping[str, str], **spec: Any) -> Doc:
    """A reservation for pods with some labels."""
    container = {"name": "c", "resources": {"requests": dict(request)}}
    template = {"metadata": {"namespace": "default"}, "spec": {"containers": [container]}}
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    whole = {"template": template, "owners": [{"labelSelector": {"matchLabels": dict(owners)}}], **spec}
    return _document(KOORD_RESERVATION, metadata, whole)


def gpu_devices(name: str, *, count: int, memory: str = "16Gi") -> Doc:
    """The Device object of a node with so many GPUs."""
    resources = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100",
                 "koordinator.sh/gpu-memory": memory}  # fmt: skip
    devices = [
        {"type": "gpu", "id": f"GPU-{name}-{at}", "minor": at, "health": True, "resources": resources}
        for at in range(count)
    ]
    return _document(KOORD_DEVICE, {"name": name, "uid": f"device-{name}"}, {"devices": devices})


def gpu_node(name: str, *, cpu: int, gpus: int = 2) -> tuple[Doc, Doc]:
    """A node with GPUs that can be shared, and its Device object."""
    whole = str(100 * gpus)
    offered: dict[str, Any] = {GPU: whole, "koordinator.sh/gpu-core": whole, "koordinator.sh/gpu-memory-ratio": whole}
    return node(name, cpu=cpu, **offered), gpu_devices(name, count=gpus)


def given_gpus(doc: Doc) -> dict[int, int]:
    """The GPUs that a pod was given, by number, in percent."""
    text = (doc["metadata"].get("annotations") or {}).get(SCHEDULING + "device-allocated")
    listed = json.loads(text).get("gpu") or () if text else ()
    return {one["minor"]: int(one["resources"]["koordinator.sh/gpu-core"]) for one in listed}


def _document(kind: Any, metadata: Doc, spec: Doc) -> Doc:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
