"""Queues in questions about what would happen."""

from __future__ import annotations

from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.engine.what_if.workload import Workload
from fairlead.testing import Harness, pod, podgroup, queue
from fairlead.volcano.queues.what_if import allowances, other_queues, queues_of

WORKLOAD = Workload.of([
    podgroup("g", 1).in_queue("team").doc(),
    podgroup("h", 1).in_queue("team").doc(),
    {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "i"}},
    {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "j"}},
    pod("a").asks(cpu="1").in_group("g").scheduled_by("volcano").doc(),
])  # fmt: skip


def test_a_workload_counts_in_the_queues_of_its_groups() -> None:
    assert queues_of(WORKLOAD) == ["team", "default"]


def test_each_group_may_be_in_each_other_queue_but_the_root_and_no_queue_without_a_limit_is_raised() -> None:
    world = Harness(volcano="default")
    world.run(1)
    world.apply(queue("team").capped_at(cpu="4"), queue("other"))
    world.run(1)
    cluster = next(one for one in world.runtime.controllers if isinstance(one, Scheduler)).cluster
    edits = list(other_queues(WORKLOAD, cluster))
    moved = [(edit.steps[0].targets[0].rpartition("/")[2], edit.says.split()[-1]) for edit in edits]
    assert sorted(moved) == [
        ("g", "default"),
        ("g", "other"),
        ("h", "default"),
        ("h", "other"),
        ("i", "other"),
        ("i", "team"),
    ]
    assert all(edit.steps[0].patch == {"spec": {"queue": edit.says.split()[-1]}} for edit in edits)
    assert [[(one.name, dict(one.limits)) for one in line] for line in allowances(WORKLOAD, cluster)] == [
        [("team", {"cpu": 4000})]
    ]
