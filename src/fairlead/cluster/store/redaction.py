"""Redaction: from documents to documents that can be shown to strangers and still reproduce a scheduling problem.

By permission, not by prohibition: of a pod only what scheduling reads is kept, so that whatever the next version of
Kubernetes adds is left out by itself. Names stay unless they shall be replaced, and then each becomes the same number
everywhere, so that owners, selectors and claims still fit together.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_METADATA = (
    "name", "namespace", "uid", "labels", "ownerReferences", "creationTimestamp", "deletionTimestamp",
    "resourceVersion", "generation",
)  # fmt: skip
_POD_SPEC = (
    "affinity", "nodeName", "nodeSelector", "overhead", "preemptionPolicy", "priority", "priorityClassName",
    "resourceClaims", "resources", "schedulerName", "schedulingGates", "schedulingGroup", "tolerations",
    "topologySpreadConstraints", "hostNetwork", "restartPolicy",
)  # fmt: skip
_POD_STATUS = ("phase", "conditions", "nominatedNodeName", "startTime", "qosClass", "resourceClaimStatuses")
_CONTAINER = ("name", "image", "ports", "resources", "restartPolicy")
_NODE_SPEC = ("taints", "unschedulable", "podCIDR")
_NODE_STATUS = ("allocatable", "capacity", "conditions", "images", "declaredFeatures")
_VOLUMES = ("name", "persistentVolumeClaim", "ephemeral", "emptyDir")
_NEVER = ("metadata", "data", "stringData", "binaryData")
_SECRET_FIELDS = frozenset({"certData", "keyData", "caData", "token", "password"})
_NAMES = frozenset(
    {"name", "namespace", "nodeName", "claimName", "volumeName", "storageClassName", "image", "generateName"}
)
_WELL_KNOWN = ("kubernetes.io", "k8s.io", "default", "cpu", "memory", "pods", "Ready", "PodScheduled")


class Redactor:
    def __init__(self, *, anonymous: bool = False) -> None:
        self.anonymous = anonymous

    def document(self, doc: Doc) -> Doc:
        kept: Doc = {key: doc[key] for key in ("apiVersion", "kind") if key in doc}
        kept["metadata"] = _only(doc.get("metadata") or {}, _METADATA)
        kind = doc.get("kind")
        if kind == "Pod":
            kept["spec"], kept["status"] = _pod_spec(doc["spec"]), _only(doc.get("status") or {}, _POD_STATUS)
        elif kind == "Node":
            kept["spec"] = _only(doc.get("spec") or {}, _NODE_SPEC)
            kept["status"] = _only(doc.get("status") or {}, _NODE_STATUS)
        else:
            kept |= {key: _without_template(value) for key, value in doc.items() if key not in _NEVER}
        return _renamed(kept) if self.anonymous else kept


def _without_template(value: Any) -> Any:
    """A workload's pods are in the report themselves."""
    return {key: inner for key, inner in value.items() if key != "template"} if isinstance(value, dict) else value


def without_key_material(config: Any) -> Any:
    """A configuration without certificates and keys."""
    if isinstance(config, dict):
        return {
            key: "REDACTED" if key in _SECRET_FIELDS and value else without_key_material(value)
            for key, value in config.items()
        }
    if isinstance(config, list):
        return [without_key_material(item) for item in config]
    return config


def _only(record: Doc, names: tuple[str, ...]) -> Doc:
    return {name: record[name] for name in names if name in record}


def _pod_spec(spec: Doc) -> Doc:
    kept = _only(spec, _POD_SPEC)
    for field in ("containers", "initContainers"):
        if field in spec:
            kept[field] = [_only(container, _CONTAINER) for container in spec[field]]
    if "volumes" in spec:
        kept["volumes"] = [_only(volume, _VOLUMES) for volume in spec["volumes"]]
    return kept


def _renamed(value: Any, key: str = "") -> Any:
    """Names and the values of labels become stand-ins; keys of labels and everything well known stay."""
    if isinstance(value, dict):
        return {
            name: _stand_in(inner) if key in ("labels", "matchLabels", "nodeSelector") else _renamed(inner, name)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_renamed(item, key) for item in value]
    return _stand_in(value) if key in (*_NAMES, "values", "names") else value


def _stand_in(value: Any) -> Any:
    if not isinstance(value, str) or any(word in value for word in _WELL_KNOWN):
        return value
    return f"x{hashlib.blake2s(value.encode(), digest_size=5).hexdigest()}"
