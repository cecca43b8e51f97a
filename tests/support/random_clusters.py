"""Small random clusters for what pods say of each other: few labels and few domains, so that all of them meet."""

from __future__ import annotations

from typing import Protocol

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.refusals import trial_statement
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Happened
from fairlead.core.model.pod import Pod, compile_pod
from fairlead.core.state.cluster import Cluster
from tests.support.documents import HOST, LONG_AGO, ZONE
from tests.support.plugins import PendingPod
from tests.support.scenario import put

RACK = "rack"
KEYS = (HOST, ZONE, RACK)
NAMESPACES = ("blue", "green", "unknown")
"""The last has no Namespace object."""
namespaces = st.sampled_from(["blue", "blue", "blue", "green", "unknown"])

labels = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from(["web", "db"]), "tier": st.sampled_from(["front", "back"])}
)
namespace_labels = st.fixed_dictionaries({}, optional={"team": st.sampled_from(["a", "b"])})


def _expressions(keys: list[str], values: list[str]) -> SearchStrategy[Doc]:
    chosen = st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)
    key = st.sampled_from(keys)
    return st.one_of(
        st.builds(
            lambda k, o, v: {"key": k, "operator": o, "values": v}, key, st.sampled_from(["In", "NotIn"]), chosen
        ),
        st.builds(lambda k, o: {"key": k, "operator": o}, key, st.sampled_from(["Exists", "DoesNotExist"])),
    )


def _selectors(keys: list[str], values: list[str]) -> SearchStrategy[Doc | None]:
    expressions = st.lists(_expressions(keys, values), max_size=2)
    return st.one_of(st.none(), st.builds(lambda e: {"matchExpressions": e}, expressions))


selectors = st.one_of(
    st.builds(lambda value: {"matchLabels": {"app": value}}, st.sampled_from(["web", "db"])),
    _selectors(["app", "tier"], ["web", "db", "front"]),
)
namespace_selectors = _selectors(["team"], ["a", "b"])


@st.composite
def affinity_terms(draw: st.DrawFn) -> Doc:
    term: Doc = {"labelSelector": draw(selectors), "topologyKey": draw(st.sampled_from(KEYS))}
    if draw(st.booleans()):
        term["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), max_size=2))
    if draw(st.booleans()):
        term["namespaceSelector"] = draw(namespace_selectors)
    return term


@st.composite
def affinities(draw: st.DrawFn) -> Doc:
    terms = st.lists(affinity_terms(), max_size=2)
    weighted = st.lists(
        st.builds(lambda w, t: {"weight": w, "podAffinityTerm": t}, st.integers(0, 100), affinity_terms()), max_size=2
    )
    return {
        name: {
            "requiredDuringSchedulingIgnoredDuringExecution": draw(terms),
            "preferredDuringSchedulingIgnoredDuringExecution": draw(weighted),
        }
        for name in ("podAffinity", "podAntiAffinity")
        if draw(st.booleans())
    }


@st.composite
def spread_constraints(draw: st.DrawFn) -> Doc:
    constraint: Doc = {
        "maxSkew": draw(st.integers(1, 3)),
        "topologyKey": draw(st.sampled_from(KEYS)),
        "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
        "labelSelector": draw(selectors),
        "matchLabelKeys": draw(st.lists(st.sampled_from(["app", "tier"]), max_size=1)),
        "nodeAffinityPolicy": draw(st.sampled_from([None, "Honor", "Ignore"])),
        "nodeTaintsPolicy": draw(st.sampled_from([None, "Honor", "Ignore"])),
    }
    if draw(st.booleans()):
        constraint["minDomains"] = draw(st.integers(1, 4))
    return constraint


@st.composite
def node_documents(draw: st.DrawFn, name: str) -> Doc:
    carried: Doc = {"disk": draw(st.sampled_from(["ssd", "hdd"]))}
    if draw(st.integers(0, 5)):
        carried[HOST] = name
    zone, rack = draw(st.sampled_from([None, "", "a", "b"])), draw(st.sampled_from([None, "r1", "r2"]))
    carried |= {key: value for key, value in ((ZONE, zone), (RACK, rack)) if value is not None}
    taints = [{"key": "dedicated", "effect": "NoSchedule"}] if draw(st.integers(0, 3)) == 0 else []
    return {"metadata": {"name": name, "labels": carried}, "spec": {"taints": taints}}


@st.composite
def pod_documents(draw: st.DrawFn, name: str, node: str = "", *, choosy: bool = False, constraints: int = 0) -> Doc:
    metadata: Doc = {
        "name": name, "uid": name, "namespace": draw(namespaces), "labels": draw(labels),
    }  # fmt: skip
    if node and draw(st.integers(0, 3)) == 0:
        metadata["deletionTimestamp"] = LONG_AGO
    spec: Doc = {"containers": [{"name": "c"}], "nodeName": node or None}
    if draw(st.booleans()):
        spec["affinity"] = draw(affinities())
    if choosy:
        spec["topologySpreadConstraints"] = draw(st.lists(spread_constraints(), min_size=constraints, max_size=3))
        spec["nodeSelector"] = draw(st.sampled_from([None, None, {"disk": "ssd"}]))
        spec["tolerations"] = draw(st.sampled_from([[], [{"operator": "Exists"}]]))
    return {"metadata": metadata, "spec": spec}


@st.composite
def pending_pods(draw: st.DrawFn, *, services: bool = False, constraints: int = 0) -> PendingPod:
    """A cluster with pods on its nodes (and some on a node that is not there), and a pod that is to be placed."""
    cluster = Cluster()
    for name in NAMESPACES[:-1]:
        put(cluster, kinds.NAMESPACE, {"metadata": {"name": name, "labels": draw(namespace_labels)}})
    names = [f"n{i}" for i in range(draw(st.integers(1, 6)))]
    for name in names:
        put(cluster, kinds.NODE, draw(node_documents(name)))
    for i in range(draw(st.integers(0, 10))):
        node = draw(st.sampled_from([*names, "gone"]))
        put(cluster, kinds.POD, draw(pod_documents(f"e{i}", node)))
    if services:
        for i in range(draw(st.integers(1, 2))):
            put(cluster, kinds.SERVICE, draw(service_documents(f"s{i}")))
    if draw(st.integers(0, 3)) == 0:
        put(cluster, kinds.NODE, {"metadata": {"name": names[0]}}, Happened.DELETED)
    newcomer = draw(pod_documents("new", choosy=not services, constraints=constraints))
    return PendingPod(cluster, compile_pod(newcomer, cluster.shapes))


@st.composite
def service_documents(draw: st.DrawFn, name: str) -> Doc:
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": draw(namespaces)},
        "spec": {"selector": draw(st.one_of(st.none(), labels))},
    }


class PlainRules(Protocol):
    """A plugin's filter written down plainly, which is told of moves."""

    def moved(self, other: Pod, row: int, amount: int) -> None: ...

    def refusals(self) -> dict[int, str]: ...


def try_moves(
    place: PendingPod, trial: Cycle, plain: PlainRules, steps: list[tuple[bool, int, int]], data: st.DataObject
) -> None:
    """Move pods about in a trial, and compare after each step; then undo it all."""
    plugin = trial.profile.plugins()[0]
    statement = trial_statement(trial)
    for number, (takes, which, where) in enumerate(steps):
        rows = sorted(place.nodes())
        seated = [(pod, row) for row in rows for pod in place.pods_on(row)]
        if takes and seated:
            other, row = seated[which % len(seated)]
            statement.evict(other, row)
            plain.moved(other, row, -1)
        elif rows:
            other = compile_pod(data.draw(pod_documents(f"t{number}")), place.cluster.shapes)
            row = rows[where % len(rows)]
            statement.assign(other, row)
            plain.moved(other, row, 1)
        assert place.refusals(plugin, trial) == plain.refusals()
    statement.rollback()


trials = st.lists(st.tuples(st.booleans(), st.integers(0, 99), st.integers(0, 99)), max_size=4)
"""Steps of a trial: take a pod away or bring one, and two numbers to choose which and where."""
