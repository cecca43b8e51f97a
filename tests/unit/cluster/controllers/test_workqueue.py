from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cluster.controllers.workqueue import Reconciler, Workqueue
from fairlead.cluster.controllers.writes import create, delete
from fairlead.core.model.flow import Change, Happened, Reply, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, NAMESPACE
from fairlead.errors import Conflict, Forbidden, InternalError, NotFound, TooManyRequests
from tests.support.controllers import Documents, created, refused


class Planter(Reconciler[str]):
    """Wants `wishes[namespace]` config maps in each namespace; knows them only from changes and replies."""

    name = "planter"
    watches = (Watch(NAMESPACE), Watch(CONFIG_MAP))

    def __init__(self, world: Documents) -> None:
        super().__init__(world)
        self.wishes: dict[str, int] = {}
        self.known: dict[str, dict[str, str]] = {}
        self.visits: list[str] = []

    def observe(self, change: Change) -> None:
        metadata = change.doc["metadata"]
        if change.kind is NAMESPACE:
            self.wishes[metadata["name"]] = change.doc["wish"]
            self.queue.add(metadata["name"])
            return
        plants = self.known.setdefault(metadata["namespace"], {})
        if change.happened is Happened.DELETED or metadata.get("deletionTimestamp"):
            plants.pop(metadata["name"], None)
        else:
            plants[metadata["name"]] = metadata["uid"]
        self.queue.add(metadata["namespace"])

    def visit(self, key: str, now: float) -> Iterable[Write]:
        self.visits.append(key)
        wish = self.wishes.get(key, 0)
        if wish < 0:
            raise ValueError("a negative number cannot be planted")
        plants = self.known.get(key, {})
        for _ in range(wish - len(plants)):
            yield create(CONFIG_MAP, {"metadata": {"namespace": key, "generateName": "plant-"}})
        for name, uid in list(plants.items())[wish:]:
            yield delete(CONFIG_MAP, {"metadata": {"namespace": key, "name": name, "uid": uid}})


@pytest.fixture
def world() -> Documents:
    return Documents()


@pytest.fixture
def planter(world: Documents) -> Planter:
    return Planter(world)


def wish(world: Documents, name: str, count: int) -> Change:
    return world.put(NAMESPACE, {"metadata": {"name": name}, "wish": count})


def test_a_key_named_often_is_visited_once(world: Documents, planter: Planter) -> None:
    planter.step(0, [wish(world, "a", 0), wish(world, "b", 0), wish(world, "a", 0)], [])
    assert planter.visits == ["a", "b"]


def test_a_key_is_not_visited_while_its_writes_are_under_way(world: Documents, planter: Planter) -> None:
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    assert planter.step(1, [wish(world, "a", 2)], []) == []
    reply, _ = created(world, write, "plant-1")
    assert len(planter.step(2, [], [reply])) == 1


def test_a_creation_counts_before_the_watch_shows_it(world: Documents, planter: Planter) -> None:
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    reply, change = created(world, write, "plant-1")
    assert planter.step(1, [wish(world, "a", 1)], [reply]) == []
    assert planter.step(2, [change], []) == []
    assert planter.known["a"] == {"plant-1": "uid-plant-1"}


def test_a_document_that_reply_and_watch_bring_in_one_step_is_observed_once(
    world: Documents, planter: Planter, monkeypatch: pytest.MonkeyPatch
) -> None:
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    reply, change = created(world, write, "plant-1")
    assert reply.doc is change.doc
    observed, observe = [], planter.observe
    monkeypatch.setattr(planter, "observe", lambda change: (observed.append(change), observe(change)))
    assert planter.step(1, [change], [reply]) == []
    assert observed == [change]
    assert planter.known["a"] == {"plant-1": "uid-plant-1"}
    later = world.put(CONFIG_MAP, {**change.doc, "data": {"grown": "yes"}})
    planter.step(2, [later], [])
    assert observed == [change, later]


def test_a_watch_that_is_faster_than_the_reply_is_believed(world: Documents, planter: Planter) -> None:
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    reply, change = created(world, write, "plant-1")
    gone = world.remove(CONFIG_MAP, "a", "plant-1")
    assert planter.step(1, [change, gone], []) == []  # still under way
    assert len(planter.step(2, [], [reply])) == 1  # the plant is not brought back to life


def test_a_deletion_counts_before_the_watch_shows_it(world: Documents, planter: Planter) -> None:
    change = world.put(CONFIG_MAP, {"metadata": {"namespace": "a", "name": "weed"}})
    (write,) = planter.step(0, [change], [])
    stale = world.put(CONFIG_MAP, {"metadata": {"namespace": "a", "name": "weed"}, "data": {"old": "news"}})
    reply = Reply(write, {"kind": "Status", "status": "Success"})
    assert planter.step(1, [], [reply]) == []
    assert planter.step(2, [stale], []) == []
    assert planter.known["a"] == {}
    planter.step(3, [world.remove(CONFIG_MAP, "a", "weed")], [])
    again = world.put(CONFIG_MAP, {"metadata": {"namespace": "a", "name": "weed", "uid": "another"}})
    assert len(planter.step(4, [again], [])) == 1


def test_a_raising_key_is_recorded_and_retried_and_does_not_stop_the_others(world: Documents, planter: Planter) -> None:
    writes = planter.step(0, [wish(world, "bad", -1), wish(world, "good", 1)], [])
    assert [write.namespace for write in writes] == ["good"]
    (trouble,) = planter.errors
    assert (trouble.key, trouble.message) == ("bad", "ValueError: a negative number cannot be planted")
    assert planter.wake_at() == pytest.approx(0.005)
    planter.step(0.005, [], [])
    assert planter.wake_at() == pytest.approx(0.015)


def test_one_backoff_for_a_batch_however_many_of_its_writes_failed(world: Documents, planter: Planter) -> None:
    writes = planter.step(0, [wish(world, "a", 5)], [])
    planter.step(1, [], [refused(write, InternalError("no")) for write in writes])
    assert planter.wake_at() == pytest.approx(1.005)
    assert len(planter.errors) == 5


def test_success_ends_the_backoff(world: Documents, planter: Planter) -> None:
    now = 0.0
    (write,) = planter.step(now, [wish(world, "a", 1)], [])
    for _ in range(4):
        planter.step(now, [], [refused(write, InternalError("no"))])
        now = planter.wake_at() or 0.0
        (write,) = planter.step(now, [], [])
    assert planter.queue.failures("a") == 4
    planter.step(now, [], [created(world, write, "plant-1")[0]])
    assert planter.queue.failures("a") == 0


def test_a_conflict_is_retried_without_a_record(world: Documents, planter: Planter) -> None:
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    planter.step(1, [], [refused(write, Conflict("moved on"))])
    assert planter.wake_at() == pytest.approx(1.005)
    assert not planter.errors


def test_the_servers_retry_after_is_respected(world: Documents, planter: Planter) -> None:
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    planter.step(1, [], [refused(write, TooManyRequests("later", retry_after=30))])
    assert planter.wake_at() == 31


def test_nothing_is_retried_in_a_namespace_that_is_going(world: Documents, planter: Planter) -> None:
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    error = Forbidden("being terminated", details={"causes": [{"reason": "NamespaceTerminating"}]})
    planter.step(1, [], [refused(write, error)])
    assert planter.wake_at() is None


def test_deleting_what_is_gone_is_a_success(world: Documents, planter: Planter) -> None:
    (write,) = planter.step(0, [world.put(CONFIG_MAP, {"metadata": {"namespace": "a", "name": "weed"}})], [])
    planter.step(1, [], [refused(write, NotFound("gone"))])
    assert planter.known["a"] == {}
    assert not planter.errors


def test_a_deletion_that_the_view_does_not_show_yet_is_not_repeated_at_once(world: Documents) -> None:
    class Sweeper(Planter):
        """Deletes what its view shows, of a kind that it does not watch."""

        watches = (Watch(NAMESPACE),)

        def visit(self, key: str, now: float) -> Iterable[Write]:
            yield delete(CONFIG_MAP, {"metadata": {"namespace": key, "name": "leaf", "uid": "u"}})

    sweeper = Sweeper(world)
    sweeper.queue.add("a")
    (write,) = sweeper.step(0, [], [])
    assert sweeper.step(1, [], [refused(write, NotFound("gone"))]) == []
    again = sweeper.wake_at()
    assert again is not None
    assert again > 1
    assert len(sweeper.step(again, [], [])) == 1


def test_what_a_controller_raises_over_a_reply_costs_neither_the_key_nor_the_step(
    world: Documents, planter: Planter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(key: str, reply: Reply, now: float) -> Iterable[Write]:
        raise ValueError("no words for it")

    monkeypatch.setattr(planter, "welcomed", fails)
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    reply, _ = created(world, write, "plant-1")
    assert len(planter.step(1, [wish(world, "b", 1)], [reply])) == 1
    assert [(trouble.key, trouble.message) for trouble in planter.errors] == [("a", "ValueError: no words for it")]
    assert len(planter.step(60, [wish(world, "a", 2)], [])) == 1


def test_a_change_that_cannot_be_read_costs_nothing_but_itself(world: Documents, planter: Planter) -> None:
    (write,) = planter.step(0, [wish(world, "a", 1)], [])
    odd = Change(Happened.MODIFIED, NAMESPACE, {"metadata": {"name": "odd", "uid": "u", "resourceVersion": "x"}})
    reply, _ = created(world, write, "plant-1")
    nothing = Change(Happened.ADDED, NAMESPACE, {})
    assert len(planter.step(1, [odd, nothing, wish(world, "b", 2)], [reply])) == 2
    assert [trouble.key for trouble in planter.errors] == ["namespaces /odd", "namespaces /"]


def test_replies_to_others_are_ignored(world: Documents, planter: Planter) -> None:
    stranger = create(CONFIG_MAP, {"metadata": {"namespace": "a", "name": "x"}})
    assert planter.step(0, [], [created(world, stranger, "x")[0]]) == []
    assert planter.known == {}


def test_the_earliest_of_several_times_counts() -> None:
    queue: Workqueue[str] = Workqueue()
    queue.add_at("a", 5)
    queue.add_at("a", 3)
    queue.add_at("a", 9)
    assert queue.next_due() == 3
    assert queue.take(4) == ["a"]
    assert queue.take(10) == []
    assert queue.next_due() is None


def test_the_delay_doubles_up_to_a_thousand_seconds() -> None:
    queue: Workqueue[str] = Workqueue()
    delays = [queue.backoff("a") for _ in range(30)]
    assert delays[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert delays[-1] == 1000
    queue.forget("a")
    assert queue.backoff("a") == pytest.approx(0.005)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=30))
def test_every_key_is_taken_by_its_earliest_time(wishes: list[tuple[str, int]]) -> None:
    queue: Workqueue[str] = Workqueue()
    due: dict[str, int] = {}
    for key, time in wishes:
        queue.add_at(key, time)
        due[key] = min(due.get(key, time), time)
    taken: dict[str, int] = {}
    for now in range(21):
        for key in queue.take(now):
            assert key not in taken
            taken[key] = now
    assert taken == due
