"""What Koordinator's plugins keep of their answers is what they would find anew, whatever happened in between.

Every search is checked: the cached columns against a result cache that begins with this search, single rows against
columns, the sums of LoadAwareScheduling against sums that are counted from the beginning, and what Reservation knows of
a kind of pods against what it finds for a kind that it has not met.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from fairlead.core.framework.calls import refusals_by
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.results.cached_plugin import CachedPlugin, overrides
from fairlead.core.framework.results.signature import SignatureResults
from fairlead.core.framework.row_view import RowView
from fairlead.core.model.flow import Doc
from fairlead.core.model.reasons import SKIP, Status
from fairlead.core.model.times import timestamp
from fairlead.core.state.nodes import Nodes
from fairlead.koordinator.agents.node_topologies import node_topology
from fairlead.koordinator.kinds import KOORD_NODE_METRIC
from fairlead.koordinator.load.columns import LoadIndex
from fairlead.koordinator.load.plugin import LoadAwareScheduling
from fairlead.koordinator.numa.plugin import NodeNUMAResource, NumaNote
from fairlead.koordinator.numa.request import numa_request
from fairlead.koordinator.records.reservations import is_reserve_pod
from fairlead.koordinator.reservations import plugin as reservation_plugin
from fairlead.koordinator.reservations.kinds_of_pods import PodKinds
from fairlead.koordinator.reservations.plugin import ReservationNote, ReservationPlugin
from tests.support.documents import node
from tests.support.koordinator import SCHEDULING, KoordScenario, koord_pod, koord_reservation

NODES = 5
SPREAD: Doc = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
         "labelSelector": {"matchLabels": {"app": "web"}}}
    ]
}  # fmt: skip
APART: Doc = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
                                                  "labelSelector": {"matchLabels": {"app": "db"}}}}
            ]
        }
    }
}  # fmt: skip
SETTINGS: list[dict[str, Any]] = [
    {},
    {"nodeMetricExpirationSeconds": 60, "prodUsageThresholds": {"cpu": 55}, "scoreAccordingProdUsage": True},
    {
        "dominantResourceWeight": 2,
        "aggregated": {
            "usageThresholds": {"cpu": 70}, "usageAggregationType": "p95", "usageAggregatedDuration": "5m",
            "scoreAggregationType": "p95", "scoreAggregatedDuration": "5m",
        },
    },
]  # fmt: skip
_COLUMNS = (
    "reported", "measured", "updated", "expired", "usage", "prod_usage", "delta", "prod_delta", "estimated",
    "allocatable",
)  # fmt: skip


class Checked:
    """Compares what every search finds in the cache with what it would find without."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.searches = 0
        self.cached: set[str] = set()
        self.apart: set[str] = set()
        self.viewed = 0
        self._within = False
        self._begin: Callable[[ReservationPlugin, Cycle], Any] = ReservationPlugin.before_pre_filter
        monkeypatch.setattr(ReservationPlugin, "before_pre_filter", lambda plugin, cycle: self.begin(plugin, cycle))
        self._catch_up: Callable[[Evaluator, Cycle], SignatureResults] = Evaluator.catch_up
        monkeypatch.setattr(Evaluator, "catch_up", lambda evaluator, cycle: self(evaluator, cycle))

    def __call__(self, evaluator: Evaluator, cycle: Cycle) -> SignatureResults:
        results = self._catch_up(evaluator, cycle)
        if not self._within:
            self._within = True
            self._compare(evaluator, cycle, results)
            self._within = False
            self.searches += 1
        return results

    def begin(self, plugin: ReservationPlugin, cycle: Cycle) -> Any:
        anew = PodKinds(cycle.cluster).of(cycle.pod)
        said = self._begin(plugin, cycle)
        note: ReservationNote | None = plugin._note(cycle)
        if note is not None and not is_reserve_pod(cycle.pod):
            assert note.rows.keys() == anew.rows.keys()
            assert note.counts == anew.counts
            assert note.kind.plain is anew.plain
            for row, matched in note.rows.items():
                assert matched.states == anew.rows[row].states
                assert matched.room == anew.rows[row].room
                assert matched.first_order == anew.rows[row].first_order
                assert note.kind.judge(matched) == anew.judge(anew.rows[row])
        self.viewed += cycle.view is not None
        return said

    def _compare(self, evaluator: Evaluator, cycle: Cycle, results: SignatureResults) -> None:
        fresh, twin = Evaluator(evaluator.profile), cycle.copy()
        fresh.cache.results_for(twin)
        anew = fresh.catch_up(twin)
        high, alive = cycle.cluster.table.high, cycle.cluster.table.alive
        there = alive[:high]
        np.testing.assert_array_equal(results.ok[:high][there], anew.ok[:high][there])
        np.testing.assert_array_equal(results.ranked[:high][there], anew.ranked[:high][there])
        assert _verdicts(evaluator, cycle, results, there) == _verdicts(fresh, twin, anew, there)
        for plugin in evaluator.profile.plugins():
            if isinstance(plugin, (LoadAwareScheduling, NodeNUMAResource)):
                (self.apart if plugin.name in results.plan.apart else self.cached).add(plugin.name)
                _compare_rows(plugin, cycle.copy(), evaluator)
            if isinstance(plugin, NodeNUMAResource) and plugin.name not in results.plan.apart:
                _compare_with_care(plugin, cycle.copy(), results)
            if isinstance(plugin, LoadAwareScheduling):
                plugin.columns(cycle)
                _compare_sums(plugin.index_of(cycle.cluster), cycle)


def _verdicts(evaluator: Evaluator, cycle: Cycle, results: SignatureResults, there: Any) -> list[Any]:
    codes = evaluator.codes.first_of(*results.refusals(cycle, len(there)))
    return [evaluator.codes.verdict(int(code)) if code else None for code in codes[there]]


def _compare_rows(plugin: CachedPlugin, cycle: Cycle, evaluator: Evaluator) -> None:
    table = cycle.cluster.table
    rows = np.flatnonzero(table.alive[: table.high])
    nodes = Nodes(table, rows)
    assert overrides(plugin, "filter_row")
    if plugin.name not in cycle.no_filter:
        codes = refusals_by(plugin, cycle, nodes, evaluator.codes)
        singly = [plugin.filter_row(cycle, row) for row in rows.tolist()]
        assert singly == [
            None if codes is None or not codes[at] else evaluator.codes.verdict(int(codes[at]))
            for at in range(len(rows))
        ]
        passing = [row for row, said in zip(rows.tolist(), singly, strict=True) if said is None]
        scores = plugin.score(cycle, Nodes(table, np.array(passing, dtype=np.int32)))
        assert [plugin.score_row(cycle, row) for row in passing] == np.broadcast_to(scores, len(passing)).tolist()


def _compare_with_care(plugin: NodeNUMAResource, cycle: Cycle, results: SignatureResults) -> None:
    """What is kept for plain pods is what NodeNUMAResource says if it looks at each pod and row with care."""
    request = numa_request(cycle.pod, plugin._settings.default_policy)
    if isinstance(request, Status):
        assert request is SKIP
        return
    cycle.notes[plugin.name] = NumaNote(request, plain=False)
    table = cycle.cluster.table
    nodes = Nodes(table, np.flatnonzero(table.alive[: table.high]))
    assert not any(reject.rows.any() for reject in plugin.filter(cycle, nodes))
    np.testing.assert_array_equal(results.scored[plugin.name].column[nodes.rows], plugin.score(cycle, nodes))


def _compare_sums(index: LoadIndex, cycle: Cycle) -> None:
    anew = LoadIndex(cycle.cluster, index._settings, index._estimator)
    anew._assigned, anew._reserve_pods = dict(index._assigned), index._reserve_pods
    anew.catch_up(cycle.now)
    table = cycle.cluster.table
    there = table.alive[: table.high]
    for name in _COLUMNS:
        one, other = getattr(index.columns, name), getattr(anew.columns, name)
        np.testing.assert_array_equal(one[: table.high][there], other[: table.high][there], err_msg=name)


def _metric(name: str, at: float, rng: Random, scenario: KoordScenario) -> Doc:
    usage = {"cpu": f"{rng.randrange(7000)}m", "memory": f"{rng.randrange(8)}Gi"}
    pods = [
        {
            "namespace": "default",
            "name": pod,
            "priority": "koord-prod",
            "podUsage": {"resources": {"cpu": f"{rng.randrange(2000)}m", "memory": "1Gi"}},
        }
        for pod, where in scenario.placed().items()
        if where == name and rng.random() < 0.7
    ]
    percentiles = [{"duration": "5m", "usage": {"p95": {"resources": {"cpu": f"{rng.randrange(8000)}m"}}}}]
    status: Doc = {
        "nodeMetric": {"nodeUsage": {"resources": usage, "aggregatedNodeUsages": percentiles}}, "podsMetric": pods,
    }  # fmt: skip
    if rng.random() < 0.9:
        status["updateTime"] = timestamp(at)
    kind = KOORD_NODE_METRIC
    metadata = {"name": name, "uid": f"metric-{name}"}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {}, "status": status}


class Happenings:
    def __init__(self, scenario: KoordScenario, rng: Random) -> None:
        self.scenario, self.rng = scenario, rng
        self.count = 0

    def node(self) -> None:
        found = node(f"n{self.rng.randrange(NODES + 3)}", cpu=self.rng.choice([4, 8, 16]))
        if self.rng.random() < 0.3:
            text = json.dumps({"usageThresholds": {"cpu": self.rng.choice([30, 50])}})
            found["metadata"]["annotations"] = {SCHEDULING + "usage-thresholds": text}
        self.scenario.tell(found)

    def metric(self) -> None:
        name, ago = f"n{self.rng.randrange(NODES + 3)}", self.rng.choice([0, 0, 50, 200])
        self.scenario.tell(_metric(name, self.scenario.now - ago, self.rng, self.scenario))

    def time(self) -> None:
        self.scenario.run(after=self.rng.choice([1, 25, 61]))

    def topology(self) -> None:
        names = sorted(key[2] for key in self.scenario.docs if key[0] == "nodes")
        found = self.scenario.doc("nodes", self.rng.choice(names))
        status = found["status"]
        topology = node_topology({**found, "status": {**status, "capacity": status["allocatable"]}})
        if topology is not None:
            self.scenario.tell(topology)

    def bound(self) -> None:
        name = f"n{self.rng.randrange(NODES)}"
        labels = {"node.koordinator.sh/cpu-bind-policy": "SpreadByPCPUs"} if self.rng.random() < 0.5 else None
        self.scenario.tell(node(name, labels=labels, cpu=8))

    def reservation(self) -> None:
        request = {"cpu": str(self.rng.randrange(1, 3)), "memory": "1Gi"}
        owners = {"app": self.rng.choice(["web", "db"])}
        once = self.rng.random() < 0.5
        found = koord_reservation(f"r{self.count}", request=request, owners=owners, allocateOnce=once, ttl="0s")
        if self.rng.random() < 0.2:
            found["metadata"]["labels"] = {SCHEDULING + "reservation-order": str(self.rng.randrange(1, 4))}
        self.scenario.tell(found)

    def gone(self) -> None:
        pods = sorted(key for key in self.scenario.docs if key[0] in ("pods", "reservations"))
        if pods:
            self.scenario.gone(self.scenario.docs[self.rng.choice(pods)])

    def pods(self) -> None:
        labels = {"app": self.rng.choice(["web", "db", "other"])}
        if self.rng.random() < 0.15:
            labels["koordinator.sh/qosClass"] = self.rng.choice(["LSR", "LS", "BE"])
        priority = self.rng.choice([9500, 9500, 5500, 0])
        more = self.rng.choice([{}, {}, {}, SPREAD, APART])
        asked = {**more, "labels": labels, "priority": priority, "cpu": self.rng.choice(["1", "2", "500m"])}
        names = [f"p{self.count}-{at}" for at in range(self.rng.randrange(1, 4))]
        self.scenario.tell(*(koord_pod(name, memory="1Gi", **asked) for name in names))

    def one(self) -> None:
        self.count += 1
        self.rng.choice(
            [
                self.node,
                self.metric,
                self.metric,
                self.time,
                self.reservation,
                self.gone,
                self.pods,
                self.pods,
                self.pods,
                self.pods,
            ]
        )()
        self.scenario.settle()


@pytest.mark.parametrize("seed", range(12))
def test_kept_answers_are_those_found_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    checked, rng = Checked(monkeypatch), Random(seed)
    scenario = KoordScenario({"LoadAwareScheduling": SETTINGS[seed % len(SETTINGS)]})
    happenings = Happenings(scenario, rng)
    for number in range(NODES):
        scenario.tell(node(f"n{number}", cpu=8))
    for _ in range(30):
        happenings.one()
    assert checked.cached >= {"LoadAwareScheduling", "NodeNUMAResource"}
    # Topologies, and nodes that bind all pods, make most pods be asked about.
    for _ in range(12):
        rng.choice([happenings.topology, happenings.bound])()
        scenario.settle()
        happenings.one()
    happenings.pods()
    scenario.settle()
    assert checked.searches > 10
    assert not scenario.backlog.complaints
    scenario.cluster.check()


def _story(seed: int) -> tuple[dict[str, str], dict[Any, Any]]:
    """Where pods are after a while, and what is written on them."""
    scenario = KoordScenario()
    happenings = Happenings(scenario, Random(seed))
    for number in range(NODES):
        scenario.tell(node(f"n{number}", cpu=8))
    for _ in range(5):
        happenings.reservation()
        scenario.settle()
    for _ in range(40):
        happenings.one()
    scenario.tell(koord_reservation("last", request={"cpu": "1"}, owners={"app": "web"}, allocateOnce=False, ttl="0s"))
    scenario.settle()
    scenario.tell(*(koord_pod(f"last-{at}", cpu="100m", labels={"app": "web"}) for at in range(5)))
    scenario.settle()
    written = {key: doc["metadata"].get("annotations") for key, doc in scenario.docs.items() if key[0] == "pods"}
    return scenario.placed(), written


@pytest.mark.parametrize("seed", range(8))
def test_pods_go_where_they_go_if_all_rows_are_shown(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row whose reservations a pod may use is shown to it only where somebody looks; nobody else looks there."""
    ended: list[RowView] = []
    settle = RowView.ended
    monkeypatch.setattr(RowView, "ended", lambda view, table: (ended.append(view), settle(view, table)))
    as_needed = _story(seed)
    assert ended
    monkeypatch.setattr(reservation_plugin, "_is_looked_at", lambda cycle: True)
    assert as_needed == _story(seed)
    assert len(as_needed[0]) > 5
