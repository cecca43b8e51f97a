"""Questions about objects that exist: they are what is asked about, and a change is tried as it would be made."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Doc
from fairlead.errors import ConfigError
from fairlead.testing import Harness, deployment, job, node, pod, priority_class, stateful_set
from fairlead.testing.asking import answer_of
from fairlead.testing.builders import Builder, DeploymentBuilder


def asked(cluster: Harness, *objects: Builder, kind: str = "SimulateQuestion", **more: object) -> Doc:
    return answer_of(cluster, {"kind": kind, **more}, [one.doc() for one in objects])


def train(cpu: str = "5") -> DeploymentBuilder:
    return deployment("train").replicas(4).of(pod("train").asks(cpu=cpu))


def applied(*objects: Builder, nodes: int = 3) -> Harness:
    cluster = Harness(nodes=nodes)
    cluster.apply(*objects)
    cluster.run(30)
    return cluster


def test_a_deployment_that_is_there_is_not_counted_a_second_time() -> None:
    cluster = applied(train())
    answer = asked(cluster, train(), changes=True)
    assert answer["exists"] == ["deployment/train"]
    assert (answer["placed"], len(answer["pods"])) == (3, 4)
    assert sum(one.get("running", False) for one in answer["pods"]) == 3
    says = [one["says"] for one in answer["changes"]]
    assert "with 3 instead of 4 pods" in says
    assert any(one.startswith("with 1 more node like") for one in says)
    assert [one["nodes"] for one in asked(cluster, train(), kind="NeedQuestion")["shapes"]] == [1]


def test_a_request_is_one_with_which_the_rolling_update_comes_to_its_end() -> None:
    """Four cores would do for four pods that are made at once, and not beside those that are there."""
    cluster = applied(train())
    answer = asked(cluster, train(), changes=True, commands=True)
    (request,) = [one for one in answer["changes"] if one["kind"] == "request"]
    assert request["says"] == "with a request of cpu 3 instead of 5 in each pod"
    assert request["steps"][0]["command"].startswith("kubectl patch deployment/train --type=strategic -p ")
    assert asked(cluster, train("3"))["verdict"] == "Runs"
    assert asked(cluster, train("4"))["verdict"] == "Waits"


def test_where_no_rolling_update_gets_through_all_pods_are_replaced_at_once() -> None:
    apart = pod("anti").labelled(app="anti").asks(cpu="1").apart_from({"app": "anti"})
    wanted = deployment("anti").replicas(4).of(apart)
    (affinity,) = [
        one
        for one in asked(applied(wanted), wanted, changes=True, commands=True)["changes"]
        if one["kind"] == "affinity"
    ]
    assert '"strategy":{"type":"Recreate"' in affinity["steps"][0]["command"]


def test_what_cannot_be_changed_in_place_is_deleted_first() -> None:
    wanted = job("w").times(2, at_once=2).of(pod("w").asks(cpu="9").restarting("Never"))
    cluster = applied(wanted)
    (request,) = [one for one in asked(cluster, wanted, changes=True)["changes"] if one["kind"] == "request"]
    assert request["steps"][0] == {"command": "kubectl delete job/w"}
    assert request["steps"][1]["targets"] == ["job/w"]


def test_a_stateful_set_that_waits_for_a_pod_in_its_turn_is_not_changed_in_place() -> None:
    wanted = stateful_set("w").replicas(2).of(pod("w").asks(cpu="9"))
    (request,) = [one for one in asked(applied(wanted), wanted, changes=True)["changes"] if one["kind"] == "request"]
    assert request["steps"][0] == {"command": "kubectl delete statefulset/w"}


def test_a_change_that_the_api_refuses_is_an_error() -> None:
    wanted = job("w").times(2, at_once=2).of(pod("w").asks(cpu="9").restarting("Never"))
    with pytest.raises(ConfigError, match=r"Job w would be refused: .*field is immutable"):
        asked(applied(wanted), job("w").times(2, at_once=2).of(pod("w").asks(cpu="1").restarting("Never")))


def test_fewer_replicas_of_what_is_there_keep_the_pods_that_run() -> None:
    cluster = applied(train())
    answer = asked(cluster, train().replicas(3))
    assert (answer["verdict"], [one.get("running") for one in answer["pods"]]) == ("Runs", [True] * 3)


def test_the_end_of_its_own_owner_is_no_suggestion() -> None:
    wanted = job("w").times(2, at_once=2).of(pod("w").asks(cpu="5").restarting("Never").running_for("1h"))
    cluster = applied(wanted, nodes=1)
    changes = asked(cluster, wanted, changes=True)["changes"]
    assert not [one for one in changes if one["kind"] == "end"]


def test_a_pod_that_comes_in_the_place_of_another_does_not_lose_its_victims_rule() -> None:
    cluster = Harness(nodes=[node("a").offers(cpu="4")])
    cluster.apply(priority_class("high", 1000), pod("low").asks(cpu="3"))
    cluster.run(5)
    (victim,) = asked(cluster, pod("vip").asks(cpu="4").of_priority("high"))["victims"]
    assert victim["rule"]
    assert "is lower than 0" not in victim["rule"]
