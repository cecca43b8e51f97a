"""Domains of a network for gangs come from the families that describe networks: the first that has one decides."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.core.framework.gang import GangDomain
from fairlead.core.framework.plugin import Interest
from fairlead.core.model.events import NODE, ActionType, ClusterEvent
from fairlead.core.model.group import NetworkTopology
from fairlead.core.model.reasons import Status, unschedulable
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.gangs import Gang
from fairlead.kube.gangs.placements import NO_NETWORK, TopologyPlacementGenerator
from tests.support.documents import group
from tests.support.scheduling import SchedulerScenario


class Network:
    """A network with these domains; without any it says why."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def events(self) -> Sequence[Interest]:
        return (Interest(ClusterEvent("networks", ActionType.ADD)),)

    def domains(self, gang: Gang, wish: NetworkTopology, cluster: Cluster) -> Sequence[GangDomain] | Status:
        return [GangDomain(name) for name in self._names] or unschedulable("no domain is near enough")


def close_gang(mode: str = "hard") -> tuple[Gang, Cluster]:
    wanted = group("g", 2)
    annotations = {"volcano.sh/network-topology-mode": mode, "volcano.sh/network-topology-highest-tier": "1"}
    wanted["metadata"]["annotations"] = annotations
    stage = SchedulerScenario(nodes=1)
    stage.tell(wanted)
    cluster = stage.scheduler.cluster
    (gang,) = cluster.gangs
    return gang, cluster


def names(plugin: TopologyPlacementGenerator, mode: str = "hard") -> list[str] | str:
    found = plugin.placement_generate(*close_gang(mode))
    assert found is not None
    return found.message if isinstance(found, Status) else [domain.name for domain in found]


def test_the_first_network_with_a_domain_decides() -> None:
    assert names(TopologyPlacementGenerator(networks=[Network(), Network("a", "b"), Network("c")])) == ["a", "b"]


def test_a_group_that_no_network_can_take_gets_the_reason() -> None:
    assert names(TopologyPlacementGenerator(networks=[Network()])) == "no domain is near enough"
    assert names(TopologyPlacementGenerator()) == NO_NETWORK


def test_a_group_that_only_prefers_closeness_may_go_anywhere_at_last() -> None:
    assert names(TopologyPlacementGenerator(networks=[Network("a")]), "soft") == ["a", "anywhere"]
    assert names(TopologyPlacementGenerator(), "soft") == ["anywhere"]


def test_changes_of_networks_wake_groups() -> None:
    woken = [interest.event.resource for interest in TopologyPlacementGenerator(networks=[Network()]).events()]
    assert woken == [NODE, "networks"]
