"""ClusterNetworkTopology: the layers of a cluster's network, from the whole cluster down to single nodes.

Each layer names the labels by which nodes say where they are, and the layer above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.documents import compiler

CLUSTER_LAYER, NODE_LAYER = "ClusterTopologyLayer", "NodeTopologyLayer"


@dataclass(frozen=True, slots=True)
class NetworkLayer:
    """`labels`: the first that a node has says where it is."""

    name: str
    parent: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterNetwork:
    """`layers` from the top down, without the cluster itself; the last is that of nodes."""

    name: str
    layers: tuple[NetworkLayer, ...]


@compiler("ClusterNetworkTopology")
def compile_network(document: Mapping[str, Any]) -> ClusterNetwork:
    listed = {
        layer.get("topologyLayer") or "": NetworkLayer(
            layer.get("topologyLayer") or "", layer.get("parentTopologyLayer") or "", tuple(layer.get("labelKey") or ())
        )
        for layer in (document.get("spec") or {}).get("networkTopologySpec") or ()
    }
    ordered: list[NetworkLayer] = []
    at = listed.get(NODE_LAYER, NetworkLayer(NODE_LAYER, CLUSTER_LAYER, ()))
    while at.name != CLUSTER_LAYER and at not in ordered:
        ordered.insert(0, at)
        at = listed.get(at.parent, NetworkLayer(CLUSTER_LAYER, "", ()))
    return ClusterNetwork(document["metadata"]["name"], tuple(ordered))
