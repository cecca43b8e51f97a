"""Corners of a cycle that only whole attempts show: which plugin's failure ends one, and who is looked at at all.

Each is a small recording as the real kube-scheduler makes it; replaying it must find nothing to object to.
"""

from __future__ import annotations

from typing import Any

from fairlead.assembly.assemble import profiles_of
from fairlead.core.model.flow import Doc
from fairlead.kube.config.kube import default_kube_config
from fairlead.kube.replay.forms import KUBE_FORM
from fairlead.kube.replay.recording import Scenario
from fairlead.kube.replay.replay import DecisionDifference, KubeReplay
from tests.support.documents import node, plain_pod

PROFILES = profiles_of(default_kube_config())
NO_HELP = (
    "no new claims to deallocate, preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."
)


def differences(decision: Doc, *nodes: Doc, objects: tuple[Doc, ...] = (), existing: tuple[Doc, ...] = ()) -> Any:
    doc = {"nodes": nodes, "objects": objects, "existing": existing, "decisions": [decision]}
    found: list[DecisionDifference] = next(KubeReplay(Scenario("f", 1, KUBE_FORM, 1, "", doc), PROFILES).decisions())
    return [(difference.field, difference.got) for difference in found]


def wishing(**affinity: Any) -> Doc:
    return plain_pod(schedulerName="default-scheduler", affinity={"nodeAffinity": affinity})


BROKEN = {"weight": 1, "preference": {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["-3"]}]}}
COMPLAINT = (
    'running PreScore plugin "NodeAffinity": [0].matchExpressions[0].values[0][size]: Invalid value: "-3": a valid'
    " label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def test_a_broken_preference_fails_only_where_there_is_something_to_choose() -> None:
    pod = wishing(preferredDuringSchedulingIgnoredDuringExecution=[BROKEN])
    full = node("full", allocatable={"pods": "0"})
    assert differences({"pod": pod, "node": None, "message": COMPLAINT}, node("a"), node("b")) == []
    assert differences({"pod": pod, "node": "a"}, node("a"), full) == []
    message = f"0/1 nodes are available: 1 Too many pods. {NO_HELP.format(n=1)}"
    message = message.replace("1 Preemption is not helpful", "1 No preemption victims found for incoming pod")
    assert differences({"pod": pod, "node": None, "message": message.replace(" for scheduling", "")}, full) == []


def test_the_nominated_node_is_looked_at_even_where_others_are_not() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    pod = wishing(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": [named]})
    pod["status"] = {"nominatedNodeName": "b"}
    reasons = "1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]"
    message = f"0/3 nodes are available: {reasons}. {NO_HELP.format(n=3)}"
    decision = {"pod": pod, "node": None, "message": message}
    assert differences(decision, *(node(name) for name in "abc")) == []


def _claim(name: str, **metadata: Any) -> Doc:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "storageClassName": "dyn",
            "resources": {"requests": {"storage": "1"}},
        },
    }


STORAGE = (
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "dyn"}, "provisioner": "csi.x",
     "volumeBindingMode": "WaitForFirstConsumer"},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "a"},
     "spec": {"drivers": [{"name": "csi.x", "allocatable": {"count": 3}}]}},
    _claim("mine"), _claim("e-v0"),
)  # fmt: skip


def test_a_failing_filter_is_not_asked_about_nodes_that_others_refused_before_it() -> None:
    """What `e` attaches cannot be told, as its claim is not its own."""
    stranger = plain_pod(
        "e", nodeName="a", volumes=[{"name": "v0", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    )
    user = plain_pod("u", nodeName="a", volumes=[{"name": "v0", "persistentVolumeClaim": {"claimName": "mine"}}])
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
    pod = plain_pod(
        schedulerName="default-scheduler",
        containers=[{"name": "c", "restartPolicyRules": rules}],
        volumes=[{"name": "v0", "persistentVolumeClaim": {"claimName": "mine"}}],
    )
    whose = "PVC default/e-v0 was not created for pod default/e (pod is not owner)"
    refused = (
        "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No"
        " preemption victims found for incoming pod."
    )
    after = {"pod": pod, "node": None, "message": f'running "NodeVolumeLimits" filter plugin: {whose}'}
    assert differences(after, node("a"), objects=STORAGE, existing=(stranger,)) == []
    before = {"pod": pod, "node": None, "message": refused}
    assert differences(before, node("a"), objects=STORAGE, existing=(stranger, user)) == []


def test_who_refused_the_nominated_node_is_named_with_those_who_narrowed_the_search() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    pod = wishing(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": [named]})
    pod["status"] = {"nominatedNodeName": "b"}
    reasons = "1 node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration], 1 node(s) had untolerated taint(s)"
    decision = {"pod": pod, "node": None, "message": f"0/2 nodes are available: {reasons}. {NO_HELP.format(n=2)}"}
    tainted = node("b", taints=[{"key": "t", "effect": "NoSchedule"}])
    assert differences(decision, node("a"), tainted) == []


def test_a_guard_against_evictions_in_vain_remembers_one_cluster_only() -> None:
    there = plain_pod("v", requests={"cpu": "4"}, nodeName="a")
    pod = plain_pod("p", requests={"cpu": "4"}, schedulerName="default-scheduler", priority=5)
    decision = {"pod": pod, "node": None, "nominated": "a", "victims": ["v"]}
    assert [differences(decision, node("a"), existing=(there,)) for _ in range(5)] == [[]] * 5
