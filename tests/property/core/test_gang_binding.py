"""The rules of binding a gang, each in a world made to break it: permission, kept places, half-bound gangs, time.

tests/property/core/test_gangs.py lets anything happen in any order; what it rarely comes to is brought about here on
purpose, with everything else drawn. Taking any of these rules out of the code fails a test here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlead.core.engine.cycle.binding import BindingStage
from fairlead.core.framework.plugin import Plugin, Wait
from fairlead.core.model.flow import Doc, Happened, Reply, Verb, Write
from fairlead.core.state.cluster import PodPlace
from fairlead.errors import Conflict
from fairlead.kube.gangs.plugin import GangScheduling
from tests.support.documents import deleting, group, member, members, node, pod
from tests.support.scheduling import SchedulerScenario, gang_scenario

EXAMPLES = settings(max_examples=40)
TIMEOUT = 60.0


def _rival(name: str, *, cpu: str = "1", priority: int = 0) -> Doc:
    """A pod that takes what is free, however important it is, and evicts nobody."""
    return pod(name, cpu=cpu, priority=priority, preemptionPolicy="Never")


def _bound(doc: Doc, to: str) -> Doc:
    return {**doc, "spec": {**doc["spec"], "nodeName": to}}


def _answer(stage: SchedulerScenario, *, failing: Iterable[str] = ()) -> list[Write]:
    """The API performs all writes but the binds of some pods; the watch shows what was bound."""
    failing = set(failing)
    writes, stage._unanswered = stage._unanswered, []
    refused = {id(w) for w in writes if w.subresource == "binding" and w.name in failing}
    return stage.run(replies=[Reply(w, {}, Conflict("not now") if id(w) in refused else None) for w in writes])


def _show(stage: SchedulerScenario, docs: Iterable[Doc], *, failing: Iterable[str] = ()) -> None:
    binds = stage.binds()
    for doc in docs:
        name = doc["metadata"]["name"]
        if name in binds and name not in failing:
            stage.tell(_bound(doc, binds[name]), happened=Happened.MODIFIED)


# ---- permission ----


class Chosen(Plugin):
    """Makes some members wait, and lets the others go."""

    name = "Chosen"

    def __init__(self, waiting: set[str]) -> None:
        self.waiting = waiting

    def permit(self, cycle: Any, row: int) -> Wait | None:
        return Wait(30.0) if cycle.pod.name in self.waiting else None


def _binds_in(writes: Iterable[Write]) -> list[str]:
    return [write.name for write in writes if write.subresource == "binding"]


@given(st.data(), st.integers(2, 6))
@EXAMPLES
def test_no_bind_is_sent_before_the_minimum_is_permitted(data: Any, size: int) -> None:
    """Some members are kept waiting by a plugin, which then lets them go or refuses them, in any order."""
    minimum = data.draw(st.integers(1, size))
    names = [f"g-{i}" for i in range(size)]
    chosen = Chosen(set(data.draw(st.lists(st.sampled_from(names), unique=True))))
    stage = gang_scenario(chosen, nodes=2)
    stage.tell(group("g", minimum), *members("g", size))
    permitted = {name for name in names if name not in chosen.waiting}
    left = data.draw(st.permutations(sorted(chosen.waiting)))
    scheduler = stage.scheduler
    for name in [None, *left]:
        binding = scheduler.bindings.get(f"uid-{name}")
        scheduler.output.begin(stage.now)
        if binding is not None and "Chosen" in binding.waiting_for:
            if data.draw(st.booleans(), label=f"{name} is let go"):
                permitted.add(str(name))
                binding.allow("Chosen")
                scheduler.binding_driver.advance(binding, ())
            elif binding.reject("Chosen", "not you"):
                scheduler.binding_driver.end(binding)
        stage.writes += scheduler.output.writes
        if _binds_in(stage.writes):
            assert len(permitted) >= minimum, f"{_binds_in(stage.writes)} are bound, {sorted(permitted)} are permitted"
        gang = stage.cluster.gangs.get("scheduling.k8s.io:default/g")
        if gang is not None and not gang.is_whole:
            assert not any(b.stage is BindingStage.WAITING for b in scheduler.bindings.values()), "waits in vain"
    if len(permitted) == size:
        assert len(_binds_in(stage.writes)) == size


# ---- places that are kept ----


@given(st.data(), st.integers(2, 6), st.integers(1, 3))
@EXAMPLES
def test_a_member_whose_bind_fails_keeps_its_place_and_gets_it(data: Any, size: int, attempts: int) -> None:
    """Whoever comes meanwhile, however important: the gang becomes whole where it was placed."""
    docs = members("g", size, cpu="2")
    names = [doc["metadata"]["name"] for doc in docs]
    failing = set(data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1)))
    stage = gang_scenario(nodes=4)
    stage.tell(group("g", size), *docs)
    placed = stage.binds()
    assert len(placed) == size
    for attempt in range(attempts):
        _answer(stage, failing=failing)
        _show(stage, docs, failing=failing)
        stage.tell(*(_rival(f"thief-{attempt}-{i}", cpu="2", priority=1000) for i in range(3)))
        assert stage.cluster.gangs.get("scheduling.k8s.io:default/g").scheduled == size, "a place was given away"
        stage.writes.clear()
        stage.run(after=35.0)
        again = {name: target for name, target in stage.binds().items() if name in placed}
        assert again == {name: placed[name] for name in failing}, "tried again elsewhere, or not at all"
    stage.writes.clear()
    _answer(stage)
    assert not any(uid in stage.scheduler.bindings for uid in (f"uid-{name}" for name in names))


# ---- half-bound gangs come first ----


@given(
    st.lists(st.tuples(st.integers(2, 4), st.integers(1, 3)), min_size=1, max_size=3),
    st.lists(st.integers(-5, 1000), max_size=6),
    st.randoms(use_true_random=False),
)
@EXAMPLES
def test_gangs_found_half_bound_are_completed_before_anything_else(
    gangs: list[tuple[int, int]], others: list[int], rng: Any
) -> None:
    """A new scheduler sees everything at once, in any order; the room that is left is what the started gangs lack."""
    documents: list[Doc] = []
    missing: set[str] = set()
    used = 0
    for number, (size, started) in enumerate(gangs):
        name = f"g{number}"
        documents.append(group(name, size))
        for at, doc in enumerate(members(name, size)):
            if at < min(started, size - 1):
                documents.append(_bound(doc, "n0"))
                used += 1
            else:
                documents.append(doc)
                missing.add(doc["metadata"]["name"])
    documents += [_rival(f"single-{i}", priority=priority) for i, priority in enumerate(others)]
    documents += [group("whole", 2), *members("whole", 2, priority=2000)]
    rng.shuffle(documents)
    stage = gang_scenario()
    stage.tell(*documents, node("n0", cpu=str(used + len(missing)), pods="110"))
    assert set(stage.binds()) == missing


@given(st.integers(2, 4), st.integers(1, 3), st.booleans())
@EXAMPLES
def test_a_gang_that_lost_a_running_member_comes_first_too(size: int, lost: int, important: bool) -> None:
    stage = gang_scenario()
    docs = members("g", size)
    stage.tell(node("n0", cpu=str(size), pods="110"), group("g", size), *(_bound(doc, "n0") for doc in docs))
    rivals = [_rival(f"rival-{i}", priority=1000 if important else 0) for i in range(3)]
    stage.tell(*rivals)
    lost = min(lost, size - 1)
    replacements = [member(f"new-{i}", "g") for i in range(lost)]
    stage.tell(*replacements)
    stage.run(
        *(stage.as_change(_bound(doc, "n0"), Happened.DELETED) for doc in docs[:lost]),
    )
    stage.run(after=20.0)
    assert set(stage.binds()) == {f"new-{i}" for i in range(lost)}


# ---- time ----


def _deleted(stage: SchedulerScenario) -> set[str]:
    return {write.name for write in stage.writes if write.verb is Verb.DELETE}


@given(st.data(), st.integers(2, 5), st.booleans())
@EXAMPLES
def test_when_time_runs_out_the_profile_decides(data: Any, size: int, evicts: bool) -> None:
    """Some binds fail for good. Reported: nobody is evicted and places are kept. Evicted: who has started goes, places
    are given back, and the gang starts again only when those that go are not needed for it."""
    docs = members("g", size, cpu="1")
    names = [doc["metadata"]["name"] for doc in docs]
    failing = set(data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=size - 1)))
    started = set(names) - failing
    stage = gang_scenario(nodes=2, gang=GangScheduling(timeout=TIMEOUT, evicts=evicts))
    stage.tell(group("g", size), *docs)
    placed = stage.binds()
    for _ in range(3):
        _answer(stage, failing=failing)
        _show(stage, docs, failing=failing)
        assert not _deleted(stage)
        stage.run(after=15.0)
    for _ in range(4):
        _answer(stage, failing=failing)
        stage.run(after=15.0)
    assert stage.events("GangIncomplete")
    gang = stage.cluster.gangs.get("scheduling.k8s.io:default/g")
    if not evicts:
        assert not _deleted(stage)
        assert gang.scheduled == size
        return
    assert _deleted(stage) == started
    assert gang.counts[PodPlace.ASSUMED] == 0, "places were kept for a gang that was given up"
    stage.writes.clear()
    going = [
        deleting(_bound(doc, placed[doc["metadata"]["name"]])) for doc in docs if doc["metadata"]["name"] in started
    ]
    for doc in going:
        stage.tell(doc, happened=Happened.MODIFIED)
    stage.tell(*(member(f"new-{i}", "g") for i in range(len(started) - 1)))
    stage.run(after=20.0)
    assert not stage.binds(), "members that are going were counted"
    stage.tell(member("new-last", "g"))
    for doc in going:
        stage.gone(doc)
    stage.run(after=20.0)
    assert len(stage.binds()) == size


@given(st.integers(2, 4), st.integers(1, 3), st.booleans())
@EXAMPLES
def test_time_also_runs_out_for_a_gang_that_was_found_half_bound(size: int, started: int, evicts: bool) -> None:
    """There is no room for the rest, ever."""
    assume(started < size)
    stage = gang_scenario(gang=GangScheduling(timeout=TIMEOUT, evicts=evicts))
    docs = members("g", size)
    stage.tell(
        node("n0", cpu=str(started)), group("g", size), *(_bound(doc, "n0") for doc in docs[:started]), *docs[started:]
    )
    assert not stage.events("GangIncomplete")
    for _ in range(6):
        stage.run(after=15.0)
        wake_at = stage.scheduler.pods.gangs.wake_at()
        assert wake_at is None or wake_at > stage.now, "asks to be called again and again for nothing"
    told = stage.events("GangIncomplete")
    assert told
    assert told[0]["note"] == f"{started} of {size} members started, and no more within 60s"
    assert _deleted(stage) == ({f"g-{i}" for i in range(started)} if evicts else set())


# ---- no trace ----


class WaitingPlugin(Plugin):
    """Remembers who has reserved something and not given it back."""

    name = "WaitingPlugin"

    def __init__(self) -> None:
        self.kept: set[str] = set()

    def reserve(self, cycle: Any, row: int) -> None:
        self.kept.add(cycle.pod.uid)

    def unreserve(self, cycle: Any, row: int) -> None:
        self.kept.discard(cycle.pod.uid)


@given(st.integers(2, 6), st.integers(1, 3), st.integers(1, 3))
@EXAMPLES
def test_what_a_gang_reserves_is_given_back_unless_it_starts(size: int, cpu: int, nodes: int) -> None:
    waiting_plugin = WaitingPlugin()
    stage = gang_scenario(waiting_plugin, nodes=nodes)
    stage.tell(group("g", size), *members("g", size, cpu=str(cpu)))
    assert waiting_plugin.kept == {f"uid-{name}" for name in stage.binds()}
    assert len(waiting_plugin.kept) in (0, size)
