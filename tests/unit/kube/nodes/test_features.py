"""NodeDeclaredFeatures: which features a pod needs, which nodes have them, and which events wake a pod."""

from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model import kinds
from fairlead.core.model.events import NODE, POD, ActionType
from fairlead.core.model.flow import Doc
from fairlead.core.model.reasons import SKIP
from fairlead.kube.nodes.features import NodeDeclaredFeatures, declared
from tests.support.documents import compiled, compiled_node, compiled_pod, node, plain_pod
from tests.support.plugins import PluginScenario, hint

PLUGIN = NodeDeclaredFeatures()
RESTART, NETWORK = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
REFUSED = "node(s) didn't match Pod's required features (final)"
RESTARTING: Doc = {"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}


def street(**features: list[str]) -> PluginScenario:
    made = PluginScenario()
    for name, listed in features.items():
        made.put(kinds.NODE, node(name, features=listed))
    return made


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (plain_pod(), set()),
        (plain_pod(containers=[RESTARTING]), {RESTART}),
        (plain_pod(initContainers=[RESTARTING]), {RESTART}),
        (plain_pod(containers=[{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]), set()),
        (plain_pod(hostNetwork=True, hostUsers=False), {NETWORK}),
        (plain_pod(hostNetwork=True), set()),
        (plain_pod(hostNetwork=True, hostUsers=True), set()),
        (plain_pod(hostUsers=False), set()),
        (plain_pod(hostNetwork=True, hostUsers=False, containers=[RESTARTING]), {RESTART, NETWORK}),
    ],
)
def test_what_a_pod_needs_follows_from_its_spec(document: Doc, expected: set[str]) -> None:
    assert compiled(document).shape.required_features == expected


def test_a_pod_that_needs_nothing_is_not_looked_at() -> None:
    assert street(n=[]).prepared(PLUGIN, plain_pod())[2] is SKIP


def test_nodes_must_declare_all_that_is_needed() -> None:
    where = street(none=[], one=[RESTART], both=[RESTART, NETWORK], more=["A", RESTART, NETWORK, "Z"])
    both = plain_pod(hostNetwork=True, hostUsers=False, containers=[RESTARTING])
    assert where.refusals(PLUGIN, both) == {"none": REFUSED, "one": REFUSED}
    assert where.refusals(PLUGIN, plain_pod(containers=[RESTARTING])) == {"none": REFUSED}


def test_a_list_that_is_not_sorted_may_miss_some() -> None:
    assert declared([RESTART, NETWORK]) == {RESTART, NETWORK}
    assert declared([NETWORK, RESTART]) == {NETWORK}
    assert declared(["Zzz", RESTART]) == set()
    assert declared(["Unheard", RESTART]) == set()
    assert declared(["Heard", RESTART]) == {RESTART}


def test_nodes_wake_when_they_come_or_declare_something_else() -> None:
    needy, bare, able = compiled_pod(containers=[RESTARTING]), compiled_node(), compiled_node(features=[RESTART])
    assert hint(PLUGIN, NODE, ActionType.ADD, needy, new=bare) is Hint.QUEUE
    changed = ActionType.UPDATE_NODE_DECLARED_FEATURE
    assert hint(PLUGIN, NODE, changed, needy, old=bare, new=able) is Hint.QUEUE
    assert hint(PLUGIN, NODE, changed, needy, old=able, new=bare) is Hint.QUEUE
    assert hint(PLUGIN, NODE, changed, needy, old=able, new=able) is Hint.SKIP
    assert hint(PLUGIN, NODE, ActionType.UPDATE_NODE_LABEL, needy, old=bare, new=able) is None


@pytest.mark.parametrize("action", [ActionType.UPDATE, ActionType.UPDATE_POD_LABEL, ActionType.UPDATE_POD_SCALE_DOWN])
def test_any_update_of_the_pod_wakes_it_if_its_needs_changed(action: ActionType) -> None:
    plain, needy = compiled_pod("a"), compiled_pod("a", containers=[RESTARTING])
    assert hint(PLUGIN, POD, action, needy, old=needy, new=plain) is Hint.QUEUE
    assert hint(PLUGIN, POD, action, needy, old=needy, new=needy) is Hint.SKIP
    assert hint(PLUGIN, POD, action, compiled_pod("b"), old=needy, new=plain) is Hint.SKIP
