"""How full a placement would be with a gang in it: what NodeResourcesFit says of placements.

Fuller is better whatever the plugin likes of single nodes, so that large free parts of the cluster stay free for gangs
that need them. Requests and capacities are summed over all nodes of the placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.gang import Proposal
    from fairlead.state.table import NodeTable

Counts = Callable[[str, int], bool]
Used = Callable[["NodeTable", str], "NDArray[np.int64]"]


def most_allocated(
    resources: Sequence[tuple[str, int]], proposals: Sequence[Proposal], table: NodeTable, *, counts: Counts, used: Used
) -> list[int]:
    return [_score(resources, proposal, table, counts, used) for proposal in proposals]


def _score(
    resources: Sequence[tuple[str, int]], proposal: Proposal, table: NodeTable, counts: Counts, used: Used
) -> int:
    rows = proposal.placement.rows
    if rows is None:
        rows = np.flatnonzero(table.alive[: table.high]).astype(np.int32)
    total = weights = 0
    for resource, weight in resources:
        asked = _asked(resource, proposal)
        if not counts(resource, asked):
            continue
        capacity = int(table.allocatable_column(resource)[rows].sum())
        if capacity == 0:
            continue
        wanted = asked + int(used(table, resource)[rows].sum())
        total += weight * (min(wanted, capacity) * 100 // capacity)
        weights += weight
    return total // weights if weights else 0


def _asked(resource: str, proposal: Proposal) -> int:
    """What all members ask for, added up by shape: a gang of a thousand has one or two."""
    shapes = Counter(id(pod.shape) for pod, _ in proposal.pods)
    amounts = {id(pod.shape): pod.shape.score_request.get(resource, 0) for pod, _ in proposal.pods}
    return sum(count * amounts[shape] for shape, count in shapes.items())
