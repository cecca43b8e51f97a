"""How many devices are missing for pods that want to start together, from what there is for each request of a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.lack import Lack, LackHolder
from fairlead.kube.claims.explaining import unallocated

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod
    from fairlead.kube.claims.devices import DeviceIndex

_DEVICES = "devices"


def device_class_lacks(
    pods: Sequence[Pod], devices: DeviceIndex, details: Callable[[Pod], Sequence[Doc]]
) -> Iterator[Lack]:
    """Requests that all devices together, or those of any one node, do not serve. Pods of one shape are alike, so one
    of them is looked at; a claim that several share counts once."""
    asked: dict[tuple[str, str], int] = {}
    seen: dict[tuple[str, str], Doc] = {}
    for alike in _by_shape(pods):
        claims = {wanted.key for pod in alike for wanted in unallocated(pod, devices)}
        own = max(1, len({wanted.key for wanted in unallocated(alike[0], devices)}))
        for request in details(alike[0]):
            key = (request["deviceClass"], request["request"])
            wanted = request["wanted"] if isinstance(request["wanted"], int) else request.get("matching", 0)
            asked[key] = asked.get(key, 0) + wanted * max(1, len(claims) // own)
            seen[key] = {**request, "wanted": wanted}
    for key, total in asked.items():
        yield from _lack(seen[key], total)


def _by_shape(pods: Sequence[Pod]) -> list[list[Pod]]:
    found: dict[int, list[Pod]] = {}
    for pod in pods:
        found.setdefault(id(pod.shape), []).append(pod)
    return list(found.values())


def _lack(request: Doc, total: int) -> Iterator[Lack]:
    name, free = request["deviceClass"], int(request.get("free", 0))
    holders = [
        LackHolder(", ".join(one["pods"]) or f"claim {one['claim']}", str(one["devices"]), f"by claim {one['claim']}")
        for one in request.get("heldBy", ())
    ]
    if total > free:
        yield Lack.of_counts("DeviceClass", name, _DEVICES, total, free, holders)
        return
    most = (request.get("mostOnOneNode") or {}).get("free", 0)
    if request["wanted"] > most:
        yield Lack.of_counts("DeviceClass", f"{name} on one node", _DEVICES, request["wanted"], most, holders)
