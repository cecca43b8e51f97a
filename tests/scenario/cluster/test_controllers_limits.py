"""Quotas, limit ranges and disruption budgets on a whole virtual cluster. The texts are the original's."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import DEPLOYMENT, POD, POD_DISRUPTION_BUDGET, REPLICA_SET, RESOURCE_QUOTA
from fairlead.errors import Forbidden
from fairlead.testing.builders import deployment, job, pod
from fairlead.testing.harness import Harness
from fairlead.testing.storage_builders import claim
from fairlead.testing.workload_builders import daemon_set, disruption_budget


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=3)


def quota(name: str, hard: dict[str, str], **spec: Any) -> Doc:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def limit_range(*limits: Doc) -> Doc:
    metadata = {"name": "limits", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(limits)}}


def used(cluster: Harness, name: str = "q") -> dict[str, str]:
    found = cluster.get(RESOURCE_QUOTA, name)
    assert found is not None
    told: dict[str, str] = found["status"]["used"]
    return told


def refusal(cluster: Harness, thing: Any) -> str:
    with pytest.raises(Forbidden) as caught:
        cluster.apply(thing)
    return caught.value.message


# -- quotas -----------------------------------------------------------------------------------------------------------


def test_what_exceeds_a_quota_is_refused_with_the_numbers(cluster: Harness) -> None:
    cluster.apply(quota("q", {"pods": "2", "requests.cpu": "1", "limits.memory": "2Gi"}))
    cluster.settle()
    assert used(cluster) == {"pods": "0", "requests.cpu": "0", "limits.memory": "0"}
    big = pod("big").asks(cpu="1500m").limited_to(memory="3Gi")
    assert refusal(cluster, big) == (
        'pods "big" is forbidden: exceeded quota: q, requested: limits.memory=3Gi,requests.cpu=1500m, '
        "used: limits.memory=0,requests.cpu=0, limited: limits.memory=2Gi,requests.cpu=1"
    )
    cluster.apply(pod("good").asks(cpu="600m").limited_to(memory="1Gi"))
    assert used(cluster) == {"pods": "1", "requests.cpu": "600m", "limits.memory": "1Gi"}
    again = pod("again").asks(cpu="600m").limited_to(memory="1Gi")
    assert refusal(cluster, again) == (
        'pods "again" is forbidden: exceeded quota: q, requested: requests.cpu=600m, '
        "used: requests.cpu=600m, limited: requests.cpu=1"
    )


def test_containers_must_name_what_is_limited(cluster: Harness) -> None:
    cluster.apply(quota("q", {"requests.cpu": "1", "limits.memory": "2Gi"}))
    assert refusal(cluster, pod("a")) == (
        'pods "a" is forbidden: failed quota: q: must specify limits.memory for: main; requests.cpu for: main'
    )


def test_what_has_ended_or_gone_is_given_back(cluster: Harness) -> None:
    cluster.apply(quota("q", {"pods": "2", "count/pods": "5"}))
    cluster.apply(pod("ends").running_for("5s").restarting("Never"), pod("stays"))
    cluster.run(2)
    assert used(cluster) == {"pods": "2", "count/pods": "2"}
    cluster.run(10)
    assert used(cluster) == {"pods": "1", "count/pods": "2"}
    cluster.delete(POD, "stays")
    cluster.run(60)
    assert used(cluster) == {"pods": "0", "count/pods": "1"}


def test_a_quota_counts_what_was_there_before_it(cluster: Harness) -> None:
    cluster.apply(pod("a"), pod("b"), claim("c", "3Gi"))
    cluster.apply(quota("q", {"pods": "2", "requests.storage": "5Gi", "persistentvolumeclaims": "4"}))
    assert "used: pods=2, limited: pods=2" in refusal(cluster, pod("c"))
    cluster.settle()
    assert used(cluster) == {"pods": "2", "requests.storage": "3Gi", "persistentvolumeclaims": "1"}
    assert refusal(cluster, claim("d", "10Gi")) == (
        'persistentvolumeclaims "d" is forbidden: exceeded quota: q, requested: requests.storage=10Gi, '
        "used: requests.storage=3Gi, limited: requests.storage=5Gi"
    )


def test_objects_are_counted_by_kind(cluster: Harness) -> None:
    cluster.apply(quota("q", {"count/jobs.batch": "1", "count/deployments.apps": "0"}))
    cluster.settle()
    cluster.apply(job("one"))
    assert refusal(cluster, job("two")) == (
        'jobs.batch "two" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1, '
        "limited: count/jobs.batch=1"
    )
    assert "count/deployments.apps=1" in refusal(cluster, deployment("web"))


def test_scopes_choose_the_pods_that_count(cluster: Harness) -> None:
    cluster.apply(quota("q", {"pods": "1"}, scopes=["BestEffort"]))
    cluster.apply(quota("long", {"pods": "1"}, scopes=["NotTerminating", "NotBestEffort"]))
    cluster.apply(pod("plain"))
    assert "exceeded quota: q" in refusal(cluster, pod("another"))
    cluster.apply(pod("asking").asks(cpu="1"))
    assert "exceeded quota: long" in refusal(cluster, pod("more").asks(cpu="1"))
    cluster.apply(pod("brief").asks(cpu="1").having(activeDeadlineSeconds=60))
    cluster.settle()
    assert (used(cluster), used(cluster, "long")) == ({"pods": "1"}, {"pods": "1"})


def test_a_refused_pod_shows_in_the_owners_condition_and_comes_when_there_is_room(cluster: Harness) -> None:
    cluster.apply(quota("q", {"pods": "3"}))
    cluster.apply(deployment("web").replicas(5))
    cluster.run(5)
    assert len(cluster.list(POD)) == 3
    (owner,) = cluster.list(REPLICA_SET)
    (told,) = owner["status"]["conditions"]
    assert told["type"] == "ReplicaFailure"
    assert "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3" in told["message"]
    cluster.apply(quota("q", {"pods": "5"}))
    cluster.run(1000)
    assert len(cluster.list(POD)) == 5
    found = cluster.get(DEPLOYMENT, "web")
    assert found is not None
    assert found["status"]["readyReplicas"] == 5


def test_a_dry_run_and_a_refused_name_use_nothing(cluster: Harness) -> None:
    from fairlead.core.model.flow import Verb, Write
    from fairlead.errors import AlreadyExists

    cluster.apply(quota("q", {"pods": "2"}))
    cluster.apply(pod("a"))
    body = pod("b").doc()
    cluster.perform(Write(Verb.CREATE, POD, "default", "b", body=body, params={"dryRun": "All"}))
    with pytest.raises(AlreadyExists):
        cluster.perform(Write(Verb.CREATE, POD, "default", "a", body=pod("a").doc()))
    cluster.settle()
    assert used(cluster) == {"pods": "1"}


# -- limit ranges -----------------------------------------------------------------------------------------------------

CONTAINER = {
    "type": "Container", "default": {"cpu": "500m", "memory": "512Mi"}, "defaultRequest": {"cpu": "100m"},
    "max": {"cpu": "1", "memory": "1Gi"}, "min": {"cpu": "50m"}, "maxLimitRequestRatio": {"memory": "2"},
}  # fmt: skip
WHOLE_POD = {"type": "Pod", "max": {"cpu": "2"}, "min": {"memory": "64Mi"}, "maxLimitRequestRatio": {"cpu": "10"}}


def test_containers_get_the_defaults_of_the_namespace(cluster: Harness) -> None:
    cluster.apply(limit_range(CONTAINER, WHOLE_POD))
    made = cluster.apply(pod("a"))
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "100m", "memory": "512Mi"},
        "limits": {"cpu": "500m", "memory": "512Mi"},
    }
    assert made["status"]["qosClass"] == "Burstable"
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit for container main"
    )


@pytest.mark.parametrize(
    ("requests", "limits", "text"),
    [
        ({"cpu": "10m"}, {"cpu": "60m"}, "minimum cpu usage per Container is 50m, but request is 10m"),
        (
            {"memory": "100Mi"},
            {"memory": "600Mi"},
            "memory max limit to request ratio per Container is 2, but provided ratio is 6.000000",
        ),
        (
            {},
            {"cpu": "2500m", "memory": "2Gi"},
            "[maximum cpu usage per Container is 1, but limit is 2500m, maximum memory usage per Container is 1Gi, "
            "but limit is 2Gi, maximum cpu usage per Pod is 2, but limit is 2500m]",
        ),
        (
            {"cpu": "10m", "memory": "1Mi"},
            {"cpu": "3", "memory": "3Gi"},
            "[minimum cpu usage per Container is 50m, but request is 10m, maximum cpu usage per Container is 1, but "
            "limit is 3, maximum memory usage per Container is 1Gi, but limit is 3Gi, memory max limit to request "
            "ratio per Container is 2, but provided ratio is 3072.000000, minimum memory usage per Pod is 64Mi, but "
            "request is 1Mi, maximum cpu usage per Pod is 2, but limit is 3, cpu max limit to request ratio per Pod "
            "is 10, but provided ratio is 300.000000]",
        ),
    ],
)
def test_a_pod_out_of_bounds_is_refused_with_everything_that_is_wrong(
    cluster: Harness, requests: dict[str, str], limits: dict[str, str], text: str
) -> None:
    cluster.apply(limit_range(CONTAINER, WHOLE_POD))
    asking = pod("a").asks(requests).limited_to(limits)
    assert refusal(cluster, asking) == f'pods "a" is forbidden: {text}'


def test_claims_have_bounds_too(cluster: Harness) -> None:
    cluster.apply(limit_range({"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}))
    assert refusal(cluster, claim("c", "10Gi")) == (
        'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request '
        "is 10Gi"
    )
    assert refusal(cluster, claim("c", "1Mi")) == (
        'persistentvolumeclaims "c" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request '
        "is 1Mi"
    )
    cluster.apply(claim("c", "2Gi"))


# -- disruption budgets -----------------------------------------------------------------------------------------------


def told(cluster: Harness, name: str = "b") -> tuple[int, int, int, int]:
    found = cluster.get(POD_DISRUPTION_BUDGET, name)
    assert found is not None
    status = found["status"]
    fields = ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
    assert status["observedGeneration"] == found["metadata"]["generation"]
    return tuple(status[field] for field in fields)  # type: ignore[return-value]


def allowed(cluster: Harness) -> Doc:
    found = cluster.get(POD_DISRUPTION_BUDGET, "b")
    assert found is not None
    (condition,) = found["status"]["conditions"]
    result: Doc = condition
    return result


@pytest.mark.parametrize(
    ("spec", "numbers"),
    [
        ({"minAvailable": 4}, (5, 4, 5, 1)),
        ({"minAvailable": "50%"}, (5, 3, 5, 2)),
        ({"maxUnavailable": 2}, (5, 3, 5, 2)),
        ({"maxUnavailable": "30%"}, (5, 3, 5, 2)),
        ({"minAvailable": 9}, (5, 9, 5, 0)),
    ],
)
def test_a_budget_says_how_many_may_go(cluster: Harness, spec: dict[str, int | str], numbers: tuple[int, ...]) -> None:
    cluster.apply(disruption_budget("b").selecting({"app": "web"}).having(**spec))
    cluster.run(1)
    assert allowed(cluster)["reason"] == "InsufficientPods"
    assert ("NoPods", "No matching pods found") in cluster.events("b")
    cluster.apply(deployment("web").replicas(5))
    cluster.run(5)
    assert told(cluster) == numbers
    assert allowed(cluster)["reason"] == ("SufficientPods" if numbers[3] else "InsufficientPods")
    assert allowed(cluster)["observedGeneration"] == 1


def test_a_share_is_one_of_what_is_wanted_not_of_what_is_there(cluster: Harness) -> None:
    cluster.apply(
        deployment("web").replicas(4).of(pod("t").starting_after("3s")),
        disruption_budget("b").selecting({"app": "web"}).having(maxUnavailable="50%"),
    )
    cluster.run(5)
    assert told(cluster) == (4, 2, 4, 2)
    cluster.delete(POD, next(iter(cluster.phases())))
    cluster.settle()
    assert told(cluster)[0] == 3
    assert told(cluster)[2:] == (4, 1)
    cluster.patch(DEPLOYMENT, "web", {"spec": {"replicas": 10}})
    cluster.run(60)
    assert told(cluster) == (10, 5, 10, 5)


def test_pods_of_an_owner_without_a_scale_cannot_be_counted(cluster: Harness) -> None:
    cluster.apply(daemon_set("agent"), disruption_budget("b").selecting({"app": "agent"}).having(maxUnavailable=1))
    cluster.run(5)
    condition = allowed(cluster)
    assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")
    assert condition["message"] == "daemonsets.apps does not implement the scale subresource"


def test_an_evicted_pod_counts_as_gone_until_it_goes_or_two_minutes_have_passed(cluster: Harness) -> None:
    from fairlead.core.model.flow import Verb, Write
    from fairlead.core.model.times import timestamp

    cluster.apply(
        deployment("web").replicas(3), disruption_budget("b").selecting({"app": "web"}).having(minAvailable=1)
    )
    cluster.run(5)
    assert told(cluster) == (3, 1, 3, 2)
    victim = next(iter(cluster.phases()))
    status = {"status": {"disruptedPods": {victim: timestamp(cluster.now)}, "disruptionsAllowed": 1}}
    cluster.perform(Write(Verb.PATCH, POD_DISRUPTION_BUDGET, "default", "b", body=status, subresource="status"))
    cluster.run(10)
    assert told(cluster) == (2, 1, 3, 1)
    cluster.run(120)
    assert told(cluster) == (3, 1, 3, 2)
    found = cluster.get(POD_DISRUPTION_BUDGET, "b")
    assert found is not None
    assert "disruptedPods" not in found["status"]
