"""Preemption on a fixed load: it ends, it evicts nobody in vain, and a search that fails leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.assembly.assemble import profiles_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Happened, Verb, Write
from fairlead.core.model.reasons import Verdict
from fairlead.kube.config.kube import default_kube_config
from fairlead.kube.preemption import victims
from fairlead.kube.preemption.victims import VictimNode
from tests.support.cluster_picture import picture
from tests.support.documents import budget, node, pod
from tests.support.preemption import PreemptionScenario
from tests.support.scheduling import SchedulerScenario

Doc = dict[str, Any]
PRIORITIES = [-5, 0, 1, 2]
_ROUNDS = 40


class Play:
    """A Scheduler with the default profile, and a world that does what it asks: statuses say which node is promised,
    pods are bound, victims go. Whatever is deleted in one go is gone at once, so that nothing changes between an
    eviction and the next attempt."""

    def __init__(self, nodes: list[Doc], seated: list[Doc], recreate: Callable[[Doc, int], Doc] | None = None) -> None:
        self.stage = SchedulerScenario(profiles=profiles_of(default_kube_config()))
        self.docs: dict[str, Doc] = {}
        self.recreate = recreate
        self.made = 0
        self._heard = 0
        self.stage.tell(*nodes)
        self.tell(*seated)

    def tell(self, *docs: Doc, happened: Happened = Happened.ADDED) -> None:
        self.docs.update({doc["metadata"]["name"]: doc for doc in docs})
        if docs:
            self.stage.tell(*docs, happened=happened)

    def settle(self) -> None:
        """Until the scheduler asks for nothing more."""
        quiet = 0
        for _ in range(_ROUNDS):
            writes = self._asked()
            quiet = 0 if writes else quiet + 1
            if quiet == 3:
                return
            self._obey(writes)
            self.stage.run(after=30)
        raise AssertionError(f"still going on after {_ROUNDS} rounds: {self.evictions}")

    def _asked(self) -> list[Write]:
        """All writes since last time, each answered, and the writes that follow from the answers."""
        while self.stage._unanswered:
            self.stage.answer()
        writes = self.stage.writes[self._heard :]
        self._heard = len(self.stage.writes)
        return [w for w in writes if w.kind is kinds.POD]

    @property
    def evictions(self) -> list[tuple[str, str, str]]:
        """Victim, node, and who it went for."""
        notes = [(event["regarding"]["name"], event["note"].split()) for event in self.stage.events("Preempted")]
        return [(name, words[6], words[3].removeprefix("uid-")) for name, words in notes]

    def _obey(self, writes: list[Write]) -> None:
        promised = [w for w in writes if w.subresource == "status" and "nominatedNodeName" in (w.body or {})["status"]]
        self.tell(*(self._promised(w) for w in promised if w.name in self.docs), happened=Happened.MODIFIED)
        bound = [(w.name, w.body["target"]["name"]) for w in writes if w.subresource == "binding" and w.body]
        self.tell(*(self._on(name, place) for name, place in bound), happened=Happened.MODIFIED)
        names = dict.fromkeys(w.name for w in writes if w.verb is Verb.DELETE)
        leaving = [self.docs.pop(name) for name in names if name in self.docs]
        if leaving:
            self.stage.tell(*leaving, happened=Happened.DELETED)
        if self.recreate is not None:
            for doc in leaving:
                self.made += 1
                self.tell(self.recreate(doc, self.made))

    def _promised(self, write: Write) -> Doc:
        assert write.body is not None
        doc, place = self.docs[write.name], write.body["status"]["nominatedNodeName"]
        return {**doc, "status": {**doc["status"], "nominatedNodeName": place or ""}}

    def _on(self, name: str, place: str) -> Doc:
        return {**self.docs[name], "spec": {**self.docs[name]["spec"], "nodeName": place}}


@st.composite
def seated_pods(draw: st.DrawFn, nodes: int) -> list[Doc]:
    """Up to four pods of one cpu on nodes of four."""
    return [
        pod(f"s{number}-{i}", on=f"n{number}", priority=draw(st.sampled_from(PRIORITIES)))
        for number in range(nodes)
        for i in range(draw(st.integers(2, 4)))
    ]


@st.composite
def newcomers(draw: st.DrawFn) -> list[Doc]:
    count = draw(st.integers(1, 5))
    return [
        pod(f"p{i}", cpu=str(draw(st.integers(1, 4))), priority=draw(st.sampled_from(PRIORITIES))) for i in range(count)
    ]


def again(doc: Doc, number: int) -> Doc:
    """A pod like one that was evicted, without a node."""
    name = f"again-{number}"
    spec = {key: value for key, value in doc["spec"].items() if key != "nodeName"}
    status = {"phase": "Pending"}
    return {**doc, "metadata": {**doc["metadata"], "name": name, "uid": f"uid-{name}"}, "spec": spec, "status": status}


@given(st.data())
@settings(max_examples=25)
def test_it_ends_and_every_eviction_is_followed_by_its_preemptor_on_that_node(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 3))
    play = Play([node(f"n{i}") for i in range(count)], data.draw(seated_pods(count)))
    play.tell(*data.draw(newcomers()))
    play.settle()
    bound = play.stage.binds()
    gone = {victim for victim, _, _ in play.evictions}
    for victim, place, preemptor in play.evictions:
        assert victim not in play.docs
        assert bound.get(preemptor) == place or preemptor in gone, (victim, place, preemptor, bound)


@given(st.data())
@settings(max_examples=15)
def test_it_ends_though_every_victim_comes_back(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 2))
    play = Play([node(f"n{i}") for i in range(count)], data.draw(seated_pods(count)), recreate=again)
    play.tell(*data.draw(newcomers()))
    play.settle()
    for victim, place, preemptor in play.evictions:
        assert victim not in play.docs
        assert play.stage.binds().get(preemptor) == place
    assert play.made >= len({victim for victim, _, _ in play.evictions})
    play.stage.cluster.check()


def test_who_always_takes_the_room_back_is_left_alone_after_three_times() -> None:
    """A controller that puts its pod on the node itself, at once: the preemptor gives up and says why."""

    def at_once(doc: Doc, number: int) -> Doc:
        name = f"again-{number}"
        return {**doc, "metadata": {**doc["metadata"], "name": name, "uid": f"uid-{name}"}}

    stubborn = pod("stubborn", cpu="4", on="n0")
    stubborn["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    ]
    play = Play([node("n0")], [stubborn])
    play.tell(pod("p", cpu="4", priority=5))
    victim = stubborn
    for turn in range(6):
        if not [w for w in play._asked() if w.verb is Verb.DELETE and w.name == victim["metadata"]["name"]]:
            break
        old, victim = victim, at_once(victim, turn)
        play.stage.tell(victim)
        play.stage.gone(old)
        play.stage.run(after=30)
    assert [w.name for w in play.stage.writes if w.verb is Verb.DELETE] == ["stubborn", "again-0", "again-1"]
    said = play.stage.conditions("p")[-1]["message"]
    assert said.endswith("preemption: stopped after evicting pods of the same owner from n0 3 times in vain")


# ---- one search ----


@st.composite
def arenas(draw: st.DrawFn, *, ports: bool) -> tuple[PreemptionScenario, Doc]:
    arena = PreemptionScenario(*(node(f"n{i}", pods=draw(st.integers(1, 6))) for i in range(draw(st.integers(1, 3)))))
    started = st.sampled_from(["", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"])
    for i in range(draw(st.integers(0, 14))):
        arena.put(
            kinds.POD,
            pod(
                f"e{i}",
                cpu=draw(st.sampled_from(["0", "500m", "1", "2"])),
                on=f"n{draw(st.integers(0, 2))}",
                priority=draw(st.sampled_from(PRIORITIES)),
                port=draw(st.sampled_from([0, 80])) if ports else 0,
                started=draw(started),
                terminating=draw(st.booleans()) and draw(st.booleans()),
                labels={"app": draw(st.sampled_from(["web", "db"]))},
            ),
        )
    for name in ("web", "db"):
        if draw(st.booleans()):
            guard = budget(name, {"app": name}, allowed=draw(st.integers(0, 2)))
            arena.put(kinds.POD_DISRUPTION_BUDGET, guard)
    preemptor = pod(
        "p",
        cpu=draw(st.sampled_from(["1", "3", "4", "5"])),
        priority=draw(st.sampled_from([1, 2, 3])),
        port=draw(st.sampled_from([0, 80])) if ports else 0,
    )
    return arena, preemptor


@given(arenas(ports=True))
@settings(max_examples=60)
def test_a_search_for_victims_leaves_nothing_behind(made: tuple[PreemptionScenario, Doc]) -> None:
    arena, preemptor = made
    found = arena.challenge(preemptor)
    if found is None:
        return
    before = picture(arena.cluster)
    for row in sorted(arena.cluster.table.row_of.values()):
        arena.search(*found, row)
        assert picture(arena.cluster) == before
    arena.cluster.check()


@given(arenas(ports=False), st.lists(st.sampled_from(["1", "2"]), max_size=2))
@settings(max_examples=100)
def test_victims_found_by_sums_are_those_found_by_trial(
    made: tuple[PreemptionScenario, Doc], promised: list[str]
) -> None:
    """By sums alone, by trials that leave out what sums forbid, and by trials of everything."""
    arena, preemptor = made
    for i, cpu in enumerate(promised):
        arena.put(kinds.POD, pod(f"promised-{i}", cpu=cpu, priority=i + 2))
    waiting = [
        pod_state.seen for pod_state in arena.cluster.pods.values() if pod_state.seen.name.startswith("promised")
    ]
    found = arena.challenge(preemptor, nominated={0: waiting} if waiting else {})
    if found is None:
        return
    for row in sorted(arena.cluster.table.row_of.values()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(victims, "sums_among", lambda cycle: None)
            expected = said(arena.search(*found, row))
        assert said(arena.search(*found, row)) == expected
        assert said(arena.search(*found, row, by_sums=True)) == expected


def said(answer: VictimNode | Verdict) -> Verdict | tuple[list[str], int]:
    return answer if isinstance(answer, Verdict) else ([p.name for p in answer.victims], answer.violations)
