"""PlacementScore of NodeResourcesFit: how full a domain would be with a gang in it.

Fuller is better, whatever the strategy for single nodes, so that large free parts of the cluster stay free for gangs
that need them. Requests and capacities are summed over all nodes of the domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.kube.scoring import total_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.gang import Proposal
    from fairlead.core.state.table import NodeTable

Counts = Callable[[str, int], bool]
Used = Callable[["NodeTable", str], "NDArray[np.int64]"]


def most_allocated(
    resources: Sequence[tuple[str, int]], proposals: Sequence[Proposal], table: NodeTable, *, counts: Counts, used: Used
) -> list[int]:
    asked = {id(proposal.pods): _asked(resources, proposal) for proposal in _distinct(proposals)}
    return [
        _score(resources, proposal, table, asked=asked[id(proposal.pods)], counts=counts, used=used)
        for proposal in proposals
    ]


def _distinct(proposals: Sequence[Proposal]) -> Iterable[Proposal]:
    """One proposal of each set of pods: before any trial, all proposals have the same pods."""
    return {id(proposal.pods): proposal for proposal in proposals}.values()


def _score(
    resources: Sequence[tuple[str, int]],
    proposal: Proposal,
    table: NodeTable,
    *,
    asked: Mapping[str, int],
    counts: Counts,
    used: Used,
) -> int:
    rows = proposal.placement.rows
    if rows is None:
        rows = np.flatnonzero(table.alive[: table.high]).astype(np.int32)
    total = weights = 0
    for resource, weight in resources:
        if not counts(resource, asked[resource]):
            continue
        capacity = total_of(table.allocatable_column(resource)[rows])
        if capacity == 0:
            continue
        wanted = asked[resource] + total_of(used(table, resource)[rows])
        total += weight * (min(wanted, capacity) * 100 // capacity)
        weights += weight
    return total // weights if weights else 0


def _asked(resources: Sequence[tuple[str, int]], proposal: Proposal) -> dict[str, int]:
    """The sum of the members' requests, computed by shape: a gang of a thousand pods has one or two shapes."""
    counts = Counter(id(pod.shape) for pod, _ in proposal.pods)
    shapes = {id(pod.shape): pod.shape for pod, _ in proposal.pods}
    return {
        resource: sum(count * shapes[shape].score_request.get(resource, 0) for shape, count in counts.items())
        for resource, _ in resources
    }
