"""BindingRoom: what the pods on each node request, so that a Binding to a node without room can be refused.

A real API server accepts every Binding that names a node, and the kubelet refuses the pod if it does not fit. Where
several schedulers share nodes, this check makes the API what Omega calls the common state: of two claims on the last
room the second is answered with a conflict, and its scheduler looks for another place.

Invariant: `put` is called with every change of a pod in memory, so that two Bindings of one batch see each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cluster.store.objects import conflict
from fairlead.core.model import kinds
from fairlead.core.model.quantity import read_quantity
from fairlead.core.model.requests import Amounts, pod_requests

if TYPE_CHECKING:
    from fairlead.cluster.store.objects import Key
    from fairlead.core.model.flow import Doc

_ONE = 10**9
_ENDED = ("Succeeded", "Failed")


class BindingRoom:
    """Amounts are nanos; a pod takes one of the node's `pods`."""

    def __init__(self) -> None:
        self._pods: dict[Key, tuple[str, Amounts]] = {}
        self._taken: dict[str, Amounts] = {}

    def put(self, key: Key, pod: Doc | None) -> None:
        """A pod has become another, or is gone."""
        before = self._pods.pop(key, None)
        if before is not None:
            self._add(*before, -1)
        node = None if pod is None or (pod.get("status") or {}).get("phase") in _ENDED else pod["spec"].get("nodeName")
        if pod is not None and node:
            self._pods[key] = node, _requested(pod)
            self._add(*self._pods[key], 1)

    def _add(self, node: str, amounts: Amounts, sign: int) -> None:
        taken = self._taken.setdefault(node, {})
        for resource, amount in amounts.items():
            taken[resource] = taken.get(resource, 0) + sign * amount

    def check(self, pod: Doc, node_name: str, node: Doc | None) -> None:
        """Raise a Conflict if a pod without a node does not fit on this one."""
        short = [] if node is None else self._short(pod, node_name, node)
        if node is None or short:
            name = pod["metadata"]["name"]
            why = f"has no room left for it: {', '.join(short)}" if short else "is not there"
            raise conflict(kinds.POD, name, f"node {node_name} {why}", subresource="binding")

    def _short(self, pod: Doc, node_name: str, node: Doc) -> list[str]:
        """The resources of which the node has too little."""
        allocatable, taken = (node.get("status") or {}).get("allocatable") or {}, self._taken.get(node_name, {})
        return [
            resource
            for resource, amount in _requested(pod).items()
            if amount and taken.get(resource, 0) + amount > read_quantity(allocatable.get(resource, 0)).nanos
        ]


def _requested(pod: Doc) -> Amounts:
    return {**pod_requests(pod["spec"], pod.get("status") or {}).exact, "pods": _ONE}
