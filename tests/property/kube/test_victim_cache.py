"""What is remembered of evictions equals what is found anew, whatever happened in between; and columns choose as rules
that look at one candidate after the other do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.profile import profile_of
from fairlead.core.framework.refusals import Refusals
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.framework.sums import sums_alone
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Reason, Reject, Verdict
from fairlead.core.state.nodes import Nodes
from fairlead.core.state.touchlog import TouchLog
from fairlead.kube.preemption import victim_cache
from fairlead.kube.preemption.plugin import best_candidates
from fairlead.kube.preemption.victim_cache import search_victims
from fairlead.kube.preemption.victims import VictimNode, budgets_of, select_victims
from fairlead.kube.resources.plugin import NodeResourcesFit, Request
from tests.support.documents import budget, compiled, node, pod
from tests.support.preemption import NOW, PreemptionScenario, filtering_profile

Doc = dict[str, Any]
NODES = 3
STARTS = ["", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2027-01-01T00:00:00Z"]
"""Not yet, early, late, and by a clock that is ahead of ours."""


class Curfew(CachedPlugin):
    """Somebody's own: at times it closes a node, so that nobody goes there whoever leaves."""

    name = "Curfew"
    reads = frozenset({"spec"})

    def __init__(self, scope: Scope = Scope.ROW) -> None:
        self.scope = scope
        self.closed = -1
        self.changes = 0

    def close(self, row: int) -> None:
        self.closed = row
        self.changes += 1

    def epoch(self, cycle: Cycle) -> int:
        return self.changes

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        return (Reject(Reason(self.name, "closed"), nodes.row_numbers() == self.closed),)


class ChangingCluster:
    """An arena where pods come and go, nodes are promised or closed and budgets spent between one search and the
    next."""

    def __init__(self, *, counted: bool, curfew: Curfew | None = None) -> None:
        self.curfew = curfew
        profile = filtering_profile() if curfew is None else filtering_profile(curfew)
        self.scenario = PreemptionScenario(*(node(f"n{i}", pods=4) for i in range(NODES)), profile=profile)
        self.seated: list[Doc] = []
        self.promised: dict[int, list[Pod]] = {}
        self.log = TouchLog() if counted else None
        self.made = 0

    def act(self, draw: st.DrawFn) -> None:
        getattr(self, draw(st.sampled_from(["comes", "goes", "is_promised", "guard", "resize", "close"])))(draw)

    def comes(self, draw: st.DrawFn) -> None:
        self.settle(draw, draw(st.integers(0, NODES - 1)))

    def settle(self, draw: st.DrawFn, row: int) -> None:
        self.made += 1
        doc = pod(
            f"e{self.made}",
            cpu=draw(st.sampled_from(["1", "2", "3"])),
            on=f"n{row}",
            priority=draw(st.sampled_from([-5, 0, 0, 9])),
            port=draw(st.sampled_from([0, 0, 80])),
            started=draw(st.sampled_from(STARTS)),
            labels={"app": draw(st.sampled_from(["web", "db"]))},
        )
        self.seated.append(doc)
        self.scenario.put(kinds.POD, doc)

    def goes(self, draw: st.DrawFn) -> None:
        if self.seated:
            doc = self.seated.pop(draw(st.integers(0, len(self.seated) - 1)))
            self.scenario.cluster.apply(Change(Happened.DELETED, kinds.POD, doc))

    def is_promised(self, draw: st.DrawFn) -> None:
        row = draw(st.integers(0, NODES - 1))
        self.promised.pop(row, None)
        if draw(st.booleans()):
            self.made += 1
            priority = draw(st.sampled_from([0, 5, 9]))
            self.promised[row] = [compiled(pod(f"w{self.made}", cpu="2", priority=priority))]
        if self.log is not None:
            self.log.touch(row)

    def guard(self, draw: st.DrawFn) -> None:
        app = draw(st.sampled_from(["web", "web", "db"]))
        self.scenario.put(kinds.POD_DISRUPTION_BUDGET, budget("b", {"app": app}, allowed=draw(st.integers(0, 2))))

    def resize(self, draw: st.DrawFn) -> None:
        row = draw(st.integers(0, NODES - 1))
        self.scenario.put(kinds.NODE, node(f"n{row}", cpu=draw(st.sampled_from([2, 4, 6])), pods=4))

    def close(self, draw: st.DrawFn) -> None:
        if self.curfew is not None:
            self.curfew.close(draw(st.integers(-1, NODES - 1)))

    def challenge(self, port: int, cpu: str = "3") -> tuple[Cycle, Refusals] | None:
        self.made += 1
        doc = pod(f"p{self.made}", cpu=cpu, priority=5, port=port)
        found = self.scenario.challenge(doc, nominated=self.promised, promises=self.log)
        self.scenario.cluster.apply(Change(Happened.DELETED, kinds.POD, doc))
        return found


def one_by_one(cycle: Cycle, refusals: Refusals, rows: list[int], wanted: int) -> tuple[list[VictimNode], list[str]]:
    """The walk in so many words: candidates that violate no budget first, and what was said of other rows."""
    peaceful: list[VictimNode] = []
    violating: list[VictimNode] = []
    said: list[str] = []
    for row in rows:
        answer = select_victims(cycle, refusals, row, budgets_of(cycle.cluster), sums_alone(cycle))
        if isinstance(answer, Verdict):
            said += answer.reasons
            continue
        (violating if answer.violations else peaceful).append(answer)
        if peaceful and len(peaceful) + len(violating) >= wanted:
            break
    return peaceful[:wanted] + violating[:wanted], said


def named(candidates: list[VictimNode]) -> list[tuple[int, list[str], int]]:
    return [(c.row, [victim.name for victim in c.victims], c.violations) for c in candidates]


@given(st.data())
@settings(max_examples=50)
def test_a_victim_cache_is_what_a_new_look_finds(data: st.DataObject) -> None:
    draw = data.draw
    curfew = draw(st.sampled_from([None, Scope.STATIC, Scope.ROW]))
    changing = ChangingCluster(counted=draw(st.booleans()), curfew=None if curfew is None else Curfew(curfew))
    for row in range(NODES):
        for _ in range(draw(st.integers(2, 3))):
            changing.settle(draw, row)
    if draw(st.booleans()):
        changing.guard(draw)
    for _ in range(4):
        for _ in range(draw(st.integers(0, 2))):
            changing.act(draw)
        found = changing.challenge(port=draw(st.sampled_from([0, 0, 80])))
        if found is None:
            continue
        cycle, refusals = found
        hopeful = np.flatnonzero(refusals.where_room_could_help()).tolist()
        rows = draw(st.permutations(hopeful))
        wanted = draw(st.integers(1, NODES))
        looked = search_victims(cycle, refusals, np.array(rows, dtype=np.int32), wanted)
        expected, said = one_by_one(cycle, refusals, rows, wanted)
        assert named(looked.candidates()) == named(expected)
        if expected:
            assert named(looked.best(NOW)) == named(best_candidates(expected, NOW))
        else:
            codes = refusals.evaluator.codes
            told = [reason for verdict, n in looked.in_vain(codes) for reason in verdict.reasons * n]
            assert sorted(told) == sorted(said)


def test_equal_pods_ask_only_rows_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []

    def counting(cycle: Cycle, refusals: Refusals, row: int, *rest: Any) -> VictimNode | Verdict:
        asked[-1].append(row)
        return select_victims(cycle, refusals, row, *rest)

    monkeypatch.setattr(victim_cache, "select_victims", counting)
    changing = ChangingCluster(counted=True)
    for i in range(NODES):
        changing.scenario.put(kinds.POD, pod(f"low{i}", cpu="4", on=f"n{i}", priority=i))
    for _ in range(3):
        found = changing.challenge(port=0)
        assert found is not None
        asked.append([])
        looked = search_victims(*found, np.arange(NODES, dtype=np.int32), NODES)
        assert [c.row for c in looked.best(NOW)] == [0]
        changing.scenario.cluster.table.counted.touch(2)
    assert asked == [[0, 1, 2], [2], [2]]


def test_a_budget_that_was_spent_is_noticed() -> None:
    changing = ChangingCluster(counted=True)
    changing.scenario.put(
        kinds.POD, *(pod(f"low{i}", cpu="4", on=f"n{i}", labels={"app": "web"}) for i in range(NODES))
    )
    violations = []
    for allowed in (1, 0):
        changing.scenario.put(kinds.POD_DISRUPTION_BUDGET, budget("b", {"app": "web"}, allowed=allowed))
        found = changing.challenge(port=0)
        assert found is not None
        looked = search_victims(*found, np.arange(NODES, dtype=np.int32), NODES)
        violations.append([candidate.violations for candidate in looked.candidates()])
    assert violations == [[0] * NODES, [1] * NODES]


def test_an_epoch_that_moves_voids_what_evictions_would_bring() -> None:
    curfew = Curfew()
    changing = ChangingCluster(counted=True, curfew=curfew)
    changing.scenario.put(kinds.POD, *(pod(f"low{i}", cpu="4", on=f"n{i}") for i in range(NODES)))
    rows = []
    for closed in (-1, 1, 2, 2):
        curfew.close(closed)
        found = changing.challenge(port=0)
        assert found is not None
        looked = search_victims(*found, np.arange(NODES, dtype=np.int32), NODES)
        rows.append([candidate.row for candidate in looked.candidates()])
    assert rows == [[0, 1, 2], [0, 2], [0, 1], [0, 1]]


def test_a_pod_that_starts_by_a_clock_ahead_of_ours_is_looked_at_again() -> None:
    """Who has not started counts as starting now: before such a pod today, after it tomorrow."""
    changing = ChangingCluster(counted=True)
    changing.scenario.put(
        kinds.POD, pod("ahead", cpu="2", on="n0", started="2026-01-01T01:30:00Z"), pod("waiting", cpu="2", on="n0")
    )
    changing.scenario.put(kinds.POD, *(pod(f"other{i}", cpu="4", on=f"n{i}", priority=9) for i in range(1, NODES)))
    victims = []
    for later in (0, 86_400):
        found = changing.challenge(port=0, cpu="2")
        assert found is not None
        cycle, refusals = found
        cycle.now = NOW + later
        looked = search_victims(cycle, refusals, np.zeros(1, dtype=np.int32), 1)
        victims.append([victim.name for candidate in looked.candidates() for victim in candidate.victims])
    assert victims == [["ahead"], ["waiting"]]


class Reserving(NodeResourcesFit):
    """Somebody's own reading of what pods ask for: so much more for each, and that may change."""

    more = 0

    def epoch(self, cycle: Cycle) -> int:
        return self.more

    def sums(self, cycle: Cycle) -> Request:
        asked = cycle.pod.shape.request
        return Request({**asked, "cpu": asked["cpu"] + self.more}, self.name)


def test_an_epoch_that_moves_voids_refusals_beside_promised_pods() -> None:
    reserving = Reserving()
    scenario, log = PreemptionScenario(node("n0"), profile=profile_of("s", [reserving])), TouchLog()
    promised = {0: [compiled(pod("w", cpu="1", priority=9))]}
    fits = []
    for at, more in enumerate((1000, 0, 1000)):
        reserving.more = more
        fits.append(scenario.challenge(pod(f"p{at}", cpu="3"), nominated=promised, promises=log) is None)
    assert fits == [False, True, False]
