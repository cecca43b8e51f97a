"""The LimitRanger admission: defaults for containers that name no requests or limits, and bounds for those that do.

Defaults are put in before validation and noted in an annotation; bounds are checked after it. A pod's problems are
reported all together, in the order of the limit range's items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.problems import forbidden
from fairlead.core.model import kinds as k
from fairlead.core.model.quantity import Quantity, read_quantity
from fairlead.core.model.quota import pod_amounts

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

NOTE = "kubernetes.io/limit-ranger"
_SECTIONS = (("requests", "defaultRequest", "request"), ("limits", "default", "limit"))


def limited(view: DocView, pod: Doc) -> Doc:
    """The pod with the defaults of its namespace's limit ranges; the same pod if there are none."""
    ranges = _ranges(view, pod["metadata"])
    if not ranges:
        return pod
    notes: list[str] = []
    spec = dict(pod.get("spec") or {})
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        if spec.get(field):
            spec[field] = [_defaulted(one, ranges, word, notes) for one in spec[field]]
    if not notes:
        return pod
    metadata = pod["metadata"]
    annotations = {**(metadata.get("annotations") or {}), NOTE: "LimitRanger plugin set: " + "; ".join(notes)}
    return {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def check_pod_limits(view: DocView, pod: Doc) -> None:
    """Raises Forbidden for a pod that is out of bounds."""
    found = [text for one in _ranges(view, pod["metadata"]) for text in _pod_complaints(one, pod["spec"])]
    _raise_if_any(k.POD, pod, found)


def check_claim_limits(view: DocView, claim: Doc) -> None:
    asked = (claim["spec"].get("resources") or {}).get("requests") or {}
    found: list[str] = []
    for one in _ranges(view, claim["metadata"]):
        for item in _items(one, "PersistentVolumeClaim"):
            for resource, least in sorted((item.get("min") or {}).items()):
                found += _too_small(resource, least, _nanos(asked), item["type"])
            for resource, most in sorted((item.get("max") or {}).items()):
                amounts = _nanos(asked)
                if amounts.get(resource, 0) > read_quantity(most).nanos:
                    text = f"maximum {resource} usage per {item['type']} is {most}, but request is {asked[resource]}"
                    found.append(text)
    _raise_if_any(k.PERSISTENT_VOLUME_CLAIM, claim, found)


def _ranges(view: DocView, metadata: Doc) -> list[Doc]:
    return list(view.list(k.LIMIT_RANGE, metadata["namespace"])) if metadata.get("namespace") else []


def _items(limit_range: Doc, type_: str) -> Iterator[Doc]:
    return (one for one in (limit_range.get("spec") or {}).get("limits") or () if one["type"] == type_)


def _raise_if_any(kind: Any, doc: Doc, found: list[str]) -> None:
    if found:
        text = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        raise forbidden(kind, doc["metadata"]["name"], text)


# -- defaults ---------------------------------------------------------------------------------------------------------


def _defaulted(container: Doc, ranges: list[Doc], word: str, notes: list[str]) -> Doc:
    resources = dict(container.get("resources") or {})
    for section, field, noun in _SECTIONS:
        wanted: dict[str, str] = {}
        for one in ranges:
            for item in _items(one, "Container"):
                for resource, amount in (item.get(field) or {}).items():
                    wanted.setdefault(resource, amount)
        missing = sorted(resource for resource in wanted if resource not in (resources.get(section) or {}))
        if missing:
            resources[section] = {**(resources.get(section) or {}), **{name: wanted[name] for name in missing}}
            notes.append(f"{', '.join(missing)} {noun} for {word} {container.get('name', '')}")
    return {**container, "resources": resources} if resources else container


# -- bounds -----------------------------------------------------------------------------------------------------------


def _pod_complaints(limit_range: Doc, spec: Doc) -> Iterator[str]:
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item["type"] == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
                yield from _complaints(item, _nanos(requests), _nanos(limits))
        elif item["type"] == "Pod":
            yield from _complaints(item, pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))


def _complaints(item: Doc, requests: dict[str, int], limits: dict[str, int]) -> Iterator[str]:
    type_ = item["type"]
    for resource, least in sorted((item.get("min") or {}).items()):
        yield from _too_small(resource, least, requests, type_, limits)
    for resource, most in sorted((item.get("max") or {}).items()):
        yield from _too_large(resource, most, requests, limits, type_)
    for resource, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        yield from _too_far_apart(resource, ratio, requests, limits, type_)


def _too_small(
    resource: str, least: str, requests: dict[str, int], type_: str, limits: dict[str, int] | None = None
) -> Iterator[str]:
    floor = read_quantity(least).nanos
    if resource not in requests:
        yield f"minimum {resource} usage per {type_} is {least}.  No request is specified"
    elif requests[resource] < floor:
        yield f"minimum {resource} usage per {type_} is {least}, but request is {_like(least, requests[resource])}"
    elif limits and resource in limits and limits[resource] < floor:
        yield f"minimum {resource} usage per {type_} is {least}, but limit is {_like(least, limits[resource])}"


def _too_large(resource: str, most: str, requests: dict[str, int], limits: dict[str, int], type_: str) -> Iterator[str]:
    ceiling = read_quantity(most).nanos
    if resource not in limits:
        yield f"maximum {resource} usage per {type_} is {most}.  No limit is specified"
    elif limits[resource] > ceiling:
        yield f"maximum {resource} usage per {type_} is {most}, but limit is {_like(most, limits[resource])}"
    elif requests.get(resource, 0) > ceiling:
        yield f"maximum {resource} usage per {type_} is {most}, but request is {_like(most, requests[resource])}"


def _too_far_apart(
    resource: str, ratio: str, requests: dict[str, int], limits: dict[str, int], type_: str
) -> Iterator[str]:
    text = f"{resource} max limit to request ratio per {type_} is {ratio}, but "
    if not requests.get(resource):
        yield text + "no request is specified or request is 0"
    elif not limits.get(resource):
        yield text + "no limit is specified or limit is 0"
    elif limits[resource] * 10**9 > requests[resource] * read_quantity(ratio).nanos:
        yield text + f"provided ratio is {limits[resource] / requests[resource]:f}"


def _nanos(resources: Doc) -> dict[str, int]:
    return {name: read_quantity(value).nanos for name, value in resources.items()}


def _like(model: str, nanos: int) -> str:
    """An amount spelled with the suffixes of another."""
    return str(Quantity(nanos, read_quantity(model).format))
