"""What a pod requests: containers, sidecars, init containers, pod-level requests, overhead and resizes in one sum.

Different readers see different sums, as in the original: a node's books follow a resize in progress, the fit check
looks at the spec alone, and the fit score neither knows pod-level requests nor resizes and puts a default on every
container that names no cpu or memory. All sums are exact, in nanos, and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.documents import FieldError
from fairlead.core.model.quantity import QuantityError, is_scalar, nanos_to_units, read_quantity
from fairlead.core.model.records import record

Amounts = dict[str, int]
"""Nanos by resource."""

DEFAULT_CONTAINER_REQUEST: Mapping[str, int] = {"cpu": 100 * 10**6, "memory": 200 * 2**20 * 10**9}
"""What a container is taken to request, where it names nothing, when nodes are compared by load."""

SAYS_RESOURCES = frozenset({"containerStatuses", "initContainerStatuses", "resources"})
"""Where a status may say something of resources: that of a pod without a node has none of these."""
_NO_DEFAULTS: Mapping[str, int] = {}
_ALWAYS_COUNTED = ("cpu", "memory", "ephemeral-storage")


@record(frozen=True, slots=True)
class Requests:
    """The views of one pod's request, in base units. Each has cpu, memory and ephemeral-storage, and every scalar
    resource that is named, zeros included."""

    booked: dict[str, int]
    fit: dict[str, int]
    score: dict[str, int]
    nonzero_cpu: int
    nonzero_memory: int
    exact: Amounts


def pod_requests(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Requests:
    by_spec = _total(spec, None, _NO_DEFAULTS)
    resized = None if SAYS_RESOURCES.isdisjoint(status) else _Resize.of(status)
    booked = _total(spec, resized, _NO_DEFAULTS) if resized else by_spec
    nonzero = score = _with_overhead(_of_containers(spec, None, DEFAULT_CONTAINER_REQUEST), spec)
    if resized or spec.get("resources"):
        nonzero = _nonzero(spec, resized, booked)
    booked_units = _units(booked)
    return Requests(
        booked=booked_units,
        fit=booked_units if booked is by_spec else _units(by_spec),
        score=_units(score),
        nonzero_cpu=nanos_to_units("cpu", nonzero.get("cpu", 0)),
        nonzero_memory=nanos_to_units("memory", nonzero.get("memory", 0)),
        exact=booked,
    )


def _nonzero(spec: Mapping[str, Any], resized: _Resize | None, booked: Amounts) -> Amounts:
    """What is booked, with the defaults for containers; what the pod as a whole requests needs none."""
    defaults: Mapping[str, int] = DEFAULT_CONTAINER_REQUEST
    if _pod_level(spec):
        defaults = {resource: amount for resource, amount in defaults.items() if resource not in booked}
    return _total(spec, resized, defaults) if defaults else booked


@dataclass(frozen=True, slots=True)
class _Resize:
    """What the kubelet reports: resources that containers, and the pod, really have."""

    containers: Mapping[str, Mapping[str, Any]]
    pod: Mapping[str, Any] | None
    infeasible: bool

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> _Resize | None:
        statuses = {entry.get("name") or "": entry for entry in resized_containers(status)}
        pod = status if status.get("resources") is not None else None
        return cls(statuses, pod, resize_is_infeasible(status)) if statuses or pod else None

    def effective(self, requested: Amounts, reported: Mapping[str, Any], path: str) -> Amounts:
        """The largest of what was asked (unless that cannot be had), what is and what was promised."""
        lists = [{}] if self.infeasible else [requested]
        lists.append(_amounts((reported.get("resources") or {}).get("requests"), f"{path}.resources.requests"))
        lists.append(_amounts(reported.get("allocatedResources"), f"{path}.allocatedResources"))
        largest: Amounts = {}
        for amounts in lists:
            _raise_to(largest, amounts)
        return largest


def resized_containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The container statuses that report resources, an init container's counting over its namesake's."""
    for entries in (status.get("containerStatuses"), status.get("initContainerStatuses")):
        for entry in entries or ():
            if entry.get("resources") is not None:
                yield entry


def reports_resources(status: Mapping[str, Any]) -> bool:
    """Whether a status says anything of resources, of the pod or of one of its containers."""
    if status.get("resources") is not None:
        return True
    for entries in (status.get("containerStatuses"), status.get("initContainerStatuses")):
        for entry in entries or ():
            if entry.get("resources") is not None:
                return True
    return False


def resize_is_infeasible(status: Mapping[str, Any]) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _total(spec: Mapping[str, Any], resized: _Resize | None, defaults: Mapping[str, int]) -> Amounts:
    total = _of_containers(spec, resized, defaults)
    pod_level = _pod_level(spec)
    if pod_level and resized and resized.pod is not None:
        requested = _amounts((spec.get("resources") or {}).get("requests"), "spec.resources.requests")
        actual = resized.effective(requested, resized.pod, "status")
        pod_level = {resource: actual.get(resource, 0) for resource in pod_level}
    return _with_overhead(total | pod_level if pod_level else total, spec)


def _pod_level(spec: Mapping[str, Any]) -> Amounts:
    """Requests of the pod as a whole, as far as those are supported."""
    resources = spec.get("resources")
    if not resources:
        return {}
    amounts = _amounts(resources.get("requests"), "spec.resources.requests")
    return {
        resource: amount
        for resource, amount in amounts.items()
        if resource in ("cpu", "memory") or resource.startswith("hugepages-")
    }


def _with_overhead(total: Amounts, spec: Mapping[str, Any]) -> Amounts:
    if spec.get("overhead"):
        _add(total, _amounts(spec["overhead"], "spec.overhead"))
    return total


def _of_containers(spec: Mapping[str, Any], resized: _Resize | None, defaults: Mapping[str, int]) -> Amounts:
    """Containers run together; each init container runs with the sidecars started before it."""
    running: Amounts = {}
    for i, container in enumerate(spec.get("containers") or ()):
        _add(running, _of_container(container, resized, defaults, path=f"spec.containers[{i}]"))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for i, container in enumerate(spec.get("initContainers") or ()):
        path = f"spec.initContainers[{i}]"
        if container.get("restartPolicy") == "Always":
            own = _of_container(container, resized, defaults, path=path)
            _add(running, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            own = _of_container(container, None, defaults, path=path)
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(running, peak)
    return running


def _of_container(
    container: Mapping[str, Any], resized: _Resize | None, defaults: Mapping[str, int], *, path: str
) -> Amounts:
    resources = container.get("resources")
    own = _amounts(resources.get("requests"), f"{path}.resources.requests") if resources else {}
    if resized and (reported := resized.containers.get(container.get("name") or "")):
        own = resized.effective(own, reported, f"status of {path}")
    for resource, amount in defaults.items():
        own.setdefault(resource, amount)
    return own


def _amounts(resources: Mapping[str, Any] | None, path: str) -> Amounts:
    amounts: Amounts = {}
    for resource, amount in (resources or {}).items():
        try:
            amounts[resource] = read_quantity(amount).nanos
        except QuantityError as error:
            raise FieldError(f"{path}[{resource}]", str(error)) from None
    return amounts


def _add(total: Amounts, amounts: Mapping[str, int]) -> None:
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: Amounts, amounts: Mapping[str, int]) -> None:
    for resource, amount in amounts.items():
        if resource not in total or amount > total[resource]:
            total[resource] = amount


def _units(amounts: Amounts) -> dict[str, int]:
    units = {resource: nanos_to_units(resource, amounts.get(resource, 0)) for resource in _ALWAYS_COUNTED}
    for resource in _scalars(amounts):
        units[resource] = nanos_to_units(resource, amounts[resource])
    return units


def _scalars(resources: Iterable[str]) -> list[str]:
    return sorted(resource for resource in resources if resource not in _ALWAYS_COUNTED and is_scalar(resource))
