"""How many feasible nodes end a search (kube-scheduler's percentageOfNodesToScore)."""

from __future__ import annotations

LEAST_NODES = 100
"""Fewer nodes than this are all looked at."""
LEAST_PERCENTAGE = 5


def enough_nodes(
    nodes: int, percentage: int, *, least: int = LEAST_NODES, least_percentage: int = LEAST_PERCENTAGE
) -> int:
    """The number of feasible nodes that is enough among `nodes`. Without a percentage (0) it is a share that shrinks
    from 50 % by one for every 125 nodes."""
    if nodes <= least or percentage >= 100:
        return nodes
    if percentage <= 0:
        percentage = max(least_percentage, 50 - nodes // 125)
    return max(least, nodes * percentage // 100)
