"""Deployments, ReplicaSets and Jobs on a whole virtual cluster."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import DEPLOYMENT, JOB, POD, REPLICA_SET
from fairlead.testing.builders import deployment, job, pod, replica_set
from fairlead.testing.harness import Harness
from tests.support.binder import TurnBinder


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=3, schedulers=[TurnBinder])


def status(cluster: Harness, kind: object, name: str) -> Doc:
    found = cluster.get(kind, name)  # type: ignore[arg-type]
    assert found is not None
    result: Doc = found["status"]
    return result


def running(cluster: Harness) -> int:
    return sum(phase == "Running" for phase in cluster.phases().values())


def no_trouble(cluster: Harness) -> None:
    for controller in cluster.runtime.controllers:
        assert not list(getattr(controller, "errors", ())), controller.name


def condition(status: Doc, type_: str) -> Doc:
    return next(one for one in status["conditions"] if one["type"] == type_)


def test_a_deployment_of_twenty_becomes_running(cluster: Harness) -> None:
    cluster.apply(deployment("web").replicas(20))
    cluster.run(5)
    told = status(cluster, DEPLOYMENT, "web")
    assert running(cluster) == 20
    assert (told["replicas"], told["readyReplicas"], told["availableReplicas"], told["updatedReplicas"]) == (20,) * 4
    web = cluster.get(DEPLOYMENT, "web")
    assert web is not None
    assert web["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert told["observedGeneration"] == web["metadata"]["generation"] == 1
    assert condition(told, "Available")["reason"] == "MinimumReplicasAvailable"
    assert condition(told, "Progressing")["reason"] == "NewReplicaSetAvailable"
    no_trouble(cluster)


def test_pods_are_named_after_their_replica_set_and_it_after_its_deployment(cluster: Harness) -> None:
    cluster.apply(deployment("web").replicas(2))
    cluster.run(5)
    (owner,) = cluster.list(REPLICA_SET)
    hash_ = owner["metadata"]["labels"]["pod-template-hash"]
    assert owner["metadata"]["name"] == f"web-{hash_}"
    for one in cluster.list(POD):
        prefix, _, suffix = one["metadata"]["name"].rpartition("-")
        assert (prefix, len(suffix)) == (f"web-{hash_}", 5)
        assert one["metadata"]["labels"]["pod-template-hash"] == hash_
    assert ("SuccessfulCreate", f"Created pod: {one['metadata']['name']}") in cluster.events(f"web-{hash_}")
    assert ("ScalingReplicaSet", f"Scaled up replica set web-{hash_} from 0 to 2") in cluster.events("web")


def test_a_rolling_update_never_has_too_many_or_too_few(cluster: Harness) -> None:
    web = deployment("web").replicas(10).rolling(surge=2, unavailable=1)
    cluster.apply(web.of(pod("t").starting_after("3s")))
    cluster.run(20)
    cluster.apply(web.of(pod("t").starting_after("3s").from_image("v2")))

    def is_done() -> bool:
        active = [one for one in cluster.list(POD) if not one["metadata"].get("deletionTimestamp")]
        ready = [one for one in active if one["status"]["phase"] == "Running"]
        assert len(active) <= 12
        assert len(ready) >= 9
        return all(one["spec"]["containers"][0]["image"] == "v2" for one in active) and len(ready) == 10

    cluster.until(is_done, limit=120)
    cluster.run(1)
    told = status(cluster, DEPLOYMENT, "web")
    assert (told["updatedReplicas"], told["replicas"], told["availableReplicas"]) == (10, 10, 10)
    assert cluster.get(DEPLOYMENT, "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"  # type: ignore[index]
    no_trouble(cluster)


def test_recreate_ends_all_old_pods_before_new_ones_start(cluster: Harness) -> None:
    web = deployment("web").replicas(4).recreating()
    cluster.apply(web.of(pod("t").ending_after("5s")))
    cluster.run(5)
    cluster.apply(web.of(pod("t").from_image("v2")))

    def is_done() -> bool:
        images = {one["spec"]["containers"][0]["image"] for one in cluster.list(POD)}
        assert len(images) <= 1
        return images == {"v2"} and running(cluster) == 4

    cluster.until(is_done, limit=60)


def test_an_undone_rollout_takes_the_old_replica_set_with_a_new_revision(cluster: Harness) -> None:
    web = deployment("web").replicas(2)
    cluster.apply(web.of(pod("t").from_image("v1")))
    cluster.run(5)
    (first,) = cluster.list(REPLICA_SET)
    cluster.apply(web.of(pod("t").from_image("v2")))
    cluster.run(30)
    cluster.apply(web.of(pod("t").from_image("v1")))
    cluster.run(30)
    again = cluster.get(REPLICA_SET, first["metadata"]["name"])
    assert again is not None
    assert len(cluster.list(REPLICA_SET)) == 2
    assert again["status"]["readyReplicas"] == 2
    assert again["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_old_replica_sets_beyond_the_history_limit_go(cluster: Harness) -> None:
    for version in range(5):
        cluster.apply(
            deployment("web").replicas(1).having(revisionHistoryLimit=2).of(pod("t").from_image(f"v{version}"))
        )
        cluster.run(30)
    assert len(cluster.list(REPLICA_SET)) == 3


def test_a_rollout_without_progress_exceeds_its_deadline() -> None:
    cluster = Harness(nodes=0, schedulers=[TurnBinder])
    cluster.apply(deployment("web").replicas(1).having(progressDeadlineSeconds=60))
    cluster.run(59)
    assert condition(status(cluster, DEPLOYMENT, "web"), "Progressing")["status"] == "True"
    cluster.run(10)
    assert condition(status(cluster, DEPLOYMENT, "web"), "Progressing")["reason"] == "ProgressDeadlineExceeded"


def test_a_paused_deployment_scales_but_does_not_roll(cluster: Harness) -> None:
    web = deployment("web").replicas(2)
    cluster.apply(web.of(pod("t").from_image("v1")))
    cluster.run(5)
    cluster.apply(web.having(paused=True).replicas(4).of(pod("t").from_image("v2")))
    cluster.run(5)
    assert {one["spec"]["containers"][0]["image"] for one in cluster.list(POD)} == {"v1"}
    assert running(cluster) == 4
    assert condition(status(cluster, DEPLOYMENT, "web"), "Progressing")["reason"] == "DeploymentPaused"
    cluster.patch(DEPLOYMENT, "web", {"spec": {"paused": False}})
    cluster.run(30)
    assert {one["spec"]["containers"][0]["image"] for one in cluster.list(POD)} == {"v2"}


def test_scaling_down_removes_the_pods_that_do_not_run_first(cluster: Harness) -> None:
    cluster.apply(replica_set("web").replicas(4))
    cluster.run(5)
    survivors = set(cluster.phases())
    cluster.apply(replica_set("web").replicas(6).of(pod("t").starting_after("1h")))
    cluster.run(5)
    cluster.patch(REPLICA_SET, "web", {"spec": {"replicas": 4}})
    cluster.run(5)
    assert set(cluster.phases()) == survivors
    told = status(cluster, REPLICA_SET, "web")
    assert (told["replicas"], told["readyReplicas"]) == (4, 4)


def test_a_relabelled_pod_is_released_and_replaced_and_a_matching_one_adopted(cluster: Harness) -> None:
    cluster.apply(replica_set("web").replicas(2))
    cluster.run(5)
    name = next(iter(cluster.phases()))
    cluster.patch(POD, name, {"metadata": {"labels": {"app": "debug"}}})
    cluster.run(5)
    assert len(cluster.phases()) == 3
    assert not cluster.pod(name)["metadata"].get("ownerReferences")
    cluster.patch(POD, name, {"metadata": {"labels": {"app": "web"}}})
    cluster.run(5)
    assert len(cluster.phases()) == 2


def test_a_job_runs_its_completions_few_at_a_time(cluster: Harness) -> None:
    cluster.apply(job("sum").times(7, at_once=3).of(pod("t").running_for("10s")))
    most = 0

    def is_done() -> bool:
        nonlocal most
        most = max(most, running(cluster))
        return any(one["type"] == "Complete" for one in status(cluster, JOB, "sum").get("conditions") or ())

    cluster.until(is_done, limit=120)
    told = status(cluster, JOB, "sum")
    assert most == 3
    assert told["succeeded"] == 7
    assert told["completionTime"] == "2026-01-01T00:00:30Z"
    assert [one["type"] for one in told["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert len(cluster.list(POD)) == 7
    no_trouble(cluster)


def test_an_indexed_job_runs_every_index_once(cluster: Harness) -> None:
    cluster.apply(job("sum").times(5, at_once=2).indexed().of(pod("t").running_for("1s")))
    cluster.run(60)
    assert status(cluster, JOB, "sum")["completedIndexes"] == "0-4"
    hosts = sorted(one["spec"]["hostname"] for one in cluster.list(POD))
    assert hosts == [f"sum-{index}" for index in range(5)]


def test_a_job_fails_after_its_backoff_limit(cluster: Harness) -> None:
    cluster.apply(job("bad").having(backoffLimit=2).of(pod("t").running_for("1s").exiting(3)))
    cluster.run(300)
    told = status(cluster, JOB, "bad")
    assert told["failed"] == 3
    assert condition(told, "Failed")["reason"] == "BackoffLimitExceeded"
    assert "completionTime" not in told


def test_failed_pods_of_a_job_are_replaced_after_a_growing_delay(cluster: Harness) -> None:
    cluster.apply(job("bad").having(backoffLimit=5).of(pod("t").running_for("1s").exiting(1)))
    cluster.run(9)
    assert len(cluster.list(POD)) == 1
    cluster.run(5)
    assert len(cluster.list(POD)) == 2
    cluster.run(15)
    assert len(cluster.list(POD)) == 2
    cluster.run(10)
    assert len(cluster.list(POD)) == 3


def test_a_job_whose_pods_say_nothing_of_their_time_completes(cluster: Harness) -> None:
    cluster.apply(job("plain").times(2, at_once=2))
    cluster.run(10)
    assert status(cluster, JOB, "plain")["succeeded"] == 2


def test_a_job_that_takes_too_long_fails_and_its_pods_go(cluster: Harness) -> None:
    cluster.apply(job("slow").having(activeDeadlineSeconds=30).of(pod("t").running_for("1h")))
    cluster.run(29)
    assert running(cluster) == 1
    cluster.run(5)
    assert cluster.list(POD) == []
    assert condition(status(cluster, JOB, "slow"), "Failed")["reason"] == "DeadlineExceeded"


def test_a_suspended_job_has_no_pods_until_it_is_resumed(cluster: Harness) -> None:
    cluster.apply(job("later").having(suspend=True).of(pod("t").running_for("5s")))
    cluster.run(5)
    assert cluster.list(POD) == []
    assert condition(status(cluster, JOB, "later"), "Suspended")["status"] == "True"
    cluster.patch(JOB, "later", {"spec": {"suspend": False}})
    cluster.run(10)
    told = status(cluster, JOB, "later")
    assert condition(told, "Suspended")["reason"] == "JobResumed"
    assert told["succeeded"] == 1
    assert not told.get("failed")


def test_a_finished_job_is_deleted_with_its_pods_after_its_time_to_live(cluster: Harness) -> None:
    cluster.apply(job("brief").having(ttlSecondsAfterFinished=60).of(pod("t").running_for("5s")))
    cluster.run(30)
    assert status(cluster, JOB, "brief")["succeeded"] == 1
    cluster.run(60)
    assert cluster.get(JOB, "brief") is None
    assert cluster.list(POD) == []


def test_a_pod_deleted_under_a_job_counts_as_failed_and_is_replaced(cluster: Harness) -> None:
    cluster.apply(job("sum").of(pod("t").running_for("30s")))
    cluster.run(5)
    cluster.delete(POD, next(iter(cluster.phases())))
    cluster.run(60)
    told = status(cluster, JOB, "sum")
    assert (told["failed"], told["succeeded"]) == (1, 1)


def test_pods_deleted_because_their_job_failed_count_as_failed(cluster: Harness) -> None:
    cluster.apply(job("slow").having(activeDeadlineSeconds=30).times(2, at_once=2).of(pod("t").running_for("1h")))
    cluster.run(60)
    told = status(cluster, JOB, "slow")
    assert told["failed"] == 2
    assert [one["type"] for one in told["conditions"]] == ["FailureTarget", "Failed"]


def test_suspending_and_resuming_a_job_is_reported_in_events(cluster: Harness) -> None:
    cluster.apply(job("later").having(suspend=True))
    cluster.run(1)
    cluster.patch(JOB, "later", {"spec": {"suspend": False}})
    cluster.run(1)
    told = cluster.events("later")
    assert ("Suspended", "Job suspended") in told
    assert ("Resumed", "Job resumed") in told
