"""HTTP extenders: what is sent, how answers count, what errors do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fairlead.assembly.presets import first_profile
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.model import kinds
from fairlead.kube.extenders.http_extender import ExtenderSpec, HttpExtender
from fairlead.testing.builders import node, pod, priority_class
from fairlead.testing.harness import Harness
from tests.support.extender_server import ExtenderServer


def keep(*names: str) -> Any:
    """A filter that keeps some nodes, and says nothing of the others."""
    return lambda body: {"NodeNames": [name for name in names_in(body) if name in names]}


def names_in(body: dict[str, Any]) -> list[str]:
    if body["NodeNames"] is not None:
        return list(body["NodeNames"])
    return [item["metadata"]["name"] for item in body["Nodes"]["items"]]


opened: list[HttpExtender] = []


@pytest.fixture(autouse=True)
def _no_connection_is_left_open() -> Iterator[None]:
    yield
    while opened:
        opened.pop().close()


class Extended:
    """A small cluster whose scheduler asks an extender."""

    def __init__(self, *specs: ExtenderSpec, nodes: int = 3) -> None:
        self.specs = specs
        self.made: list[HttpExtender] = []
        self.harness = Harness(nodes=nodes, schedulers=[self._scheduler])

    def _scheduler(self, view: Any) -> Scheduler:
        self.made = [HttpExtender(spec, view) for spec in self.specs]
        opened.extend(self.made)
        self.scheduler = Scheduler([replace(first_profile(), extenders=tuple(self.made))])
        return self.scheduler

    def place(self, one: Any = None) -> str:
        """The node of a pod that is given a second to find one."""
        self.harness.apply(one or pod("p").asks(cpu="1"))
        self.harness.run(1)
        return self.harness.bindings().get("p", "")

    @property
    def message(self) -> str:
        conditions = {one["type"]: one for one in self.harness.pod("p")["status"].get("conditions", ())}
        return str(conditions.get("PodScheduled", {}).get("message", ""))

    @property
    def reason(self) -> str:
        conditions = {one["type"]: one for one in self.harness.pod("p")["status"].get("conditions", ())}
        return str(conditions.get("PodScheduled", {}).get("reason", ""))


@pytest.fixture
def extender() -> Iterator[ExtenderServer]:
    with ExtenderServer() as server:
        yield server


def test_a_filter_request_carries_whole_objects_under_the_original_names(extender: ExtenderServer) -> None:
    extender.answers["filter"] = lambda body: {"Nodes": {"items": body["Nodes"]["items"][1:2]}}
    placed = Extended(ExtenderSpec(extender.url, filter_verb="filter")).place()
    (asked,) = extender.requests("filter")
    assert list(asked) == ["Pod", "Nodes", "NodeNames"]
    assert asked["NodeNames"] is None
    assert asked["Pod"]["metadata"]["name"] == "p"
    assert asked["Pod"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert "kind" not in asked["Pod"]
    assert sorted(names_in(asked)) == ["node-0", "node-1", "node-2"]
    assert placed == names_in(asked)[1]
    assert extender.content_types == ["application/json"]


def test_an_extender_that_knows_nodes_gets_names_only(extender: ExtenderServer) -> None:
    extender.answers["filter"] = keep("node-2")
    spec = ExtenderSpec(extender.url + "/", filter_verb="filter", node_cache_capable=True)
    assert Extended(spec).place() == "node-2"
    (asked,) = extender.requests("filter")
    assert asked["Nodes"] is None
    assert sorted(asked["NodeNames"]) == ["node-0", "node-1", "node-2"]


def test_answers_are_read_whatever_the_case_of_their_names(extender: ExtenderServer) -> None:
    extender.answers["filter"] = lambda body: {"nodenames": ["node-1"], "failednodes": {"node-0": "no"}}
    assert Extended(ExtenderSpec(extender.url, filter_verb="filter", node_cache_capable=True)).place() == "node-1"


def test_refusals_by_an_extender_are_counted_like_those_of_a_plugin(extender: ExtenderServer) -> None:
    extender.answers["filter"] = lambda body: {
        "NodeNames": [],
        "FailedNodes": {"node-0": "licence in use", "node-1": "licence in use", "node-2": "soft"},
        "FailedAndUnresolvableNodes": {"node-2": "no licence at all"},
    }
    cluster = Extended(ExtenderSpec(extender.url, filter_verb="filter", node_cache_capable=True))
    assert cluster.place() == ""
    assert cluster.message.startswith("0/3 nodes are available: 1 no licence at all, 2 licence in use. ")
    explanation = cluster.harness.explain("p")
    assert explanation is not None
    assert {(b.plugin, b.final, b.count) for b in explanation.blockers} == {
        ("Extender", False, 2),
        ("Extender", True, 1),
    }
    assert explanation.waiting is not None
    assert explanation.waiting.plugins == ("Extender",)


def test_a_pod_refused_by_an_extender_wakes_on_anything(extender: ExtenderServer) -> None:
    extender.answers["filter"] = keep()
    cluster = Extended(ExtenderSpec(extender.url, filter_verb="filter", node_cache_capable=True))
    assert cluster.place() == ""
    extender.answers["filter"] = keep("node-3")
    cluster.harness.apply(node("node-3"))
    cluster.harness.run(30)
    assert cluster.harness.bindings() == {"p": "node-3"}


def test_the_second_extender_sees_what_the_first_left_over(extender: ExtenderServer) -> None:
    extender.answers |= {"first": keep("node-0", "node-1"), "second": keep("node-1")}
    first = ExtenderSpec(extender.url, filter_verb="first", node_cache_capable=True)
    assert Extended(first, replace(first, filter_verb="second")).place() == "node-1"
    assert sorted(extender.requests("second")[0]["NodeNames"]) == ["node-0", "node-1"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda body: 500, "failed filter with extender at URL {url}/filter, code 500"),
        (lambda body: {"Error": "out of licences"}, "out of licences"),
        (
            lambda body: {"NodeNames": ["elsewhere"]},
            'extender "{url}" claims a filtered node "elsewhere" which is not found in the input node list',
        ),
        (lambda body: ["what"], "the extender's answer is not an object: ['what']"),
    ],
)
def test_an_error_of_a_filter_fails_the_attempt(extender: ExtenderServer, answer: Any, words: str) -> None:
    extender.answers["filter"] = answer
    cluster = Extended(ExtenderSpec(extender.url, filter_verb="filter", node_cache_capable=True))
    assert cluster.place() == ""
    assert (cluster.reason, cluster.message) == ("SchedulerError", words.format(url=extender.url))


def test_an_ignorable_extender_that_fails_is_passed_over(extender: ExtenderServer) -> None:
    extender.answers["filter"] = lambda body: 503
    assert Extended(ExtenderSpec(extender.url, filter_verb="filter", ignorable=True)).place() != ""


def test_an_extender_that_nobody_runs_is_an_error_with_its_address() -> None:
    with ExtenderServer() as gone:
        url = gone.url
    cluster = Extended(ExtenderSpec(url, filter_verb="filter"))
    assert cluster.place() == ""
    assert cluster.message.startswith(f'Post "{url}/filter": ')


def test_a_slow_extender_is_given_up(extender: ExtenderServer) -> None:
    extender.answers["filter"] = keep("node-0")
    extender.delay = 0.3
    cluster = Extended(ExtenderSpec(extender.url, filter_verb="filter", node_cache_capable=True, timeout=0.02))
    assert cluster.place() == ""
    assert cluster.message == f'Post "{extender.url}/filter": no answer within 0.02s'


def test_scores_are_weighted_and_count_ten_times(extender: ExtenderServer) -> None:
    extender.answers["prioritize"] = lambda body: [{"Host": "node-1", "Score": 7}, {"Host": "nowhere", "Score": 10}]
    cluster = Extended(ExtenderSpec(extender.url, prioritize_verb="prioritize", weight=3))
    assert cluster.place() == "node-1"
    explanation = cluster.harness.explain("p")
    assert explanation is not None
    assert explanation.chosen is not None
    assert explanation.runner_up is not None
    assert explanation.chosen.total - explanation.runner_up.total == 7 * 3 * 10


def test_an_error_of_prioritize_is_ignored(extender: ExtenderServer) -> None:
    extender.answers["prioritize"] = lambda body: 500
    assert Extended(ExtenderSpec(extender.url, prioritize_verb="prioritize")).place() != ""


def test_an_extender_is_asked_only_about_pods_that_use_what_it_manages(extender: ExtenderServer) -> None:
    extender.answers["filter"] = keep("node-0")
    spec = ExtenderSpec(
        extender.url, filter_verb="filter", node_cache_capable=True, managed_resources=frozenset({"example.com/fpga"})
    )
    cluster = Extended(spec)
    cluster.place()
    assert extender.asked == []
    assert (
        cluster.made[0].interested(cluster.scheduler.cluster.pods[cluster.harness.pod("p")["metadata"]["uid"]].pod)
        is False
    )


def test_binding_is_left_to_the_extender_and_scheduling_goes_on(extender: ExtenderServer) -> None:
    cluster = Extended(ExtenderSpec(extender.url, bind_verb="bind"))

    def bind(body: dict[str, Any]) -> dict[str, Any]:
        return {"Error": ""}

    extender.answers["bind"] = bind
    cluster.harness.apply(pod("p").asks(cpu="1"), pod("q").asks(cpu="1"))
    cluster.harness.until(lambda: len(cluster.scheduler.decisions.reader().read()) == 2, limit=60)
    asked = sorted(extender.requests("bind"), key=lambda body: str(body["PodName"]))
    uid = cluster.harness.pod("p")["metadata"]["uid"]
    assert asked[0] | {"Node": ""} == {"PodName": "p", "PodNamespace": "default", "PodUID": uid, "Node": ""}
    assert [body["PodName"] for body in asked] == ["p", "q"]
    assert {decision.result for decision in cluster.scheduler.decisions.reader().read()} == {"scheduled"}
    assert cluster.harness.bindings() == {}, "who binds is the extender; this one only says so"


def test_a_failed_bind_gives_the_place_back_and_says_why(extender: ExtenderServer) -> None:
    extender.answers["bind"] = lambda body: {"Error": "no, thanks"}
    cluster = Extended(ExtenderSpec(extender.url, bind_verb="bind"))
    cluster.harness.apply(pod("p").asks(cpu="1"))
    cluster.harness.until(lambda: bool(cluster.message), limit=60)
    assert (cluster.reason, cluster.message) == ("SchedulerError", "no, thanks")
    cluster.scheduler.cluster.check()
    assert not any(pod_state.row >= 0 for pod_state in cluster.scheduler.cluster.pods.values())


def test_a_failed_bind_of_an_ignorable_extender_is_left_to_the_next(extender: ExtenderServer) -> None:
    extender.answers["bind"] = lambda body: 500
    cluster = Extended(ExtenderSpec(extender.url, bind_verb="bind", ignorable=True))
    cluster.harness.apply(pod("p").asks(cpu="1"))
    cluster.harness.until(lambda: bool(cluster.harness.bindings()), limit=60)
    assert list(cluster.harness.bindings()) == ["p"]


def test_a_bind_takes_the_same_virtual_time_however_slow_the_extender_is(extender: ExtenderServer) -> None:
    extender.answers["bind"] = lambda body: {"Error": "no, thanks"}
    for delay in (0.0, 0.2):
        extender.delay = delay
        cluster = Extended(ExtenderSpec(extender.url, bind_verb="bind"))
        began = cluster.harness.now
        cluster.harness.apply(pod("p").asks(cpu="1"))
        cluster.harness.until(lambda: bool(cluster.message), limit=60)  # noqa: B023
        assert cluster.harness.now == began + 0.01


class Preempting(Extended):
    """One node full of low pods, and a high one that needs the room."""

    def __init__(self, spec: ExtenderSpec) -> None:
        super().__init__(spec, nodes=0)
        self.harness.apply(priority_class("high", 100))
        self.harness.apply(node("small").offers(cpu="2", memory="8Gi"), node("other").offers(cpu="2", memory="8Gi"))
        for name, place in (("low-a", "small"), ("low-b", "other")):
            self.harness.apply(pod(name).asks(cpu="2"))
            self.harness.bind(name, place)
        self.harness.run(1)

    def uid(self, name: str) -> str:
        return str(self.harness.pod(name)["metadata"]["uid"])

    def high(self) -> Any:
        return pod("p").asks(cpu="2").of_priority("high")


@pytest.mark.parametrize("capable", [False, True])
def test_preemption_offers_victims_and_takes_those_that_come_back(extender: ExtenderServer, capable: bool) -> None:
    spec = ExtenderSpec(extender.url, preempt_verb="preempt", node_cache_capable=capable)
    cluster = Preempting(spec)
    victim = cluster.uid("low-b")
    extender.answers["preempt"] = lambda body: {
        "NodeNameToMetaVictims": {"other": {"Pods": [{"UID": victim}], "NumPDBViolations": 0}}
    }
    cluster.harness.apply(cluster.high())
    cluster.harness.run(1)
    asked = extender.requests("preempt")[0]
    assert list(asked) == ["Pod", "NodeNameToVictims", "NodeNameToMetaVictims"]
    offered, other = ("NodeNameToMetaVictims", "NodeNameToVictims")[:: 1 if capable else -1]
    assert asked[other] is None
    assert sorted(asked[offered]) == ["other", "small"]
    (one,) = asked[offered]["other"]["Pods"]
    assert (one == {"UID": victim}) if capable else (one["metadata"]["uid"] == victim)
    assert asked[offered]["other"]["NumPDBViolations"] == 0
    assert cluster.harness.get(kinds.POD, "low-a") is not None
    cluster.harness.run(60)
    assert cluster.harness.bindings()["p"] == "other"


@pytest.mark.parametrize(
    ("victims", "words"),
    [
        ({"other": {"Pods": []}}, 'expected at least one victim pod on node "other"'),
        (
            {"other": {"Pods": [{"UID": "x"}]}},
            "extender: {url} claims to preempt pod (UID: x) on node: other, but the pod is not found on that node",
        ),
        ({"nowhere": {"Pods": [{"UID": "x"}]}}, 'nodeinfo not found for node name "nowhere"'),
    ],
)
def test_nobody_is_evicted_on_a_wrong_answer(extender: ExtenderServer, victims: Any, words: str) -> None:
    cluster = Preempting(ExtenderSpec(extender.url, preempt_verb="preempt"))
    extender.answers["preempt"] = lambda body: {"NodeNameToMetaVictims": victims}
    cluster.harness.apply(cluster.high())
    cluster.harness.run(1)
    assert words.format(url=extender.url) in cluster.message
    assert {"low-a", "low-b"} <= set(cluster.harness.bindings())


def test_connections_are_kept_and_renewed_when_the_extender_closed_them(extender: ExtenderServer) -> None:
    extender.answers["filter"] = keep("node-0")
    cluster = Extended(ExtenderSpec(extender.url, filter_verb="filter", node_cache_capable=True))
    for index in range(5):
        cluster.harness.apply(pod(f"p{index}"))
    cluster.harness.run(1)
    assert (len(extender.requests("filter")), extender.connections) == (5, 1)
    for connection in cluster.made[0]._wire._idle:
        assert connection.sock is not None
        connection.sock.shutdown(2)
    assert cluster.place() == "node-0"
    assert extender.connections == 2


def test_a_node_is_encoded_again_when_it_has_changed(extender: ExtenderServer) -> None:
    extender.answers["filter"] = lambda body: {"Nodes": body["Nodes"]}
    cluster = Extended(ExtenderSpec(extender.url, filter_verb="filter"))
    cluster.place()
    cluster.harness.patch(kinds.NODE, "node-0", {"metadata": {"labels": {"fresh": "yes"}}})
    cluster.harness.apply(pod("q"))
    cluster.harness.run(1)
    labels = {
        item["metadata"]["name"]: item["metadata"]["labels"]
        for item in extender.requests("filter")[-1]["Nodes"]["items"]
    }
    assert labels["node-0"]["fresh"] == "yes"
