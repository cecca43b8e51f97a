"""PrioritySort, SchedulingGates, NodeUnschedulable and NodeName, and which events wake the pods that they refused."""

from __future__ import annotations

import pytest

from fairlead.core.engine.queue.hints import Hints
from fairlead.core.framework.plugin import Hint, Plugin
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.flow import Doc
from fairlead.core.model.reasons import Code
from fairlead.core.state.cluster import Cluster
from fairlead.kube.nodes.basics import NodeName, NodeUnschedulable, PrioritySort, SchedulingGates
from fairlead.kube.nodes.features import NodeDeclaredFeatures
from fairlead.kube.nodes.images import ImageLocality
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from fairlead.kube.nodes.ports import NodePorts
from fairlead.kube.nodes.taints import TaintToleration
from fairlead.kube.resources.plugin import NodeResourcesBalancedAllocation, NodeResourcesFit
from tests.support.documents import compiled_node, compiled_pod, node, plain_pod
from tests.support.plugins import PluginScenario, hint

CORDON = "node.kubernetes.io/unschedulable"
TOLERANT: Doc = {"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}


# ---- PrioritySort ----


def test_higher_priority_comes_first_and_among_equals_who_waited_longer() -> None:
    waiting = [
        (compiled_pod("low"), 1.0),
        (compiled_pod("late", priority=5), 9.0),
        (compiled_pod("early", priority=5), 2.0),
    ]
    waiting.append((compiled_pod("negative", priority=-3), 0.0))
    ordered = sorted(waiting, key=lambda entry: PrioritySort().queue_key(*entry))
    assert [pod.name for pod, _ in ordered] == ["early", "late", "low", "negative"]


# ---- SchedulingGates ----


def test_a_gated_pod_says_what_it_waits_for() -> None:
    gated = compiled_pod(schedulingGates=[{"name": "a.io/x"}, {"name": "b"}])
    status = SchedulingGates().pre_enqueue(gated, Cluster())
    assert status is not None
    assert (status.code, status.message) == (Code.UNRESOLVABLE, "waiting for scheduling gates: [a.io/x b]")
    assert SchedulingGates().pre_enqueue(compiled_pod(), Cluster()) is None


def test_only_the_loss_of_its_own_gates_wakes_it() -> None:
    action = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    assert (
        hint(SchedulingGates(), POD, action, compiled_pod("a"), old=compiled_pod("a"), new=compiled_pod("a"))
        is Hint.QUEUE
    )
    assert (
        hint(SchedulingGates(), POD, action, compiled_pod("a"), old=compiled_pod("b"), new=compiled_pod("b"))
        is Hint.SKIP
    )
    assert hint(SchedulingGates(), POD, ActionType.UPDATE_POD_LABEL, compiled_pod("a")) is None


# ---- NodeUnschedulable ----


def street() -> PluginScenario:
    made = PluginScenario()
    made.put(kinds.NODE, node("open"))
    made.put(kinds.NODE, node("cordoned", unschedulable=True))
    return made


@pytest.mark.parametrize(
    ("tolerations", "refused"),
    [
        ([], True),
        ([TOLERANT], False),
        ([{"operator": "Exists"}], False),
        ([{"key": CORDON}], False),
        ([{"key": CORDON, "value": "x"}], True),
        ([{**TOLERANT, "effect": "NoExecute"}], True),
    ],
)
def test_a_cordoned_node_takes_only_pods_that_tolerate_it(tolerations: list[Doc], refused: bool) -> None:
    plugin, document = NodeUnschedulable(), plain_pod(tolerations=tolerations)
    assert plugin.concerns(compiled_pod(tolerations=tolerations)) is refused
    if refused:
        assert street().refusals(plugin, document) == {"cordoned": "node(s) were unschedulable (final)"}


def test_the_taint_alone_does_not_cordon() -> None:
    where = PluginScenario()
    where.put(kinds.NODE, node("n", taints=[{"key": CORDON, "effect": "NoSchedule"}]))
    assert where.refusals(NodeUnschedulable(), plain_pod()) == {}


@pytest.mark.parametrize(
    ("was", "is_now", "expected"),
    [
        (None, False, Hint.QUEUE),
        (None, True, Hint.SKIP),
        (True, False, Hint.QUEUE),
        (False, False, Hint.SKIP),
        (False, True, Hint.SKIP),
        (True, True, Hint.SKIP),
    ],
)
def test_a_node_wakes_when_it_is_uncordoned_or_comes_open(was: bool | None, is_now: bool, expected: Hint) -> None:
    action = ActionType.ADD if was is None else ActionType.UPDATE_NODE_TAINT
    before = None if was is None else compiled_node(unschedulable=was)
    plugin = NodeUnschedulable()
    assert hint(plugin, NODE, action, compiled_pod(), old=before, new=compiled_node(unschedulable=is_now)) is expected


def test_a_toleration_of_its_own_wakes_if_it_answers_the_cordon() -> None:
    plugin, action = NodeUnschedulable(), ActionType.UPDATE_POD_TOLERATION
    tolerant, other = compiled_pod("a", tolerations=[TOLERANT]), compiled_pod("a", tolerations=[{"key": "x"}])
    assert hint(plugin, POD, action, compiled_pod("a"), old=compiled_pod("a"), new=tolerant) is Hint.QUEUE
    assert hint(plugin, POD, action, compiled_pod("a"), old=compiled_pod("a"), new=other) is Hint.SKIP
    assert hint(plugin, POD, action, compiled_pod("b"), old=compiled_pod("a"), new=tolerant) is Hint.SKIP


# ---- NodeName ----


def test_a_pod_that_names_a_node_fits_no_other() -> None:
    words = "node(s) didn't match the requested node name (final)"
    assert street().judged(NodeName(), plain_pod(nodeName="open")) == {"cordoned": words}
    assert street().judged(NodeName(), plain_pod(nodeName="elsewhere")) == {"open": words, "cordoned": words}
    assert not NodeName().concerns(compiled_pod())


def test_any_new_node_wakes_it() -> None:
    assert hint(NodeName(), NODE, ActionType.ADD, compiled_pod(), new=compiled_node(unschedulable=True)) is Hint.QUEUE
    assert hint(NodeName(), NODE, ActionType.UPDATE_NODE_LABEL, compiled_pod(), new=compiled_node()) is None


# ---- the registrations of all of them ----


def taint_listeners(*plugins: Plugin) -> dict[str, bool]:
    """Plugins that hear of changed taints, and whether that wakes without a closer look."""
    hints = Hints({"p": profile_of("p", [PrioritySort(), *plugins])})
    found = hints.listeners(ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT)).by_profile["p"]
    return {registration.plugin: registration.hint is None for registration in found}


def test_any_change_of_taints_wakes_those_who_listen_to_new_nodes_but_not_to_taints() -> None:
    blind = (NodeName(), NodeAffinityPlugin(), NodePorts(), NodeResourcesFit(), NodeDeclaredFeatures())
    assert taint_listeners(*blind) == {plugin.name: True for plugin in blind}
    assert taint_listeners(NodeUnschedulable(), TaintToleration()) == {
        "NodeUnschedulable": False,
        "TaintToleration": False,
    }


def test_plugins_that_cannot_refuse_register_nothing() -> None:
    hints = Hints({"p": profile_of("p", [PrioritySort(), NodeResourcesBalancedAllocation(), ImageLocality()])})
    assert hints.registered() == {}
