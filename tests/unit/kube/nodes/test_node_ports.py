"""NodePorts: which host ports conflict, whose ports count, and which events wake a pod."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.model import kinds
from fairlead.core.model.events import NODE, POD, ActionType
from fairlead.core.model.flow import Doc
from fairlead.core.model.reasons import SKIP
from fairlead.kube.nodes.ports import NodePorts
from tests.support.documents import compiled, compiled_node, compiled_pod, node, plain_pod
from tests.support.plugins import PluginScenario, hint

PLUGIN = NodePorts()
TAKEN = "node(s) didn't have free ports for the requested pod ports"


def opening(port: int, *, ip: str = "", protocol: str = "", name: str = "p", **more: Any) -> Doc:
    wish = {"containerPort": 1, "hostPort": port, **({"hostIP": ip} if ip else {})}
    wish |= {"protocol": protocol} if protocol else {}
    return plain_pod(name, containers=[{"name": "c", "ports": [wish]}], **more)


def street(*seated: Doc) -> PluginScenario:
    made = PluginScenario()
    made.put(kinds.NODE, node("n"))
    for number, document in enumerate(seated):
        metadata = {**document["metadata"], "name": f"e{number}", "uid": f"e{number}"}
        made.put_on({**document, "metadata": metadata}, "n")
    return made


@pytest.mark.parametrize(
    ("used", "wanted", "refused"),
    [
        (opening(80), opening(80), True),
        (opening(80), opening(81), False),
        (opening(80), opening(80, protocol="UDP"), False),
        (opening(80, protocol="TCP"), opening(80), True),
        (opening(80, ip="10.0.0.1"), opening(80, ip="10.0.0.2"), False),
        (opening(80, ip="10.0.0.1"), opening(80, ip="10.0.0.1"), True),
        (opening(80, ip="10.0.0.1"), opening(80), True),
        (opening(80), opening(80, ip="10.0.0.1"), True),
        (opening(80, ip="0.0.0.0"), opening(80, ip="10.0.0.1"), True),
        (opening(80, ip="::"), opening(80, ip="10.0.0.1"), False),
        (opening(80, ip="10.0.0.1"), opening(80, ip="::"), False),
        (opening(80, ip="::"), opening(80), True),
    ],
)
def test_ports_conflict_by_address_protocol_and_number(used: Doc, wanted: Doc, refused: bool) -> None:
    assert street(used).refusals(PLUGIN, wanted) == ({"n": TAKEN} if refused else {})


def test_a_pod_without_host_ports_is_not_looked_at() -> None:
    assert street().prepared(PLUGIN, plain_pod())[2] is SKIP
    plain = plain_pod(containers=[{"name": "c", "ports": [{"containerPort": 80}]}])
    assert street().prepared(PLUGIN, plain)[2] is SKIP


def with_init(**more: Any) -> Doc:
    container = {"name": "i", "ports": [{"containerPort": 80, "hostPort": 80}], **more}
    return plain_pod(initContainers=[container])


def test_sidecars_count_and_other_init_containers_do_not() -> None:
    assert compiled(with_init(restartPolicy="Always")).shape.host_ports == (("0.0.0.0", "TCP", 80),)
    assert compiled(with_init()).shape.host_ports == ()


def test_a_pod_does_not_conflict_with_itself() -> None:
    twice = plain_pod(containers=[{"name": n, "ports": [{"hostPort": 80}]} for n in ("a", "b")])
    assert street().refusals(PLUGIN, twice) == {}


def test_ports_are_a_set_so_the_first_of_two_to_leave_frees_them() -> None:
    where = street(opening(80), opening(80))
    leaving = {"metadata": {"name": "e0", "uid": "e0", "namespace": "default"}, "spec": {"containers": []}}
    where.remove(kinds.POD, leaving)
    assert where.refusals(PLUGIN, opening(80)) == {}


# ---- hints ----


def deletion(waiting: Doc, gone: Doc) -> Hint | None:
    return hint(PLUGIN, POD, ActionType.DELETE, compiled(waiting), old=compiled(gone))


def test_a_deleted_pod_wakes_if_its_ports_were_in_the_way() -> None:
    waiting = opening(80)
    assert deletion(waiting, opening(80, nodeName="n")) is Hint.QUEUE
    assert deletion(waiting, opening(81, nodeName="n")) is Hint.SKIP
    assert deletion(waiting, plain_pod(nodeName="n")) is Hint.SKIP
    assert deletion(opening(80, ip="10.0.0.1"), opening(80, ip="10.0.0.2", nodeName="n")) is Hint.SKIP


def test_a_deleted_pod_that_was_nowhere_wakes_nobody() -> None:
    assert deletion(opening(80), opening(80)) is Hint.SKIP
    promised = {**opening(80), "status": {"nominatedNodeName": "n"}}
    assert deletion(opening(80), promised) is Hint.QUEUE


def test_any_new_node_wakes() -> None:
    assert hint(PLUGIN, NODE, ActionType.ADD, compiled_pod(), new=compiled_node()) is Hint.QUEUE
    assert hint(PLUGIN, POD, ActionType.UPDATE_POD_LABEL, compiled_pod()) is None
