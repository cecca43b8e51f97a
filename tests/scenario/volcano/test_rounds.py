"""The life of a job in rounds: let in, placed together or not at all, run, completed; beside other profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fairlead.assembly.presets import first_profile
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.framework.profile import Profile
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.kube.binder import DefaultBinder
from fairlead.testing.builders import PodBuilder, node, pod, podgroup, priority_class, queue
from fairlead.testing.harness import Harness
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.nodeorder import NodeOrder
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.queues.overcommit import Overcommit
from fairlead.volcano.queues.proportion import Proportion
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.round import Task
from fairlead.volcano.rounds.settings import Rounds, rounds_of
from fairlead.volcano.rounds.tiers import Enabled, TierPlugin

_GROUP = "scheduling.k8s.io/group-name"


def volcano(**options: Any) -> Profile:
    none = Arguments()
    plugins = (Overcommit.of(none), Predicates.of(none), Proportion.of(none), NodeOrder.of(none))
    tiers = ((Enabled(Priority()), Enabled(GangTierPlugin())), tuple(Enabled(plugin) for plugin in plugins))
    rounds = Rounds(("enqueue", "allocate", "backfill"), tiers, **options)
    return Profile("volcano", {"bind": (DefaultBinder(),)}, mode=rounds)


def cluster_of(*nodes: str, made: list[Scheduler] | None = None, **options: Any) -> Harness:
    scheduler = Scheduler([first_profile(), volcano(**options)], Options(seed=1))
    if made is not None:
        made.append(scheduler)
    cluster = Harness(nodes=[node(name) for name in nodes], schedulers=[lambda _: scheduler])
    cluster.apply(queue("default"))
    opened = Write(Verb.PATCH, VC_QUEUE, "", "default", {"status": {"state": "Open"}}, subresource="status")
    cluster.perform(opened)
    return cluster


def member(name: str, group: str, **requests: str) -> PodBuilder:
    return pod(name).annotated({_GROUP: group}).scheduled_by("volcano").asks(**requests)


def group_status(cluster: Harness, name: str) -> Doc:
    found = cluster.get(VC_POD_GROUP, name)
    assert found is not None
    return dict(found.get("status") or {})


def test_a_gang_is_let_in_and_placed_together() -> None:
    cluster = cluster_of("a", "b")
    cluster.apply(podgroup("train", 3))
    cluster.run(3)
    assert group_status(cluster, "train")["phase"] == "Inqueue"
    cluster.apply(*(member(f"train-{i}", "train", cpu="4") for i in range(3)))
    cluster.run(5)
    assert sorted(cluster.bindings()) == ["train-0", "train-1", "train-2"]
    assert group_status(cluster, "train")["phase"] == "Running"
    assert group_status(cluster, "train")["running"] == 3


def test_a_gang_that_does_not_fit_holds_nothing_and_says_why() -> None:
    cluster = cluster_of("a", "b")
    cluster.apply(podgroup("big", 3))
    cluster.apply(*(member(f"big-{i}", "big", cpu="5") for i in range(3)), pod("small").asks(cpu="8"))
    cluster.run(10)
    assert cluster.bindings() == {"small": cluster.bindings()["small"]}
    conditions = group_status(cluster, "big")["conditions"]
    assert conditions[0]["type"] == "Unschedulable"
    assert conditions[0]["reason"] == "NotEnoughResources"
    said = [cluster.pod(f"big-{i}")["status"]["conditions"][0] for i in range(3)]
    assert {condition["reason"] for condition in said} == {"Schedulable", "Unschedulable"}


def test_room_that_becomes_free_is_found_by_the_next_round() -> None:
    cluster = cluster_of("a")
    cluster.apply(pod("first").asks(cpu="6"))
    cluster.settle()
    cluster.apply(podgroup("late", 2), *(member(f"late-{i}", "late", cpu="4") for i in range(2)))
    cluster.run(5)
    assert sorted(cluster.bindings()) == ["first"]
    cluster.delete(kinds.POD, "first")
    cluster.run(40)
    assert sorted(cluster.bindings()) == ["late-0", "late-1"]


def test_what_a_queue_has_is_written_to_its_status() -> None:
    cluster = cluster_of("a")
    cluster.apply(podgroup("one", 1), member("one-0", "one", cpu="2", memory="1Gi"))
    cluster.run(5)
    found = cluster.get(VC_QUEUE, "default")
    assert found is not None
    assert found["status"]["allocated"] == {"cpu": "2", "memory": "1Gi", "pods": "1"}


def test_pods_that_ask_for_nothing_are_backfilled() -> None:
    cluster = cluster_of("a")
    cluster.apply(podgroup("idle", 1), member("idle-0", "idle"))
    cluster.run(5)
    assert cluster.bindings() == {"idle-0": "a"}


@pytest.mark.parametrize(("size", "questions"), [(1, ()), (3, ()), (1000, ()), (1000, ("one that waits",))])
def test_a_round_in_slices_comes_to_the_same(size: int, questions: Sequence[str]) -> None:
    made: list[Scheduler] = []
    cluster = cluster_of("a", "b", "c", made=made, slice=size)
    made[-1].interrupted_by = questions
    for name in ("x", "y", "z"):
        cluster.apply(podgroup(name, 2), *(member(f"{name}-{i}", name, cpu="2") for i in range(4)))
    cluster.apply(*(pod(f"plain-{i}").asks(cpu="500m") for i in range(3)))
    cluster.run(10)
    placed = cluster.bindings()
    assert sum(name.startswith("plain") for name in placed) == 3
    assert sum(not name.startswith("plain") for name in placed) == 9, "three fit beside half a core on each node"
    made[-1].cluster.check()


def test_a_job_whose_pods_ended_is_completed() -> None:
    cluster = cluster_of("a")
    cluster.apply(podgroup("short", 1), member("short-0", "short", cpu="1"))
    cluster.run(5)
    succeeded = {"status": {"phase": "Succeeded"}}
    cluster.perform(Write(Verb.PATCH, kinds.POD, "default", "short-0", succeeded, subresource="status"))
    cluster.run(5)
    assert group_status(cluster, "short")["phase"] == "Completed"


def test_nothing_is_written_while_nothing_changes() -> None:
    cluster = cluster_of("a")
    cluster.apply(podgroup("waits", 2), member("waits-0", "waits", cpu="1"))
    cluster.run(10)
    before = cluster.get(VC_POD_GROUP, "waits")
    cluster.run(600)
    after = cluster.get(VC_POD_GROUP, "waits")
    assert before is not None
    assert after is not None
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


def configured(text: str, *nodes: str, made: list[Scheduler] | None = None) -> Harness:
    scheduler = Scheduler([first_profile(), profile_of_volcano(load_volcano_config(text))], Options(seed=1))
    if made is not None:
        made.append(scheduler)
    cluster = Harness(nodes=[node(name) for name in nodes], schedulers=[lambda _: scheduler])
    for name in ("default", "other"):
        cluster.apply(queue(name))
        opened = Write(Verb.PATCH, VC_QUEUE, "", name, {"status": {"state": "Open"}}, subresource="status")
        cluster.perform(opened)
    return cluster


class Clumsy(TierPlugin):
    """Fails once in the middle of a round."""

    name = "clumsy"

    def __init__(self) -> None:
        self._failed = False

    def allocated(self, task: Task) -> None:
        assert task.job is not None
        if not self._failed and task.job.name == "second":
            self._failed = True
            raise ValueError("dropped it")


def test_a_round_that_breaks_off_leaves_the_others_alone_and_is_followed_by_another() -> None:
    profile = volcano()
    rounds = replace(rounds_of(profile), tiers=(*rounds_of(profile).tiers, (Enabled(Clumsy()),)))
    scheduler = Scheduler([first_profile(), replace(profile, mode=rounds)], Options(seed=1))
    cluster = Harness(nodes=[node("a")], schedulers=[lambda _: scheduler])
    cluster.apply(queue("default"))
    opened = Write(Verb.PATCH, VC_QUEUE, "", "default", {"status": {"state": "Open"}}, subresource="status")
    cluster.perform(opened)
    cluster.apply(podgroup("first", 1), member("first-0", "first", cpu="1"))
    cluster.apply(podgroup("second", 1), member("second-0", "second", cpu="1"), pod("plain").asks(cpu="1"))
    cluster.run(10)
    assert sorted(cluster.bindings()) == ["first-0", "plain", "second-0"]
    assert any("dropped it" in complaint for complaint in scheduler.backlog.complaints)
    scheduler.cluster.check()


def test_a_pod_that_waits_for_room_can_be_explained() -> None:
    cluster = cluster_of("a")
    cluster.apply(pod("plain").asks(cpu="6"))
    cluster.settle()
    cluster.apply(podgroup("big", 1), member("big-0", "big", cpu="4"))
    cluster.run(5)
    explanation = cluster.explain("big-0")
    assert explanation is not None
    assert explanation.verdict == "Unschedulable"
    assert explanation.message == "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert [(blocker.reasons, blocker.nodes) for blocker in explanation.blockers] == [(("Insufficient cpu",), ("a",))]


PREEMPTING = """
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def test_a_more_important_gang_gets_the_room_of_a_less_important_one() -> None:
    made: list[Scheduler] = []
    cluster = configured(PREEMPTING, "a", "b", made=made)
    cluster.apply(priority_class("high", 1000))
    cluster.apply(podgroup("low", 1), *(member(f"low-{i}", "low", cpu="4") for i in range(4)))
    cluster.run(5)
    assert len(cluster.bindings()) == 4
    cluster.apply(podgroup("top", 2).having(priorityClassName="high"))
    cluster.apply(*(member(f"top-{i}", "top", cpu="4").of_priority("high") for i in range(2)))
    cluster.until(lambda: ("Evict", "preempt") in cluster.events("low"), limit=5)
    assert {cluster.pod(f"top-{i}")["status"].get("nominatedNodeName") for i in range(2)} <= {"a", "b"}
    cluster.run(60)
    placed = cluster.bindings()
    assert sum(name.startswith("top") for name in placed) == 2
    assert sum(name.startswith("low") for name in placed) == 2
    assert group_status(cluster, "top")["phase"] == "Running"
    assert ("Evict", "preempt") in cluster.events("low")
    made[-1].cluster.check()


def test_a_queue_gets_back_what_another_has_too_much_of() -> None:
    cluster = configured(PREEMPTING, "a", "b")
    cluster.apply(podgroup("greedy", 1), *(member(f"greedy-{i}", "greedy", cpu="2") for i in range(8)))
    cluster.run(5)
    assert len(cluster.bindings()) == 8
    cluster.apply(podgroup("late", 2).in_queue("other"), *(member(f"late-{i}", "late", cpu="2") for i in range(4)))
    cluster.run(90)
    placed = cluster.bindings()
    assert sum(name.startswith("late") for name in placed) >= 2
    assert ("Evict", "reclaim") in cluster.events("greedy")
