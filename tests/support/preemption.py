"""Clusters in which a pod finds no room, and what a search for victims says of them."""

from __future__ import annotations

from random import Random

from fairlead.core.engine.cycle.attempt import place
from fairlead.core.engine.cycle.placement import Blocked, Placed, Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.plugin import Plugin
from fairlead.core.framework.profile import Profile, profile_of
from fairlead.core.framework.refusals import Refusals
from fairlead.core.framework.sums import sums_alone
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Verdict
from fairlead.core.state.touchlog import TouchLog
from fairlead.kube.nodes.basics import NodeUnschedulable, PrioritySort
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from fairlead.kube.nodes.ports import NodePorts
from fairlead.kube.preemption.victims import VictimNode, budgets_of, select_victims
from fairlead.kube.resources.plugin import NodeResourcesFit
from tests.support.scenario import Scenario, put

NOW = 1_767_229_200.0


def filtering_profile(*more: Plugin) -> Profile:
    """A profile that orders and filters, and neither scores nor binds."""
    plugins = [PrioritySort(), NodeUnschedulable(), NodeAffinityPlugin(), NodePorts(), NodeResourcesFit(), *more]
    return profile_of("default-scheduler", plugins)


class PreemptionScenario(Scenario):
    """Nodes, pods on them, and a search for those who would have to go."""

    def __init__(self, *docs: Doc, profile: Profile | None = None) -> None:
        super().__init__()
        self.profile = profile or filtering_profile()
        self.evaluator = Evaluator(self.profile)
        self.put(kinds.NODE, *docs)

    def challenge(
        self, doc: Doc, *, nominated: dict[int, list[Pod]] | None = None, promises: TouchLog | None = None
    ) -> tuple[Cycle, Refusals] | None:
        """What comes of looking for a place: the cycle and why there is none; None if there is one."""
        applied = put(self.cluster, kinds.POD, doc)
        assert applied is not None
        cycle = Cycle(
            pod=applied.new, cluster=self.cluster, profile=self.profile, now=NOW, rng=Random(0), effects=Effects()
        )
        answer = place(cycle, self.evaluator, Search(nominated=nominated or {}, promises=promises))
        if isinstance(answer, Placed):
            return None
        assert isinstance(answer, Blocked), answer
        return cycle, answer.refusals

    def search(self, cycle: Cycle, refusals: Refusals, row: int, *, by_sums: bool = False) -> VictimNode | Verdict:
        sums = sums_alone(cycle) if by_sums else None
        return select_victims(cycle, refusals, row, budgets_of(self.cluster), sums)

    def victims(self, doc: Doc, name: str = "n") -> list[str]:
        """Who would have to go from a node, the most important first; or why that does not help."""
        found = self.challenge(doc)
        assert found is not None
        answer = self.search(*found, self.row(name))
        return [p.name for p in answer.victims] if isinstance(answer, VictimNode) else list(answer.reasons)
