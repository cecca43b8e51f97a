"""DefaultPreemption on a Scheduler: who is eligible, what is chosen, what is said."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model.events import POD, ActionType
from fairlead.core.model.flow import Doc, Happened, Verb
from fairlead.kube.nodes.basics import NodeUnschedulable
from fairlead.kube.preemption.plugin import DefaultPreemption, best_candidates
from fairlead.kube.preemption.victims import VictimNode
from tests.support.documents import compiled, compiled_pod, deleting, node, pod
from tests.support.documents import pod as plain_pod
from tests.support.plugins import hint
from tests.support.preemption import NOW
from tests.support.scheduling import SchedulerScenario


def stage(nodes: int = 1, **options: Any) -> SchedulerScenario:
    return SchedulerScenario(NodeUnschedulable(), DefaultPreemption(**options), nodes=nodes)


def message(on: SchedulerScenario, name: str) -> str:
    said: str = on.conditions(name)[-1]["message"]
    return said


def deleted(on: SchedulerScenario) -> list[str]:
    return [w.name for w in on.writes if w.verb is Verb.DELETE]


def nominated(on: SchedulerScenario, name: str) -> str:
    promised: str = on.backlog.nominator.node_of(f"uid-{name}")
    return promised


# ---- eligibility ----


def test_a_pod_that_never_preempts_says_so() -> None:
    on = stage()
    on.tell(pod("low", cpu="4", on="n0"))
    on.tell(pod("p", cpu="4", priority=5, preemptionPolicy="Never"))
    assert message(on, "p") == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    )
    assert deleted(on) == []


def disrupted(doc: Doc) -> Doc:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    return {**deleting(doc), "status": {**doc["status"], "conditions": [condition]}}


def promised(doc: Doc, to: str) -> Doc:
    return {**doc, "status": {**doc["status"], "nominatedNodeName": to}}


def test_a_pod_whose_victim_is_still_leaving_waits_for_it() -> None:
    on = stage()
    low, other, preemptor = pod("low", cpu="4", on="n0"), pod("other", cpu="0", on="n0"), pod("p", cpu="4", priority=5)
    on.tell(low, other)
    on.tell(preemptor)
    on.answer()
    on.tell(promised(preemptor, "n0"), disrupted(low), happened=Happened.MODIFIED)
    on.gone(other)
    on.run(after=20)
    assert message(on, "p") == (
        "0/1 nodes are available: 1 Insufficient cpu."
        " preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert deleted(on) == ["low"]
    assert nominated(on, "p") == "n0"


# ---- candidates ----


def test_nodes_whose_refusal_is_final_are_no_candidates() -> None:
    on = SchedulerScenario(NodeUnschedulable(), DefaultPreemption())
    cordoned = node("closed")
    cordoned["spec"]["unschedulable"] = True
    on.tell(cordoned, node("small", cpu="1"), node("full"), pod("peer", cpu="4", on="full", priority=5))
    on.tell(pod("low", cpu="1", on="closed"), pod("tiny", cpu="1", on="small"))
    on.tell(pod("p", cpu="2", priority=5))
    assert message(on, "p") == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
        " preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod,"
        " 2 Preemption is not helpful for scheduling."
    )


def test_without_candidates_an_earlier_nomination_is_cleared() -> None:
    on = stage()
    low, preemptor = pod("low", cpu="4", on="n0"), pod("p", cpu="4", priority=5)
    on.tell(low)
    on.tell(preemptor)
    on.answer()
    on.tell(promised(preemptor, "n0"), happened=Happened.MODIFIED)
    assert nominated(on, "p") == "n0"
    on.tell(pod("faster", cpu="4", on="n0", priority=9))
    on.gone(low)
    on.run(after=20)
    assert message(on, "p").endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert nominated(on, "p") == ""
    patches = [w.body["status"] for w in on.writes if w.subresource == "status" and w.name == "p"]
    assert patches[0]["nominatedNodeName"] == "n0"
    assert patches[-1]["nominatedNodeName"] is None


def test_the_nominated_node_and_the_victim_follow() -> None:
    on = stage(nodes=2)
    on.tell(pod("a", cpu="4", on="n0", priority=3), pod("b", cpu="4", on="n1", priority=1))
    on.tell(pod("p", cpu="4", priority=5))
    assert nominated(on, "p") == "n1"
    assert deleted(on) == ["b"]
    (event,) = on.events("Preempted")
    assert (event["note"], event["action"]) == ("Preempted by pod uid-p on node n1", "Preempting")
    assert on.conditions("b")[0]["message"] == "default-scheduler: preempting to accommodate a higher priority pod"


def test_while_its_victims_go_a_pod_stays_out_of_the_queue() -> None:
    on = stage()
    plugin = DefaultPreemption()
    on.tell(pod("a", cpu="2", on="n0"), pod("b", cpu="2", on="n0"))
    on.tell(pod("p", cpu="4", priority=5))
    preemptor = next(pod_state.seen for pod_state in on.cluster.pods.values() if pod_state.seen.name == "p")
    status = plugin.pre_enqueue(preemptor, on.cluster)
    assert status is not None
    assert status.message == "waiting for the preemption for this pod to be finished"
    on.answer()
    on.answer()
    assert plugin.pre_enqueue(preemptor, on.cluster) is None


# ---- which of several nodes ----


def candidate(row: int, *priorities: int, violations: int = 0, started: str = "") -> VictimNode:
    victims = tuple(
        compiled(plain_pod(f"v{row}-{i}", priority=priority, started=started)) for i, priority in enumerate(priorities)
    )
    return VictimNode(row, victims, violations)


EARLY, LATE = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (candidate(0, 9, 9), candidate(1, 0, violations=1)),
        (candidate(0, 5, 5, 5), candidate(1, 6)),
        (candidate(0, 5, -100), candidate(1, 5, 0)),
        (candidate(0, 5), candidate(1, 5, -(2**31))),
        (candidate(0, 5, 0, started=LATE), candidate(1, 5, 0, started=EARLY)),
        (candidate(0, 5), candidate(1, 5, started=LATE)),
    ],
    ids=["budgets", "first victim", "sum", "number", "start", "not started"],
)
def test_each_rule_in_turn_keeps_the_best(better: VictimNode, worse: VictimNode) -> None:
    assert best_candidates([worse, better], NOW) == [better]
    assert best_candidates([better, worse], NOW) == [better]


def test_one_victim_more_is_worse_than_a_negative_priority_is_good() -> None:
    """Priorities are shifted before they are added, so that more victims never make the sum smaller."""
    one, two = candidate(0, 0), candidate(1, 0, -1)
    assert best_candidates([two, one], NOW) == [one]


def test_ties_are_all_kept() -> None:
    assert len(best_candidates([candidate(0, 5), candidate(1, 5)], NOW)) == 2


# ---- events, arguments, the guard ----


def test_a_deletion_never_wakes_by_itself() -> None:
    assert (
        hint(DefaultPreemption(), POD, ActionType.DELETE, compiled_pod(), old=compiled_pod("e", nodeName="n"))
        is Hint.SKIP
    )
    assert hint(DefaultPreemption(), POD, ActionType.ADD, compiled_pod()) is None


def test_the_search_stops_when_enough_candidates_are_found() -> None:
    on = stage(nodes=6, min_candidates_percentage=0, min_candidates_absolute=1)
    on.tell(*(pod(f"v{i}", cpu="4", on=f"n{i}", priority=i) for i in range(6)))
    on.tell(pod("p", cpu="4", priority=9))
    assert len(deleted(on)) == 1
    everywhere = stage(nodes=6)
    everywhere.tell(*(pod(f"v{i}", cpu="4", on=f"n{i}", priority=i) for i in range(6)))
    everywhere.tell(pod("p", cpu="4", priority=9))
    assert deleted(everywhere) == ["v0"]


def test_a_pod_that_evicts_the_same_owners_pods_again_and_again_stops_and_says_so() -> None:
    """Whoever owns the victims puts the next one on the node before the last is gone."""
    on = stage()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    generations = [pod(f"v{turn}", cpu="4", on="n0") for turn in range(6)]
    for doc in generations:
        doc["metadata"]["ownerReferences"] = [owner]
    on.tell(generations[0])
    on.tell(pod("p", cpu="4", priority=5))
    for old, new in pairwise(generations):
        if old["metadata"]["name"] in deleted(on):
            on.answer()
            on.tell(new)
            on.gone(old)
            on.run(after=20)
    assert deleted(on) == ["v0", "v1", "v2"]
    assert message(on, "p").endswith(
        "preemption: stopped after evicting pods of the same owner from n0 3 times in vain"
    )
