"""Pods that wait behind their queue's gate, and what takes it away."""

from __future__ import annotations

from fairlead.core.model import kinds
from fairlead.testing.builders import PodBuilder, nodes, podgroup, queue
from fairlead.volcano.rounds.job import QUEUE_GATE
from tests.support.volcano import VolcanoHarness, conf

TEXT = conf("enqueue, allocate", "priority; gang", "predicates; capacity; nodeorder")
ON = frozenset({"SchedulingGatesQueueAdmission"})


def world(*, gates: frozenset[str] = ON, cpu: str = "2") -> VolcanoHarness:
    return VolcanoHarness(TEXT, nodes(2), queues=[queue("small").capped_at(cpu=cpu)], flags={"gates": gates})


def waiting(made: VolcanoHarness, name: str, *, asks: str = "2", opted: bool = True) -> PodBuilder:
    """A pod behind the gate, which has opted in or not."""
    made.apply(podgroup(name, 1).in_queue("small"))
    built = made.member(name, 0, {"cpu": asks}).gated(QUEUE_GATE)
    return built.annotated({QUEUE_GATE: "true"}) if opted else built


def gates_of(made: VolcanoHarness, name: str) -> list[str]:
    return [gate["name"] for gate in made.pod(f"{name}-w-0")["spec"].get("schedulingGates") or ()]


def is_placed(made: VolcanoHarness, name: str) -> bool:
    return bool(made.pod(f"{name}-w-0")["spec"].get("nodeName"))


def test_a_pod_that_its_queue_has_room_for_is_let_through() -> None:
    made = world()
    made.apply(waiting(made, "one"))
    made.run(5)
    assert gates_of(made, "one") == []
    assert is_placed(made, "one")


def test_a_pod_that_its_queue_has_no_room_for_stays_behind_the_gate() -> None:
    """So that nobody adds nodes for a pod that may not start."""
    made = world()
    made.apply(waiting(made, "first"))
    made.run(5)
    made.apply(waiting(made, "second"))
    made.run(5)
    assert gates_of(made, "second") == [QUEUE_GATE]
    made.delete(kinds.POD, "first-w-0")
    made.run(60)
    assert gates_of(made, "second") == []
    assert is_placed(made, "second")


def test_a_pod_that_was_let_through_holds_its_quota_until_it_is_placed() -> None:
    """No node has room for it: it waits in the open, and the queue's room is its own."""
    made = world(cpu="6")
    made.apply(waiting(made, "large", asks="5"))
    made.run(5)
    assert gates_of(made, "large") == []
    assert not is_placed(made, "large")
    made.apply(waiting(made, "next", asks="2"))
    made.run(5)
    assert gates_of(made, "next") == [QUEUE_GATE]


def test_who_has_not_opted_in_is_left_alone() -> None:
    made = world()
    made.apply(waiting(made, "one", opted=False))
    made.run(5)
    assert gates_of(made, "one") == [QUEUE_GATE]


def test_other_gates_are_not_ours() -> None:
    made = world()
    made.apply(waiting(made, "one").gated("example.com/approval"))
    made.run(5)
    assert gates_of(made, "one") == [QUEUE_GATE, "example.com/approval"]


def test_without_the_feature_the_gate_stays() -> None:
    made = world(gates=frozenset())
    made.apply(waiting(made, "one"))
    made.run(5)
    assert gates_of(made, "one") == [QUEUE_GATE]
