"""CommitOrder: recorded decisions get the cluster that the scheduler knew, whatever the order of their bindings."""

from __future__ import annotations

from typing import Any

from fairlead.kube.replay.commit_order import CommitOrder

Doc = dict[str, Any]


def scenario(name: str, node: str | None, *existing: Doc) -> Doc:
    pod: Doc = {"metadata": {"name": name, "uid": name}, "spec": {}}
    return {"existing": list(existing), "decisions": [{"pod": pod, "node": node}]}


def bound(name: str, node: str) -> Doc:
    return {"metadata": {"name": name, "uid": name}, "spec": {"nodeName": node}}


def told(scenarios: list[Doc]) -> list[tuple[str, list[str]]]:
    """Of each scenario, whom it is about and who was there."""
    return [
        (one["decisions"][0]["pod"]["metadata"]["name"], [pod["metadata"]["name"] for pod in one["existing"]])
        for one in scenarios
    ]


def test_a_pod_that_was_placed_later_and_bound_earlier_is_not_there() -> None:
    order = CommitOrder()
    order.add(scenario("second", "n"), 2, now=0.0)
    order.add(scenario("first", "n", bound("second", "n")), 1, now=0.1)
    assert told(order.ready(2.0)) == [("first", []), ("second", ["first"])]


def test_a_refusal_knows_of_all_placements_before_it_also_if_they_are_bound_after() -> None:
    order = CommitOrder()
    order.add(scenario("a", "n"), 7, now=0.0)
    order.add(scenario("huge", None, bound("a", "n")), 8, now=0.1)
    order.add(scenario("b", "n", bound("a", "n")), 8, now=0.2)
    order.add(scenario("c", "n", bound("a", "n"), bound("b", "n")), 9, now=0.3)
    assert told(order.ready(2.0)) == [("a", []), ("b", ["a"]), ("huge", ["a", "b"]), ("c", ["a", "b"])]


def test_a_decision_waits_for_the_placements_before_it_but_not_for_ever() -> None:
    order = CommitOrder()
    order.add(scenario("first", "n"), 1, now=0.0)
    order.add(scenario("third", "n"), 3, now=0.0)
    assert told(order.ready(0.5)) == []
    assert told(order.ready(1.5)) == [("first", [])]
    assert len(order) == 1
    assert told(order.ready(6.0)) == [("third", [])]


def test_decisions_of_other_schedulers_pass_as_they_come() -> None:
    order = CommitOrder()
    order.add(scenario("theirs", "n", bound("x", "n")), None, now=0.0)
    assert told(order.ready(0.0)) == [("theirs", ["x"])]
    order.add(scenario("last", "n"), 5, now=0.0)
    assert told(order.ready(0.0, everything=True)) == [("last", [])]
