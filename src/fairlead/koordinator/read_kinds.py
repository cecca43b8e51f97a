"""The kinds of Koordinator's that scheduling reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.core.family import KindEntry, PodLike, ReadBy
from fairlead.koordinator import kinds
from fairlead.koordinator.records import cards, cpu_topology, gangs, network, node_metrics, quotas, reservations

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind


def _kind(kind: Kind, compile: Callable[[Doc], Any], event: str = "") -> KindEntry:
    """A kind of Koordinator's. A scheduler watches it only if a plugin names it."""
    return KindEntry(kind, compile, event, ReadBy.PLUGINS)


READ = (
    _kind(kinds.KOORD_ELASTIC_QUOTA, quotas.compile_elastic_quota, kinds.ELASTIC_QUOTA_EVENTS),
    KindEntry(
        kinds.KOORD_RESERVATION,
        reservations.compile_reservation,
        kinds.RESERVATION_EVENTS,
        ReadBy.PLUGINS,
        pod_like=PodLike(
            lambda record: record.reserve_pod,
            reservations.refusal_patch,
            "fairlead.koordinator.reservations.holdings:Reservations",
        ),
    ),
    _kind(kinds.KOORD_POD_GROUP, gangs.compile_gang, kinds.POD_GROUP_EVENTS),
    _kind(kinds.KOORD_NETWORK_TOPOLOGY, network.compile_network),
    _kind(kinds.KOORD_DEVICE, cards.compile_devices, kinds.DEVICE_EVENTS),
    _kind(kinds.KOORD_NODE_METRIC, node_metrics.compile_node_metric, kinds.NODE_METRIC_EVENTS),
    _kind(kinds.KOORD_NODE_TOPOLOGY, cpu_topology.compile_node_topology, kinds.NODE_TOPOLOGY_EVENTS),
)
"""In the order in which a scheduler watches them."""
