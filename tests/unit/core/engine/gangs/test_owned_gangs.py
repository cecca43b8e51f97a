"""Gangs that nobody declared: pods of one owner whose template asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.model.kinds import JOB
from fairlead.core.model.owner_sizes import owner_kind
from tests.support.documents import node, pod
from tests.support.scheduling import SchedulerScenario, confirm, gang_scenario

GANG = "scheduling.fairlead.io/gang"
LWS = "leaderworkerset.sigs.k8s.io"


def _owned(name: str, *, gang: str, owner: str = "train", labels: dict[str, str] | None = None, **more: str) -> Any:
    doc = pod(name, cpu="2")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": f"uid-{owner}", "controller": True}
    doc["metadata"] |= {"annotations": {GANG: gang, **more}, "labels": labels or {}, "ownerReferences": [reference]}
    return doc


def test_pods_of_a_job_start_together() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(*(_owned(f"p{i}", gang="3") for i in range(3)))
    assert not stage.binds()
    stage.tell(node("n1"))
    assert len(stage.binds()) == 3
    assert stage.scheduler.explain_group("default", "job-train").verdict == "Scheduled"
    assert stage.scheduler.explain_group("default", "train").name == "job-train"


def test_pods_wait_until_enough_of_their_owner_are_known() -> None:
    stage = gang_scenario(nodes=2)
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
    stage = gang_scenario(nodes=2)
    stage.tell(_owned("p0", gang="2", owner="a", labels=labels))
    stage.tell(_owned("p1", gang="2", owner="a" if not labels else "b", labels=labels))
    assert len(stage.binds()) == 2
    assert stage.scheduler.explain_group("default", name) is not None


def test_a_leader_worker_set_says_how_large_its_groups_are() -> None:
    labels = {f"{LWS}/name": "llm", f"{LWS}/group-index": "0"}
    stage = gang_scenario(nodes=2)
    stage.tell(_owned("p0", gang="auto", labels=labels, **{f"{LWS}/size": "2"}))
    assert not stage.binds()
    stage.tell(_owned("p1", gang="auto", labels=labels, **{f"{LWS}/size": "2"}))
    assert len(stage.binds()) == 2


@pytest.mark.parametrize("value", ["many", "", "0", "²"])
def test_a_value_that_is_no_number_makes_no_gang(value: str) -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(_owned("p0", gang=value))
    assert list(stage.binds()) == ["p0"]


def test_the_group_goes_with_its_last_member() -> None:
    stage = gang_scenario(nodes=1)
    doc = _owned("p0", gang="2")
    stage.tell(doc)
    stage.gone(doc)
    assert len(stage.cluster.gangs) == 0


# ---- auto: the owner's own document says how many ----


def _job(name: str = "train", *, parallelism: Any = 3, **status: Any) -> Doc:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    spec = {"parallelism": parallelism, "completions": parallelism}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": status}


def _watched(stage: SchedulerScenario) -> list[str]:
    return [watch.kind.kind for watch in stage.scheduler.watches]


def test_auto_is_what_the_job_says() -> None:
    stage = gang_scenario(nodes=3)
    stage.tell(*(_owned(f"p{i}", gang="auto") for i in range(2)))
    stage.tell(_job(parallelism=3))
    assert not stage.binds()
    stage.tell(_owned("p2", gang="auto"))
    assert len(stage.binds()) == 3


def test_owners_are_watched_only_when_a_pod_needs_them() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(_owned("p0", gang="1"), pod("single"))
    assert "Job" not in _watched(stage)
    stage.tell(_owned("q0", gang="auto", owner="other"))
    stage.tell(_owned("q1", gang="auto", owner="another"))
    assert _watched(stage).count("Job") == 1


def test_nobody_is_placed_before_owners_that_are_needed_have_been_seen() -> None:
    """After a restart a gang may be half bound, and only its owner knows."""
    stage = gang_scenario()
    bound = _owned("p0", gang="auto")
    bound["spec"]["nodeName"] = "n0"
    thief = pod("thief", cpu="2", priority=1000)
    stage.tell(node("n0", cpu="4"), bound, _owned("p1", gang="auto"), thief)
    assert not stage.binds()
    stage.tell(_job(parallelism=2))
    assert next(iter(stage.binds())) == "p1"


def test_an_owner_that_is_not_there_is_waited_for_and_stalls_nobody() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(_owned("p0", gang="auto"))
    stage.tell(pod("other"))
    assert list(stage.binds()) == ["other"]
    words = (
        "waiting for Job default/train, which says how many pods start together: it does not exist, or may not be read"
    )
    assert stage.backlog.where("uid-p0").message == words
    explanation = stage.scheduler.explain_group("default", "job-train")
    assert (explanation.verdict, explanation.message) == ("Gated", words)
    stage.tell(_job(parallelism=1))
    assert "p0" in stage.binds()


def test_an_owner_that_cannot_be_read_says_why_and_stalls_nobody() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(_owned("p0", gang="auto"))
    stage.tell(_job(parallelism="three"), pod("other"))
    assert list(stage.binds()) == ["other"]
    message = stage.backlog.where("uid-p0").message
    assert message == (
        "Job default/train does not say how many pods start together: parallelism: not a number: 'three'"
    )
    stage.tell(_job(parallelism=1), happened=Happened.MODIFIED)
    assert "p0" in stage.binds()


def test_pods_of_an_owner_that_nobody_can_count_say_so() -> None:
    stage = gang_scenario(nodes=1)
    doc = _owned("p0", gang="auto")
    doc["metadata"]["ownerReferences"][0] |= {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    stage.tell(doc)
    assert not stage.binds()
    assert stage.backlog.where("uid-p0").message == (
        "it is not known how many pods of ReplicaSet default/web start together: "
        "write the number into the annotation scheduling.fairlead.io/gang"
    )


def test_the_last_pods_of_a_job_do_not_wait_for_those_that_are_done() -> None:
    stage = gang_scenario(nodes=2)
    docs = [_owned(f"p{i}", gang="auto") for i in range(3)]
    stage.tell(*docs)
    stage.tell(_job(parallelism=3))
    assert len(stage.binds()) == 3
    for doc in docs:
        stage.gone(doc)
    stage.tell(_job(parallelism=3, succeeded=2), happened=Happened.MODIFIED)
    stage.tell(_owned("again", gang="auto"))
    assert "again" in stage.binds()


def test_a_pod_that_is_made_again_does_not_wait_for_those_that_have_ended() -> None:
    """Also where a number was written: one of three has succeeded, one has failed and is made again."""
    stage = gang_scenario(nodes=2)
    docs = [_owned(f"p{i}", gang="3") for i in range(3)]
    stage.tell(*docs)
    confirm(stage, docs)
    stage.gone({**docs[0], "spec": {**docs[0]["spec"], "nodeName": stage.binds()["p0"]}})
    stage.gone({**docs[1], "spec": {**docs[1]["spec"], "nodeName": stage.binds()["p1"]}})
    stage.tell(_owned("again", gang="3"))
    assert "again" in stage.binds()


def test_a_gang_by_owner_that_has_not_started_waits_for_all() -> None:
    stage = gang_scenario(nodes=3)
    docs = [_owned(f"p{i}", gang="3") for i in range(3)]
    stage.tell(*docs[:2])
    stage.gone(docs[0])
    stage.tell(docs[2])
    assert not stage.binds()


def test_a_smaller_minimum_wakes_a_gang_that_did_not_fit() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(*(_owned(f"p{i}", gang="auto") for i in range(4)))
    stage.tell(_job(parallelism=4))
    assert not stage.binds()
    stage.tell(_job(parallelism=2), happened=Happened.MODIFIED)
    stage.run(after=3.0)
    assert len(stage.binds()) == 2


def test_a_job_that_is_deleted_leaves_its_waiting_pods_waiting() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(*(_owned(f"p{i}", gang="auto") for i in range(4)))
    stage.tell(_job(parallelism=4))
    stage.gone(_job(parallelism=4))
    stage.tell(node("n1"))
    stage.run(after=3.0)
    assert not stage.binds()
    assert stage.backlog.where("uid-p0").queue == "gated"


def test_a_ray_cluster_is_counted_by_its_own_version() -> None:
    stage = gang_scenario(nodes=2)
    docs = [_owned(f"p{i}", gang="auto", owner="demo", labels={"ray.io/cluster": "demo"}) for i in range(3)]
    for doc in docs:
        doc["metadata"]["ownerReferences"][0] |= {"apiVersion": "ray.io/v1", "kind": "RayCluster"}
    stage.tell(*docs)
    (ray,) = [watch.kind for watch in stage.scheduler.watches if watch.kind.kind == "RayCluster"]
    assert ray is owner_kind("ray.io/v1", "RayCluster")
    cluster = {"metadata": {"name": "demo", "namespace": "default"}, "spec": {"workerGroupSpecs": [{"replicas": 2}]}}
    stage.run(Change(Happened.ADDED, ray, cluster))
    assert len(stage.binds()) == 3


# ---- a namespace that asks for it ----


def _namespace(value: str) -> Doc:
    labels = {GANG: value} if value else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}


def _plain(name: str, kind: str = "Job", owner: str = "train") -> Doc:
    doc = _owned(name, gang="1", owner=owner)
    del doc["metadata"]["annotations"]
    doc["metadata"]["ownerReferences"][0] |= {"kind": kind}
    return doc


def test_a_namespace_may_ask_for_gangs_of_all_owners_that_can_be_read() -> None:
    stage = gang_scenario(nodes=2)
    stage.tell(_namespace("auto"))
    stage.tell(_plain("p0"), _plain("p1"), _plain("web", kind="ReplicaSet", owner="web"))
    stage.tell(_job(parallelism=3))
    assert list(stage.binds()) == ["web"]
    stage.tell(_plain("p2"))
    assert sorted(stage.binds()) == ["p0", "p1", "p2", "web"]


def test_a_pod_speaks_for_itself_in_such_a_namespace() -> None:
    stage = gang_scenario(nodes=2)
    stage.tell(_namespace("auto"))
    stage.tell(_owned("alone", gang="none"))
    assert list(stage.binds()) == ["alone"]


def test_pods_that_wait_already_see_the_namespaces_annotation_and_of_its_end() -> None:
    stage = gang_scenario()
    docs = [_plain(f"p{i}") for i in range(2)]
    stage.tell(*docs)
    stage.tell(_namespace("auto"), _job(parallelism=4))
    assert stage.backlog.where("uid-p0").queue == "gated"
    stage.backlog.check()
    stage.tell(_namespace(""), happened=Happened.MODIFIED)
    stage.tell(node("n0"))
    stage.run(after=3.0)
    assert sorted(stage.binds()) == ["p0", "p1"]
    stage.backlog.check()


def test_jobs_are_the_kind_that_the_api_serves() -> None:
    assert owner_kind("batch/v1", "Job") is JOB
