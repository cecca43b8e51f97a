"""What objects use of a namespace's quota: one function for the admission that refuses and the controller that counts.

Pods use what they request and are limited to until they have ended; services and claims use by type and class; any
kind is counted as one object under `count/<resource>.<group>`, a few also under their plain names. A quota with scopes
counts only pods, and only those in all of its scopes. Amounts are nanos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds as k
from fairlead.core.model.documents import compiler, read_units
from fairlead.core.model.quantity import BINARY_SI, DECIMAL_SI, Quantity, is_extended, read_quantity

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

Usage = dict[str, int]
ONE = 10**9

_BY_PLAIN_NAME = frozenset({
    k.POD, k.SERVICE, k.REPLICATION_CONTROLLER, k.RESOURCE_QUOTA, k.SECRET, k.CONFIG_MAP, k.PERSISTENT_VOLUME_CLAIM,
})  # fmt: skip
_SHORT = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources that a quota may name without a prefix, which then means requests. Kubernetes counts the limits of these
alone: the limit of an extended resource equals its request, and `limits.nvidia.com/gpu` is no name a quota may have."""
_CLASS = ".storageclass.storage.k8s.io/"


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    """What a namespace may use, and what it uses. Fractions of anything but cpu are rounded up."""

    namespace: str
    name: str
    hard: Mapping[str, int]
    used: Mapping[str, int]


@compiler("ResourceQuota")
def compile_quota(document: Mapping[str, Any]) -> NamespaceQuota:
    metadata, status = document["metadata"], document.get("status") or {}
    return NamespaceQuota(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        hard=read_units(status.get("hard"), "status.hard"),
        used=read_units(status.get("used"), "status.used"),
    )


def usage_of(kind: Kind, doc: Doc) -> Usage:
    """Everything an object uses, whether or not anybody limits it."""
    usage = {f"count/{kind.resource}": ONE}
    if kind is k.POD:
        usage |= _pod_usage(doc)
    elif kind is k.SERVICE:
        usage |= _service_usage(doc.get("spec") or {})
    elif kind is k.PERSISTENT_VOLUME_CLAIM:
        usage |= _claim_usage(doc)
    elif kind in _BY_PLAIN_NAME:
        usage[kind.plural] = ONE
    return usage


def counts(quota: Doc, kind: Kind, doc: Doc) -> bool:
    """Whether a quota's scopes take in an object."""
    spec = quota.get("spec") or {}
    terms = [(scope, "Exists", ()) for scope in spec.get("scopes") or ()]
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    terms += [(one["scopeName"], one["operator"], tuple(one.get("values") or ())) for one in selected]
    if not terms:
        return True
    return kind is k.POD and all(_in_scope(doc, *term) for term in terms)


def hard_limits(quota: Doc) -> dict[str, Quantity]:
    return {name: read_quantity(value) for name, value in ((quota.get("spec") or {}).get("hard") or {}).items()}


def spelled(resource: str, nanos: int, like: Quantity | None = None) -> str:
    """An amount as a status shows it; bytes in powers of two."""
    binary = resource.endswith(("memory", "storage")) or "hugepages-" in resource
    return str(Quantity(nanos, BINARY_SI if binary else like.format if like else DECIMAL_SI))


# -- pods -------------------------------------------------------------------------------------------------------------


def has_ended(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _pod_usage(pod: Doc) -> Usage:
    if has_ended(pod):
        return {}
    usage: Usage = {"pods": ONE}
    spec = pod.get("spec") or {}
    for resource, nanos in pod_amounts(spec, "requests").items():
        by_bare_name = resource in _SHORT or resource.startswith("hugepages-")
        if by_bare_name:
            usage[resource] = nanos
        if by_bare_name or is_extended(resource):
            usage[f"requests.{resource}"] = nanos
    for resource, nanos in pod_amounts(spec, "limits").items():
        if resource in _SHORT:
            usage[f"limits.{resource}"] = nanos
    return usage


def pod_amounts(spec: Mapping[str, Any], section: str) -> Usage:
    """What a pod requests (or is limited to) as a whole: its containers, or its largest start, and overhead."""
    running: Usage = {}
    largest: Usage = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, section)
        if container.get("restartPolicy") == "Always":
            _add(running, amounts)
            amounts = dict(running)
        else:
            _add(amounts, running)
        for resource, nanos in amounts.items():
            largest[resource] = max(largest.get(resource, 0), nanos)
    for container in spec.get("containers") or ():
        _add(running, _amounts(container, section))
    total = {name: max(running.get(name, 0), largest.get(name, 0)) for name in (*running, *largest)}
    total |= _amounts(spec, section)
    overhead = {name: read_quantity(value).nanos for name, value in (spec.get("overhead") or {}).items()}
    _add(total, overhead if section == "requests" else {name: overhead[name] for name in overhead if name in total})
    return total


def _amounts(holder: Mapping[str, Any], section: str) -> Usage:
    resources = (holder.get("resources") or {}).get(section) or {}
    return {name: read_quantity(value).nanos for name, value in resources.items()}


def _add(total: Usage, more: Mapping[str, int]) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _in_scope(pod: Doc, scope: str, operator: str, values: Iterable[str]) -> bool:
    spec = pod.get("spec") or {}
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "PriorityClass":
            return _chosen(spec.get("priorityClassName") or "", operator, values)
        case "CrossNamespacePodAffinity":
            return _looks_elsewhere(spec)
    return False


def _chosen(name: str, operator: str, values: Iterable[str]) -> bool:
    match operator:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


def _is_best_effort(spec: Mapping[str, Any]) -> bool:
    holders = [spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    sections = [
        (one.get("resources") or {}).get(section) or {} for one in holders for section in ("requests", "limits")
    ]
    return not any(name in ("cpu", "memory") for section in sections for name in section)


def _looks_elsewhere(spec: Mapping[str, Any]) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(kind) or {}
        terms = list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [one.get("podAffinityTerm") or {} for one in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


# -- services and claims ----------------------------------------------------------------------------------------------


def _service_usage(spec: Mapping[str, Any]) -> Usage:
    usage = {"services": ONE, "services.nodeports": 0, "services.loadbalancers": 0}
    ports = len(spec.get("ports") or ())
    if spec.get("type") == "NodePort":
        usage["services.nodeports"] = ports * ONE
    elif spec.get("type") == "LoadBalancer":
        usage["services.loadbalancers"] = ONE
        if spec.get("allocateLoadBalancerNodePorts", True):
            usage["services.nodeports"] = ports * ONE
    return usage


def _claim_usage(claim: Doc) -> Usage:
    spec = claim.get("spec") or {}
    storage = read_quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage")).nanos
    usage = {"persistentvolumeclaims": ONE, "requests.storage": storage}
    if spec.get("storageClassName"):
        prefix = spec["storageClassName"] + _CLASS
        usage |= {prefix + "persistentvolumeclaims": ONE, prefix + "requests.storage": storage}
    return usage
