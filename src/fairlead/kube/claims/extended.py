"""Extended resources that device classes serve: from the requests of a pod's containers to a claim.

A node whose device plugin offers the resource serves it itself; where the node has none of it, the claim does. Plain
init containers run before the others, so they first use what those will get, and share one request for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model.device_claims import claim_spec
from fairlead.core.model.devices import IMPLICIT_PREFIX
from fairlead.core.model.quantity import is_extended

if TYPE_CHECKING:
    from fairlead.core.model.containers import Container
    from fairlead.core.model.device_claims import ClaimSpec
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod
    from fairlead.kube.claims.devices import ExtendedNames


def may_be_served(resource: str) -> bool:
    """Whether a device class may stand behind a resource of this name."""
    return is_extended(resource) or resource.startswith(IMPLICIT_PREFIX)


def asked_for(pod: Pod) -> tuple[str, ...]:
    """The names of such resources that a pod requests."""
    return tuple(sorted(name for name, amount in pod.shape.fit_request.items() if amount and may_be_served(name)))


def served_by_classes(pod: Pod, names: ExtendedNames) -> bool:
    return any(names.class_of(resource) for resource in asked_for(pod))


@dataclass(frozen=True, slots=True, eq=False)
class ExtendedSpec:
    """The claim for some of a pod's extended resources, and which request serves which container's."""

    document: Doc
    spec: ClaimSpec
    mappings: tuple[Doc, ...]


@dataclass(slots=True)
class _Request:
    name: str
    device_class: str
    count: int


def extended_spec(pod: Pod, resources: Sequence[str], names: ExtendedNames) -> ExtendedSpec:
    """The claim that serves these resources."""
    all_containers = pod.shape.containers
    containers = [c for c in all_containers if c.init] + [c for c in all_containers if not c.init]
    requests: list[_Request] = []
    mappings: list[Doc] = []
    for resource in resources:
        device_class = names.class_of(resource)
        if device_class:
            _serve(containers, resource, device_class, requests, mappings)
    requests.sort(key=lambda request: request.name)
    document: Doc = (
        {
            "devices": {
                "requests": [
                    {
                        "name": request.name,
                        "exactly": {
                            "deviceClassName": request.device_class,
                            "allocationMode": "ExactCount",
                            "count": request.count,
                        },
                    }
                    for request in requests
                ]
            }
        }
        if requests
        else {"devices": {}}
    )
    return ExtendedSpec(document, claim_spec(document), tuple(mappings))


def _serve(
    containers: Sequence[Container], resource: str, device_class: str, requests: list[_Request], mappings: list[Doc]
) -> None:
    lasting: list[_Request | None] = [None] * len(containers)
    for at, container in enumerate(containers):
        if not container.init or container.sidecar:
            lasting[at] = _own(at, container, resource, device_class, ())
            if lasting[at] is not None:
                mappings.append(_mapping(container, resource, lasting[at]))
    largest: _Request | None = None
    own_names: set[str] = set()
    passing: list[Doc] = []
    for at, container in enumerate(containers):
        if not container.init or container.sidecar:
            continue
        reused = _reused(container, resource, lasting[at:])
        passing += [_mapping(container, resource, request) for request in reused]
        own = _own(at, container, resource, device_class, reused)
        if own is not None:
            own_names.add(own.name)
            passing.append(_mapping(container, resource, own))
            if largest is None or largest.count < own.count:
                largest = own
    if largest is not None:
        requests.append(largest)
        passing = [{**one, "requestName": largest.name} if one["requestName"] in own_names else one for one in passing]
    requests += [request for request in lasting if request is not None]
    mappings += passing


def _reused(container: Container, resource: str, later: Sequence[_Request | None]) -> list[_Request]:
    """Requests of containers that run later which a passing one can use, as many as it needs."""
    wanted = container.request(resource) or 0
    found: list[_Request] = []
    for request in later:
        if request is not None and wanted > sum(other.count for other in found):
            found.append(request)
    return found


def _own(
    at: int, container: Container, resource: str, device_class: str, reused: Sequence[_Request]
) -> _Request | None:
    rest = (container.request(resource) or 0) - sum(request.count for request in reused)
    if rest <= 0:
        return None
    position = [name for name, _ in container.requests].index(resource)
    return _Request(f"container-{at}-request-{position}", device_class, rest)


def _mapping(container: Container, resource: str, request: _Request | None) -> Doc:
    assert request is not None
    return {"containerName": container.name, "resourceName": resource, "requestName": request.name}
