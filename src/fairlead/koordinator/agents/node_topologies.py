"""The NodeResourceTopology of a simulated node, as Koordinator's agent reports one of a real node.

Two CPUs are a core. A node with four CPUs or more has two sockets, each with a NUMA node that has half of its cores and
of its memory; a smaller one has one. The kubelet binds nobody to CPUs, so that all of them can be given by the
scheduler. CPUs that are less than a whole are not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.documents import read_units
from fairlead.core.model.quantity import format_quantity
from fairlead.koordinator.kinds import KOORD_NODE_TOPOLOGY
from fairlead.koordinator.records.cpu_topology import CPU_TOPOLOGY, KUBELET_POLICY

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_THREADS = 2


def node_topology(node: Doc) -> Doc | None:
    """The object; None for a node without a whole CPU."""
    status = node.get("status") or {}
    capacity = read_units(status.get("capacity"), "status.capacity")
    allocatable = read_units(status.get("allocatable"), "status.allocatable")
    count = capacity.get("cpu", 0) // 1000
    if not count:
        return None
    cores = -(-count // _THREADS)
    parts = 2 if count >= 2 * _THREADS else 1
    detail = []
    for number in range(count):
        core = number // _THREADS
        place = core * parts // cores
        detail.append({"id": number, "core": core, "socket": place, "node": place})
    zones = [_zone(at, sum(cpu["node"] == at for cpu in detail), capacity, allocatable, parts) for at in range(parts)]
    annotations = {
        CPU_TOPOLOGY: json.dumps({"detail": detail}, separators=(",", ":")),
        KUBELET_POLICY: json.dumps({"policy": "none"}, separators=(",", ":")),
    }
    metadata = {
        "name": node["metadata"]["name"],
        "labels": {"app.kubernetes.io/managed-by": "Koordinator"},
        "annotations": annotations,
    }
    head = {"apiVersion": KOORD_NODE_TOPOLOGY.api_version, "kind": KOORD_NODE_TOPOLOGY.kind}
    return {**head, "metadata": metadata, "topologyPolicies": ["None"], "zones": zones}


def _zone(number: int, cpus: int, capacity: Mapping[str, int], allocatable: Mapping[str, int], parts: int) -> Doc:
    kept = allocatable.get("cpu", 0) * cpus // (capacity["cpu"] // 1000)
    amounts = (
        ("cpu", 1000 * cpus, kept),
        ("memory", capacity.get("memory", 0) // parts, allocatable.get("memory", 0) // parts),
    )
    resources = []
    for name, whole, given in amounts:
        spelt = format_quantity(given, name)
        one = {"name": name, "capacity": format_quantity(whole, name), "allocatable": spelt, "available": spelt}
        resources.append(one)
    return {"name": f"node-{number}", "type": "Node", "resources": resources}
