"""Rows of the core group, but for pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.tables.columns import (
    NONE,
    UNKNOWN,
    UNSET,
    access_modes,
    age,
    age_of,
    containers_and_images,
    joined_labels,
    name,
)
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.cluster.tables.columns import Cells
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_ROLE = "node-role.kubernetes.io/"


def _node(doc: Doc, now: float) -> list[Any]:
    status = doc.get("status", {})
    system = status.get("nodeInfo", {})
    return [
        name(doc),
        _node_status(doc),
        _roles(doc["metadata"].get("labels", {})),
        age(doc, now),
        system.get("kubeletVersion", ""),
        _node_address(status, "InternalIP"),
        _node_address(status, "ExternalIP"),
        system.get("osImage") or UNKNOWN,
        _kernel(system),
        system.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _kernel(system: Doc) -> str:
    version, architecture = system.get("kernelVersion"), system.get("architecture")
    if not version:
        return UNKNOWN
    return f"{version} ({architecture})" if architecture else version


def _node_status(doc: Doc) -> str:
    ready = next((c for c in doc.get("status", {}).get("conditions", ()) if c.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if doc.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(labels: dict[str, str]) -> str:
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _node_address(status: Doc, kind: str) -> str:
    return next((a.get("address", "") for a in status.get("addresses", ()) if a.get("type") == kind), NONE)


def _namespace(doc: Doc, now: float) -> list[Any]:
    return [name(doc), doc.get("status", {}).get("phase", ""), age(doc, now)]


def _service(doc: Doc, now: float) -> list[Any]:
    spec = doc.get("spec", {})
    return [
        name(doc),
        spec.get("type", ""),
        spec.get("clusterIP") or NONE,
        _external_address(doc),
        _ports(spec.get("ports", ())),
        age(doc, now),
        joined_labels(spec.get("selector")),
    ]


def _external_address(doc: Doc) -> str:
    spec = doc.get("spec", {})
    given = ",".join(spec.get("externalIPs", ()))
    match spec.get("type"):
        case "LoadBalancer":
            ingress = doc.get("status", {}).get("loadBalancer", {}).get("ingress", ())
            found = ",".join(one.get("ip") or one.get("hostname", "") for one in ingress)
            return ",".join(part for part in (found, given) if part) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return given or NONE


def _ports(ports: Any) -> str:
    texts = [
        f"{one.get('port')}:{one['nodePort']}/{one.get('protocol')}"
        if one.get("nodePort")
        else f"{one.get('port')}/{one.get('protocol')}"
        for one in ports
    ]
    return ",".join(texts) or NONE


def _endpoints(doc: Doc, now: float) -> list[Any]:
    found = [
        f"{address['ip']}:{port['port']}"
        for subset in doc.get("subsets", ())
        for port in subset.get("ports", ())
        for address in subset.get("addresses", ())
    ]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return [name(doc), (",".join(found[:3]) + more) or NONE, age(doc, now)]


def _event(doc: Doc, now: float) -> list[Any]:
    new = doc.get("apiVersion") == "events.k8s.io/v1"
    about = doc.get("regarding" if new else "involvedObject", {})
    first = doc.get("deprecatedFirstTimestamp" if new else "firstTimestamp")
    last = doc.get("deprecatedLastTimestamp" if new else "lastTimestamp")
    count = doc.get("deprecatedCount" if new else "count", 0)
    message = doc.get("note" if new else "message", "")
    since = age_of(first or doc.get("eventTime"), now)
    series = doc.get("series")
    if series:
        seen = f"{age_of(series.get('lastObservedTime'), now)} (x{series.get('count', 0)} over {since})"
        count = series.get("count", 0)
    elif count > 1:
        seen = f"{age_of(last, now)} (x{count} over {since})"
    else:
        seen = since
    target = about.get("kind", "").lower() + (f"/{about['name']}" if about.get("name") else "")
    return [
        seen,
        doc.get("type", ""),
        doc.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        _source(doc, new=new),
        message.strip(),
        since,
        count or 1 if not series and not count else count,
        name(doc),
    ]


def _source(doc: Doc, *, new: bool) -> str:
    source = doc.get("deprecatedSource" if new else "source", {})
    component = source.get("component") or doc.get("reportingController" if new else "reportingComponent", "")
    host = source.get("host") or doc.get("reportingInstance", "") if not source.get("component") else source.get("host")
    return ", ".join(part for part in (component, host) if part)


def _data(doc: Doc, now: float) -> list[Any]:
    return [name(doc), len(doc.get("data", {})) + len(doc.get("binaryData", {})), age(doc, now)]


def _secret(doc: Doc, now: float) -> list[Any]:
    return [name(doc), doc.get("type", ""), len(doc.get("data", {})), age(doc, now)]


def _volume(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    claim = spec.get("claimRef")
    return [
        name(doc),
        spec.get("capacity", {}).get("storage", ""),
        access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(doc),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        age(doc, now),
        spec.get("volumeMode") or UNSET,
    ]


def _phase(doc: Doc) -> str:
    return "Terminating" if "deletionTimestamp" in doc["metadata"] else doc.get("status", {}).get("phase", "")


def _claim(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    bound = bool(spec.get("volumeName"))
    return [
        name(doc),
        _phase(doc),
        spec.get("volumeName", ""),
        status.get("capacity", {}).get("storage", "") if bound else "",
        access_modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or UNSET,
        age(doc, now),
        spec.get("volumeMode") or UNSET,
    ]


def _quota(doc: Doc, now: float) -> list[Any]:
    hard, used = doc.get("status", {}).get("hard", {}), doc.get("status", {}).get("used", {})
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        bucket = limits if resource.startswith("limits") else requests
        bucket.append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [name(doc), ", ".join(requests), ", ".join(limits), age(doc, now)]


def _controller(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    return [
        name(doc),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(doc, now),
        *containers_and_images(spec.get("template", {})),
        joined_labels(spec.get("selector")),
    ]


def _template(doc: Doc, now: float) -> list[Any]:
    template = doc.get("template", {})
    labels = template.get("metadata", {}).get("labels")
    return [name(doc), *containers_and_images(template), joined_labels(labels)]


CORE_CELLS: dict[Kind, Cells] = {
    k.NODE: _node,
    k.NAMESPACE: _namespace,
    k.SERVICE: _service,
    k.ENDPOINTS: _endpoints,
    k.EVENT: _event,
    k.EVENT_V1: _event,
    k.CONFIG_MAP: _data,
    k.SECRET: _secret,
    k.PERSISTENT_VOLUME: _volume,
    k.PERSISTENT_VOLUME_CLAIM: _claim,
    k.RESOURCE_QUOTA: _quota,
    k.REPLICATION_CONTROLLER: _controller,
    k.POD_TEMPLATE: _template,
}
