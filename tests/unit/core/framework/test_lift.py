"""Plugins by users: lifted functions, what they promise, what becomes of those that raise or are slow."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from fairlead import Plugin, Reason, Reject, node_filter, node_score
from fairlead.assembly.presets import first_profile
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.framework.lift import WAKE_UPS, NodeFilter
from fairlead.core.framework.meter import Meter
from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.testing.agree import agree
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness


@node_filter(reason="node(s) in maintenance", wakes_on="node-labels")
def not_in_maintenance(pod: Any, node: Any) -> bool:
    """No pods on nodes in maintenance."""
    return bool(node.labels.get("maintenance") != "true")


@node_score(weight=2)
def cool_nodes(pod: Any, node: Any) -> float:
    return 100 - float(node.annotations.get("temperature", 50))


class Maintained(Plugin):
    """The same in columns."""

    name = "Maintained"

    def filter(self, cycle: Any, nodes: Any) -> Any:
        in_maintenance = nodes.label("maintenance") == nodes.table.label("maintenance").code("true")
        yield Reject(Reason(self.name, "node(s) in maintenance", final=True), in_maintenance)


class ColdNodes(Plugin):
    name = "ColdNodes"

    def score(self, cycle: Any, nodes: Any) -> Any:
        annotations = [node.annotations if node else {} for node in nodes.table.nodes]
        return np.array([100 - int(one.get("temperature", 50)) for one in annotations], dtype=np.int64)


def cluster_with(*plugins: Plugin, nodes: Any = (), meter: Meter | None = None) -> tuple[Harness, Scheduler]:
    profile = profile_of("default-scheduler", [*first_profile().plugins(), *plugins])
    scheduler = Scheduler([profile])
    scheduler.measure(meter)
    return Harness(nodes=nodes, schedulers=[lambda view: scheduler]), scheduler


def message(cluster: Harness, name: str) -> str:
    return str(cluster.pod(name)["status"]["conditions"][0]["message"])


def test_a_lifted_filter_keeps_pods_off_nodes_and_says_why() -> None:
    nodes = [node("good"), node("bad").labelled(maintenance="true")]
    cluster, _ = cluster_with(not_in_maintenance, nodes=nodes)
    cluster.apply(*(pod(f"p{index}") for index in range(5)))
    cluster.run(1)
    assert set(cluster.bindings().values()) == {"good"}
    cluster.patch(kinds.NODE, "good", {"metadata": {"labels": {"maintenance": "true"}}})
    cluster.apply(pod("late"))
    cluster.run(1)
    assert message(cluster, "late").startswith("0/2 nodes are available: 2 node(s) in maintenance. ")


def test_a_refused_pod_wakes_when_the_labels_change() -> None:
    cluster, _ = cluster_with(not_in_maintenance, nodes=[node("bad").labelled(maintenance="true")])
    cluster.apply(pod("p"))
    cluster.run(1)
    explanation = cluster.explain("p")
    assert explanation is not None
    assert explanation.waiting is not None
    assert "NodeUpdateNodeLabel" in explanation.waiting.wakes_on
    cluster.patch(kinds.NODE, "bad", {"metadata": {"labels": {"maintenance": "false"}}})
    cluster.run(15)
    assert cluster.bindings() == {"p": "bad"}


def test_a_new_node_wakes_whatever_was_said() -> None:
    cluster, _ = cluster_with(not_in_maintenance, nodes=[node("bad").labelled(maintenance="true")])
    cluster.apply(pod("p"))
    cluster.run(1)
    cluster.apply(node("good"))
    cluster.run(15)
    assert cluster.bindings() == {"p": "good"}


def test_a_lifted_score_counts_with_its_own_weight() -> None:
    nodes = [node("hot").annotated(temperature="90"), node("cold").annotated(temperature="10")]
    cluster, _ = cluster_with(cool_nodes, nodes=nodes)
    cluster.apply(pod("p"))
    cluster.run(1)
    explanation = cluster.explain("p")
    assert explanation is not None
    assert explanation.chosen is not None
    assert explanation.runner_up is not None
    assert (explanation.chosen.node, explanation.chosen.scores["cool_nodes"]) == ("cold", 180)
    assert explanation.runner_up.scores["cool_nodes"] == 20


def test_only_rows_that_changed_are_judged_again() -> None:
    @node_filter(reason="never")
    def always(pod: Any, node: Any) -> bool:
        return True

    cluster, _ = cluster_with(always, nodes=50)
    cluster.apply(*(pod(f"p{index}") for index in range(20)))
    cluster.run(1)
    assert len(cluster.bindings()) == 20
    assert 50 <= always.rows_one_by_one <= 50 + 3 * 20


def test_a_lifted_function_is_still_a_function() -> None:
    class Row:
        labels = {"maintenance": "true"}

    assert not_in_maintenance(None, Row()) is False  # type: ignore[arg-type]
    assert not_in_maintenance.__doc__ == "No pods on nodes in maintenance."
    assert (not_in_maintenance.name, not_in_maintenance.scope) == ("not_in_maintenance", Scope.ROW)


def test_saying_nothing_about_events_means_any() -> None:
    @node_filter(reason="no")
    def silent(pod: Any, node: Any) -> bool:
        return True

    assert silent.events() is None
    spoken = not_in_maintenance.events()
    assert spoken is not None
    assert {interest.event for interest in spoken} == {WAKE_UPS["node-labels"], WAKE_UPS["node-added"]}


def test_an_unknown_event_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean node-labels"):
        node_filter(reason="no", wakes_on="node-label")


def test_names_are_not_among_what_a_lifted_function_may_read() -> None:
    with pytest.raises(ValueError, match="reads: name is not one of annotations, labels, namespace, node, spec"):
        node_filter(reason="no", reads=("spec", "name"))(lambda pod, node: True)


def test_a_raising_plugin_fails_only_its_own_attempt_and_is_named() -> None:
    @node_filter(reason="no")
    def touchy(pod: Any, node: Any) -> bool:
        return bool(pod.labels["app"])

    cluster, scheduler = cluster_with(touchy, nodes=2)
    cluster.apply(pod("unlabelled"), pod("labelled").labelled(app="web"))
    cluster.run(1)
    assert list(cluster.bindings()) == ["labelled"]
    assert message(cluster, "unlabelled") == "plugin touchy failed at filter: KeyError: 'app'"
    scheduler.cluster.check()
    cluster.patch(kinds.POD, "unlabelled", {"metadata": {"labels": {"app": "db"}}})
    cluster.run(15)
    assert "unlabelled" in cluster.bindings()


def test_a_score_out_of_range_is_named() -> None:
    @node_score()
    def keen(pod: Any, node: Any) -> float:
        return 101

    cluster, _ = cluster_with(keen, nodes=2)
    cluster.apply(pod("p"))
    cluster.run(1)
    assert message(cluster, "p") == (
        'plugin "keen" returns an invalid score 101, it should in the range of [0, 100] after normalizing'
    )


class Ticking:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_slow_plugin_is_measured_and_named() -> None:
    clock = Ticking()

    @node_filter(reason="no")
    def slow(pod: Any, node: Any) -> bool:
        clock.now += 0.5
        return True

    meter = Meter(clock, every=1)
    cluster, scheduler = cluster_with(slow, nodes=3, meter=meter)
    cluster.apply(pod("p"))
    cluster.run(1)
    costliest = meter.costliest()
    assert costliest is not None
    assert costliest[0] == "slow"
    assert costliest[1] > 0.9
    (sample,) = [sample for sample in meter.samples if sample.plugin == "slow"]
    assert (sample.point, sample.status, sample.seconds) == ("filter", "Success", 1.5)
    assert list(meter.algorithm) == [1.5]
    assert scheduler.decisions.reader().read()[-1].took == 1.5


def test_one_cycle_in_ten_is_measured_by_plugin_and_every_one_as_a_whole() -> None:
    meter = Meter(Ticking())
    cluster, _ = cluster_with(not_in_maintenance, nodes=3, meter=meter)
    cluster.apply(*(pod(f"p{index}").asks(cpu=f"{index + 1}m") for index in range(20)))
    cluster.run(1)
    assert len(meter.algorithm) == 20
    assert sum(sample.plugin == "not_in_maintenance" for sample in meter.samples) == 2
    assert sum(meter.evaluated.values()) == 20


def test_a_vectorised_twin_agrees_and_a_wrong_one_does_not() -> None:
    agree(not_in_maintenance, Maintained())
    agree(cool_nodes, ColdNodes())
    with pytest.raises(AssertionError, match=r"filter of pod default/pod-.* on node-"):
        agree(not_in_maintenance, node_filter(reason="node(s) in maintenance")(lambda pod, node: True))


def test_the_public_names_are_imported_only_when_used() -> None:
    script = "import sys, fairlead; assert 'numpy' not in sys.modules; from fairlead import Nodes, Reject; print('ok')"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "ok\n"


def test_every_public_name_can_be_imported() -> None:
    import fairlead

    assert all(getattr(fairlead, name) is not None for name in dir(fairlead))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fairlead.nothing  # type: ignore[attr-defined]
    assert isinstance(not_in_maintenance, NodeFilter)
