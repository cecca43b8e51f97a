"""Plugins that look at one node, written down plainly from their rules, say what the columns say.

The plain rules read the documents, not what was compiled from them, so that they share nothing with the plugins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fairlead.core.framework.plugin import Plugin, takes_part
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.model.pod import compile_pod
from fairlead.core.model.reasons import SKIP
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.kube.nodes.basics import NodeName, NodeUnschedulable
from fairlead.kube.nodes.features import NodeDeclaredFeatures
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from fairlead.kube.nodes.ports import NodePorts
from fairlead.kube.nodes.taints import TaintToleration
from tests.support.plugins import PendingPod

Doc = dict[str, Any]
NAMES = ("a", "b", "c", "d", "e")
CORDON = "node.kubernetes.io/unschedulable"
RESTART, NETWORK = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


# ---- documents ----

keys, values = st.sampled_from(["", "x", "y", CORDON]), st.sampled_from(["", "1", "2"])
effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
taints = st.builds(lambda k, v, e: {"key": k or "x", "value": v, "effect": e}, keys, values, effects)
operators = st.sampled_from(["", "Equal", "Exists", "Lt", "Gt"])
tolerations = st.builds(
    lambda k, o, v, e: {"key": k, "operator": o, "value": v, "effect": e},
    keys,
    operators,
    values,
    st.one_of(st.just(""), effects),
)
labels = st.fixed_dictionaries(
    {}, optional={"disk": st.sampled_from(["ssd", "hdd"]), "size": st.sampled_from(["1", "5", "9", "big"])}
)
features = st.lists(st.sampled_from([RESTART, NETWORK, "Another", "Zebra"]), max_size=3)
ports = st.builds(
    lambda ip, protocol, port: {"containerPort": 1, "hostIP": ip, "protocol": protocol, "hostPort": port},
    st.sampled_from(["", "0.0.0.0", "10.0.0.1", "::"]),
    st.sampled_from(["", "TCP", "UDP"]),
    st.sampled_from([0, 80, 81]),
)


@st.composite
def expressions(draw: st.DrawFn) -> Doc:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]))
    found: Doc = {"key": draw(st.sampled_from(["disk", "size"])), "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = draw(st.lists(st.sampled_from(["ssd", "hdd", "5"]), min_size=1, max_size=2))
    elif operator in ("Gt", "Lt"):
        found["values"] = [draw(st.sampled_from(["1", "5", "many"]))]
    return found


fields = st.builds(
    lambda key, operator, names: {"key": key, "operator": operator, "values": names},
    st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
)
terms: SearchStrategy[Doc] = st.builds(
    lambda e, f: {"matchExpressions": e, "matchFields": f},
    st.lists(expressions(), max_size=2),
    st.lists(fields, max_size=1),
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Doc:
    return {
        "metadata": {"name": name, "labels": draw(labels)},
        "spec": {"unschedulable": draw(st.booleans()), "taints": draw(st.lists(taints, max_size=3))},
        "status": {"declaredFeatures": draw(features)},
    }


@st.composite
def containers(draw: st.DrawFn) -> Doc:
    rules = draw(st.sampled_from([[], [], [{"action": "Restart"}], [{"action": "RestartAllContainers"}]]))
    return {"name": "c", "ports": draw(st.lists(ports, max_size=2)), "restartPolicyRules": rules}


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> Doc:
    spec: Doc = {
        "containers": draw(st.lists(containers(), min_size=1, max_size=2)),
        "initContainers": [
            {**draw(containers()), "restartPolicy": draw(st.sampled_from(["", "Always"]))}
            for _ in range(draw(st.integers(0, 1)))
        ],
        "nodeName": node,
        "tolerations": draw(st.lists(tolerations, max_size=3)),
        "hostNetwork": draw(st.booleans()),
        "hostUsers": draw(st.sampled_from([None, True, False])),
    }
    if draw(st.booleans()):
        spec["nodeSelector"] = draw(labels)
    affinity: Doc = {}
    if draw(st.booleans()):
        affinity[REQUIRED] = {"nodeSelectorTerms": draw(st.lists(terms, max_size=3))}
    if draw(st.booleans()):
        weighted = st.builds(lambda w, t: {"weight": w, "preference": t}, st.integers(0, 100), terms)
        affinity[PREFERRED] = draw(st.lists(weighted, max_size=3))
    if affinity:
        spec["affinity"] = {"nodeAffinity": affinity}
    return {"metadata": {"name": name, "uid": name, "namespace": "default"}, "spec": spec}


class DrawnCluster:
    def __init__(self, node_docs: list[Doc], seated: list[Doc], newcomer: Doc) -> None:
        self.nodes = {doc["metadata"]["name"]: doc for doc in node_docs}
        self.seated, self.newcomer = seated, newcomer
        self.cluster = Cluster()
        for kind, docs in ((kinds.NODE, node_docs), (kinds.POD, seated)):
            for doc in docs:
                self.cluster.apply(Change(Happened.ADDED, kind, doc))
        assert not self.cluster.refused
        self.place = PendingPod(self.cluster, compile_pod(newcomer, self.cluster.shapes))

    def prepared(self, plugin: Plugin) -> Any:
        cycle = self.place.cycle(plugin)
        return plugin.pre_filter(cycle) if takes_part(plugin, "pre_filter") else None

    def refused(self, plugin: Plugin) -> set[str]:
        """By the columns. A plugin that a pod does not concern, or that steps aside, refuses nothing."""
        if not plugin.concerns(self.place.pod) or self.prepared(plugin) is SKIP:
            return set()
        cycle = self.place.cycle(plugin)
        if takes_part(plugin, "pre_filter"):
            plugin.pre_filter(cycle)
        said = self.place.refusals(plugin, cycle)
        return {self.cluster.table.name(row) for row, words in said.items() if words}

    def scores(self, plugin: Plugin) -> dict[str, int] | None:
        cycle = self.place.cycle(plugin)
        rows = np.array([self.cluster.table.row_of[name] for name in self.nodes], dtype=np.int32)
        selected = Nodes(self.cluster.table, rows)
        if takes_part(plugin, "pre_score"):
            status = plugin.pre_score(cycle, selected)
            if status is not None:
                return None
        raw = plugin.score(cycle, selected)
        assert not isinstance(raw, int)
        return dict(zip(self.nodes, plugin.normalize_score(cycle, selected, raw).tolist(), strict=True))


@st.composite
def worlds(draw: st.DrawFn) -> DrawnCluster:
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    node_docs = [draw(nodes(name)) for name in names]
    seated = [draw(pods(f"e{i}", draw(st.sampled_from(names)))) for i in range(draw(st.integers(0, 4)))]
    return DrawnCluster(node_docs, seated, draw(pods("new", draw(st.sampled_from(["", "", "", *NAMES])))))


# ---- the rules, plainly ----


def tolerates(toleration: Doc, key: str, value: str, effect: str) -> bool:
    if toleration["effect"] not in ("", effect) or toleration["key"] not in ("", key):
        return False
    if toleration["operator"] in ("", "Equal"):
        return bool(toleration["value"] == value)
    return bool(toleration["operator"] == "Exists")


def tolerated(taint: Doc, listed: list[Doc]) -> bool:
    return any(tolerates(toleration, taint["key"], taint["value"], taint["effect"]) for toleration in listed)


def requirement_holds(wish: Doc, carried: Doc) -> bool | None:
    """None if the requirement is broken."""
    value, operator = carried.get(wish["key"]), wish["operator"]
    if operator in ("Gt", "Lt"):
        bound = wish["values"][0]
        if not bound.isdigit():
            return None
        if value is None or not value.isdigit():
            return False
        return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
    known = {
        "In": lambda: value in wish["values"],
        "NotIn": lambda: value not in wish["values"],
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
    }
    return known[operator]() if operator in known else None


def field_holds(wish: Doc, name: str) -> bool | None:
    if len(wish["values"]) != 1:
        return None
    same = (name if wish["key"] == "metadata.name" else "") == wish["values"][0]
    return bool(same if wish["operator"] == "In" else not same)


def term_holds(term: Doc, node: Doc) -> bool | None:
    answers = [requirement_holds(wish, node["metadata"]["labels"]) for wish in term["matchExpressions"]]
    answers += [field_holds(wish, node["metadata"]["name"]) for wish in term["matchFields"]]
    if None in answers:
        return None
    return bool(answers) and all(answers)


def suits(pod: Doc, node: Doc) -> bool:
    carried = node["metadata"]["labels"]
    if any(carried.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    if REQUIRED not in affinity:
        return True
    return any(term_holds(term, node) for term in affinity[REQUIRED]["nodeSelectorTerms"])


def host_ports(pod: Doc) -> set[tuple[str, str, int]]:
    spec = pod["spec"]
    counted = spec["containers"] + [c for c in spec["initContainers"] if c["restartPolicy"] == "Always"]
    return {
        (port["hostIP"] or "0.0.0.0", port["protocol"] or "TCP", port["hostPort"])
        for container in counted
        for port in container["ports"]
        if port["hostPort"] > 0
    }


def in_the_way(wanted: tuple[str, str, int], used: set[tuple[str, str, int]]) -> bool:
    ip, protocol, port = wanted
    if ip == "0.0.0.0":
        return any((u_protocol, u_port) == (protocol, port) for _, u_protocol, u_port in used)
    return ("0.0.0.0", protocol, port) in used or wanted in used


def needed(pod: Doc) -> set[str]:
    spec, found = pod["spec"], set()
    rules = [rule for c in spec["containers"] + spec["initContainers"] for rule in c["restartPolicyRules"]]
    if any(rule["action"] == "RestartAllContainers" for rule in rules):
        found.add(RESTART)
    if spec["hostNetwork"] and spec["hostUsers"] is False:
        found.add(NETWORK)
    return found


# ---- the comparisons ----


@given(worlds())
@settings(max_examples=40)
def test_cordoned_nodes_are_refused_unless_tolerated(world: DrawnCluster) -> None:
    listed = world.newcomer["spec"]["tolerations"]
    passes = any(tolerates(toleration, CORDON, "", "NoSchedule") for toleration in listed)
    cordoned = {name for name, node in world.nodes.items() if node["spec"]["unschedulable"]}
    assert world.refused(NodeUnschedulable()) == (set() if passes else cordoned)


@given(worlds())
@settings(max_examples=40)
def test_a_pod_that_names_a_node_fits_only_there(world: DrawnCluster) -> None:
    wanted = world.newcomer["spec"]["nodeName"]
    assert world.refused(NodeName()) == {name for name in world.nodes if wanted and name != wanted}


@given(worlds())
@settings(max_examples=60)
def test_taints_refuse_and_score_as_a_plain_loop_says(world: DrawnCluster) -> None:
    listed = world.newcomer["spec"]["tolerations"]
    hard = {
        name
        for name, node in world.nodes.items()
        if any(t["effect"] != "PreferNoSchedule" and not tolerated(t, listed) for t in node["spec"]["taints"])
    }
    assert world.refused(TaintToleration()) == hard
    soft = [t for t in listed if t["effect"] in ("", "PreferNoSchedule")]
    raw = {
        name: sum(t["effect"] == "PreferNoSchedule" and not tolerated(t, soft) for t in node["spec"]["taints"])
        for name, node in world.nodes.items()
    }
    most = max(raw.values())
    expected = {name: 100 - 100 * count // most if most else 100 for name, count in raw.items()}
    assert world.scores(TaintToleration()) == expected


@given(worlds())
@settings(max_examples=100)
def test_node_affinity_refuses_and_scores_as_a_plain_loop_says(world: DrawnCluster) -> None:
    unsuited = {name for name, node in world.nodes.items() if not suits(world.newcomer, node)}
    assert world.refused(NodeAffinityPlugin()) == unsuited
    affinity = (world.newcomer["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    weighted = [
        (wish["weight"], wish["preference"])
        for wish in affinity.get(PREFERRED) or ()
        if wish["weight"] and (wish["preference"]["matchExpressions"] or wish["preference"]["matchFields"])
    ]
    some = next(iter(world.nodes.values()))
    if PREFERRED not in affinity or any(term_holds(term, some) is None for _, term in weighted):
        assert world.scores(NodeAffinityPlugin()) is None
        return
    raw = {
        name: sum(weight for weight, term in weighted if term_holds(term, node)) for name, node in world.nodes.items()
    }
    most = max(raw.values())
    assert world.scores(NodeAffinityPlugin()) == {name: 100 * sum_ // most if most else 0 for name, sum_ in raw.items()}


@given(worlds())
@settings(max_examples=40)
def test_node_affinity_narrows_the_search_to_the_named_nodes(world: DrawnCluster) -> None:
    affinity = (world.newcomer["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    listed = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    by_term = [
        [set(f["values"]) for f in term["matchFields"] if f["key"] == "metadata.name" and f["operator"] == "In"]
        for term in listed
    ]
    said = world.prepared(NodeAffinityPlugin())
    if REQUIRED not in affinity and world.newcomer["spec"].get("nodeSelector") is None:
        assert said is SKIP
    elif not listed or not all(by_term):
        assert said is None
    else:
        assert said == set().union(*(set.intersection(*names) for names in by_term))


@given(worlds())
@settings(max_examples=40)
def test_host_ports_conflict_as_a_plain_loop_says(world: DrawnCluster) -> None:
    used: dict[str, set[tuple[str, str, int]]] = {name: set() for name in world.nodes}
    for pod in world.seated:
        used[pod["spec"]["nodeName"]] |= host_ports(pod)
    taken = {name for name in world.nodes if any(in_the_way(p, used[name]) for p in host_ports(world.newcomer))}
    assert world.refused(NodePorts()) == taken


@given(worlds())
@settings(max_examples=40)
def test_declared_features_match_on_nodes_that_list_them_in_order(world: DrawnCluster) -> None:
    wanted = needed(world.newcomer)
    ordered = {name for name, node in world.nodes.items() if _is_ordered(node["status"]["declaredFeatures"])}
    lacking = {n for n, node in world.nodes.items() if not wanted <= set(node["status"]["declaredFeatures"])}
    refused = world.refused(NodeDeclaredFeatures())
    assert refused & ordered == lacking & ordered
    assert lacking <= refused


def _is_ordered(listed: list[str]) -> bool:
    return listed == sorted(listed)
