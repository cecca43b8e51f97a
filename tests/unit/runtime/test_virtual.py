from __future__ import annotations

from collections.abc import Sequence
from random import Random
from threading import Event, Thread

import pytest

from fairlead.client.threaded_work import ThreadedWork
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Change, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, Kind
from fairlead.errors import ScenarioError
from fairlead.runtime.virtual import Latencies, VirtualClock, VirtualRuntime


class Scribe:
    """Writes down every step it takes, and returns the writes it was given beforehand."""

    name = "scribe"

    def __init__(self, kind: Kind = CONFIG_MAP) -> None:
        self.watches: Sequence[Watch] = (Watch(kind, namespace="default"),)
        self.steps: list[tuple[float, list[str], list[str]]] = []
        self.wakes: list[float] = []
        self.to_write: list[Write] = []

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        seen = [f"{change.happened.value} {change.doc['metadata']['name']}" for change in changes]
        heard = [type(reply.error).__name__ if reply.error else "ok" for reply in replies]
        self.steps.append((now, seen, heard))
        self.wakes = [time for time in self.wakes if time > now]
        writes, self.to_write = self.to_write, []
        return writes

    def wake_at(self) -> float | None:
        return min(self.wakes, default=None)


class Asker:
    """Has a thread do something that takes until `may_end` is set, and looks at it each minute until it is done."""

    name = "asker"
    watches: Sequence[Watch] = ()

    def __init__(self) -> None:
        self.outside = [ThreadedWork()]
        self.begun, self.may_end, self.done = Event(), Event(), Event()
        self.looks: list[tuple[float, bool]] = []

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        if not self.looks:
            self.outside[0].begin(self._work, name="work of a test")
        self.looks.append((now, self.done.is_set()))
        return []

    def wake_at(self) -> float | None:
        now, done = self.looks[-1]
        return None if done else now + 60

    def _work(self) -> None:
        self.begun.set()
        self.may_end.wait()
        self.done.set()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(100.0)


@pytest.fixture
def store(clock: VirtualClock) -> Store:
    return Store(clock=clock, rng=Random(0))


def note(name: str) -> Write:
    return Write(Verb.CREATE, CONFIG_MAP, "default", name, body={"metadata": {"name": name}})


def test_the_first_step_brings_all_there_is(store: Store, clock: VirtualClock) -> None:
    store.perform(note("before"))
    scribe = Scribe()
    VirtualRuntime(store, [scribe], clock=clock).settle()
    assert scribe.steps == [(100.0, ["ADDED before"], [])]


def test_a_controller_with_nothing_to_see_is_still_asked_once(store: Store, clock: VirtualClock) -> None:
    scribe = Scribe()
    runtime = VirtualRuntime(store, [scribe], clock=clock)
    runtime.run(until=200)
    assert scribe.steps == [(100.0, [], [])]
    assert runtime.now == 200


def test_time_jumps_from_wake_to_wake(store: Store, clock: VirtualClock) -> None:
    scribe = Scribe()
    scribe.wakes = [150.0, 130.5, 500.0]
    VirtualRuntime(store, [scribe], clock=clock).run(until=400)
    assert [now for now, _, _ in scribe.steps] == [100.0, 130.5, 150.0]


def test_a_write_is_stored_at_once_and_its_reply_and_change_come_next(store: Store, clock: VirtualClock) -> None:
    scribe = Scribe()
    scribe.to_write = [note("a"), note("a")]
    VirtualRuntime(store, [scribe], clock=clock).settle()
    assert scribe.steps[1] == (100.0, ["ADDED a"], ["ok", "AlreadyExists"])


def test_the_store_knows_the_virtual_time(store: Store, clock: VirtualClock) -> None:
    runtime = VirtualRuntime(store, [], clock=clock)
    runtime.at(160.0, lambda: store.perform(note("a")) and None)
    runtime.run(until=300)
    assert store.read(CONFIG_MAP, "default", "a")["metadata"]["creationTimestamp"] == "1970-01-01T00:02:40Z"


def test_deeds_are_done_in_time_before_anybody_steps(store: Store, clock: VirtualClock) -> None:
    scribe, order = Scribe(), []
    runtime = VirtualRuntime(store, [scribe], clock=clock)
    runtime.at(120, lambda: order.append("second"))
    runtime.at(110, lambda: order.append("first"))
    runtime.at(120, lambda: store.perform(note("a")) and None)
    runtime.at(50, lambda: order.append("late"))
    runtime.run(until=200)
    assert order == ["late", "first", "second"]
    assert scribe.steps[-1] == (120.0, ["ADDED a"], [])


def test_latencies_delay_writes_replies_and_changes_but_never_reorder_them(store: Store, clock: VirtualClock) -> None:
    scribe = Scribe()
    scribe.to_write = [note(f"n{index:02d}") for index in range(20)]
    latencies = Latencies(write=lambda rng: rng.uniform(1, 5), watch=lambda rng: rng.uniform(0, 50))
    VirtualRuntime(store, [scribe], clock=clock, latencies=latencies, seed=3).run(until=1000)
    seen = [name for _, changes, _ in scribe.steps for name in changes]
    assert seen == [f"ADDED n{index:02d}" for index in range(20)]
    assert sum(len(replies) for _, _, replies in scribe.steps) == 20
    first_reply = next(now for now, _, replies in scribe.steps if replies)
    assert 101 <= first_reply <= 105
    assert scribe.steps[-1][0] > 105


def test_a_controller_that_joins_later_sees_everything(store: Store, clock: VirtualClock) -> None:
    store.perform(note("a"))
    runtime, scribe = VirtualRuntime(store, [], clock=clock), Scribe()
    runtime.run(until=110)
    runtime.add(scribe)
    runtime.run(until=120)
    assert scribe.steps == [(110.0, ["ADDED a"], [])]


def test_run_until_stops_at_the_first_instant_that_fits(store: Store, clock: VirtualClock) -> None:
    scribe = Scribe()
    scribe.wakes = [110.0, 120.0, 130.0]
    runtime = VirtualRuntime(store, [scribe], clock=clock)
    assert runtime.run_until(lambda: len(scribe.steps) == 3)
    assert runtime.now == 120
    assert not runtime.run_until(lambda: False, limit=500)
    assert runtime.now == 620


def test_time_stands_still_while_work_is_under_way_outside(store: Store, clock: VirtualClock) -> None:
    asker = Asker()
    runtime = VirtualRuntime(store, [asker], clock=clock)
    running = Thread(target=lambda: runtime.run(until=1000), daemon=True)
    running.start()
    assert asker.begun.wait(60)
    running.join(0.1)
    assert (running.is_alive(), runtime.now, asker.looks) == (True, 100.0, [(100.0, False)])
    asker.may_end.set()
    running.join(60)
    assert (running.is_alive(), runtime.now, asker.looks) == (False, 1000.0, [(100.0, False), (160.0, True)])


def test_a_predicate_may_look_at_what_work_outside_left(store: Store, clock: VirtualClock) -> None:
    asker = Asker()
    asker.may_end.set()
    runtime = VirtualRuntime(store, [], clock=clock)
    runtime.add(asker)
    assert runtime.run_until(asker.done.is_set)
    assert runtime.now <= 160


def test_nobody_waits_for_a_controller_that_was_removed(store: Store, clock: VirtualClock) -> None:
    asker = Asker()
    runtime = VirtualRuntime(store, [asker], clock=clock)
    runtime.settle()
    runtime.remove(asker)
    runtime.run(until=1000)
    assert runtime.now == 1000
    asker.may_end.set()


def test_time_that_keeps_pace_with_the_machine_waits_for_nothing_outside(store: Store, clock: VirtualClock) -> None:
    asker = Asker()
    runtime = VirtualRuntime(store, [asker], clock=clock)
    runtime.keep_pace(until=250)
    assert asker.looks == [(100.0, False), (160.0, False), (220.0, False)]
    asker.may_end.set()
    runtime.run(until=1000)
    assert asker.looks[3:] == [(280.0, True)]


def test_controllers_that_never_rest_are_named(
    store: Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.runtime.virtual._TURNS_PER_INSTANT", 50)
    scribe = Scribe()
    scribe.wake_at = lambda: 0.0  # type: ignore[method-assign]
    with pytest.raises(ScenarioError, match=r"do not come to rest at 100 s; still busy: scribe"):
        VirtualRuntime(store, [scribe], clock=clock).settle()


def test_old_events_expire_as_time_passes(store: Store, clock: VirtualClock) -> None:
    from fairlead.core.model.kinds import EVENT

    body = {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Test",
        "type": "Normal",
    }
    store.perform(Write(Verb.CREATE, EVENT, "default", "e", body=body))
    VirtualRuntime(store, [], clock=clock).run(until=100 + 2 * 3600)
    assert store.get(EVENT, "default", "e") is None
