"""TopologyPlacementGenerator and PodGroupPodsCount: which parts of the cluster may take a gang, and which is best.

A group that names a topology key goes into one domain of it as a whole: one placement per value that some node has.
One with a network topology goes into one HyperNode, of as low a tier as has room and of none above its limit; the tree
of HyperNodes is the one that Volcano's manner uses. Once members run somewhere, the others follow them there. A group
that only prefers this may also go anywhere, if nothing else has room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.gang import GangDomain
from fairlead.core.framework.plugin import Interest, Plugin
from fairlead.core.model.events import HYPER_NODE, NODE, ActionType, ClusterEvent
from fairlead.core.model.reasons import Status, failed, unschedulable
from fairlead.volcano.rounds.network import network_index

if TYPE_CHECKING:
    from fairlead.core.framework.gang import Proposal
    from fairlead.core.model.group import NetworkTopology
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.columns import LabelColumn
    from fairlead.core.state.gangs import Gang
    from fairlead.volcano.records.topology import HyperNodeTree

ANYWHERE = "anywhere"
_LAST = 1 << 30
NO_TREE = "HyperNodes do not make a tree: one has two parents, or is its own ancestor"


class TopologyPlacementGenerator(Plugin):
    name = "TopologyPlacementGenerator"

    def events(self) -> Sequence[Interest]:
        """New nodes, nodes whose labels change, and changes of HyperNodes."""
        nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return Interest(nodes), Interest(ClusterEvent(HYPER_NODE, ActionType.ALL))

    def placements(self, gang: Gang, cluster: Cluster) -> Sequence[GangDomain] | Status | None:
        group = gang.group
        if group is None or not group.stays_together:
            return None
        if group.topology_key:
            found, preferred = _domains(gang, cluster, group.topology_key), group.topology_preferred
        else:
            assert group.network_topology is not None
            found, preferred = _hyper_nodes(gang, cluster, group.network_topology), not group.network_topology.hard
        if not preferred:
            return found
        return [*(() if isinstance(found, Status) else found), GangDomain(ANYWHERE, rank=_LAST)]


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


# ---- HyperNodes ----


def _hyper_nodes(gang: Gang, cluster: Cluster, wish: NetworkTopology) -> Sequence[GangDomain] | Status:
    """One placement per HyperNode that is near enough; where members run already, those that have all of them."""
    network = network_index(cluster)
    tree = network.tree()
    if not tree.ready:
        return unschedulable(NO_TREE)
    limit = _limit(wish, tree)
    if isinstance(limit, Status):
        return limit
    around = _around_members(gang, cluster, tree)
    near = sorted((name for name in around or tree if tree.tier(name) <= limit), key=tree.tier)
    if around and not near:
        return unschedulable(f"no HyperNode up to tier {limit} has all members that run already")
    return [
        GangDomain(name, rows, tree.tier_title(name), tree.tier(name))
        for name in near
        if len(rows := network.rows_of(name))
    ]


def _limit(wish: NetworkTopology, tree: HyperNodeTree) -> int | Status:
    if not wish.hard:
        return tree.tier(tree.root) - 1  # and then anywhere
    if wish.highest_tier is not None:
        return wish.highest_tier
    tier = tree.tier_named(wish.highest_tier_name)
    return unschedulable(f'no HyperNode is of a tier named "{wish.highest_tier_name}"') if tier is None else tier


def _around_members(gang: Gang, cluster: Cluster, tree: HyperNodeTree) -> list[str]:
    """The smallest HyperNode that has all members which run already, its parent, and so on."""
    nodes = {cluster.table.name(pod_state.row) for pod_state in gang.seated()}
    return tree.ancestors(tree.lowest_containing(nodes) or tree.root) if nodes else []


class PodGroupPodsCount(Plugin):
    """Scores a domain by the number of members that it takes."""

    name = "PodGroupPodsCount"
    scores_grow = True

    def score_placements(self, gang: Gang, proposals: Sequence[Proposal], cluster: Cluster) -> Sequence[int] | Status:
        counts = [gang.scheduled + len(proposal.pods) for proposal in proposals]
        most = max(counts, default=0)
        if most == 0:
            return failed("no pods are scheduled in any placement")
        return [count * 100 // most for count in counts]
