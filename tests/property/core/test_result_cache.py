"""A cached answer equals a recomputed one, whatever happened to the cluster in between; and so does one for a row."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.engine.cycle.attempt import place
from fairlead.core.engine.cycle.placement import Placed, Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.profile import Profile, profile_of
from fairlead.core.framework.results.cached_plugin import CachedPlugin, overrides
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Verdict
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.core.state.statement import Statement
from fairlead.kube.nodes.basics import NodeName, NodeUnschedulable, PrioritySort
from fairlead.kube.nodes.images import ImageLocality
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from fairlead.kube.nodes.ports import NodePorts
from fairlead.kube.nodes.taints import TaintToleration
from fairlead.kube.resources.plugin import NodeResourcesBalancedAllocation, NodeResourcesFit

RESOURCES = [("cpu", 3), ("memory", 1), ("example.com/gpu", 5)]
SHAPE = [(0, 0), (40, 9), (80, 3), (100, 10)]
FITS = [
    NodeResourcesFit(),
    NodeResourcesFit(strategy="MostAllocated", resources=RESOURCES),
    NodeResourcesFit(strategy="RequestedToCapacityRatio", resources=RESOURCES, shape=SHAPE),
]


def profile(fit: NodeResourcesFit) -> Profile:
    plugins = [
        PrioritySort(), NodeUnschedulable(), NodeName(), TaintToleration(), NodeAffinityPlugin(), NodePorts(), fit,
        NodeResourcesBalancedAllocation(resources=RESOURCES), ImageLocality(),
    ]  # fmt: skip
    return profile_of("default-scheduler", plugins, weights={"TaintToleration": 3, "NodeAffinity": 2})


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    name = f"n{draw(st.integers(0, 5))}"
    effect = draw(st.sampled_from(["", "NoSchedule", "PreferNoSchedule"]))
    images = draw(st.lists(st.sampled_from(["a:1", "b:1"]), max_size=2, unique=True))
    offered = {"cpu": str(draw(st.integers(0, 8))), "memory": "8Gi", "pods": str(draw(st.integers(0, 6)))}
    if draw(st.booleans()):
        offered["example.com/gpu"] = "4"
    return {
        "metadata": {"name": name, "uid": name, "labels": {"disk": draw(st.sampled_from(["ssd", "hdd"]))}},
        "spec": {
            "unschedulable": draw(st.booleans()) and draw(st.booleans()),
            "taints": [{"key": "k", "effect": effect}] if effect else [],
        },
        "status": {
            "allocatable": offered,
            "images": [{"names": [image], "sizeBytes": draw(st.integers(0, 900)) << 20} for image in images],
        },
    }


@st.composite
def pods(draw: st.DrawFn, name: str = "") -> dict[str, Any]:
    name = name or f"p{draw(st.integers(0, 9))}"
    requests = {"cpu": draw(st.sampled_from(["0", "250m", "1", "3"]))}
    if draw(st.booleans()):
        requests["memory"] = draw(st.sampled_from(["1Gi", "3Gi"]))
    if draw(st.integers(0, 3)) == 0:
        requests["example.com/gpu"] = "1"
    port = draw(st.sampled_from([0, 0, 80]))
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "c",
                "image": draw(st.sampled_from(["a:1", "b:1", "none"])),
                "resources": {"requests": requests},
                "ports": [{"containerPort": 80, "hostPort": port}] if port else [],
            }
        ],
        "nodeName": draw(st.sampled_from(["", "n0", "n1", "n2"])),
    }
    if draw(st.integers(0, 3)) == 0:
        spec["nodeSelector"] = {"disk": "ssd"}
    if draw(st.integers(0, 3)) == 0:
        spec["tolerations"] = [{"operator": "Exists"}]
    if draw(st.integers(0, 3)) == 0:
        preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd"]}]}
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 7, "preference": preference}]}}  # fmt: skip
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


happenings = st.sampled_from([Happened.ADDED, Happened.MODIFIED, Happened.MODIFIED, Happened.DELETED])
changes = st.one_of(
    st.builds(lambda h, d: Change(h, kinds.NODE, d), happenings, nodes()),
    st.builds(lambda h, d: Change(h, kinds.POD, d), happenings, pods()),
)


def cycle_for(pod: Pod, cluster: Cluster, of: Profile) -> Cycle:
    return Cycle(pod=pod, cluster=cluster, profile=of, now=0.0, rng=Random(0), effects=Effects())


def picture(evaluator: Evaluator, pod: Pod, cluster: Cluster) -> dict[str, Any]:
    """All that an evaluator says of every node."""
    cycle = cycle_for(pod, cluster, evaluator.profile)
    cluster.begin_cycle()
    assert evaluator.pre_filter(cycle).status is None
    judgement = evaluator.judge(cycle)
    alive = np.flatnonzero(cluster.table.alive[: cluster.table.high]).astype(np.int32)
    codes = evaluator.refusals(cycle, judgement)
    verdicts = {
        cluster.table.name(int(row)): evaluator.codes.verdicts[int(codes[row])] if not judgement.ok[row] else None
        for row in alive
    }
    feasible = np.array([row for row in alive if judgement.ok[row]], dtype=np.int32)
    selection = Nodes(cluster.table, feasible)
    evaluator.pre_score(cycle, selection)
    totals, contributions = evaluator.score(cycle, selection)
    scores = {
        cluster.table.name(int(row)): (int(totals[at]), {c.plugin: c.at(int(row), at) for c in contributions})
        for at, row in enumerate(feasible)
    }
    return {"verdicts": verdicts, "scores": scores}


@given(st.lists(changes, max_size=12), st.lists(pods("probe"), min_size=1, max_size=3), st.data())
@settings(max_examples=120)
def test_what_is_remembered_is_what_would_be_found_anew(
    start: list[Change], probes: list[dict[str, Any]], data: st.DataObject
) -> None:
    of = profile(data.draw(st.sampled_from(FITS)))
    cluster = Cluster()
    for change in start:
        cluster.apply(change)
    evaluator = Evaluator(of)
    for number in range(data.draw(st.integers(1, 6))):
        probe = data.draw(st.sampled_from(probes))
        probe = {**probe, "metadata": {**probe["metadata"], "name": f"probe-{number}", "uid": f"probe-{number}"}}
        probe["spec"] = {**probe["spec"], "nodeName": ""}
        applied = cluster.apply(Change(Happened.ADDED, kinds.POD, probe))
        assert applied is not None
        if len(cluster.table):
            if data.draw(st.booleans()):  # else nobody asks why nodes are refused, until later
                assert picture(evaluator, applied.new, cluster) == picture(Evaluator(of), applied.new, cluster)
            chosen = place(cycle_for(applied.new, cluster, of), evaluator, Search())
            if isinstance(chosen, Placed):
                statement = Statement(cluster)
                statement.assign(applied.new, chosen.row)
                statement.commit()
        for change in data.draw(st.lists(changes, max_size=8)):
            cluster.apply(change)


@given(st.lists(changes, max_size=20), pods("probe"), st.sampled_from(FITS))
@settings(max_examples=150)
def test_the_twin_for_one_row_says_what_the_columns_say(
    start: list[Change], probe: dict[str, Any], fit: NodeResourcesFit
) -> None:
    of = profile(fit)
    cluster = Cluster()
    for change in start:
        cluster.apply(change)
    cluster.begin_cycle()
    applied = cluster.apply(Change(Happened.ADDED, kinds.POD, {**probe, "spec": {**probe["spec"], "nodeName": ""}}))
    assert applied is not None
    evaluator = Evaluator(of)
    cycle = cycle_for(applied.new, cluster, of)
    evaluator.pre_filter(cycle)
    rows = np.flatnonzero(cluster.table.alive[: cluster.table.high]).astype(np.int32)
    for plugin in [plugin for plugin in of.plugins() if isinstance(plugin, CachedPlugin)]:
        if overrides(plugin, "filter_row") and plugin.name not in cycle.no_filter:
            codes = evaluator.codes.refusals(plugin.name, plugin.filter(cycle, Nodes(cluster.table, rows)), len(rows))
            for at, row in enumerate(rows):
                by_column: Verdict | None = None if codes is None else evaluator.codes.verdicts[int(codes[at])]
                assert plugin.filter_row(cycle, int(row)) == by_column
        if overrides(plugin, "score_row"):
            column = plugin.score(cycle, Nodes(cluster.table, rows))
            assert not isinstance(column, int)
            assert [plugin.score_row(cycle, int(row)) for row in rows] == column.tolist()
