"""Points that kube-scheduler does not have are called for every pod, and equal pods in sequence are no exception."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.extended_plugin import ExtendedPlugin, RowTrial
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.reasons import Status, unschedulable
from fairlead.core.state.cluster import Cluster
from tests.support.documents import pod
from tests.support.scheduling import T0, SchedulerScenario


class InTurn(ExtendedPlugin):
    """Prefers one node after the other, and refuses one pod. It logs before and after each search."""

    name = "InTurn"

    def __init__(self, refused: str = "") -> None:
        self.refused = refused
        self.log: list[str] = []
        self._preferred = 0

    def before_pre_filter(self, cycle: Cycle) -> Status | None:
        self.log.append(f"before {cycle.pod.name}")
        return unschedulable("not this one") if cycle.pod.name == self.refused else None

    def after_search(self, cycle: Cycle) -> None:
        self.log.append(f"after {cycle.pod.name}")

    def preferred_nodes(self, cycle: Cycle, names: frozenset[str] | None, trial: RowTrial) -> Sequence[str]:
        self._preferred += 1
        return () if self._preferred < 3 else (f"n{self._preferred % 2}",)


def test_equal_pods_in_sequence_are_each_shown_to_an_extended_plugin() -> None:
    in_turn = InTurn()
    scenario = SchedulerScenario(in_turn, nodes=2)
    names = ["a", "b", "c", "d", "e", "f"]
    scenario.tell(*(pod(name) for name in names))
    assert in_turn.log == [f"{when} {name}" for name in names for when in ("before", "after")]
    binds = scenario.binds()
    assert [binds[name] for name in names[2:]] == ["n1", "n0", "n1", "n0"]


def test_a_pod_that_is_refused_before_pre_filter_waits_and_its_search_is_over() -> None:
    in_turn = InTurn(refused="a")
    scenario = SchedulerScenario(in_turn, nodes=2)
    scenario.tell(pod("a"))
    assert scenario.conditions("a")[0]["message"] == "0/2 nodes are available: not this one."
    assert scenario.backlog.where("uid-a").plugins == ("InTurn",)
    assert in_turn.log == ["before a", "after a"]


class Reporting(ExtendedPlugin):
    """Writes when it is ten seconds later."""

    name = "Reporting"

    def sync(self, cluster: Cluster, now: float) -> Iterable[Write]:
        if now >= T0 + 10:
            yield Write(Verb.PATCH, kinds.NODE, "", "n0", {"metadata": {"annotations": {"told": str(int(now - T0))}}})

    def sync_at(self) -> float | None:
        return T0 + 10


def test_a_plugin_syncs_its_objects_at_its_own_time() -> None:
    scenario = SchedulerScenario(Reporting(), nodes=1)
    assert scenario.scheduler.wake_at() == T0 + 10
    assert scenario.run() == []
    assert [write.name for write in scenario.run(after=10)] == ["n0"]
