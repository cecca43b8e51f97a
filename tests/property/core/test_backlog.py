"""Whatever happens in whatever order: no pod is lost, none is in two places, and the order is kept."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlead.core.engine.queue.entry import Entry, QueueName
from fairlead.core.engine.queue.heap import KeyedHeap
from fairlead.core.framework.profile import profile_of
from fairlead.core.model.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ActionType, ClusterEvent
from fairlead.core.model.pod import Pod
from tests.support.waiting import NODE_ADD, POD_GONE, PROFILE, T0, FilterPlugin, QueueScenario, on

EVENTS = (
    NODE_ADD,
    POD_GONE,
    UNSCHEDULABLE_TIMEOUT,
    FORCE_ACTIVATE,
    ClusterEvent("Node", ActionType.UPDATE_NODE_TAINT),
    ClusterEvent("AssignedPod", ActionType.ADD),
    ClusterEvent("PersistentVolume", ActionType.ADD),
)
PLUGINS = ("Fit", "Ports", "Labels", "Deaf")


class AnyLife(RuleBasedStateMachine):
    """Pods come, change, are tried, fail, are bound and go, in any order; `alive` is what ought to be waiting."""

    @initialize(max_backoff=st.sampled_from([0.0, 3.0, 10.0]), limit=st.sampled_from([40.0, 300.0]))
    def open(self, max_backoff: float, limit: float) -> None:
        labels = FilterPlugin("Labels", (on("Pod", ActionType.UPDATE_POD_LABEL),))
        self.room = QueueScenario(labels, FilterPlugin("Deaf"), max_backoff=max_backoff, unschedulable_limit=limit)
        self.backlog = self.room.backlog
        self.alive: dict[str, Pod] = {}
        self.flying: dict[str, Entry] = {}
        self.now = T0
        self.limit = limit

    def some_pod(self, data: st.DataObject) -> Pod:
        return self.alive[data.draw(st.sampled_from(sorted(self.alive)))]

    @rule(number=st.integers(0, 9), priority=st.integers(-1, 2), gated=st.booleans())
    def a_pod_is_created(self, number: int, priority: int, gated: bool) -> None:
        name = f"pod-{number}"
        if any(pod.name == name for pod in self.alive.values()):
            return
        pod = self.room.pod(name, priority=priority, **({"gates": ["wait"]} if gated else {}))
        (self.room.gate.shut.add if gated else self.room.gate.shut.discard)(name)
        self.alive[pod.uid] = pod
        self.backlog.add(pod, self.now)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), label=st.sampled_from("xyz"), opens=st.booleans(), nominated=st.sampled_from(["", "n"]))
    def a_pod_changes(self, data: st.DataObject, label: str, opens: bool, nominated: str) -> None:
        old = self.some_pod(data)
        gates = {} if opens or not old.gates else {"gates": list(old.gates)}
        if opens:
            self.room.gate.shut.discard(old.name)
        new = self.room.pod(
            old.name, uid=old.uid, nominated=nominated, priority=old.priority, labels={"l": label}, **gates
        )
        self.alive[old.uid] = new
        self.backlog.update(old, new, self.now)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def a_pod_is_deleted(self, data: st.DataObject) -> None:
        pod = self.alive.pop(self.some_pod(data).uid)
        self.room.gone(pod)
        self.backlog.delete(pod, self.now)

    @rule(event=st.sampled_from(EVENTS), below=st.none() | st.integers(-1, 2))
    def something_happens(self, event: ClusterEvent, below: int | None) -> None:
        only = None if below is None else (lambda entry: entry.pod.priority <= below)
        self.backlog.move(event, None, None, self.now, only=only)

    @rule()
    def the_next_pod_is_popped(self) -> None:
        active = [entry for entry in self.backlog.queues if entry.place is QueueName.ACTIVE]
        first = min(active, key=lambda e: (-e.pod.priority, e.since, e.serial), default=None)
        expected = self.backlog.has_active()
        entry = self.backlog.pop(self.now)
        assert (entry is not None) is expected
        if entry is not None:
            assert entry.pod.uid not in self.flying, "popped while in flight"
            assert first is None or entry is first, "somebody else was first"
            assert first is not None or entry.blamed, "an error may not be popped early"
            self.flying[entry.pod.uid] = entry

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), blamed=st.sets(st.sampled_from(PLUGINS)), pending=st.booleans())
    def an_attempt_fails(self, data: st.DataObject, blamed: set[str], pending: bool) -> None:
        entry = self.flying.pop(data.draw(st.sampled_from(sorted(self.flying))))
        newest = self.alive.get(entry.pod.uid)
        if newest is None:
            self.backlog.done(entry.pod.uid)
            return
        entry.pod = newest
        entry.refuse(frozenset(blamed), frozenset(sorted(blamed)[:1] if pending else ()))
        self.backlog.put_back(entry, self.now)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def an_attempt_succeeds(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        del self.flying[uid]
        if (pod := self.alive.pop(uid, None)) is not None:
            self.backlog.delete(pod, self.now)
        self.backlog.done(uid)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def a_pod_is_activated(self, data: st.DataObject) -> None:
        self.backlog.activate([self.some_pod(data)], self.now)

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 2.0, 31.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.backlog.flush(self.now)

    @rule()
    def time_passes_until_it_matters(self) -> None:
        """Before the moment that was announced a flush does nothing; at that moment somebody gets a chance."""
        self.backlog.flush(self.now)
        wake = self.backlog.wake_at(self.now)
        if wake is None or wake <= self.now:
            return
        before = dict(self.backlog.tallies.incoming)
        self.backlog.flush(self.now + (wake - self.now) * 0.99)
        assert self.backlog.tallies.incoming == before
        self.now = wake
        self.backlog.flush(self.now)
        assert self.backlog.tallies.incoming != before

    @rule()
    def the_configuration_is_reloaded(self) -> None:
        self.backlog.reconfigure({PROFILE: profile_of(PROFILE, self.room.plugins)}, self.now)

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        self.backlog.check()
        waiting = [entry.pod.uid for entry in self.backlog.queues]
        assert len(waiting) == len(set(waiting))
        assert set(self.flying) == {entry.pod.uid for entry in self.backlog.in_flight}
        assert set(waiting).isdisjoint(self.flying)
        assert set(self.alive) <= set(waiting) | set(self.flying)
        assert set(waiting) <= set(self.alive)
        assert all((self.backlog.where(uid) is not None) for uid in self.alive)

    @invariant()
    def nothing_is_counted_below_zero_and_nothing_went_wrong(self) -> None:
        backlog = self.backlog
        counts = backlog.counts()
        assert sum(counts.values()) == len(list(backlog.queues))
        assert min(*counts.values(), *backlog.tallies.incoming.values(), *backlog.tallies.blamed.values(), 0) == 0
        assert all(count > 0 for count in backlog.in_flight.counts.values())
        assert backlog.in_flight.events == 0 or len(backlog.in_flight) > 0
        assert not backlog.complaints

    @invariant()
    def waiting_pods_are_shown_in_their_newest_version(self) -> None:
        assert all(entry.pod is self.alive[entry.pod.uid] for entry in self.backlog.queues)

    def teardown(self) -> None:
        """In the end, with all gates open and time enough, everybody gets a chance."""
        if not hasattr(self, "room"):
            return
        self.room.gate.shut.clear()
        popped = set(self.flying)
        for _ in range(4):
            self.now += self.limit + 60
            self.backlog.flush(self.now)
            while (entry := self.backlog.pop(self.now)) is not None:
                popped.add(entry.pod.uid)
                self.backlog.done(entry.pod.uid)
        assert set(self.alive) <= popped


AnyLife.TestCase.settings = settings(max_examples=60, stateful_step_count=50)
test_no_pod_is_ever_lost = AnyLife.TestCase


@given(
    st.lists(st.tuples(st.sampled_from(["put", "remove", "pop"]), st.integers(0, 9), st.integers(0, 5)), max_size=400)
)
@settings(max_examples=60)
def test_a_heap_with_keys_behaves_like_a_sorted_table(steps: list[tuple[str, int, int]]) -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    table: dict[str, tuple[int, int]] = {}
    for number, (step, which, order) in enumerate(steps):
        key = f"k{which}"
        if step == "put":
            heap.put(key, (order,), key)
            table[key] = (order, number)
        elif step == "remove":
            assert heap.remove(key) == (key if table.pop(key, None) else None)
        elif (first := heap.peek()) is not None:
            assert first == min(table, key=lambda k: table[k])
            assert heap.remove(first) == first
            del table[first]
        assert len(heap) == len(table)
        assert set(heap) == set(table)
        assert heap.peek() == min(table, key=lambda k: table[k], default=None)
