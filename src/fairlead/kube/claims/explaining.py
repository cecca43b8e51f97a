"""Why a pod does not get its devices: for each request of its claims how many devices match, who holds them, which
selector refuses the others, and which device comes nearest.

This is worked out on request, from the devices as they are then. It decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.core.model.device_claims import EXTENDED_NAME
from fairlead.core.model.taints import first_untolerated
from fairlead.kube.claims.extended import asked_for, extended_spec, served_by_classes
from fairlead.kube.claims.pod_claims import ClaimMissing, claims_of
from fairlead.kube.claims.search import Wanted
from fairlead.kube.claims.selecting import SelectorTrouble

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import DeviceRequest
    from fairlead.core.model.devices import Device, DeviceClass, DeviceId
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod
    from fairlead.kube.claims.devices import DeviceIndex
    from fairlead.kube.claims.selecting import Selecting

_MOST_HOLDERS = 10


class _Test(NamedTuple):
    """A selector and whose it is."""

    whose: str
    expression: str


class _Seen(NamedTuple):
    """A device, the rows that see it, and the selectors that refuse it."""

    device: Device
    rows: tuple[int, ...]
    fails: tuple[_Test, ...]


def details(pod: Pod, devices: DeviceIndex, selecting: Selecting, names: Sequence[str]) -> list[Doc]:
    """One entry for each request of the pod's claims that are not allocated. `names` are the nodes, by row."""
    selecting.begin()
    holders = devices.uses.holders_by_device()
    everywhere = _devices_and_rows(devices, len(names))
    return [
        _Request(wanted, request, devices, selecting, holders, names).described(everywhere)
        for wanted in unallocated(pod, devices)
        for request in wanted.spec.requests
    ]


def unallocated(pod: Pod, devices: DeviceIndex) -> Iterator[Wanted]:
    """The claims of a pod that have no devices yet, and what it requests as extended resources."""
    try:
        for claim in claims_of(pod, devices):
            if claim.allocation is None:
                yield Wanted(claim.key, claim.spec)
    except ClaimMissing:
        return
    if served_by_classes(pod, devices.extended):
        spec = extended_spec(pod, asked_for(pod), devices.extended)
        yield Wanted(f"{pod.namespace}/{EXTENDED_NAME}", spec.spec)


def _devices_and_rows(devices: DeviceIndex, rows: int) -> list[tuple[Device, tuple[int, ...]]]:
    """Each device of a usable pool once, with the rows of the nodes that can use it."""
    found: dict[DeviceId, tuple[Device, list[int]]] = {}
    for row in range(rows):
        for place in devices.view(row).places:
            if place.device.id.name not in place.pool.hidden:
                found.setdefault(place.device.id, (place.device, []))[1].append(row)
    return [(device, tuple(seen_by)) for device, seen_by in found.values()]


class _Request:
    def __init__(
        self,
        wanted: Wanted,
        request: DeviceRequest,
        devices: DeviceIndex,
        selecting: Selecting,
        holders: Mapping[DeviceId, Sequence[str]],
        names: Sequence[str],
    ) -> None:
        self._wanted = wanted
        self._request = request
        self._devices = devices
        self._selecting = selecting
        self._holders = holders
        self._names = names

    def described(self, everywhere: Iterable[tuple[Device, tuple[int, ...]]]) -> Doc:
        request = self._request
        found: DeviceClass | None = self._devices.classes.get(request.device_class)
        doc: Doc = {
            "claim": self._wanted.key,
            "request": request.full_name,
            "deviceClass": request.device_class,
            "wanted": "all" if request.everything else request.count,
        }
        if found is None:
            return {**doc, "problem": f"device class {request.device_class} does not exist"}
        tests = [_Test("class", expression) for expression in found.selectors]
        tests += [_Test("request", expression) for expression in request.selectors if expression is not None]
        seen = [_Seen(device, rows, self._failing(device, tests)) for device, rows in everywhere]
        matching = [one for one in seen if not one.fails]
        free = [one for one in matching if self._is_free(one.device)]
        doc |= {"devices": len(seen), "matching": len(matching), "free": len(free)}
        doc |= self._best_node(free)
        refused = Counter(one.fails[0] for one in seen if one.fails)
        if refused:
            doc["refusedBy"] = [
                {"selector": test.expression, "of": test.whose, "devices": count}
                for test, count in refused.most_common()
            ]
        tainted = sum(first_untolerated(one.device.taints, request.tolerations) is not None for one in matching)
        if tainted:
            doc["tainted"] = tainted
        held = self._held(matching)
        if held:
            doc["heldBy"] = held
        nearest = self._nearest(seen)
        if nearest is not None:
            doc["nearest"] = nearest
        return doc

    def _failing(self, device: Device, tests: Iterable[_Test]) -> tuple[_Test, ...]:
        return tuple([test for test in tests if not self._accepts(test.expression, device)])

    def _accepts(self, expression: str, device: Device) -> bool:
        try:
            return self._selecting.accepts(expression, device)
        except SelectorTrouble:
            return False

    def _is_free(self, device: Device) -> bool:
        return (self._request.admin or not self._devices.uses.in_use(device.id)) and first_untolerated(
            device.taints, self._request.tolerations
        ) is None

    def _best_node(self, free: Iterable[_Seen]) -> Doc:
        counts = Counter(row for one in free for row in one.rows)
        if not counts:
            return {}
        row, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
        return {"mostOnOneNode": {"node": self._names[row], "free": count}}

    def _held(self, matching: Iterable[_Seen]) -> list[Doc]:
        """The claims that hold devices which match, those with the most first, with their pods."""
        counts = Counter(key for one in matching for key in self._holders.get(one.device.id, ()))
        found = []
        for key, count in counts.most_common(_MOST_HOLDERS):
            claim = self._devices.claims.get(key)
            pods = [user.name for user in claim.reserved_for] if claim is not None else []
            found.append({"claim": key, "pods": pods, "devices": count})
        return found

    def _nearest(self, seen: Sequence[_Seen]) -> Doc | None:
        """The device that is refused by the fewest selectors; of those that match, one that somebody else holds."""
        candidates = [one for one in seen if one.fails or not self._is_free(one.device)]
        if not candidates:
            return None
        best = min(candidates, key=lambda one: len(one.fails))
        nearest: Doc = {"device": str(best.device.id), "node": self._names[best.rows[0]]}
        if best.fails:
            nearest["fails"] = [test.expression for test in best.fails]
            nearest["has"] = _named_in("\n".join(nearest["fails"]), best.device)
        elif best.device.id in self._holders:
            nearest["heldBy"] = list(self._holders[best.device.id])
        taint = first_untolerated(best.device.taints, self._request.tolerations)
        if taint is not None:
            nearest["taint"] = f"{taint.key}={taint.value}:{taint.effect}"
        return nearest


def _named_in(text: str, device: Device) -> Doc:
    """What a device has of the attributes and capacities that expressions name."""
    found: dict[str, Any] = {name: value for name, (_, value) in device.attributes.items()}
    found |= {name: str(capacity.value) for name, capacity in device.capacity.items()}
    return {name: value for name, value in sorted(found.items()) if name.rpartition("/")[2] in text}
