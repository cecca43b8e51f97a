"""Whatever comes, goes, moves or is tried: the affinity index counts what a recount of the pods counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.model.pod import compile_pod
from fairlead.core.model.selectors import selector_from_document
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.statement import Statement
from fairlead.kube.affinity import existing, selected
from fairlead.kube.affinity.index import AffinityIndex, affinity_index
from fairlead.kube.affinity.selected import PodSelection
from tests.support.random_clusters import (
    KEYS,
    NAMESPACES,
    node_documents,
    pod_documents,
    selectors,
)
from tests.support.scenario import put

NODES = [f"n{i}" for i in range(5)]
steps = st.lists(
    st.tuples(st.sampled_from(["pod", "pod", "end", "node", "drop", "trial"]), st.integers(0, 99)), max_size=25
)
reaches = st.builds(
    lambda names, selector: PodSelection(names, selector_from_document(selector)),
    st.one_of(st.none(), st.frozensets(st.sampled_from(NAMESPACES), min_size=1)),
    selectors,
)


@pytest.fixture(autouse=True, scope="module")
def small_limits() -> Iterator[None]:
    """So that few pods reach what it otherwise takes many for."""
    patch = pytest.MonkeyPatch()
    patch.setattr(existing, "_FEW", 1)
    patch.setattr(existing, "_IDLE_KEPT", 1)
    patch.setattr(selected, "_EMPTY_KEPT", 1)
    yield
    patch.undo()


@given(steps, st.lists(st.tuples(reaches, st.booleans()), min_size=1, max_size=3), st.data())
@settings(max_examples=80)
def test_counts_are_those_of_a_recount(
    steps: list[tuple[str, int]], wanted: list[tuple[PodSelection, bool]], data: st.DataObject
) -> None:
    cluster = Cluster()
    index = affinity_index(cluster)
    groups = [((reach,), live) for reach, live in wanted]
    groups.append((tuple(reach for reach, _ in wanted), False))
    for what, number in steps:
        ask(index, groups)
        happen(cluster, what, number, data)
        compare(cluster, index, groups)


def happen(cluster: Cluster, what: str, number: int, data: st.DataObject) -> None:
    name, node = f"p{number % 8}", NODES[number % len(NODES)]
    if what == "pod":
        put(cluster, kinds.POD, data.draw(pod_documents(name, node)), Happened.MODIFIED)
    elif what == "end":
        cluster.apply(change_of_pod(name))
    elif what == "node":
        put(cluster, kinds.NODE, data.draw(node_documents(node)), Happened.MODIFIED)
    elif what == "drop":
        put(cluster, kinds.NODE, {"metadata": {"name": node}}, Happened.DELETED)
    else:
        move_and_undo(cluster, number, data)


def change_of_pod(name: str) -> Change:
    document: Doc = {"metadata": {"name": name, "uid": name, "namespace": "blue"}, "spec": {"containers": []}}
    return Change(Happened.DELETED, kinds.POD, document)


def move_and_undo(cluster: Cluster, number: int, data: st.DataObject) -> None:
    statement = Statement(cluster)
    seated = list(cluster.seated())
    if seated:
        statement.evict(*seated[number % len(seated)])
    if cluster.table.high:
        newcomer = compile_pod(data.draw(pod_documents("trial")), cluster.shapes)
        statement.assign(newcomer, number % cluster.table.high)
    statement.rollback()


def ask(index: AffinityIndex, groups: list[tuple[tuple[PodSelection, ...], bool]]) -> None:
    """Have the counts made before something happens, so that they have to follow."""
    for reaches, live in groups:
        for key in KEYS:
            index.selected.count(*reaches, live=live).domains(key)


def compare(cluster: Cluster, index: AffinityIndex, groups: list[tuple[tuple[PodSelection, ...], bool]]) -> None:
    fresh = AffinityIndex(cluster)
    for pod, row in cluster.seated():
        fresh.occupied(pod, row)
    assert index.terms.anti.counts() == fresh.terms.anti.counts()
    assert index.terms.pulls.counts() == fresh.terms.pulls.counts()
    for reaches, live in groups:
        rows = Counter(
            row
            for pod, row in cluster.seated()
            if not (live and pod.terminating) and all(r.covers(pod.namespace, pod.labels) for r in reaches)
        )
        tally = index.selected.count(*reaches, live=live)
        assert {row: int(n) for row, n in enumerate(tally.column()) if n} == rows
        for key in KEYS:
            assert sums_by_value(cluster, key, tally.domains(key)) == domains_of(cluster, key, rows)
    for terms in (index.terms.anti, index.terms.pulls):
        for count in terms.all():
            sums = np.zeros(len(cluster.table.label(count.key).values) + 1, dtype=np.int64)
            said = count.add_to(sums, 3)
            expected = domains_of(cluster, count.key, Counter(count.on_rows()))
            assert sums_by_value(cluster, count.key, sums) == {value: 3 * n for value, n in expected.items()}
            assert said == bool(expected)


def domains_of(cluster: Cluster, key: str, rows: Counter[int]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row, node in cluster.table.alive_rows():
        if rows[row] and key in node.labels:
            found[node.labels[key]] += rows[row]
    return dict(found)


def sums_by_value(cluster: Cluster, key: str, sums: NDArray[Any]) -> dict[str, int]:
    values = cluster.table.label(key).values
    assert not sums[len(values) :].any()
    return {value: int(n) for value, n in zip(values, sums, strict=False) if n}
