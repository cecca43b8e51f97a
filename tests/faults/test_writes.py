"""Writes under overload: who goes first, what is never sent, and how a slow API is left in peace. On virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from fairlead.client.retry import Throttle
from fairlead.core.model.flow import Doc, PatchType, Reply, Verb, Write
from fairlead.core.model.kinds import EVENT_V1, POD, Kind
from fairlead.errors import NotSent, TooManyRequests, Unreachable
from fairlead.runtime.reporting import ApiReporter, OncePerMinute
from fairlead.runtime.write_queue import MOST_EVENTS, AdaptiveLimit, WriteClass, WriteQueue, class_of
from fairlead.runtime.writers import ConcurrentWriter, SendingRules
from fairlead.volcano.kinds import VC_POD_GROUP
from tests.support.virtual_loop import jump, now, run_virtually


def bind(name: str) -> Write:
    return Write(Verb.CREATE, POD, "n", name, {"target": {"name": "node"}}, subresource="binding")


def status(name: str, message: str = "", *, kind: Kind = POD, patch_type: PatchType = PatchType.STRATEGIC) -> Write:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    body = {"metadata": {"uid": name}, "status": {"conditions": [condition]}}
    return Write(Verb.PATCH, kind, "n", name, body, subresource="status", patch_type=patch_type)


def delete(name: str) -> Write:
    return Write(Verb.DELETE, POD, "n", name)


def event(name: str) -> Write:
    return Write(Verb.CREATE, EVENT_V1, "n", name, {})


class Api:
    """Answers after `seconds`; counts what it was asked and how much at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.done: list[tuple[float, Write]] = []
        self.at_once: Counter[WriteClass] = Counter()
        self.most: Counter[WriteClass] = Counter()

    async def perform(self, write: Write) -> Doc:
        rank = class_of(write)
        self.at_once[rank] += 1
        self.most[rank] = max(self.most[rank], self.at_once[rank])
        await asyncio.sleep(self.seconds)
        self.at_once[rank] -= 1
        self.done.append((now(), write))
        return {}

    def names(self, rank: WriteClass) -> list[str]:
        return [write.name for _, write in self.done if class_of(write) is rank]


class AnsweredWriter:
    """A writer, and what it replied."""

    def __init__(self, api: Api, **more: Any) -> None:
        self.replies: list[Reply] = []
        self.writer = ConcurrentWriter(api, self._deliver, in_flight=96, **more)  # type: ignore[arg-type]

    def _deliver(self, replies: Sequence[Reply]) -> None:
        self.replies += replies

    async def all_answered(self, count: int) -> None:
        while len(self.replies) < count:  # noqa: ASYNC110 (virtual time)
            await asyncio.sleep(0.01)


def test_a_bind_does_not_wait_behind_six_hundred_patches_at_twenty_requests_a_second() -> None:
    async def play() -> float:
        api = Api(0.002)
        writing = AnsweredWriter(api, rules=SendingRules(writes=Throttle(20, 1)))
        writing.writer.submit([status(f"p{at}") for at in range(600)])
        await asyncio.sleep(3)
        asked = now()
        writing.writer.submit([bind("urgent")])
        while not any(write.name == "urgent" for _, write in api.done):  # noqa: ASYNC110 (virtual time)
            await asyncio.sleep(0.001)
        took = now() - asked
        writing.writer.cut()
        return took

    assert run_virtually(play()) <= 0.06


def test_a_slow_api_gets_fewer_statuses_and_all_binds() -> None:
    async def play() -> tuple[int, int, float]:
        api = Api(0.005)
        writing = AnsweredWriter(api)
        writing.writer.submit([status(f"quick{at}") for at in range(200)])
        await writing.all_answered(200)
        api.seconds = 2.0
        for turn in range(75):
            writing.writer.submit([status(f"p{at}", str(turn)) for at in range(300)])
            writing.writer.submit([bind(f"b{turn}-{at}") for at in range(5)])
            await asyncio.sleep(1)
        slow_statuses = len(api.names(WriteClass.STATUS)) - 200
        binds = len(api.names(WriteClass.BIND))
        api.seconds = 0.005
        back = now()
        while any(writing.writer.figures().waiting.values()):  # noqa: ASYNC110 (virtual time)
            await asyncio.sleep(0.1)
        return slow_statuses, binds, now() - back

    statuses, binds, recovery = run_virtually(play())
    assert statuses <= 406
    assert binds >= 5 * 72
    assert recovery <= 5


def test_events_have_slots_of_their_own_and_are_dropped_when_very_many_wait() -> None:
    async def play() -> None:
        api = Api(1.0)
        writing = AnsweredWriter(api)
        writing.writer.submit([event(f"e{at}") for at in range(MOST_EVENTS + 2000)])
        writing.writer.submit([bind("b")])
        await asyncio.sleep(1.1)
        assert api.names(WriteClass.BIND) == ["b"]
        unsent = [reply for reply in writing.replies if isinstance(reply.error, NotSent)]
        assert len(unsent) == 2000
        assert api.most[WriteClass.EVENT] == 24
        writing.writer.cut()

    run_virtually(play())


def test_most_events_wait_while_more_binds_wait_than_can_be_on_their_way() -> None:
    async def play() -> None:
        api = Api(1.0)
        writing = AnsweredWriter(api)
        writing.writer.submit([write for at in range(96) for write in (bind(f"b{at}"), event(f"e{at}"))])
        await asyncio.sleep(0.5)
        assert (api.at_once[WriteClass.BIND], api.at_once[WriteClass.EVENT]) == (36, 6)
        await asyncio.sleep(1.0)  # of the binds 36 are done, 36 on their way, and 24 wait
        assert (api.at_once[WriteClass.BIND], api.at_once[WriteClass.EVENT]) == (36, 24)
        await writing.all_answered(192)

    run_virtually(play())


def test_of_statuses_that_wait_only_the_newest_is_sent_and_all_are_answered() -> None:
    async def play() -> None:
        api = Api(1.0)
        writing = AnsweredWriter(api)
        writing.writer.submit([status("p", "0")])
        await asyncio.sleep(0.5)
        writing.writer.submit([status("p", str(at)) for at in range(1, 50)])
        await writing.all_answered(50)
        said = [write.body["status"]["conditions"][0]["message"] for _, write in api.done]
        assert said == ["0", "49"]
        assert len({id(reply.write) for reply in writing.replies}) == 50

    run_virtually(play())


def test_a_patch_that_says_what_is_just_being_said_needs_no_request() -> None:
    async def play() -> None:
        api = Api(2.0)
        writing = AnsweredWriter(api)
        writing.writer.submit([status("p", "no room")])
        await asyncio.sleep(1)
        writing.writer.submit([status("p", "no room")])
        await asyncio.sleep(0.5)
        writing.writer.submit([status("p", "room on one")])
        await writing.all_answered(3)
        said = [write.body["status"]["conditions"][0]["message"] for _, write in api.done]
        assert said == ["no room", "room on one"]

    run_virtually(play())


def pod_that_says(message: str, version: str, uid: str = "p") -> Doc:
    conditions = [{"type": "PodScheduled", "status": "False", "message": message, "lastTransitionTime": "then"}]
    return {"metadata": {"name": "p", "uid": uid, "resourceVersion": version}, "status": {"conditions": conditions}}


class Answering(Api):
    """Answers each patch with the pod as it is then; `told` is what the watch has shown of it so far."""

    version = 10
    told: Doc | None = None

    async def perform(self, write: Write) -> Doc:
        await super().perform(write)
        self.version += 1
        return pod_that_says(write.body["status"]["conditions"][0]["message"], str(self.version))

    def mirrored(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        return self.told


def test_a_patch_that_has_become_true_while_it_waited_is_not_sent() -> None:
    async def play() -> None:
        api = Answering(1.0)
        writing = AnsweredWriter(api, mirrored=api.mirrored)
        for message in ("no room", "no room", "room on one", "no room"):  # each before the watch shows the last
            writing.writer.submit([status("p", message)])
            await asyncio.sleep(2)
        assert [write.body["status"]["conditions"][0]["message"] for _, write in api.done] == [
            "no room",
            "room on one",
            "no room",
        ]
        assert [reply.error for reply in writing.replies] == [None] * 4
        api.told = pod_that_says("by somebody else", "99")
        writing.writer.submit([status("p", "no room")])
        await asyncio.sleep(2)
        api.told = pod_that_says("no room", "100", uid="another pod of the name")
        writing.writer.submit([status("p", "no room")])
        await asyncio.sleep(2)
        assert len(api.done) == 5

    run_virtually(play())


def test_patches_are_joined_as_if_one_had_come_after_the_other() -> None:
    queue = WriteQueue()
    nominated = Write(Verb.PATCH, POD, "n", "p", {"metadata": {"uid": "p"}, "status": {"nominatedNodeName": "a"}},
                      subresource="status", patch_type=PatchType.STRATEGIC)  # fmt: skip
    target = {"type": "DisruptionTarget", "status": "True"}
    disrupted = Write(Verb.PATCH, POD, "n", "p", {"metadata": {"uid": "p"}, "status": {"conditions": [target]}},
                      subresource="status", patch_type=PatchType.STRATEGIC)  # fmt: skip
    queue.submit([status("p", "no room"), nominated, disrupted], 0.0)
    queued = queue.take()
    assert queued is not None
    assert queued.write.body["status"] == {
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}, target],
        "nominatedNodeName": "a",
    }
    assert queue.take() is None
    group = [status("g", text, kind=VC_POD_GROUP, patch_type=PatchType.MERGE) for text in "ab"]
    queue.submit(group, 0.0)
    newest = queue.take()
    assert newest is not None
    assert [condition["message"] for condition in newest.write.body["status"]["conditions"]] == ["b"]


def test_a_patch_of_another_pod_of_the_name_or_of_a_spec_is_not_joined() -> None:
    queue = WriteQueue()
    other = Write(Verb.PATCH, POD, "n", "p", {"metadata": {"uid": "other"}, "status": {}}, subresource="status",
                  patch_type=PatchType.STRATEGIC)  # fmt: skip
    gates = Write(Verb.PATCH, POD, "n", "p", {"spec": {"schedulingGates": []}}, patch_type=PatchType.STRATEGIC)
    queue.submit([status("p"), other, gates, status("p")], 0.0)
    sent = []
    while (queued := queue.take()) is not None:
        sent.append(queued.write)
        queue.done(queued, 0.0, 0.0, None)
    assert len(sent) == 4


def test_a_bind_makes_a_waiting_patch_of_its_pod_pointless() -> None:
    queue = WriteQueue()
    patch, binding = status("p"), bind("p")
    assert queue.submit([patch], 0.0) == []
    (reply,) = queue.submit([binding], 0.0)
    assert reply.write is patch
    assert isinstance(reply.error, NotSent)
    queued = queue.take()
    assert queued is not None
    assert queued.write is binding
    assert queue.take() is None


def test_a_deletion_keeps_its_place_behind_the_patch_that_says_why() -> None:
    queue = WriteQueue()
    first, second = status("victim"), delete("victim")
    queue.submit([*(status(f"p{at}") for at in range(100)), first, second], 0.0)
    queued = queue.take()
    assert queued is not None
    assert queued.write is first
    queue.done(queued, 0.0, 0.0, None)
    queued = queue.take()
    assert queued is not None
    assert queued.write is second


def test_nothing_is_sent_without_the_lease() -> None:
    async def play() -> None:
        api, leads = Api(0.5), [True]
        writing = AnsweredWriter(api, rules=SendingRules(may_write=lambda: leads[0]))
        writing.writer.submit([bind(f"b{at}") for at in range(200)])
        await asyncio.sleep(0.1)
        on_their_way = api.at_once[WriteClass.BIND]
        jump(60.0)  # the process was stopped, and the lease went to another
        leads[0] = False
        await writing.all_answered(200)
        assert len(api.done) == on_their_way
        assert sum(isinstance(reply.error, NotSent) for reply in writing.replies) == 200 - on_their_way

    run_virtually(play())


def test_the_limit_on_statuses_falls_with_slow_and_refused_answers_and_rises_again() -> None:
    limit = AdaptiveLimit(24, 4)
    for at in range(50):
        limit.answered(float(at), 0.01, None)
    assert limit.value == 24
    for at in range(50, 60):
        limit.answered(float(at), 0.01, TooManyRequests("later"))
    assert limit.value == 4
    for at in range(60, 1000):
        limit.answered(float(at), 0.01, None)
    assert limit.value == 24


def test_an_outage_is_reported_once_at_each_end_and_failures_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    time = [0.0]
    reporter = ApiReporter(clock=lambda: time[0], waiting=lambda: 7)
    reporter.answered(Reply(bind("a"), {}))
    for _ in range(100):
        time[0] += 0.5
        reporter.answered(Reply(bind("a"), None, Unreachable("refused")))
    assert reporter.unreachable_for == 50.0
    reporter.answered(Reply(bind("a"), {}))
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert "cannot be reached" in said[1]
    assert said[2] == "the API server is back after 50.0 s: 100 requests failed, 7 writes waited"
    assert reporter.failures == {("bind", "ServiceUnavailable"): 100}


def test_what_was_held_back_is_counted_in_the_next_line(caplog: pytest.LogCaptureFixture) -> None:
    time = [0.0]
    said = OncePerMinute(lambda: time[0])
    for _ in range(130):
        said.say("cause", 30, "it failed: %s", "why")
        time[0] += 1.0
    assert [record.getMessage() for record in caplog.records] == [
        "it failed: why",
        "it failed: why (and 59 more since this was last said)",
        "it failed: why (and 59 more since this was last said)",
    ]
