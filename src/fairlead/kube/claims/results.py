"""Allocations as they go into the API: results, configurations and the node selector, to the letter of the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.core.model.device_claims import ClaimSpec, DeviceRequest, compile_allocation
from fairlead.kube.claims.search import AllocationFailed, Pick, Solution, Wanted

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import Allocation
    from fairlead.core.model.devices import DeviceClass
    from fairlead.core.model.flow import Doc
    from fairlead.kube.claims.device_views import NodeView, Place


def allocations(
    solution: Solution,
    wanted: Sequence[Wanted],
    view: NodeView,
    classes: Mapping[str, DeviceClass],
    new_share: Callable[[], str],
) -> list[Allocation]:
    """What each claim gets on a node; raises AllocationFailed if that cannot be written down."""
    places = view.places
    found: list[Allocation] = []
    for claim, picks, choices in zip(wanted, solution.picks, solution.choices, strict=True):
        document: Doc = {"devices": {"results": [_result(pick, places[pick.position], new_share) for pick in picks]}}
        configs = list(_configs(claim.spec, choices, classes))
        if configs:
            document["devices"]["config"] = configs
        selector = node_selector(claim, picks, places, view.name)
        if selector is not None:
            document["nodeSelector"] = selector
        found.append(compile_allocation(document))
    return found


def check_selectors(solution: Solution, wanted: Sequence[Wanted], view: NodeView) -> None:
    """Raises AllocationFailed if the node selector of some claim cannot be written down."""
    places = view.places
    for claim, picks in zip(wanted, solution.picks, strict=True):
        node_selector(claim, picks, places, view.name)


def _result(pick: Pick, place: Place, new_share: Callable[[], str]) -> Doc:
    request, device = pick.request, place.device
    result: Doc = {
        "request": request.full_name,
        "driver": device.id.driver,
        "pool": device.id.pool,
        "device": device.id.name,
    }
    if request.admin:
        result["adminAccess"] = True
    if request.toleration_docs:
        result["tolerations"] = list(request.toleration_docs)
    if device.binding_conditions:
        result["bindingConditions"] = list(device.binding_conditions)
    if device.failure_conditions:
        result["bindingFailureConditions"] = list(device.failure_conditions)
    if device.shared:
        result["shareID"] = new_share()
        if pick.consumed:
            result["consumedCapacity"] = {name: str(amount) for name, amount in pick.consumed.items()}
    return result


def _configs(spec: ClaimSpec, choices: Sequence[int], classes: Mapping[str, DeviceClass]) -> Iterator[Doc]:
    """The configurations of each class once, with all requests that it is for; then those of the claim, each as often
    as it names a request."""
    chosen = [slot.choices[at] for slot, at in zip(spec.slots, choices, strict=True)]
    by_class: dict[str, list[str]] = {}
    for request in chosen:
        found = classes.get(request.device_class)
        if found is not None and found.configs:
            by_class.setdefault(request.device_class, []).append(request.full_name)
    for name, requests in by_class.items():
        for config in classes[name].configs:
            yield {"source": "FromClass", "requests": requests, **config}
    for config in spec.configs:
        for _ in range(_times(config.get("requests") or (), chosen)):
            yield {"source": "FromClaim", **config}


def _times(names: Sequence[str], chosen: Sequence[DeviceRequest]) -> int:
    if not names:
        return 1
    return sum(1 for request in chosen if request.request_name in names or request.full_name in names)


def node_selector(claim: Wanted, picks: Sequence[Pick], places: Sequence[Place], node: str) -> Doc | None:
    """From which nodes the devices can be used; None for all. One local device binds to the node."""
    fields: list[Any] = []
    expressions: list[Any] = []
    for pick in picks:
        device = places[pick.position].device
        if device.where.node_name or device.binds_to_node:
            only = {"key": "metadata.name", "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        terms = (device.where.document or {}).get("nodeSelectorTerms") or ()
        if len(terms) > 1:
            raise AllocationFailed(
                f"create NodeSelector for claim {claim.key.rpartition('/')[2]}: unsupported ResourceSlice.NodeSelector"
                f" with {len(terms)} terms"
            )
        for term in terms:
            _add(fields, term.get("matchFields") or ())
            _add(expressions, term.get("matchExpressions") or ())
    term = {name: found for name, found in (("matchExpressions", expressions), ("matchFields", fields)) if found}
    return {"nodeSelectorTerms": [term]} if term else None


def _add(found: list[Any], more: Sequence[Mapping[str, Any]]) -> None:
    for requirement in more:
        if not any(_same(requirement, other) for other in found):
            found.append(requirement)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (
        one.get("key") == other.get("key")
        and one.get("operator") == other.get("operator")
        and set(one.get("values") or ()) == set(other.get("values") or ())
    )
