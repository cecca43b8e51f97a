"""Binding and scale: the two subresources that are other documents than the object they belong to.

A Binding says which node a pod goes to; it may be said once. A Scale is the number of replicas of anything that has
one, in one shape for all. Both are pure: the object in, another object or its view out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from fairlead.cluster.store.objects import conflict, unclassified, wrong_uid
from fairlead.core.model import kinds
from fairlead.core.model.kinds import Kind
from fairlead.core.model.times import timestamp
from fairlead.errors import BadRequest, Invalid

if TYPE_CHECKING:
    from fairlead.cluster.store.objects import Record
    from fairlead.core.model.flow import Doc

SCALE = Kind("autoscaling", "v1", "Scale", "scales")
BINDING = Kind("", "v1", "Binding", "bindings", singular="binding")
EVICTION = Kind("policy", "v1", "Eviction", "evictions")
TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
"""Labels that a pod takes over from the node it is bound to, unless it has them already."""


class FindsRecords(Protocol):
    """Where the record of an object is found: the Store."""

    def find(self, kind: Kind, namespace: str, name: str) -> Record | None: ...


def check_binding(body: Doc) -> str:
    """The node that a Binding names."""
    target = body.get("target")
    target = target if isinstance(target, dict) else {}
    problem = ""
    if target.get("kind") not in (None, "", "Node"):
        problem = f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
    elif not target.get("name") or not isinstance(target["name"], str):
        problem = "target.name: Required value"
    if problem:
        raise unclassified(problem)
    node: str = target["name"]
    return node


def bound(pod: Doc, body: Doc, *, now: float, view: FindsRecords) -> Doc:
    """The pod on its node."""
    node = check_binding(body)
    name = pod["metadata"]["name"]
    uid, actual = (body.get("metadata") or {}).get("uid"), pod["metadata"]["uid"]
    if uid and uid != actual:
        raise wrong_uid(kinds.POD, pod["metadata"]["namespace"], name, wanted=str(uid), actual=actual)
    if problem := _why_not(pod, name):
        raise conflict(kinds.POD, name, problem, subresource="binding")
    metadata = _merged_metadata(pod["metadata"], body.get("metadata") or {}, view.find(kinds.NODE, "", node))
    status = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    status["conditions"] = _scheduled(status.get("conditions") or [], timestamp(now))
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def _why_not(pod: Doc, name: str) -> str:
    metadata, spec = pod["metadata"], pod["spec"]
    if "deletionTimestamp" in metadata:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _merged_metadata(metadata: Doc, given: Doc, node: Record | None) -> Doc:
    annotations, labels = _texts(given, "annotations"), _texts(given, "labels")
    if node is not None and (of_node := _topology(node)):
        labels = {**of_node, **labels}
    result = dict(metadata)
    if annotations:
        result["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    if labels:
        result["labels"] = {**(metadata.get("labels") or {}), **labels}
    return result


def _topology(node: Record) -> Doc:
    """The labels of a node that its pods take over. They are kept with the record, which never changes: a binding is no
    reason to decode a node, of which a large cluster has more than documents that stay decoded."""
    if node.topology is None:
        labels = (node.doc.get("metadata") or {}).get("labels") or {}
        node.topology = {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}
    return node.topology


def _texts(metadata: Doc, field: str) -> dict[str, str]:
    value = metadata.get(field)
    if not value:
        return {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise BadRequest(f'Binding in version "v1" cannot be handled as a Binding: metadata.{field} must hold strings')
    return value


def _scheduled(conditions: list[Doc], since: str) -> list[Doc]:
    condition = _scheduled_condition(since)
    if not conditions:
        return [condition]
    others = [other for other in conditions if other.get("type") != "PodScheduled"]
    position = next((i for i, other in enumerate(conditions) if other.get("type") == "PodScheduled"), len(others))
    return [*others[:position], condition, *others[position:]]


@lru_cache(maxsize=64)
def _scheduled_condition(since: str) -> Doc:
    """One document for all pods that are bound in the same second."""
    return {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": since}


def scale_of(kind: Kind, doc: Doc) -> Doc:
    """The Scale that shows an object's replicas."""
    metadata, spec, status = doc["metadata"], doc.get("spec") or {}, doc.get("status") or {}
    shown = {
        key: metadata[key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in metadata
    }
    scale: Doc = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": {}, "status": {}}
    if kind.definition is not None and kind.definition.scale is not None:
        return scale | _defined_scale(kind.definition.scale, doc)
    if spec.get("replicas"):
        scale["spec"]["replicas"] = spec["replicas"]
    scale["status"]["replicas"] = status.get("replicas") or 0
    if selector := selector_text(spec.get("selector")):
        scale["status"]["selector"] = selector
    return scale


def _defined_scale(paths: Mapping[str, str], doc: Doc) -> Doc:
    wanted, present = _at(doc, paths["specReplicasPath"]), _at(doc, paths["statusReplicasPath"])
    scale: Doc = {"spec": {}, "status": {"replicas": present if isinstance(present, int) else 0}}
    if isinstance(wanted, int) and wanted:
        scale["spec"]["replicas"] = wanted
    selector = _at(doc, paths.get("labelSelectorPath") or "")
    if isinstance(selector, str) and selector:
        scale["status"]["selector"] = selector
    return scale


def _at(doc: Any, path: str) -> Any:
    for name in path.split(".")[1:]:
        doc = doc.get(name) if isinstance(doc, dict) else None
    return doc if path else None


def _put_at(doc: Any, names: list[str], value: Any) -> Doc:
    inner = doc.get(names[0]) if isinstance(doc, dict) else None
    made = value if len(names) == 1 else _put_at(inner, names[1:], value)
    return {**(doc if isinstance(doc, dict) else {}), names[0]: made}


def selector_text(selector: Any) -> str:
    """A label selector in the form that list requests take."""
    if not isinstance(selector, dict):
        return ""
    labels = selector.get("matchLabels") if "matchLabels" in selector or "matchExpressions" in selector else selector
    terms = [(key, f"{key}={value}") for key, value in (labels or {}).items() if isinstance(value, str)]
    terms += [(term["key"], _expression_text(term)) for term in selector.get("matchExpressions") or []]
    return ",".join(text for _, text in sorted(terms))


def _expression_text(term: Doc) -> str:
    key, values = term["key"], ",".join(sorted(term.get("values") or []))
    texts: dict[str, str] = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
    }
    return texts[term["operator"]]


def scaled(kind: Kind, doc: Doc, scale: Doc) -> Doc:
    """The object with the replicas of this Scale."""
    name = doc["metadata"]["name"]
    given = scale.get("metadata") or {}
    if given.get("name") not in (None, "", name):
        raise BadRequest(f"the name of the object ({given['name']}) does not match the name on the URL ({name})")
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        problem = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = {"reason": "FieldValueInvalid", "message": problem, "field": "spec.replicas"}
        raise Invalid(
            f'Scale.autoscaling "{name}" is invalid: spec.replicas: {problem}',
            details={"name": name, "group": "autoscaling", "kind": "Scale", "causes": [cause]},
        )
    metadata = dict(doc["metadata"])
    for field in ("resourceVersion", "uid"):
        if given.get(field):
            metadata[field] = given[field]
    changed = {**doc, "metadata": metadata}
    if kind.definition is not None and kind.definition.scale is not None:
        return _put_at(changed, kind.definition.scale["specReplicasPath"].split(".")[1:], replicas)
    return {**changed, "spec": {**doc["spec"], "replicas": replicas}}
