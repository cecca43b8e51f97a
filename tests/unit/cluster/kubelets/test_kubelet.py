from __future__ import annotations

from random import Random

import pytest

from fairlead.cluster.kubelets.kubelet import Kubelet, PodScript
from fairlead.cluster.kubelets.simulated_nodes import fails_from, is_simulated, simulated_node
from fairlead.core.model.flow import Reply, Verb, Write
from fairlead.core.model.kinds import LEASE, NODE, POD
from fairlead.errors import AlreadyExists, NotFound
from fairlead.testing.builders import node, pod
from tests.support.controllers import Documents, refused, said
from tests.support.kubelet_site import Site


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_bound_pod_runs_at_once_unless_it_says_otherwise(site: Site) -> None:
    (write,) = site.bind(pod("p"), at=5)
    assert (write.verb, write.subresource, write.body["metadata"]["uid"]) == (Verb.PATCH, "status", "uid-p")
    status = site.status()
    assert (status["phase"], status["startTime"]) == ("Running", "1970-01-01T00:00:05Z")
    assert status["hostIP"]
    assert status["podIP"].startswith("10.")
    assert site.conditions() == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": "1970-01-01T00:00:05Z"}}


def test_conditions_of_others_are_kept(site: Site) -> None:
    doc = pod("p").on("n").doc()
    doc["status"] = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
    site.put(POD, doc, at=0)
    assert site.conditions()["PodScheduled"] == "True"


def test_a_pod_starts_after_its_delay_and_ends_after_its_time(site: Site) -> None:
    assert site.bind(pod("p").starting_after("2.5s").running_for("10s").restarting("Never"), at=1) == []
    assert site.kubelet.wake_at() == 3.5
    site.step(3.5)
    assert site.status()["phase"] == "Running"
    assert site.kubelet.wake_at() == 13.5
    site.step(13.5)
    assert site.status()["phase"] == "Succeeded"
    assert site.status()["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert site.conditions()["Ready"] == "False"
    assert site.kubelet.wake_at() is None


def test_a_pod_that_exits_with_a_code_fails(site: Site) -> None:
    site.bind(pod("p").running_for("10s").exiting(3).restarting("Never"))
    site.step(10)
    terminated = site.status()["containerStatuses"][0]["state"]["terminated"]
    assert site.status()["phase"] == "Failed"
    assert (terminated["exitCode"], terminated["reason"]) == (3, "Error")


def test_success_ends_a_pod_that_restarts_on_failure_only(site: Site) -> None:
    site.bind(pod("p").running_for("10s").restarting("OnFailure"))
    site.step(10)
    assert site.status()["phase"] == "Succeeded"


@pytest.mark.parametrize(("policy", "code"), [("Always", 0), ("Always", 1), ("OnFailure", 1)])
def test_a_pod_that_restarts_does_so_at_once_then_after_growing_delays(site: Site, policy: str, code: int) -> None:
    site.bind(pod("p").running_for("5s").exiting(code).restarting(policy))
    site.step(5)
    first = site.status()["containerStatuses"][0]
    assert (first["restartCount"], list(first["state"])) == (1, ["running"])
    assert first["lastState"]["terminated"]["exitCode"] == code
    site.step(10)
    waiting = site.status()["containerStatuses"][0]
    assert waiting["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert waiting["state"]["waiting"]["message"].startswith(
        "back-off 10s restarting failed container=main pod=p_default"
    )
    assert site.conditions()["Ready"] == "False"
    assert site.kubelet.wake_at() == 20
    site.step(20)
    assert site.status()["containerStatuses"][0]["restartCount"] == 2
    assert site.status()["phase"] == "Running"
    site.step(25)
    assert site.kubelet.wake_at() == 45


def test_a_pod_past_its_deadline_is_stopped(site: Site) -> None:
    site.bind(pod("p").having(activeDeadlineSeconds=30))
    site.step(30)
    assert (site.status()["phase"], site.status()["reason"]) == ("Failed", "DeadlineExceeded")


def test_kwok_delays_are_understood_and_jitter_lies_between(site: Site) -> None:
    stage = "stage.kwok.x-k8s.io"
    delays = {
        f"pod-create.{stage}/delay": "1s",
        f"pod-ready.{stage}/delay": "2s",
        f"pod-ready.{stage}/jitter-delay": "4s",
        f"pod-complete.{stage}/delay": "1m",
    }
    site.bind(pod("p").annotated(delays).restarting("Never"))
    starts = site.kubelet.wake_at()
    assert starts is not None
    assert 3 <= starts < 5
    site.step(starts)
    assert site.kubelet.wake_at() == pytest.approx(starts + 60)


def deleted(site: Site, *, at: float, grace: int = 30) -> list[Write]:
    doc = site.world.get(POD, "default", "p")
    assert doc is not None
    stamps = {"deletionTimestamp": f"1970-01-01T00:00:{int(at) + grace:02d}Z", "deletionGracePeriodSeconds": grace}
    return site.put(POD, {**doc, "metadata": {**doc["metadata"], **stamps}}, at=at)


def test_a_deleted_pod_is_removed_for_good_and_by_uid(site: Site) -> None:
    site.bind(pod("p"))
    (write,) = deleted(site, at=3)
    assert write.verb is Verb.DELETE
    assert (write.body["gracePeriodSeconds"], write.body["preconditions"]) == (0, {"uid": "uid-p"})


def test_a_pod_that_ends_slowly_is_removed_when_it_has_ended_or_its_grace_is_over(site: Site) -> None:
    site.bind(pod("p").ending_after("5s"))
    assert deleted(site, at=3) == []
    assert site.kubelet.wake_at() == 8
    other = Site()
    other.bind(pod("p").ending_after("5m"))
    assert deleted(other, at=3, grace=20) == []
    assert other.kubelet.wake_at() == 23


def test_pods_on_nodes_that_are_not_simulated_are_left_alone(site: Site) -> None:
    real = {"metadata": {"name": "real"}, "spec": {}, "status": {}}
    site.put(NODE, real, at=0)
    assert site.put(POD, pod("p").on("real").doc(), at=0) == []
    assert site.kubelet.wake_at() is None


def test_a_pod_bound_before_its_node_is_seen_starts_when_it_is(site: Site) -> None:
    assert site.put(POD, pod("p").on("late").doc(), at=0) == []
    writes = site.put(NODE, node("late").doc(), at=7)
    assert [write.kind for write in writes] == [POD]


def test_a_silent_node_does_nothing_until_it_recovers(site: Site) -> None:
    site.bind(pod("p").running_for("10s").restarting("Never"))
    site.put(NODE, node("n").failing().doc(), at=1)
    assert site.step(10) == []
    assert deleted(site, at=11) == []
    writes = site.put(NODE, node("n").doc(), at=20)
    assert [write.verb for write in writes] == [Verb.DELETE]


def test_a_restarted_kubelet_goes_on_where_the_last_one_stopped(site: Site) -> None:
    site.bind(pod("p").running_for("10s").restarting("Never"), at=2)
    again = Kubelet(site.world, rng=Random(2), renew_interval=None)
    changes = [site.world.put(NODE, node("n").doc()), site.world.put(POD, site.world.get(POD, "default", "p") or {})]
    assert said(again.step(5, changes, [])) == []
    assert again.wake_at() == 12


def test_a_node_without_a_ready_condition_gets_one(site: Site) -> None:
    bare = {"metadata": {"name": "bare", "annotations": {"kwok.x-k8s.io/node": "fake"}}, "spec": {}}
    (write,) = site.put(NODE, bare, at=0)
    conditions = {one["type"]: one["status"] for one in write.body["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert write.body["status"]["allocatable"]["pods"] == "110"


def test_pods_that_say_nothing_follow_the_default_script() -> None:
    site = Site(default=PodScript(start_delay=1.0, run_time=5.0))
    site.bind(pod("p").restarting("Never"))
    site.step(1)
    assert site.kubelet.wake_at() == 6


def test_pod_addresses_are_not_given_out_twice(site: Site) -> None:
    site.bind(pod("p"))
    first = site.status()["podIP"]
    again = Kubelet(site.world, rng=Random(2), renew_interval=None)
    changes = [site.world.put(NODE, node("n").doc()), site.world.put(POD, site.world.get(POD, "default", "p") or {})]
    again.step(5, changes, [])
    (write,) = said(again.step(6, [site.world.put(POD, pod("q").on("n").doc())], []))
    assert write.body["status"]["podIP"] != first


# Leases


def leasing() -> tuple[Documents, Kubelet]:
    world = Documents()
    return world, Kubelet(world, rng=Random(1), renew_interval=10.0)


def test_a_node_creates_its_lease_and_renews_it_every_ten_seconds() -> None:
    world, kubelet = leasing()
    (birth,) = kubelet.step(0, [world.put(NODE, node("n").doc())], [])
    assert (birth.verb, birth.kind, birth.namespace, birth.name) == (Verb.CREATE, LEASE, "kube-node-lease", "n")
    assert birth.body["spec"]["leaseDurationSeconds"] == 40
    kubelet.step(0, [], [Reply(birth, birth.body)])
    first = kubelet.wake_at()
    assert first is not None
    assert 0 < first < 10
    (renewal,) = kubelet.step(first, [], [])
    assert renewal.verb is Verb.PATCH
    kubelet.step(first, [], [Reply(renewal, birth.body)])
    assert kubelet.wake_at() == first + 10


def test_a_thousand_nodes_do_not_renew_at_once() -> None:
    world, kubelet = leasing()
    births = kubelet.step(0, [world.put(NODE, node(f"n{index}").doc()) for index in range(1000)], [])
    kubelet.step(0, [], [Reply(birth, birth.body) for birth in births])
    renewals = [len(kubelet.step(second, [], [])) for second in range(1, 11)]
    assert sum(renewals) == 1000
    assert max(renewals) < 200


def test_a_lease_that_vanished_is_created_again_and_one_that_exists_is_renewed() -> None:
    world, kubelet = leasing()
    (birth,) = kubelet.step(0, [world.put(NODE, node("n").doc())], [])
    kubelet.step(0, [], [refused(birth, AlreadyExists("there"))])
    (renewal,) = kubelet.step(kubelet.wake_at() or 0, [], [])
    assert renewal.verb is Verb.PATCH
    kubelet.step(1, [], [refused(renewal, NotFound("gone"))])
    (again,) = kubelet.step(kubelet.wake_at() or 0, [], [])
    assert again.verb is Verb.CREATE


# Simulated nodes


def test_a_simulated_node_has_what_schedulers_and_people_look_for() -> None:
    doc = simulated_node("n1", cpu="4", memory="8Gi", pods="20", zone="a", region="r", extra={"nvidia.com/gpu": "2"})
    labels = doc["metadata"]["labels"]
    assert is_simulated(doc)
    assert (labels["kubernetes.io/hostname"], labels["kubernetes.io/os"]) == ("n1", "linux")
    assert (labels["topology.kubernetes.io/zone"], labels["topology.kubernetes.io/region"]) == ("a", "r")
    assert doc["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    assert doc["status"]["capacity"]["cpu"] == "4"
    assert doc["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.4"


@pytest.mark.parametrize(
    ("text", "since"),
    [(None, None), ("false", None), ("true", float("-inf")), ("1970-01-01T00:01:00Z", 60.0)],
)
def test_a_node_fails_when_set_to(text: str | None, since: float | None) -> None:
    doc = {"metadata": {"annotations": {} if text is None else {"fairlead.io/fail": text}}}
    assert fails_from(doc) == since
