"""Reservations in questions about what would happen: the end of one that holds what is short."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.engine.what_if.cluster_changes import HolderEnd
from fairlead.koordinator.kinds import KOORD_RESERVATION

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.state.cluster import Cluster

_CALLED = "Reservation "
"""How holders that are Reservations are named in explanations, before their own name."""


def end_of(who: str, cluster: Cluster, workload: Workload) -> HolderEnd | None:
    """The end of a Reservation, as if it were deleted."""
    if not who.startswith(_CALLED):
        return None
    name = who.removeprefix(_CALLED)
    if name not in cluster.object_index.of(KOORD_RESERVATION):
        return None
    command = f"kubectl delete {KOORD_RESERVATION.resource} {name}"
    gone = {"metadata": {"name": name}}
    return HolderEnd(
        lambda trial: trial.remove(KOORD_RESERVATION, gone), f"when the Reservation {name} has ended", command
    )
