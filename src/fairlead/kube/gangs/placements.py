"""TopologyPlacementGenerator and PodGroupPodsCount: which parts of the cluster may take a gang, and which is best.

A group that names a topology key goes into one domain of it as a whole: one placement per value that some node has.
One with a network topology goes into one domain of a network, whose domains come from the family that describes it
(`Family.network_domains`). Once members run somewhere, the others follow them there. A group that only prefers this may
also go anywhere, if nothing else has room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairlead.core.framework.gang import GangDomain
from fairlead.core.framework.plugin import Interest, Plugin
from fairlead.core.model.events import NODE, ActionType, ClusterEvent
from fairlead.core.model.reasons import Status, failed, unschedulable

if TYPE_CHECKING:
    from fairlead.core.framework.gang import Proposal
    from fairlead.core.model.group import NetworkTopology
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.columns import LabelColumn
    from fairlead.core.state.gangs import Gang

ANYWHERE = "anywhere"
_LAST = 1 << 30
NO_NETWORK = "nothing in this cluster says which nodes are close together"


class NetworkDomains(Protocol):
    """Where the domains of a network come from, by which groups with a network topology are placed."""

    def events(self) -> Sequence[Interest]:
        """Changes of the objects that describe the network."""
        ...

    def domains(self, gang: Gang, wanted: NetworkTopology, cluster: Cluster) -> Sequence[GangDomain] | Status:
        """One placement per domain that is near enough, or why there is none."""
        ...


class TopologyPlacementGenerator(Plugin):
    name = "TopologyPlacementGenerator"

    def __init__(self, *, networks: Sequence[NetworkDomains] = ()) -> None:
        """The first that has a domain for a group decides; else the last of them says why there is none."""
        self._networks = networks

    def events(self) -> Sequence[Interest]:
        """New nodes, nodes whose labels change, and changes of networks."""
        nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return Interest(nodes), *(interest for network in self._networks for interest in network.events())

    def placement_generate(self, gang: Gang, cluster: Cluster) -> Sequence[GangDomain] | Status | None:
        group = gang.group
        if group is None or not group.stays_together:
            return None
        if group.topology_key:
            found, preferred = _domains(gang, cluster, group.topology_key), group.topology_preferred
        else:
            assert group.network_topology is not None
            found, preferred = self._near(gang, group.network_topology, cluster), not group.network_topology.hard
        if not preferred:
            return found
        return [*(() if isinstance(found, Status) else found), GangDomain(ANYWHERE, rank=_LAST)]

    def _near(self, gang: Gang, wanted: NetworkTopology, cluster: Cluster) -> Sequence[GangDomain] | Status:
        found: Sequence[GangDomain] | Status = unschedulable(NO_NETWORK)
        for network in self._networks:
            found = network.domains(gang, wanted, cluster)
            if found and not isinstance(found, Status):
                break
        return found


# ---- domains of a label ----


def _domains(gang: Gang, cluster: Cluster, key: str) -> Sequence[GangDomain] | Status:
    table = cluster.table
    column = table.label(key)
    taken = _domain_of_members(gang, column)
    if isinstance(taken, Status):
        return taken
    codes = np.where(table.alive[: table.high], column.codes[: table.high], -1)
    wanted = (
        [taken] if taken is not None else sorted({int(c) for c in codes[codes >= 0]}, key=column.values.__getitem__)
    )
    return [GangDomain(column.values[code], np.flatnonzero(codes == code).astype(np.int32), key) for code in wanted]


def _domain_of_members(gang: Gang, column: LabelColumn) -> int | Status | None:
    """Where members run already; None if none do."""
    found: int | None = None
    for pod_state in gang.seated():
        code = int(column.codes[pod_state.row])
        if code < 0:
            words = f"no topology domain found for pod {pod_state.seen.key}"
            return failed(f"cannot determine domain for already scheduled pods: {words}")
        if found is not None and code != found:
            words = f"more than 1 domain found for pod group: {column.values[found]}, {column.values[code]}"
            return failed(f"cannot determine domain for already scheduled pods: {words}")
        found = code
    return found


class PodGroupPodsCount(Plugin):
    """Scores a domain by the number of members that it takes."""

    name = "PodGroupPodsCount"
    scores_grow = True

    def placement_score(self, gang: Gang, proposals: Sequence[Proposal], cluster: Cluster) -> Sequence[int] | Status:
        counts = [gang.scheduled + len(proposal.pods) for proposal in proposals]
        most = max(counts, default=0)
        if most == 0:
            return failed("no pods are scheduled in any placement")
        return [count * 100 // most for count in counts]
