"""A picture of a cluster: its books as plain values, to be compared before and after a rollback."""

from __future__ import annotations

from typing import Any

from fairlead.core.state.cluster import Cluster
from fairlead.core.state.ports import HostPort, PortIndex


def _ports(index: PortIndex) -> set[tuple[int, HostPort]]:
    return {
        (row, (ip, protocol, port))
        for (protocol, port), by_ip in index._rows.items()
        for ip, rows in by_ip.items()
        for row in rows
    }


def picture(cluster: Cluster) -> dict[str, Any]:
    """Everything that a placement may touch, as plain values."""
    table = cluster.table
    return {
        "requested": {r: column.tolist() for r, column in table.requested.items() if column.any()},
        "nonzero": (table.nonzero_cpu.tolist(), table.nonzero_memory.tolist()),
        "count": table.pod_count.tolist(),
        "pods": [[pod.uid for pod in pods] for pods in table.pods],
        "ports": _ports(cluster.ports),
        "claims": dict(cluster.claims_in_use),
        "places": {uid: (pod_state.place, pod_state.row) for uid, pod_state in cluster.pods.items()},
    }
