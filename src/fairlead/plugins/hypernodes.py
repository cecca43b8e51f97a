"""TopologyPlacementGenerator and PodGroupPodsCount: which parts of the cluster may take a gang, and which is best.

A group that names a topology key goes into one domain of it as a whole: one placement per value that some node has.
Once members run somewhere, the others follow them there. A group that only prefers this may also go anywhere, if no
domain has room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.gang import Placement
from fairlead.framework.plugin import Plugin
from fairlead.model.reasons import Status, failed

if TYPE_CHECKING:
    from fairlead.framework.gang import Proposal
    from fairlead.state.cluster import Cluster
    from fairlead.state.columns import LabelColumn
    from fairlead.state.gangs import Gang

ANYWHERE = "anywhere"


class TopologyPlacementGenerator(Plugin):
    name = "TopologyPlacementGenerator"

    def placements(self, gang: Gang, cluster: Cluster) -> Sequence[Placement] | Status | None:
        group = gang.group
        if group is None or not group.topology_key:
            return None
        table, key = cluster.table, group.topology_key
        column = table.label(key)
        fallback = [Placement(ANYWHERE, fallback=True)] if group.topology_preferred else []
        taken = _domain_of_members(gang, cluster, column)
        if isinstance(taken, Status):
            return fallback or taken
        codes = np.where(table.alive[: table.high], column.codes[: table.high], -1)
        wanted = (
            [taken] if taken is not None else sorted({int(c) for c in codes[codes >= 0]}, key=column.values.__getitem__)
        )
        return [
            Placement(column.values[code], np.flatnonzero(codes == code).astype(np.int32), key) for code in wanted
        ] + fallback


def _domain_of_members(gang: Gang, cluster: Cluster, column: LabelColumn) -> int | Status | None:
    """Where members run already; None if none do."""
    found: int | None = None
    for seat in gang.seated():
        code = int(column.codes[seat.row])
        if code < 0:
            words = f"no topology domain found for pod {seat.seen.key}"
            return failed(f"cannot determine domain for already scheduled pods: {words}")
        if found is not None and code != found:
            words = f"more than 1 domain found for pod group: {column.values[found]}, {column.values[code]}"
            return failed(f"cannot determine domain for already scheduled pods: {words}")
        found = code
    return found


class PodGroupPodsCount(Plugin):
    """Likes the placement that takes the most members."""

    name = "PodGroupPodsCount"
    scores_grow = True

    def score_placements(self, gang: Gang, proposals: Sequence[Proposal], cluster: Cluster) -> Sequence[int] | Status:
        counts = [gang.scheduled + len(proposal.pods) for proposal in proposals]
        most = max(counts, default=0)
        if most == 0:
            return failed("no pods are scheduled in any placement")
        return [count * 100 // most for count in counts]
