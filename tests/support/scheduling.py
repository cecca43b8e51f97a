"""A Scheduler without an API and without a clock: documents go in, writes come out, and plugins do what a test says.

scenario = SchedulerScenario(nodes=2)
scenario.tell(pod("a"))
assert scenario.binds().keys() == {"a"}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.framework.plugin import Interest, Plugin, PostFilterResult
from fairlead.core.framework.profile import Profile, profile_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Verb, Write
from fairlead.core.model.reasons import Reason, Reject
from fairlead.errors import ApiError
from fairlead.kube.binder import DefaultBinder
from fairlead.kube.config.factories import topology_placement_generator
from fairlead.kube.gangs.placements import PodGroupPodsCount
from fairlead.kube.gangs.plugin import GangScheduling
from fairlead.kube.nodes.basics import PrioritySort, SchedulingGates
from fairlead.kube.preemption.plugin import DefaultPreemption
from fairlead.kube.resources.plugin import NodeResourcesFit
from tests.support.documents import node
from tests.support.scenario import kind_of

T0 = 1_767_225_600.0


class ScriptedPlugin(Plugin):
    """Every point answers with what a test put there, and notes that it was asked."""

    def __init__(self, name: str, log: list[str] | None = None) -> None:
        self.name = name
        self.log = log if log is not None else []
        self.prepared: Any = None
        self.refused: dict[str, tuple[str, bool]] = {}
        self.points: dict[str, int] = {}
        self.reserved: Any = None
        self.permitted: Any = None
        self.errand: Any = None
        self.rescued: PostFilterResult | None = None
        self.interests: Sequence[Interest] | None = None

    def events(self) -> Sequence[Interest] | None:
        return self.interests

    def pre_filter(self, cycle: Any) -> Any:
        self.log.append(f"{self.name}.pre_filter")
        return _answer(self.prepared)

    def filter(self, cycle: Any, nodes: Any) -> Iterable[Reject]:
        self.log.append(f"{self.name}.filter")
        names = [nodes.table.name(int(row)) for row in nodes.row_numbers()]
        for reason in sorted(set(self.refused.values())):
            mask = np.array([self.refused.get(name) == reason for name in names], dtype=np.bool_)
            yield Reject(Reason(self.name, reason[0], reason[1]), mask)

    def score(self, cycle: Any, nodes: Any) -> Any:
        self.log.append(f"{self.name}.score")
        return np.array([self.points.get(nodes.table.name(int(row)), 0) for row in nodes.row_numbers()], dtype=np.int64)

    def reserve(self, cycle: Any, row: int) -> Any:
        self.log.append(f"{self.name}.reserve")
        return _answer(self.reserved)

    def unreserve(self, cycle: Any, row: int) -> None:
        self.log.append(f"{self.name}.unreserve")

    def permit(self, cycle: Any, row: int) -> Any:
        self.log.append(f"{self.name}.permit")
        return _answer(self.permitted)

    def pre_bind(self, cycle: Any, row: int) -> Any:
        return _answer(self.errand)

    def post_bind(self, cycle: Any, row: int) -> None:
        self.log.append(f"{self.name}.post_bind")


class RescuingPlugin(Plugin):
    """A PostFilter that answers with what a test put there."""

    def __init__(self, name: str, answer: Callable[[], PostFilterResult]) -> None:
        self.name = name
        self._answer = answer

    def post_filter(self, cycle: Any, refusals: Any) -> PostFilterResult:
        return self._answer()


def _answer(scripted: Any) -> Any:
    if isinstance(scripted, Exception):
        raise scripted
    return scripted


def default_plugins(*more: Plugin) -> tuple[Plugin, ...]:
    """The fewest plugins with which a pod is ordered, gated, placed and bound, and some more."""
    return (PrioritySort(), SchedulingGates(), NodeResourcesFit(), *more, DefaultBinder())


class SchedulerScenario:
    """`tell` brings documents, `run` lets the scheduler step, `answer` replies to its writes."""

    def __init__(self, *plugins: Plugin, nodes: int = 0, profiles: Sequence[Profile] = (), **options: Any) -> None:
        listed = profiles or [profile_of("default-scheduler", default_plugins(*plugins))]
        self.scheduler = Scheduler(listed, Options(**options))
        self.now = T0
        self.writes: list[Write] = []
        self._versions = count(1)
        self._unanswered: list[Write] = []
        if nodes:
            self.tell(*(node(f"n{i}") for i in range(nodes)))

    @property
    def cluster(self) -> Any:
        return self.scheduler.cluster

    @property
    def backlog(self) -> Any:
        return self.scheduler.backlog

    def tell(self, *docs: Doc, happened: Happened = Happened.ADDED) -> list[Write]:
        return self.run(*(self.as_change(doc, happened) for doc in docs))

    def as_change(self, doc: Doc, happened: Happened = Happened.ADDED) -> Change:
        """The Change that a watch would tell, with the next version."""
        return Change(happened, kind_of(doc), self._versioned(doc))

    def change(self, doc: Doc, **spec: Any) -> list[Write]:
        """A newer version of an object, with some of its spec replaced."""
        return self.tell({**doc, "spec": {**doc.get("spec", {}), **spec}}, happened=Happened.MODIFIED)

    def gone(self, doc: Doc) -> list[Write]:
        return self.tell(doc, happened=Happened.DELETED)

    def run(self, *changes: Change, replies: Sequence[Reply] = (), after: float = 0.0) -> list[Write]:
        self.now += after
        writes = self.scheduler.step(self.now, changes, replies)
        self.writes += writes
        self._unanswered += writes
        self.scheduler.cluster.check()
        return writes

    def answer(self, error: ApiError | None = None, *, to: str = "") -> list[Write]:
        """Reply to every write that has none yet; those to the named subresource fail if there is an error."""
        replies = [
            Reply(w, {}, error if error is not None and (not to or w.subresource == to) else None)
            for w in self._unanswered
        ]
        self._unanswered = []
        return self.run(replies=replies)

    def binds(self) -> dict[str, str]:
        return {w.name: w.body["target"]["name"] for w in self.writes if w.subresource == "binding"}

    def events(self, reason: str) -> list[Doc]:
        return [
            w.body
            for w in self.writes
            if w.kind is kinds.EVENT_V1 and w.verb is Verb.CREATE and w.body["reason"] == reason
        ]

    def conditions(self, name: str) -> list[Doc]:
        return [
            w.body["status"]["conditions"][0]
            for w in self.writes
            if w.subresource == "status" and w.name == name and "conditions" in w.body["status"]
        ]

    def _versioned(self, doc: Doc) -> Doc:
        return {**doc, "metadata": {**doc["metadata"], "resourceVersion": str(next(self._versions))}}


def gang_scenario(
    *more: Plugin, nodes: int = 0, gang: GangScheduling | None = None, **options: Any
) -> SchedulerScenario:
    """A scheduler that knows gangs, racks and preemption."""
    plugins = (
        gang or GangScheduling(),
        topology_placement_generator(),
        PodGroupPodsCount(),
        DefaultPreemption(),
        *more,
    )
    return SchedulerScenario(*plugins, nodes=nodes, **options)


def confirm(scenario: SchedulerScenario, docs: Sequence[Doc]) -> None:
    """The watch shows every bind that was sent."""
    binds = scenario.binds()
    for doc in docs:
        target = binds.get(doc["metadata"]["name"])
        if target is not None:
            shown = {**doc, "spec": {**doc["spec"], "nodeName": target}}
            scenario.tell(shown, happened=Happened.MODIFIED)
