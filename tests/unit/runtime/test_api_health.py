"""How a process stands with an API server that answers, and does not know it any more."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Reply, Verb, Watch, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.errors import Conflict, Unauthorized
from fairlead.runtime.api_health import UNREACHABLE_AFTER, ApiHealth
from fairlead.runtime.reporting import ApiReporter
from fairlead.runtime.write_queue import WriteFigures

BIND = Write(Verb.CREATE, POD, "default", "a", {}, subresource="binding")


class Room:
    def __init__(self) -> None:
        self.now = 1000.0
        self.reporter = ApiReporter(clock=lambda: self.now)
        self.health = ApiHealth(self.reporter, lambda now: {}, lambda: WriteFigures({}, {}, {}))


async def test_an_account_that_nobody_knows_any_more_is_not_ready() -> None:
    room = Room()
    room.reporter.answered(Reply(BIND, None, Unauthorized("Unauthorized")))
    assert room.health.ready(), "a token that is just renewed may be refused once"
    room.now += UNREACHABLE_AFTER + 1
    room.reporter.answered(Reply(BIND, None, Conflict("another was quicker")))
    assert not room.health.ready()
    room.reporter.answered(Reply(BIND, {}, None))
    assert room.health.ready()


async def test_a_watch_that_is_answered_again_is_known_again(caplog: pytest.LogCaptureFixture) -> None:
    room = Room()
    for watch in (Watch(POD), Watch(NODE)):
        room.reporter.watch_failed(watch, Unauthorized("Unauthorized"), 1.0)
    room.now += UNREACHABLE_AFTER + 1
    room.reporter.watch_answered(Watch(NODE))
    assert not room.health.ready()
    room.reporter.watch_answered(Watch(POD))
    assert room.health.ready()
    assert caplog.text.count("does not know this account any more (401)") == 1, "one line for one cause"
