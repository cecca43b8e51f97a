"""Gangs that nobody declared: pods of one owner whose template asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.engine.gang_stage import gang_stage
from tests.unit.engine.stage import node, pod

GANG = "scheduling.fairlead.io/gang"
LWS = "leaderworkerset.sigs.k8s.io"


def _owned(name: str, *, gang: str, owner: str = "train", labels: dict[str, str] | None = None, **more: str) -> Any:
    doc = pod(name, cpu="2")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": f"uid-{owner}", "controller": True}
    doc["metadata"] |= {"annotations": {GANG: gang, **more}, "labels": labels or {}, "ownerReferences": [reference]}
    return doc


def test_pods_of_a_job_start_together() -> None:
    stage = gang_stage(nodes=1)
    stage.tell(*(_owned(f"p{i}", gang="3") for i in range(3)))
    assert not stage.binds()
    stage.tell(node("n1"))
    assert len(stage.binds()) == 3
    assert stage.scheduler.explain_group("default", "job-train").verdict == "Scheduled"


def test_pods_wait_until_enough_of_their_owner_are_known() -> None:
    stage = gang_stage(nodes=2)
    stage.tell(_owned("p0", gang="2"), _owned("q0", gang="2", owner="other"))
    assert not stage.binds()
    stage.tell(_owned("p1", gang="2"))
    assert sorted(stage.binds()) == ["p0", "p1"]


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"jobset.sigs.k8s.io/jobset-name": "js"}, "jobset-js"),
        ({"ray.io/cluster": "demo"}, "raycluster-demo"),
        ({"training.kubeflow.org/job-name": "bert"}, "trainingjob-bert"),
        ({f"{LWS}/name": "llm", f"{LWS}/group-index": "1"}, "leaderworkerset-llm-1"),
        ({}, "job-a"),
    ],
)
def test_controllers_mark_what_belongs_together(labels: dict[str, str], name: str) -> None:
    stage = gang_stage(nodes=2)
    stage.tell(_owned("p0", gang="2", owner="a", labels=labels))
    stage.tell(_owned("p1", gang="2", owner="a" if not labels else "b", labels=labels))
    assert len(stage.binds()) == 2
    assert stage.scheduler.explain_group("default", name) is not None


def test_a_leader_worker_set_says_how_large_its_groups_are() -> None:
    labels = {f"{LWS}/name": "llm", f"{LWS}/group-index": "0"}
    stage = gang_stage(nodes=2)
    stage.tell(_owned("p0", gang="auto", labels=labels, **{f"{LWS}/size": "2"}))
    assert not stage.binds()
    stage.tell(_owned("p1", gang="auto", labels=labels, **{f"{LWS}/size": "2"}))
    assert len(stage.binds()) == 2


@pytest.mark.parametrize("value", ["auto", "many", "", "0", "²"])
def test_a_value_that_is_no_number_makes_no_gang(value: str) -> None:
    stage = gang_stage(nodes=1)
    stage.tell(_owned("p0", gang=value))
    assert list(stage.binds()) == ["p0"]


def test_the_group_goes_with_its_last_member() -> None:
    stage = gang_stage(nodes=1)
    doc = _owned("p0", gang="2")
    stage.tell(doc)
    stage.gone(doc)
    assert len(stage.cluster.gangs) == 0
