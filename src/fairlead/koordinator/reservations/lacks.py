"""What is missing in reservations for pods that must run in one: those with a required reservation affinity, or whose
reservations give nothing beyond what they hold (allocatePolicy Restricted)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.lack import Lack
from fairlead.koordinator.quotas.usage import request_of
from fairlead.koordinator.records.reservations import RESTRICTED
from fairlead.koordinator.reservations.holdings import reservations_of
from fairlead.koordinator.reservations.matching import MatchCounts, matches, reservation_demand

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.reservations.holdings import ReservationState

_NONE = "none that matches"


def reservation_lacks(pods: Sequence[Pod], cluster: Cluster) -> Iterator[Lack]:
    """Pods with the same reservations ask of them together."""
    groups: dict[tuple[str, ...], tuple[list[ReservationState], list[Pod]]] = {}
    for pod in pods:
        states = _own(pod, cluster)
        if states is not None:
            key = tuple(state.record.name for state in states)
            groups.setdefault(key, (states, []))[1].append(pod)
    for states, members in groups.values():
        yield from _lacks(states, members, cluster)


def _own(pod: Pod, cluster: Cluster) -> list[ReservationState] | None:
    """The reservations that a pod may use; None if it may also run without one."""
    try:
        demand = reservation_demand(pod)
    except (ValueError, AttributeError, TypeError):
        return None
    found = []
    for state, pod_state in reservations_of(cluster).matchable():
        node = cluster.table.nodes[pod_state.row]
        if node is not None and matches(pod, request_of(pod), demand, state.record, node, MatchCounts()):
            found.append(state)
    if demand.required:
        return found
    return found if found and all(state.record.policy == RESTRICTED for state in found) else None


def _lacks(states: Sequence[ReservationState], pods: Sequence[Pod], cluster: Cluster) -> Iterator[Lack]:
    name = ", ".join(state.record.name for state in states) or _NONE
    asked: dict[str, int] = {}
    for pod in pods:
        for resource, amount in request_of(pod).items():
            asked[resource] = asked.get(resource, 0) + amount
    for resource, amount in asked.items():
        held = [state for state in states if resource in state.record.held]
        if states and not held:
            continue
        free = sum(state.available()[resource] for state in held)
        if amount > free:
            users = [
                (cluster.pods[uid].seen.key, used[resource], f"it uses Reservation {state.record.name}")
                for state in held
                for uid, used in state.owners.items()
                if uid in cluster.pods and used.get(resource)
            ]
            yield Lack.of_units("Reservation", name, resource, amount, free, amount - free, users)
