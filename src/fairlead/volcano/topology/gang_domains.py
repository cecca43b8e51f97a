"""HyperNodeDomains: the HyperNodes that could take a gang of a kube profile, for TopologyPlacementGenerator.

A group goes into one HyperNode, of as low a tier as has room and of none above its limit; the tree of HyperNodes is the
one of Volcano's rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.gang import GangDomain
from fairlead.core.framework.plugin import Interest
from fairlead.core.model.events import ActionType, ClusterEvent
from fairlead.core.model.reasons import Status, unschedulable
from fairlead.volcano.kinds import HYPER_NODE_EVENTS
from fairlead.volcano.rounds.network import network_index

if TYPE_CHECKING:
    from fairlead.core.model.group import NetworkTopology
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.gangs import Gang
    from fairlead.volcano.records.topology import HyperNodeTree

NO_TREE = "HyperNodes do not make a tree: one has two parents, or is its own ancestor"


class HyperNodeDomains:
    def events(self) -> Sequence[Interest]:
        return (Interest(ClusterEvent(HYPER_NODE_EVENTS, ActionType.ALL)),)

    def domains(self, gang: Gang, wanted: NetworkTopology, cluster: Cluster) -> Sequence[GangDomain] | Status:
        """One placement per HyperNode that is near enough; where members run already, those that have all of them."""
        network = network_index(cluster)
        tree = network.tree()
        if not tree.ready:
            return unschedulable(NO_TREE)
        limit = _limit(wanted, tree)
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


def _limit(wanted: NetworkTopology, tree: HyperNodeTree) -> int | Status:
    if not wanted.hard:
        return tree.tier(tree.root) - 1  # and then anywhere
    if wanted.highest_tier is not None:
        return wanted.highest_tier
    tier = tree.tier_named(wanted.highest_tier_name)
    return unschedulable(f'no HyperNode is of a tier named "{wanted.highest_tier_name}"') if tier is None else tier


def _around_members(gang: Gang, cluster: Cluster, tree: HyperNodeTree) -> list[str]:
    """The smallest HyperNode that has all members which run already, its parent, and so on."""
    nodes = {cluster.table.name(pod_state.row) for pod_state in gang.seated()}
    return tree.ancestors(tree.lowest_containing(nodes) or tree.root) if nodes else []
