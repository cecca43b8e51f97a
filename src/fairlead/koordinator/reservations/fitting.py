"""Whether a pod fits into a reservation and its node.

The node must have room if what is left of the reservation counts as free. A Restricted reservation must itself have
enough of every resource that it holds and the pod requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.koordinator.records.reservations import RESTRICTED

if TYPE_CHECKING:
    from fairlead.koordinator.reservations.holdings import ReservationState

_REASON = "Reservation(s) "


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """A node before the reservations that a pod matches were taken off it: its amounts, what is requested there, how
    many pods are there without them, and how many reservations match."""

    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    pods: int
    most_pods: int
    matched: int

    def lacking(self, asked: Mapping[str, int], remaining: Mapping[str, int]) -> list[str]:
        """The resources of which the node has too little for the pod, if so much more counts as free."""
        short = ["pods"] if self.pods - self.matched + 1 > self.most_pods else []
        if not any(asked.values()):
            return short
        for name in ("cpu", "memory", "ephemeral-storage", *sorted(asked)):
            if name in short or (name not in asked and name not in ("cpu", "memory", "ephemeral-storage")):
                continue
            free = self.allocatable.get(name, 0) - self.requested.get(name, 0) + remaining.get(name, 0)
            if asked.get(name, 0) > free:
                short.append(name)
        return short


def reservation_shortage(state: ReservationState, asked: Mapping[str, int], *, detailed: bool) -> list[str]:
    """What a Restricted reservation has too little of, in the original's words; `detailed` with amounts."""
    record, used = state.record, state.allocated
    reasons: list[str] = []
    if "pods" in record.held and len(state.owners) + 1 > record.held["pods"]:
        amounts = f", requested: 1, used: {len(state.owners)}, capacity: {record.held['pods']}" if detailed else ""
        reasons.append(f"{_REASON}Too many pods{amounts}")
    for name in record.names:
        wanted = asked.get(name, 0)
        if not wanted:
            continue
        capacity = record.held.get(name, 0) - record.inner.get(name, 0)
        taken = max(0, used.get(name, 0))
        if wanted > capacity - taken:
            amounts = f", requested: {wanted}, used: {taken}, capacity: {capacity}" if detailed else ""
            reasons.append(f"{_REASON}Insufficient {name}{amounts}")
    return reasons


def shortages(
    state: ReservationState, asked: Mapping[str, int], room: NodeRoom, *, detailed: bool
) -> tuple[list[str], list[str]]:
    """What the node and the reservation lack for a pod; both empty if it fits."""
    by_node = room.lacking(asked, state.available())
    by_reservation = reservation_shortage(state, asked, detailed=detailed) if state.record.policy == RESTRICTED else []
    return by_node, by_reservation


def is_reservation_reason(reason: str) -> bool:
    return reason.startswith(_REASON)


def reservation_score(state: ReservationState, asked: Mapping[str, int]) -> int:
    """0..100 by how full the reservation is with the pod; what would exceed it scores nothing."""
    held = {name: amount for name, amount in state.record.held.items() if amount}
    if not held:
        return 0
    used = state.allocated
    total = 0
    for name, capacity in held.items():
        wanted = asked.get(name, 0) + used.get(name, 0)
        if wanted <= capacity:
            total += 100 * wanted // capacity
    return total // len(held)
