"""Rows of the small groups: policy, scheduling, node, coordination, storage, resource, RBAC, discovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.tables.columns import NONE, UNSET, age, name, selector_text
from fairlead.core.model import kinds as k
from fairlead.core.model.group import SCHEDULED_CONDITIONS

if TYPE_CHECKING:
    from fairlead.cluster.tables.columns import Cells
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _budget(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    shares = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [name(doc), *shares, status.get("disruptionsAllowed", 0), age(doc, now)]


def _priority_class(doc: Doc, now: float) -> list[Any]:
    return [
        name(doc),
        doc.get("value", 0),
        bool(doc.get("globalDefault")),
        age(doc, now),
        doc.get("preemptionPolicy", ""),
    ]


def _pod_group(doc: Doc, now: float) -> list[Any]:
    spec = doc.get("spec", {})
    policy = spec.get("schedulingPolicy", {})
    word = "Gang" if "gang" in policy else "Basic" if "basic" in policy else NONE
    reference = spec.get("workloadRef") or spec.get("podGroupTemplateRef", {}).get("workload", {})
    workload = reference.get("workloadName") or NONE
    conditions = doc.get("status", {}).get("conditions", ())
    scheduled = next((c for c in conditions if c.get("type") in SCHEDULED_CONDITIONS.values()), None)
    status = "Pending" if scheduled is None else "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    return [name(doc), word, workload, status, age(doc, now)]


def _runtime_class(doc: Doc, now: float) -> list[Any]:
    return [name(doc), doc.get("handler", ""), age(doc, now)]


def _lease(doc: Doc, now: float) -> list[Any]:
    return [name(doc), doc.get("spec", {}).get("holderIdentity", ""), age(doc, now)]


def _storage_class(doc: Doc, now: float) -> list[Any]:
    default = doc["metadata"].get("annotations", {}).get(_DEFAULT_CLASS) == "true"
    return [
        name(doc) + (" (default)" if default else ""),
        doc.get("provisioner", ""),
        doc.get("reclaimPolicy", ""),
        doc.get("volumeBindingMode") or UNSET,
        bool(doc.get("allowVolumeExpansion")),
        age(doc, now),
    ]


def _csi_node(doc: Doc, now: float) -> list[Any]:
    return [name(doc), len(doc.get("spec", {}).get("drivers", ())), age(doc, now)]


def _csi_driver(doc: Doc, now: float) -> list[Any]:
    spec = doc.get("spec", {})
    tokens = ",".join(one.get("audience", "") for one in spec.get("tokenRequests", ())) or UNSET
    return [
        name(doc),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        tokens,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes", ())) or NONE,
        age(doc, now),
    ]


def _created(doc: Doc, now: float) -> list[Any]:
    return [name(doc), doc["metadata"].get("creationTimestamp", "")]


def _attachment(doc: Doc, now: float) -> list[Any]:
    spec = doc.get("spec", {})
    return [
        name(doc),
        spec.get("attacher", ""),
        spec.get("source", {}).get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        bool(doc.get("status", {}).get("attached")),
        age(doc, now),
    ]


def _attributes_class(doc: Doc, now: float) -> list[Any]:
    return [name(doc), doc.get("driverName", ""), age(doc, now)]


def _resource_claim(doc: Doc, now: float) -> list[Any]:
    status = doc.get("status", {})
    words = [
        word
        for word, holds in (
            ("deleted", "deletionTimestamp" in doc["metadata"]),
            ("allocated", status.get("allocation")),
            ("reserved", status.get("reservedFor")),
        )
        if holds
    ]
    if "allocated" not in words:
        words.append("pending")
    return [name(doc), ",".join(words), age(doc, now)]


def _resource_slice(doc: Doc, now: float) -> list[Any]:
    spec = doc.get("spec", {})
    return [
        name(doc),
        spec.get("nodeName") or UNSET,
        spec.get("driver", ""),
        spec.get("pool", {}).get("name", ""),
        age(doc, now),
    ]


def _role_binding(doc: Doc, now: float) -> list[Any]:
    role, subjects = doc.get("roleRef", {}), doc.get("subjects", ())

    def of_kind(kind: str) -> str:
        return ", ".join(_subject(one) for one in subjects if one.get("kind") == kind)

    people = [of_kind(kind) for kind in ("User", "Group", "ServiceAccount")]
    return [name(doc), f"{role.get('kind', '')}/{role.get('name', '')}", age(doc, now), *people]


def _subject(subject: Doc) -> str:
    text: str = subject.get("name", "")
    return f"{subject.get('namespace', '')}/{text}" if subject.get("kind") == "ServiceAccount" else text


def _endpoint_slice(doc: Doc, now: float) -> list[Any]:
    ports = [str(one.get("port", "*")) for one in doc.get("ports", ())]
    addresses = [address for one in doc.get("endpoints", ()) for address in one.get("addresses", ())]
    return [name(doc), doc.get("addressType", ""), _some(ports), _some(addresses), age(doc, now)]


def _some(texts: list[str]) -> str:
    more = f" + {len(texts) - 3} more..." if len(texts) > 3 else ""
    return (",".join(texts[:3]) + more) or UNSET


def _ingress(doc: Doc, now: float) -> list[Any]:
    spec = doc.get("spec") or {}
    rules, addresses = spec.get("rules") or (), ((doc.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    hosts = ",".join(rule.get("host") or "*" for rule in rules) or "*"
    at = ",".join(one.get("ip") or one.get("hostname") or "" for one in addresses or ())
    return [
        name(doc),
        spec.get("ingressClassName", NONE),
        hosts,
        at,
        "80, 443" if spec.get("tls") else "80",
        age(doc, now),
    ]


def _ingress_class(doc: Doc, now: float) -> list[Any]:
    spec = doc.get("spec") or {}
    given = spec.get("parameters")
    shown = f"{given['kind']}.{given['apiGroup']}/{given['name']}" if given and given.get("apiGroup") else NONE
    return [name(doc), spec.get("controller", ""), shown, age(doc, now)]


def _network_policy(doc: Doc, now: float) -> list[Any]:
    return [name(doc), selector_text((doc.get("spec") or {}).get("podSelector")), age(doc, now)]


OTHER_CELLS: dict[Kind, Cells] = {
    k.POD_DISRUPTION_BUDGET: _budget,
    k.PRIORITY_CLASS: _priority_class,
    k.POD_GROUP: _pod_group,
    k.POD_GROUP_BETA: _pod_group,
    k.RUNTIME_CLASS: _runtime_class,
    k.LEASE: _lease,
    k.STORAGE_CLASS: _storage_class,
    k.CSI_NODE: _csi_node,
    k.CSI_DRIVER: _csi_driver,
    k.CSI_STORAGE_CAPACITY: _created,
    k.LIMIT_RANGE: _created,
    k.ROLE: _created,
    k.CLUSTER_ROLE: _created,
    k.VOLUME_ATTACHMENT: _attachment,
    k.VOLUME_ATTRIBUTES_CLASS: _attributes_class,
    k.RESOURCE_CLAIM: _resource_claim,
    k.RESOURCE_SLICE: _resource_slice,
    k.ROLE_BINDING: _role_binding,
    k.CLUSTER_ROLE_BINDING: _role_binding,
    k.ENDPOINT_SLICE: _endpoint_slice,
    k.CUSTOM_RESOURCE_DEFINITION: _created,
    k.INGRESS: _ingress,
    k.INGRESS_CLASS: _ingress_class,
    k.NETWORK_POLICY: _network_policy,
}
