"""Effects: what plugins ask for besides their answers is carried out, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.framework.effects import Effects, PermitOrder
from fairlead.core.framework.extended_plugin import ExtendedPlugin
from fairlead.core.framework.plugin import Plugin, PostFilterResult, Wait
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.reasons import unschedulable
from tests.support.documents import pod
from tests.support.scheduling import SchedulerScenario

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.state.cluster import Cluster


class Deleting(Plugin):
    """Has a ConfigMap deleted for each pod that finds no room."""

    name = "Deleting"

    def post_filter(self, cycle: Cycle, refusals: Refusals) -> PostFilterResult:
        cycle.effects.writes.append(Write(Verb.DELETE, kinds.CONFIG_MAP, "default", f"for-{cycle.pod.name}"))
        return PostFilterResult(unschedulable("deleted something"))


class PermitCaller(ExtendedPlugin):
    """All pods wait for `opener`; when it comes they are refused with a message, or let go if there is none."""

    name = "PermitCaller"

    def __init__(self, opener: str, message: str = "") -> None:
        self.opener, self.message = opener, message
        self.named: list[Effects] = []

    def permit(self, cycle: Cycle, row: int) -> Wait | None:
        if cycle.pod.name != self.opener:
            return Wait(60.0)
        for uid in list(cycle.cluster.pods):
            if uid != cycle.pod.uid:
                cycle.effects.permit_orders.append(PermitOrder(uid, self.name, self.message))
        return None

    def next_pod(self, cluster: Cluster, effects: Effects) -> str:
        self.named.append(effects)
        return ""


def test_writes_of_plugins_come_last_in_the_step_in_their_order() -> None:
    scenario = SchedulerScenario(Deleting(), nodes=1)
    writes = scenario.tell(pod("a", cpu="900"), pod("b", cpu="900"))
    assert [write.name for write in writes[-2:]] == ["for-a", "for-b"]
    assert not [write for write in writes[:-2] if write.kind is kinds.CONFIG_MAP]
    assert [write for write in writes[:-2] if write.kind is kinds.POD], "conditions come first"
    assert not [write for write in scenario.run() if write.kind is kinds.CONFIG_MAP], "they are sent once"


def test_pods_that_wait_are_let_go_or_refused_before_the_next_attempt() -> None:
    for message, bound in (("", {"a", "b", "c"}), ("closed", {"c"})):
        waiting_plugin = PermitCaller("c", message)
        scenario = SchedulerScenario(waiting_plugin, nodes=1)
        scenario.tell(pod("a"), pod("b"))
        assert not scenario.binds()
        scenario.tell(pod("c"))
        scenario.run()
        assert scenario.binds().keys() == bound
        assert not scenario.scheduler.parts.effects.permit_orders
        assert set(map(id, waiting_plugin.named)) == {id(scenario.scheduler.parts.effects)}
