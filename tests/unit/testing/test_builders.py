from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.model.flow import Doc
from fairlead.core.model.quantity import parse_quantity
from fairlead.core.model.selectors import selector_from_document
from fairlead.testing import strategies
from fairlead.testing.builders import (
    Builder,
    deployment,
    job,
    namespace,
    node,
    pod,
    podgroup,
    priority_class,
    queue,
    replica_set,
)
from fairlead.testing.harness import Harness


def test_a_sentence_becomes_a_document() -> None:
    said = pod("a").asks(cpu="2", memory="1Gi").tolerates("gpu").labelled(app="x").selects(disk="ssd").doc()
    assert said["metadata"] == {"name": "a", "namespace": "default", "labels": {"app": "x"}}
    assert said["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2", "memory": "1Gi"}}
    assert said["spec"]["tolerations"] == [{"operator": "Exists", "key": "gpu"}]
    assert said["spec"]["nodeSelector"] == {"disk": "ssd"}


def test_every_word_returns_a_new_builder_and_every_document_is_its_own() -> None:
    plain = pod("a")
    small, large = plain.asks(cpu="1"), plain.asks(cpu="64")
    assert "resources" not in plain.doc()["spec"]["containers"][0]
    assert small.doc() != large.doc()
    document = small.doc()
    document["spec"]["containers"].clear()
    assert small.doc()["spec"]["containers"]


def test_a_node_offers_what_is_set_both_as_capacity_and_allocatable() -> None:
    said = node("n").offers({"nvidia.com/gpu": "4"}, cpu="96").in_zone("a").tainted("gpu", value="yes").cordoned().doc()
    for field in ("capacity", "allocatable"):
        assert (said["status"][field]["cpu"], said["status"][field]["nvidia.com/gpu"]) == ("96", "4")
    assert said["spec"] == {"taints": [{"key": "gpu", "effect": "NoSchedule", "value": "yes"}], "unschedulable": True}


def test_a_workloads_template_matches_its_selector() -> None:
    said = deployment("web").replicas(3).of(pod("t").labelled(tier="front").asks(cpu="1")).doc()
    assert said["spec"]["template"]["metadata"]["labels"] == {"tier": "front", "app": "web"}
    assert "name" not in said["spec"]["template"]["metadata"]


def test_a_jobs_pods_do_not_restart_for_ever() -> None:
    assert job("j").of(pod("t")).doc()["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert (
        job("j").of(pod("t").restarting("OnFailure")).doc()["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
    )


EVERYTHING: list[Builder] = [
    pod("a").asks({"nvidia.com/gpu": "1"}, cpu="2").limited_to(cpu="4").opens(8080).from_image("i"),
    pod("b").tolerates("k", "NoExecute", value="v", seconds=5).tolerates().requires_node("zone", "a", "b"),
    pod("c").prefers_node("disk", "ssd", weight=7).requires_node("gpu", operator="Exists"),
    pod("d").beside({"app": "x"}).apart_from({"app": "y"}, over="topology.kubernetes.io/zone"),
    pod("e").spread({"app": "x"}, over="topology.kubernetes.io/zone", skew=2).gated("example.com/wait"),
    pod("f").of_priority("high").scheduled_by("other").in_group("g").restarting("Never").with_finalizer("a.b/c"),
    pod("g").starting_after("1s").running_for("2s").exiting(1).ending_after("3s").annotated(note="x"),
    node("n").offers(cpu="1").in_zone("a", region="r").tainted("gpu", "NoExecute").cordoned().failing(),
    replica_set("rs").replicas(2),
    deployment("d").replicas(2).rolling(surge=1, unavailable="50%"),
    deployment("d2").recreating().having(minReadySeconds=3),
    job("j").times(3, at_once=2).indexed(),
    priority_class("p", 10).never_preempting(),
    podgroup("pg", 3).in_queue("q"),
    queue("q").weighing(3).capped_at(cpu="10").deserving(cpu="5"),
    namespace("lab"),
]


@pytest.mark.parametrize(
    "builder", EVERYTHING, ids=lambda builder: f"{builder.kind.kind}-{builder.doc()['metadata']['name']}"
)
def test_the_api_accepts_what_builders_say(builder: Builder) -> None:
    cluster = Harness(schedulers=[])
    cluster.apply(priority_class("high", 1000))
    stored = cluster.apply(builder)
    assert stored["metadata"]["uid"]
    assert cluster.get(builder.kind, stored["metadata"]["name"]) == stored


@settings(max_examples=50)
@given(strategies.quantities(), strategies.selectors(), strategies.labels())
def test_strategies_make_what_the_model_reads(quantity: str, selector: Doc, labels: dict[str, str]) -> None:
    parse_quantity(quantity)
    selector_from_document(selector).matches(labels)


@settings(max_examples=20)
@given(st.data())
def test_strategies_make_what_the_api_accepts(data: st.DataObject) -> None:
    cluster = Harness(schedulers=[])
    cluster.apply(data.draw(strategies.nodes("n")), data.draw(strategies.pods("p")))
    assert cluster.pod("p")["status"]["phase"] == "Pending"
