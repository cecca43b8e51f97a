"""Whatever happens, in whatever order: no pod is lost, no node is overcommitted, a failed bind leaves no trace."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.framework.plugin import Wait
from fairlead.core.model.flow import Happened
from fairlead.core.model.reasons import unschedulable
from fairlead.core.state.cluster import PodPlace
from fairlead.errors import Conflict
from fairlead.kube.preemption.plugin import DefaultPreemption
from tests.support.documents import deleting, node, pod
from tests.support.scheduling import SchedulerScenario, ScriptedPlugin

PODS = [f"p{i}" for i in range(6)]
NODES = ["n0", "n1", "n2"]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(PODS), st.integers(1, 5), st.integers(0, 2)),
        st.tuples(st.just("delete"), st.sampled_from(PODS)),
        st.tuples(st.just("terminate"), st.sampled_from(PODS)),
        st.tuples(st.just("node"), st.sampled_from(NODES), st.integers(1, 8)),
        st.tuples(st.just("lose"), st.sampled_from(NODES)),
        st.tuples(st.just("answer"), st.booleans()),
        st.tuples(st.just("confirm")),
        st.tuples(st.just("wait"), st.floats(0.1, 40.0)),
        st.tuples(st.just("permit"), st.sampled_from(["yes", "wait", "no"])),
    ),
    max_size=40,
)


class SchedulerAndApi:
    """A stage with its API: what was created, and what the scheduler's writes made of it."""

    def __init__(self) -> None:
        self.permit = ScriptedPlugin("Permit")
        self.stage = SchedulerScenario(self.permit, DefaultPreemption())
        self.pods: dict[str, dict[str, Any]] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.sizes: dict[str, int] = {}
        self.serial = 0
        self.heard = 0

    def do(self, step: tuple[Any, ...]) -> None:
        getattr(self, f"_{step[0]}")(*step[1:])
        self.check()

    def _add(self, name: str, cpu: int, priority: int) -> None:
        if name in self.pods:
            return
        self.serial += 1
        doc = pod(name, cpu=str(cpu), priority=priority)
        doc["metadata"]["uid"] = f"{name}-{self.serial}"
        self.pods[name] = doc
        self.stage.tell(doc)

    def _delete(self, name: str) -> None:
        doc = self.pods.pop(name, None)
        if doc is not None:
            self.stage.gone(doc)

    def _terminate(self, name: str) -> None:
        if name in self.pods:
            self.pods[name] = deleting(self.pods[name])
            self.stage.tell(self.pods[name], happened=Happened.MODIFIED)

    def _node(self, name: str, cpu: int) -> None:
        """A node that comes back while its pods are still known is as large as before."""
        if name not in self.nodes:
            self.nodes[name] = node(name, cpu=str(self.sizes.setdefault(name, cpu)))
            self.stage.tell(self.nodes[name])

    def _lose(self, name: str) -> None:
        doc = self.nodes.pop(name, None)
        if doc is not None:
            self.stage.gone(doc)

    def _answer(self, fails: bool) -> None:
        self.stage.answer(Conflict("no") if fails else None, to="binding")
        if not fails:
            self._confirm()

    def _confirm(self) -> None:
        """The watch shows what was bound; what was deleted goes away."""
        writes, self.heard = self.stage.writes[self.heard :], len(self.stage.writes)
        for write in writes:
            doc = self.pods.get(write.name)
            if doc is None or doc["spec"].get("nodeName"):
                continue
            pod_state = self.stage.cluster.pods.get(doc["metadata"]["uid"])
            same = write.subresource == "binding" and write.body["metadata"]["uid"] == doc["metadata"]["uid"]
            if same and pod_state is not None and pod_state.place is PodPlace.ASSUMED:
                target = write.body["target"]["name"]
                self.pods[write.name] = {**doc, "spec": {**doc["spec"], "nodeName": target}}
                self.stage.tell(self.pods[write.name], happened=Happened.MODIFIED)

    def _wait(self, seconds: float) -> None:
        self.stage.run(after=seconds)

    def _permit(self, answer: str) -> None:
        self.permit.permitted = {"yes": None, "wait": Wait(5.0), "no": unschedulable("not now")}[answer]

    def check(self) -> None:
        stage = self.stage
        stage.cluster.check()
        stage.backlog.check()
        self._nobody_is_lost()
        self._nothing_is_overcommitted()

    def _nobody_is_lost(self) -> None:
        for doc in self.pods.values():
            uid, bound = doc["metadata"]["uid"], bool(doc["spec"].get("nodeName"))
            waiting = self.stage.backlog.where(uid)
            binding = self.stage.scheduler.bindings.get(uid)
            leaving = "deletionTimestamp" in doc["metadata"]
            if bound:
                assert waiting is None or waiting.queue == "in flight"
            elif not leaving:
                assert (waiting is not None) or (binding is not None), f"{doc['metadata']['name']} is nowhere"

    def _nothing_is_overcommitted(self) -> None:
        table = self.stage.cluster.table
        for name, row in table.row_of.items():
            assert table.requested_column("cpu")[row] <= table.allocatable_column("cpu")[row], f"{name} is overfull"


@given(steps)
@settings(max_examples=200)
def test_no_pod_is_lost_and_no_node_is_overcommitted_whatever_happens(sequence: list[tuple[Any, ...]]) -> None:
    world = SchedulerAndApi()
    for step in sequence:
        world.do(step)


@given(steps)
@settings(max_examples=40)
def test_the_same_sequence_gives_the_same_writes(sequence: list[tuple[Any, ...]]) -> None:
    def writes() -> list[tuple[Any, ...]]:
        world = SchedulerAndApi()
        for step in sequence:
            world.do(step)
        return [(w.verb, w.kind.plural, w.name, w.subresource, w.body) for w in world.stage.writes]

    assert writes() == writes()
