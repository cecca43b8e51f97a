"""Which reservations a pod may use, and why not the others.

The owners of a reservation say whose it is. A pod may request a reservation by name, or for one with certain labels,
and may say which taints of reservations it tolerates; then it must have one. A pod that ignores reservations sees the
room that they hold as free and uses none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.selectors import NodeSelector, parse_node_selector
from fairlead.core.model.taints import Taint, Toleration, is_tolerated, parse_tolerations
from fairlead.koordinator.records.reservations import AFFINITY, EXACT_MATCH, IGNORED_LABEL

if TYPE_CHECKING:
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.records.reservations import KoordReservation

_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_KEEPING_OUT = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class ReservationDemand:
    """What a pod says of reservations. `required` if it must have one."""

    required: bool = False
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    terms: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()
    exact: tuple[str, ...] = ()
    ignores: bool = False


def reservation_demand(pod: Pod) -> ReservationDemand:
    """The demands of a pod; a ValueError if an annotation cannot be read."""
    ignores = pod.labels.get(IGNORED_LABEL) == "true"
    affinity, exact = pod.annotations.get(AFFINITY), pod.annotations.get(EXACT_MATCH)
    if not affinity and not exact:
        return ReservationDemand(ignores=ignores)
    written = json.loads(affinity) if affinity else {}
    required = written.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = {"nodeSelectorTerms": required.get("reservationSelectorTerms") or []} if required else None
    return ReservationDemand(
        required=bool(affinity),
        name=written.get("name") or "",
        labels=written.get("reservationSelector") or {},
        terms=parse_node_selector(terms) if terms is not None else None,
        tolerations=parse_tolerations(written.get("tolerations")),
        exact=tuple((json.loads(exact) if exact else {}).get("resourceNames") or ()),
        ignores=ignores,
    )


@dataclass(slots=True)
class MatchCounts:
    """Why reservations on a node were not matched, for the message."""

    owned: int = 0
    name_matched: int = 0
    name_unmatched: int = 0
    unschedulable: int = 0
    affinity_unmatched: int = 0
    not_exact: int = 0
    tainted: Counter[str] = field(default_factory=Counter)

    @property
    def explained(self) -> int:
        """How many of the owned ones have a reason of their own."""
        return (
            self.name_unmatched
            + self.unschedulable
            + self.affinity_unmatched
            + self.not_exact
            + sum(self.tainted.values())
        )


def matches(
    pod: Pod,
    asked: Mapping[str, int],
    demand: ReservationDemand,
    reservation: KoordReservation,
    node: Node,
    counts: MatchCounts,
) -> bool:
    """Whether a pod may use a reservation on a node; `counts` collects why not."""
    if demand.ignores:
        return True
    if not reservation.matches(pod):
        return False
    counts.owned += 1
    if demand.name:
        return _matches_by_name(asked, demand, reservation, counts)
    if reservation.unschedulable and not is_tolerated(_UNSCHEDULABLE, demand.tolerations):
        counts.unschedulable += 1
        return False
    return _is_wanted(asked, demand, reservation, node, counts)


def _is_wanted(
    asked: Mapping[str, int], demand: ReservationDemand, reservation: KoordReservation, node: Node, counts: MatchCounts
) -> bool:
    """Whether a reservation has the taints, labels and amounts that a pod accepts."""
    taint = _first_untolerated(reservation, demand) if demand.required else None
    if taint is not None:
        counts.tainted[f"{{{taint.key}: {taint.value}}}"] += 1
        return False
    if demand.required and not _has_affinity(demand, reservation, node):
        counts.affinity_unmatched += 1
        return False
    if not _is_exact(asked, demand.exact, reservation.held):
        counts.not_exact += 1
        return False
    return True


def may_be_taken_over(
    pod: Pod,
    demand: ReservationDemand,
    asked: Mapping[str, int],
    reservation: KoordReservation,
    node: Node,
    counts: MatchCounts,
    *,
    by_owners: bool,
) -> bool:
    """Whether a pod that runs already may become the owner of a reservation that is placed on its node; `by_owners` if
    it must be among those that the reservation lists."""
    if by_owners and not reservation.matches(pod):
        return False
    counts.owned += 1
    if not demand.name:
        return _is_wanted(asked, demand, reservation, node, counts)
    before = counts.name_matched
    matched = _matches_by_name(asked, demand, reservation, counts)
    counts.name_matched = before  # the original does not count it here
    return matched


def _matches_by_name(
    asked: Mapping[str, int], demand: ReservationDemand, reservation: KoordReservation, counts: MatchCounts
) -> bool:
    if reservation.name != demand.name:
        counts.name_unmatched += 1
        return False
    if not _is_exact(asked, demand.exact, reservation.held):
        counts.not_exact += 1
        return False
    counts.name_matched += 1
    return True


def _first_untolerated(reservation: KoordReservation, demand: ReservationDemand) -> Taint | None:
    return next(
        (
            taint
            for taint in reservation.taints
            if taint.effect in _KEEPING_OUT and not is_tolerated(taint, demand.tolerations)
        ),
        None,
    )


def _has_affinity(demand: ReservationDemand, reservation: KoordReservation, node: Node) -> bool:
    """Whether the labels of a reservation, laid over those of its node, are as the pod wants them."""
    labels = {**node.labels, **reservation.labels}
    if any(labels.get(key) != value for key, value in demand.labels.items()):
        return False
    return demand.terms is None or demand.terms.matches(labels, reservation.name)


def _is_exact(asked: Mapping[str, int], names: tuple[str, ...], held: Mapping[str, int]) -> bool:
    """Whether the named resources are requested exactly as they are held. One that neither has ends the comparison, as
    in the original."""
    for name in names:
        if name not in held or name not in asked:
            return name not in held and name not in asked
        if held[name] != asked[name]:
            return False
    return True
