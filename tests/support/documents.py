"""Documents as an API server shows them to a scheduler: one set of builders for all suites below the API.

`fairlead.testing.builders` writes what a user would send, and the Store fills in the rest. Tests of the core have no
Store, so these functions give whole documents: with uid, priority and status. Keywords that a function does not know go
into the spec under their own name. Every document has the uid `uid-<name>` unless it is told another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import Kind
from fairlead.core.model.node import Node, compile_node
from fairlead.core.model.pod import Pod, Shapes, compile_pod

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
BOUND, SELECTED = "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GROUP = "scheduling.k8s.io/group-name"
LONG_AGO = "2026-01-01T00:00:00Z"
SHAPES = Shapes()


def meta(name: str, namespace: str = "", **more: Any) -> Doc:
    """Metadata with a uid."""
    return {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {}), **more}


def deleting(doc: Doc) -> Doc:
    """The same object with a deletion timestamp."""
    return {**doc, "metadata": {**doc["metadata"], "deletionTimestamp": LONG_AGO}}


# ---- pods and nodes ----


def container(name: str = "main", image: str = "nginx", **requests: Any) -> Doc:
    """A container; resources by keyword, with `_` for `-`."""
    asked = {resource.replace("_", "-"): amount for resource, amount in requests.items()}
    return {"name": name, "image": image, "resources": {"requests": asked} if asked else {}}


def sidecar(name: str = "side", **requests: Any) -> Doc:
    """An init container that keeps running."""
    return container(name, **requests) | {"restartPolicy": "Always"}


def asking(requests: Mapping[str, str], **more: Any) -> Doc:
    """A container with these requests, whatever their names."""
    return {"name": "c", "resources": {"requests": dict(requests)}, **more}


def plain_pod(
    name: str = "p",
    labels: Mapping[str, str] | None = None,
    *,
    namespace: str = "default",
    uid: str = "",
    requests: Mapping[str, str] | None = None,
    status: Doc | None = None,
    **spec: Any,
) -> Doc:
    """A pod of one container that asks for nothing but `requests`, and says nothing that it is not told to say."""
    metadata: Doc = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    if labels:
        metadata["labels"] = dict(labels)
    body = {"containers": [asking(requests or {})], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body, "status": status or {}}


def pod(
    name: str,
    *,
    cpu: str = "1",
    on: str = "",
    priority: int = 0,
    port: int = 0,
    started: str = "",
    terminating: bool = False,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Doc:
    """A pod that asks for one core and waits for the default scheduler, or is `on` a node already."""
    ports = [{"containerPort": port, "hostPort": port}] if port else []
    body = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}, "ports": ports}],
        "schedulerName": "default-scheduler",
        "priority": priority,
        **({"nodeName": on} if on else {}),
        **spec,
    }
    status = {"phase": "Pending", **({"startTime": started} if started else {})}
    doc = plain_pod(name, labels, status=status, **body)
    return deleting(doc) if terminating else doc


def node(
    name: str = "n",
    labels: Mapping[str, str] | None = None,
    *,
    taints: Sequence[Doc] = (),
    unschedulable: bool = False,
    images: Sequence[Doc] = (),
    features: Sequence[str] = (),
    allocatable: Mapping[str, str] | None = None,
    **offered: str | int,
) -> Doc:
    """A node of 4 cores, 8Gi and 10 pods, of which `offered` replaces some and `allocatable` all.

    Its only label is the hostname, unless labels are given.
    """
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"} if allocatable is None else dict(allocatable)
    room |= {resource: str(amount) for resource, amount in offered.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {HOST: name} if labels is None else dict(labels)},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"allocatable": room, "images": list(images), "declaredFeatures": list(features)},
    }


def compiled(document: Doc) -> Pod:
    """The record of a pod; all that are made here share their shapes."""
    return compile_pod(document, SHAPES)


def compiled_pod(name: str = "p", **more: Any) -> Pod:
    return compiled(plain_pod(name, **more))


def compiled_node(name: str = "n", **more: Any) -> Node:
    return compile_node(node(name, **more))


# ---- what pods say of each other ----


def term(key: str, labels: Mapping[str, str] | None, **more: Any) -> Doc:
    """A term of pod affinity: pods with these labels, within a domain of `key`."""
    return {"topologyKey": key, "labelSelector": None if labels is None else {"matchLabels": dict(labels)}, **more}


def near(*terms: Doc) -> Doc:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: Doc) -> Doc:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def rather_near(weight: int, wanted: Doc) -> Doc:
    return {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": wanted}]}}


def rather_apart(weight: int, unwanted: Doc) -> Doc:
    return {"podAntiAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": unwanted}]}}


def spread(key: str, labels: Mapping[str, str] | None, *, skew: int = 1, hard: bool = True, **more: Any) -> Doc:
    """A topology spread constraint."""
    when = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {**term(key, labels), "maxSkew": skew, "whenUnsatisfiable": when, **more}


def budget(name: str, labels: Mapping[str, str], *, allowed: int = 0, disrupted: Sequence[str] = ()) -> Doc:
    """A PodDisruptionBudget with its status."""
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": dict(labels)}},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, LONG_AGO)},
    }


# ---- gangs ----


def group(
    name: str,
    minimum: int = 0,
    *,
    key: str = "",
    priority: int = 0,
    whole: bool = False,
    uid: str = "",
    kind: Kind = kinds.POD_GROUP,
) -> Doc:
    """A native PodGroup: a gang of at least `minimum`, or basic without one; `whole` if it is disrupted as one."""
    spec: Doc = {"schedulingPolicy": {"gang": {"minCount": minimum}} if minimum else {"basic": {}}}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    if priority:
        spec["priority"] = priority
    if whole:
        spec["disruptionMode"] = "PodGroup" if kind is kinds.POD_GROUP else {"all": {}}
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "generation": 1}
    return {"apiVersion": kind.api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def member(name: str, of: str, **more: Any) -> Doc:
    """A pod of a native PodGroup."""
    return pod(name, schedulingGroup={"podGroupName": of}, **more)


def members(of: str, count: int, **more: Any) -> list[Doc]:
    return [member(f"{of}-{i}", of, **more) for i in range(count)]


def racks(count: int, nodes_each: int, *, cpu: str = "4") -> list[Doc]:
    """Nodes `r0n0`, `r0n1` and so on, labelled with their rack."""
    names = [(rack, f"r{rack}n{number}") for rack in range(count) for number in range(nodes_each)]
    return [node(name, {HOST: name, RACK: f"r{rack}"}, cpu=cpu) for rack, name in names]


def hyper_node(name: str, tier: int, *, nodes: str = "", of: tuple[str, ...] = (), title: str = "") -> Doc:
    """A HyperNode of nodes by a pattern of their names, and of other HyperNodes."""
    inside: list[Any] = [{"type": "HyperNode", "selector": {"exactMatch": {"name": child}}} for child in of]
    if nodes:
        inside.append({"type": "Node", "selector": {"regexMatch": {"pattern": nodes}}})
    spec = {"tier": tier, "members": inside} | ({"tierName": title} if title else {})
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


# ---- storage ----


def claim(
    name: str,
    *,
    storage_class: str = "",
    to: str = "",
    asks: str = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    owner: str = "",
    version: str = "1",
    **more: Any,
) -> Doc:
    """A claim; `to` is the volume that it is completely bound to. `more` goes into its metadata."""
    notes = {**(annotations or {}), **({BOUND: "yes"} if to else {})}
    metadata = meta(name, "default", annotations=notes, resourceVersion=version, **more)
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    spec = {"accessModes": list(modes), "storageClassName": storage_class, "volumeName": to}
    return {"metadata": metadata, "spec": {**spec, "resources": {"requests": {"storage": asks}}}}


def volume(
    name: str,
    *,
    storage_class: str = "",
    size: str = "5Gi",
    zones: tuple[str, ...] = (),
    labels: Mapping[str, str] | None = None,
    phase: str = "Available",
    version: str = "1",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    **source: Any,
) -> Doc:
    """A volume, by default one that any node can use."""
    metadata = meta(name, labels=dict(labels or {}), resourceVersion=version, annotations=dict(annotations or {}))
    spec: Doc = {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": storage_class, **source}
    if zones:
        within = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [within]}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def claimed(claim_name: str) -> Doc:
    """A pod's volume that is a claim's."""
    return {"persistentVolumeClaim": {"claimName": claim_name}}


EPHEMERAL: Doc = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def pod_with(name: str, *volumes: Doc, on: str = "", namespace: str = "default") -> Doc:
    """A pod with these volumes, which get the names v0, v1 and so on."""
    listed = [{"name": f"v{index}", **one} for index, one in enumerate(volumes)]
    spec = {"containers": [{"name": "c"}], "volumes": listed, **({"nodeName": on} if on else {})}
    return {"metadata": meta(name, namespace), "spec": spec}
