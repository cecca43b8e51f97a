"""What one attempt leaves to the next: wherever a plugin or an index raised, the next attempts are those of a scheduler
in which that attempt was never made. They decide the same, on the same table and from the same queues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.assembly.presets import first_profile
from fairlead.core.framework.plugin import Plugin, PostFilterResult
from fairlead.core.model.reasons import SKIP, unschedulable
from fairlead.core.state.cluster import Cluster
from fairlead.errors import NotFound
from tests.support.documents import group, member, node, pod
from tests.support.scheduling import SchedulerScenario

CULPRIT = {"culprit": "yes"}
POINTS = (
    "pre_enqueue", "pre_filter", "filter", "post_filter", "pre_score", "score", "normalize_score", "reserve", "permit",
    "pre_bind_pre_flight", "pre_bind", "bind", "post_bind", "unreserve", "add_pod", "remove_pod",
)  # fmt: skip
HOOKS = ("occupied", "vacated", "victim occupied", "victim vacated")


class Raising(Plugin):
    """Raises at one point for culprits, from the n-th call on until it has raised."""

    name = "Raising"

    def __init__(self, point: str, nth: int) -> None:
        self.point, self.left = point, nth
        self.raised = False

    def events(self) -> Any:
        return ()

    def maybe(self, point: str, of: Any, *, any_pod: bool = False) -> None:
        if point != self.point or self.raised or not (any_pod or of.labels.get("culprit") == "yes"):
            return
        self.left -= 1
        if self.left < 0:
            self.raised = True
            raise RuntimeError(f"in {point}")

    def pre_enqueue(self, pod: Any, cluster: Cluster) -> None:
        self.maybe("pre_enqueue", pod)

    def pre_filter(self, cycle: Any) -> None:
        if cycle.pod.labels.get("culprit") == "yes":
            cycle.cluster.index(RaisingIndex, RaisingIndex).plugin = self
        self.maybe("pre_filter", cycle.pod)

    def filter(self, cycle: Any, nodes: Any) -> Any:
        self.maybe("filter", cycle.pod)
        return ()

    def add_pod(self, cycle: Any, pod: Any, row: int) -> None:
        self.maybe("add_pod", cycle.pod)

    def remove_pod(self, cycle: Any, pod: Any, row: int) -> None:
        self.maybe("remove_pod", cycle.pod)

    def post_filter(self, cycle: Any, refusals: Any) -> Any:
        self.maybe("post_filter", cycle.pod)
        return PostFilterResult(unschedulable("no"))

    def pre_score(self, cycle: Any, nodes: Any) -> None:
        self.maybe("pre_score", cycle.pod)

    def score(self, cycle: Any, nodes: Any) -> Any:
        self.maybe("score", cycle.pod)
        return np.arange(len(nodes)) if self.point == "normalize_score" else 0

    def normalize_score(self, cycle: Any, nodes: Any, raw: Any) -> Any:
        self.maybe("normalize_score", cycle.pod)
        return raw

    def reserve(self, cycle: Any, row: int) -> None:
        self.maybe("reserve", cycle.pod)

    def unreserve(self, cycle: Any, row: int) -> None:
        self.maybe("unreserve", cycle.pod)

    def permit(self, cycle: Any, row: int) -> None:
        self.maybe("permit", cycle.pod)

    def pre_bind_pre_flight(self, cycle: Any, row: int) -> None:
        self.maybe("pre_bind_pre_flight", cycle.pod)

    def pre_bind(self, cycle: Any, row: int) -> None:
        self.maybe("pre_bind", cycle.pod)
        if self.point in ("unreserve", "vacated") and cycle.pod.labels.get("culprit") == "yes" and not self.raised:
            raise RuntimeError("so that places are given up")

    def bind(self, cycle: Any, row: int) -> Any:
        self.maybe("bind", cycle.pod)
        return SKIP

    def post_bind(self, cycle: Any, row: int) -> None:
        self.maybe("post_bind", cycle.pod)


class RaisingIndex:
    """Counts pods by row, and raises for the plugin at its hooks."""

    def __init__(self, cluster: Cluster) -> None:
        self.plugin: Raising | None = None

    def node_changed(self, row: int) -> None:
        pass

    def occupied(self, pod: Any, row: int) -> None:
        self._hook("occupied", pod)

    def vacated(self, pod: Any, row: int) -> None:
        self._hook("vacated", pod)

    def _hook(self, hook: str, pod: Any) -> None:
        if self.plugin is not None:
            self.plugin.maybe(hook, pod)
            if pod.labels.get("culprit") != "yes":
                self.plugin.maybe(f"victim {hook}", pod, any_pod=True)


class Ledger(Plugin):
    """What is reserved, by uid."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reserved: set[str] = set()

    def reserve(self, cycle: Any, row: int) -> None:
        self.reserved.add(cycle.pod.uid)

    def unreserve(self, cycle: Any, row: int) -> None:
        self.reserved.discard(cycle.pod.uid)

    def post_bind(self, cycle: Any, row: int) -> None:
        self.reserved.discard(cycle.pod.uid)


class World:
    """A scheduler with all of kube's plugins, some pods that run, and a plugin that raises for culprits."""

    def __init__(self, point: str, nth: int) -> None:
        self.ledgers = Ledger("First"), Ledger("Last")
        self.raising = Raising(point, nth)
        profile = first_profile().with_plugins([self.ledgers[0], self.raising, self.ledgers[1]])
        first = {
            at: (self.raising, *(plugin for plugin in profile.points[at] if plugin is not self.raising))
            for at in ("bind", "post_filter")
        }
        profile = replace(profile, points={**profile.points, **first})
        self.stage = SchedulerScenario(profiles=[profile], first_of_equals=True)
        self.stage.tell(*(node(f"n{at}", {"zone": f"z{at % 2}"}, cpu=str(4 + at)) for at in range(4)))
        for at in range(4):
            running = pod(f"running-{at}", cpu="2", labels={"app": f"a{at % 2}"}, priority=0)
            self.stage.tell({**running, "spec": {**running["spec"], "nodeName": f"n{at}"}})

    def attempt(self, docs: list[Any]) -> None:
        self.stage.run(*(self.stage.as_change(doc) for doc in docs))

    def rest(self) -> dict[str, Any]:
        """All that an attempt may leave behind."""
        cluster, backlog = self.stage.cluster, self.stage.backlog
        cluster.check()
        backlog.check()
        table = cluster.table
        return {
            "requested": {
                name: column[: table.high].tolist() for name, column in table.requested.items() if column.any()
            },
            "counts": table.pod_count[: table.high].tolist(),
            "pods": [sorted(one.key for one in here) for here in table.pods[: table.high]],
            "states": {state.seen.key: (state.place, state.row) for state in cluster.pods.values()},
            "queues": {state.seen.key: backlog.where(uid) for uid, state in cluster.pods.items()},
            "gangs": {gang.key: (gang.counts, gang.proposed, gang.minimum) for gang in cluster.gangs},
            "reserved": [ledger.reserved for ledger in self.ledgers],
            "bindings": sorted(self.stage.scheduler.bindings),
        }


def _shapes(labels: dict[str, str], which: str, prefix: str) -> list[Any]:
    """Pods that meet the plugins with state: affinity, spread, ports, preemption and gangs."""
    if which == "plain":
        return [pod(f"{prefix}-{at}", cpu="1", labels=labels) for at in range(2)]
    if which == "affine":
        term = {"labelSelector": {"matchLabels": {"app": "a0"}}, "topologyKey": "zone"}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return [pod(f"{prefix}-{at}", cpu="1", labels={**labels, "app": "a1"}, affinity=affinity) for at in range(2)]
    if which == "port":
        return [pod(f"{prefix}-{at}", cpu="1", labels=labels, port=80) for at in range(2)]
    if which == "preempting":
        return [pod(f"{prefix}-0", cpu="6", labels=labels, priority=100)]
    return [group(prefix, 3), *(member(f"{prefix}-{at}", prefix, cpu="1", labels=labels) for at in range(3))]


KINDS = ("plain", "affine", "port", "preempting", "gang")


@settings(max_examples=80, deadline=None)
@given(
    point=st.sampled_from((*POINTS, *HOOKS)),
    nth=st.integers(0, 3),
    culprit=st.sampled_from(KINDS),
    after=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True),
)
def test_an_attempt_is_the_same_after_one_that_raised(point: str, nth: int, culprit: str, after: list[str]) -> None:
    worlds = World(point, nth), World("", 0)
    raised, quiet = worlds
    culprits = _shapes(CULPRIT, culprit, "culprit")
    raised.attempt(culprits)
    if point == "post_bind":
        raised.stage.answer()
    if not raised.raising.raised:
        return
    for doc in reversed(culprits):
        raised.stage.gone(doc)
    for world in worlds:
        world.stage.answer(NotFound("it is gone"), to="binding")
        world.stage.run(after=700.0)
        world.stage.writes.clear()
    assert raised.rest() == quiet.rest()
    for which in after:
        for world in worlds:
            world.attempt(_shapes({}, which, which))
        assert raised.stage.binds() == quiet.stage.binds()
        assert raised.rest() == quiet.rest()
