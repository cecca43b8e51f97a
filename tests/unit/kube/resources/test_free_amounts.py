"""The matrix of what is left on nodes says what the table says, after whatever happened; and percentages are exact."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.kube.resources.free_amounts import EXACT_BELOW, FreeAmounts, room_of
from fairlead.kube.resources.plugin import NodeResourcesBalancedAllocation, NodeResourcesFit

PLUGINS = (
    NodeResourcesFit(),
    NodeResourcesFit(strategy="MostAllocated"),
    NodeResourcesFit(resources=[("memory", 3), ("cpu", 7)]),
    NodeResourcesBalancedAllocation(),
    NodeResourcesBalancedAllocation(by_gain=False),
)


def node(name: str, cpu: int, memory: int) -> Change:
    offered = {"cpu": f"{cpu}m", "memory": str(memory), "pods": "5"}
    return Change(
        Happened.ADDED, kinds.NODE, {"metadata": {"name": name, "uid": name}, "status": {"allocatable": offered}}
    )


def pod(name: str, cpu: int, memory: int, on: str) -> Change:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{cpu}m", "memory": str(memory)}}}
    spec: dict[str, Any] = {"containers": [container], "nodeName": on}
    doc = {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}
    return Change(Happened.ADDED, kinds.POD, doc)


names = st.sampled_from([f"n{number}" for number in range(6)])
millis = st.one_of(st.integers(0, 9_000), st.just(0))
sizes = st.one_of(st.integers(0, 1 << 36), st.integers(1, EXACT_BELOW - 1), st.just(EXACT_BELOW + 3))
events = st.one_of(
    st.builds(node, names, millis, sizes),
    st.builds(pod, st.sampled_from("abcdefgh"), millis, sizes, names),
    st.builds(lambda name: Change(Happened.DELETED, kinds.NODE, {"metadata": {"name": name, "uid": name}}), names),
)


@given(st.lists(st.lists(events, max_size=7), min_size=1, max_size=4))
@settings(max_examples=80)
def test_what_is_kept_is_what_would_be_found_anew(steps: list[list[Change]]) -> None:
    cluster = Cluster()
    for step in steps:
        for change in step:
            cluster.apply(change)
        kept, anew = room_of(cluster), FreeAmounts(cluster)
        everything = Nodes(cluster.table)
        ours, theirs = kept.block(everything), anew.block(everything)
        if ours is None or theirs is None:
            assert ours is None
            return
        alive = cluster.table.alive[: cluster.table.high]
        assert np.array_equal(ours[:, alive], theirs[:, alive])
        odd, fresh = kept.lacking(everything), anew.lacking(everything)
        assert (odd is None) == (fresh is None)
        assert odd is None or fresh is None or odd.tolist() == fresh.tolist()


@given(st.lists(events, min_size=1, max_size=12), millis, sizes, st.sampled_from(PLUGINS))
@settings(max_examples=250)
def test_columns_of_floats_score_as_whole_numbers_do(start: list[Change], cpu: int, memory: int, scorer: Any) -> None:
    cluster = Cluster()
    for change in start:
        cluster.apply(change)
    applied = cluster.apply(pod("probe", cpu, memory, ""))
    assert applied is not None
    cycle = Cycle(
        pod=applied.new, cluster=cluster, profile=profile_of("s", [scorer]), now=0.0, rng=Random(0), effects=Effects()
    )
    rows = np.flatnonzero(cluster.table.alive[: cluster.table.high])
    one_by_one = [scorer.score_row(cycle, int(row)) for row in rows]
    assert scorer.score(cycle, Nodes(cluster.table, rows)).tolist() == one_by_one
    assert scorer.score(cycle, Nodes(cluster.table))[rows].tolist() == one_by_one
