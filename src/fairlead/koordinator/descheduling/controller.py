"""Descheduler: lets plugins choose pods to move every so often, and moves them by PodMigrationJobs.

A pass asks the balance plugins of each profile in their order; what they evict becomes jobs. Every half second the
waiting jobs are arbitrated: in their order each is let in, fails, or goes on waiting. Jobs that people made themselves
are arbitrated and carried out in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from fairlead.koordinator.descheduling.arbitration import arbitration_order
from fairlead.koordinator.descheduling.custom_priority import CustomPriority
from fairlead.koordinator.descheduling.evictable import Evictor, has_passed, phase_of, pod_key_of
from fairlead.koordinator.descheduling.low_node_load import LowNodeLoad
from fairlead.koordinator.descheduling.migration import MigrationSteps
from fairlead.koordinator.descheduling.settings import (
    BalanceSettings,
    CustomPrioritySettings,
    DeschedulerSettings,
)
from fairlead.koordinator.kinds import KOORD_MIGRATION_JOB

if TYPE_CHECKING:
    from fairlead.cluster.controllers.workqueue import ControllerContext
    from fairlead.core.model.flow import Change, Doc, DocView, Write
    from fairlead.core.model.node import Node
    from fairlead.core.model.requirements import LabelSelector
    from fairlead.koordinator.descheduling.facts import ClusterFacts

_PASS, _ARBITRATION = "/pass", "/arbitration"  # no job has a name with a slash
_AGAIN = 10.0
"""How often a single pass is tried until there are two nodes to look at."""


class Descheduler(MigrationSteps):
    name = "koord-descheduler"

    def __init__(
        self,
        view: DocView,
        settings: DeschedulerSettings = DeschedulerSettings(),  # noqa: B008, it is frozen
        *,
        announce: bool = True,
    ) -> None:
        super().__init__(view, settings.profile.migration, announce=announce)
        self._descheduling = settings
        self._plugins = [
            (profile.selector, _plugin(one, self.facts)) for profile in settings.profiles for one in profile.balance
        ]
        if self._plugins:
            self.queue.add(_PASS)

    @classmethod
    def from_context(cls, context: ControllerContext) -> Self:
        return cls(context.view, context.of(DeschedulerSettings), announce=context.announce)

    def observe(self, change: Change) -> None:
        super().observe(change)
        if change.kind is KOORD_MIGRATION_JOB and self._waits(change.doc):
            self.queue.add(_ARBITRATION)

    def visit(self, key: str, now: float) -> Iterable[Write]:
        if key == _PASS:
            return self._balance(now)
        return self._arbitrate(now) if key == _ARBITRATION else self.visit_job(key, now)

    def _balance(self, now: float) -> Iterable[Write]:
        nodes = [
            node for node in self._chosen(self._descheduling.selector) if node.conditions.get("Ready", "True") == "True"
        ]
        if len(nodes) <= 1:  # eviction from the only node would only disrupt
            self.queue.add_at(_PASS, now + (self._descheduling.interval or _AGAIN))
            return ()
        if self._descheduling.interval:
            self.queue.add_at(_PASS, now + self._descheduling.interval)
        evictor = Evictor(self._descheduling, self.movable, self.migrations, self.limiters, self.view, now)
        for selector, plugin in self._plugins:
            plugin.balance([node for node in nodes if selector is None or selector.matches(node.labels)], evictor, now)
        return evictor.writes

    def _chosen(self, selector: LabelSelector | None) -> list[Node]:
        nodes = sorted(self.facts.nodes.values(), key=lambda node: node.name)
        return nodes if selector is None else [node for node in nodes if selector.matches(node.labels)]

    def _arbitrate(self, now: float) -> Iterable[Write]:
        waiting = [job for job in self.migrations.jobs.values() if self._waits(job)]
        if waiting:
            self.queue.add_at(_ARBITRATION, now + self.settings.arbitration_interval)
        for job in arbitration_order(waiting, self.facts, self.migrations):
            pod = self.facts.pods.get(pod_key_of(job))
            if pod is not None and self.movable.never(pod):
                yield from self.forbid(job)
            elif pod is None or not self.movable.must_wait(pod, arbitrating=True):
                annotations = {**(job["metadata"].get("annotations") or {})}
                write = self.let_in(job)
                annotations.update(write.body["metadata"]["annotations"])
                self.migrations.observe(
                    {**job, "metadata": {**job["metadata"], "annotations": annotations}}, gone=False
                )
                yield write

    def _waits(self, job: Doc) -> bool:
        created = job["metadata"].get("creationTimestamp")
        return bool(created) and phase_of(job) == "Pending" and not has_passed(job) and not job["spec"].get("paused")


def _plugin(settings: BalanceSettings, facts: ClusterFacts) -> LowNodeLoad | CustomPriority:
    if isinstance(settings, CustomPrioritySettings):
        return CustomPriority(settings, facts)
    return LowNodeLoad(settings, facts)
