"""Defaults of all the kinds that neither are pods nor make any."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.nodes import default_node
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

Defaulter = Callable[["Doc"], "Doc"]


def _fields(**defaults: Any) -> Defaulter:
    return lambda doc: {**doc, **{key: value for key, value in defaults.items() if key not in doc}}


def _spec(**defaults: Any) -> Defaulter:
    return lambda doc: {**doc, "spec": {**defaults, **doc.get("spec", {})}}


def _status(spec: Doc | None = None, **defaults: Any) -> Defaulter:
    def default(doc: Doc) -> Doc:
        out = {**doc, "status": {**defaults, **doc.get("status", {})}}
        return {**out, "spec": {**spec, **doc.get("spec", {})}} if spec else out

    return default


def _namespace(doc: Doc) -> Doc:
    metadata = doc["metadata"]
    labels = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata["name"]}
    spec = {"finalizers": ["kubernetes"], **doc.get("spec", {})}
    status = {"phase": "Active", **doc.get("status", {})}
    return {**doc, "metadata": {**metadata, "labels": labels}, "spec": spec, "status": status}


def _secret(doc: Doc) -> Doc:
    out = {"type": "Opaque", **doc}
    plain = out.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        out["data"] = {**out.get("data", {}), **encoded}
    return out


def _service(doc: Doc) -> Doc:
    spec = {"sessionAffinity": "None", "type": "ClusterIP", **doc.get("spec", {})}
    if "ports" in spec:
        spec["ports"] = [_service_port(port) for port in spec["ports"]]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        _place_service(spec)
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    return {**doc, "spec": spec, "status": {"loadBalancer": {}, **doc.get("status", {})}}


def _service_port(port: Doc) -> Doc:
    out = {"protocol": "TCP", **port}
    if not out.get("targetPort") and "port" in out:
        out["targetPort"] = out["port"]
    return out


def _place_service(spec: Doc) -> None:
    """Address families; headless services without a selector are dual-stack by the original's rule."""
    dual = spec.get("clusterIP") == "None" and not spec.get("selector")
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if dual else ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if dual else "SingleStack")
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])


def _volume(doc: Doc) -> Doc:
    spec = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem", **doc.get("spec", {})}
    if "hostPath" in spec:
        spec["hostPath"] = {"type": "", **spec["hostPath"]}
    return {**doc, "spec": spec, "status": {"phase": "Pending", **doc.get("status", {})}}


def _limit_range(doc: Doc) -> Doc:
    limits = [_limit(limit) for limit in doc.get("spec", {}).get("limits", ())]
    return {**doc, "spec": {**doc.get("spec", {}), "limits": limits}} if limits else doc


def _limit(limit: Doc) -> Doc:
    """Containers: defaults come from the maximum, default requests from the default limit or the minimum."""
    if limit.get("type") != "Container":
        return limit
    default = {**limit.get("max", {}), **limit.get("default", {})}
    requests = {**limit.get("min", {}), **default, **limit.get("defaultRequest", {})}
    out = dict(limit)
    if default:
        out["default"] = default
    if requests:
        out["defaultRequest"] = requests
    return out


def _endpoints(doc: Doc) -> Doc:
    subsets = [
        {**subset, "ports": [{"protocol": "TCP", **port} for port in subset.get("ports", ())]}
        if subset.get("ports")
        else subset
        for subset in doc.get("subsets", ())
    ]
    return {**doc, "subsets": subsets} if subsets else doc


def _endpoint_slice(doc: Doc) -> Doc:
    ports = [{"name": "", "protocol": "TCP", **port} for port in doc.get("ports", ())]
    return {**doc, "ports": ports} if ports else doc


def _autoscaler(doc: Doc) -> Doc:
    target = {"type": "Utilization", "averageUtilization": 80}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    spec = {"minReplicas": 1, "metrics": metrics, **doc.get("spec", {})}
    if "behavior" in spec:
        given = spec["behavior"]
        spec["behavior"] = {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [_scaling("Pods", 4), _scaling("Percent", 100)],
                **given.get("scaleUp", {}),
            },
            "scaleDown": {"selectPolicy": "Max", "policies": [_scaling("Percent", 100)], **given.get("scaleDown", {})},
        }
    return {**doc, "spec": spec}


def _network_policy(doc: Doc) -> Doc:
    """A policy is about incoming traffic, and about outgoing traffic if it has rules for it."""
    spec = dict(doc.get("spec", {}))
    for direction in ("ingress", "egress"):
        if spec.get(direction):
            spec[direction] = [_traffic_rule(rule) for rule in spec[direction]]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**doc, "spec": spec}


def _traffic_rule(rule: Doc) -> Doc:
    if not rule.get("ports"):
        return rule
    return {**rule, "ports": [{"protocol": "TCP", **port} for port in rule["ports"]]}


def _scaling(type_: str, value: int) -> Doc:
    return {"type": type_, "value": value, "periodSeconds": 15}


def _claim_spec(spec: Doc) -> Doc:
    devices = spec.get("devices", {})
    if not devices.get("requests"):
        return spec
    return {**spec, "devices": {**devices, "requests": [_request(one) for one in devices["requests"]]}}


def _request(request: Doc) -> Doc:
    out = dict(request)
    if "exactly" in out:
        out["exactly"] = _exact(out["exactly"])
    if "firstAvailable" in out:
        out["firstAvailable"] = [_exact(one) for one in out["firstAvailable"]]
    return out


def _exact(request: Doc) -> Doc:
    out = {"allocationMode": "ExactCount", **request}
    if out["allocationMode"] == "ExactCount":
        out.setdefault("count", 1)
    return out


def _resource_claim(doc: Doc) -> Doc:
    return {**doc, "spec": _claim_spec(doc.get("spec", {}))}


def _resource_claim_template(doc: Doc) -> Doc:
    spec = doc.get("spec", {})
    return {**doc, "spec": {**spec, "spec": _claim_spec(spec.get("spec", {}))}}


_RBAC = "rbac.authorization.k8s.io"


def _role_binding(doc: Doc) -> Doc:
    out = {**doc, "roleRef": {**doc.get("roleRef", {})}}
    if not out["roleRef"].get("apiGroup"):
        out["roleRef"]["apiGroup"] = _RBAC
    if "subjects" in out:
        out["subjects"] = [
            {"apiGroup": _RBAC, **subject} if subject.get("kind") in ("User", "Group") else subject
            for subject in out["subjects"]
        ]
    return out


PLAIN_DEFAULTS: dict[Kind, Defaulter] = {
    k.NODE: default_node,
    k.NAMESPACE: _namespace,
    k.SECRET: _secret,
    k.SERVICE: _service,
    k.PERSISTENT_VOLUME: _volume,
    k.PERSISTENT_VOLUME_CLAIM: _status({"volumeMode": "Filesystem"}, phase="Pending"),
    k.LIMIT_RANGE: _limit_range,
    k.ENDPOINTS: _endpoints,
    k.ENDPOINT_SLICE: _endpoint_slice,
    k.PRIORITY_CLASS: _fields(preemptionPolicy="PreemptLowerPriority"),
    k.POD_GROUP_BETA: _spec(disruptionMode={"single": {}}),
    k.STORAGE_CLASS: _fields(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    k.CSI_DRIVER: _spec(
        attachRequired=True, fsGroupPolicy="ReadWriteOnceWithFSType", podInfoOnMount=False, requiresRepublish=False,
        seLinuxMount=False, storageCapacity=False, volumeLifecycleModes=["Persistent"],
    ),
    k.RESOURCE_CLAIM: _resource_claim,
    k.RESOURCE_CLAIM_TEMPLATE: _resource_claim_template,
    k.HORIZONTAL_POD_AUTOSCALER: _autoscaler,
    k.NETWORK_POLICY: _network_policy,
    k.ROLE_BINDING: _role_binding,
    k.CLUSTER_ROLE_BINDING: _role_binding,
}  # fmt: skip
