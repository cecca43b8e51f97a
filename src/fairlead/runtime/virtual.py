"""VirtualRuntime: runs the controllers of a cluster over a Store in virtual time.

Time stands still while a controller has work: controllers step in the order in which they were given, their writes are
performed on the Store at once, and the changes and replies come with the next step. When none has work, time jumps to
the next event: a wake-up, a delayed message, or a function that was scheduled with `at`. There are no threads, no
sleeping and no clock. Latencies, where wanted, come from a seeded generator and never reorder the messages to one
controller.

What threads do outside for a controller (`WorksOutside`), such as a request to an extender, takes real time. It has
ended before virtual time passes, so that an answer never comes later than the time limit of the caller that waits for
it.

Invariant: the same Store, controllers, deeds and seed give the same writes in the same order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from fairlead.core.model.flow import Change, Controller, Reply, WorksOutside, Write
from fairlead.errors import ApiError, ScenarioError
from fairlead.runtime.questions import Answer, AnyController, Questions

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fairlead.cluster.store.history import Feed
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc, Watch
    from fairlead.core.model.kinds import Kind

Deed = Callable[[], None]
Latency = Callable[[Random], float]
Perform = Callable[["Controller", "Write"], "Doc"]

_TURNS_PER_INSTANT = 200_000
_TICK = 30.0
_NEVER = float("inf")


class VirtualClock:
    """The time of a virtual world, as a clock to give to its Store before there is a runtime."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long a write takes to be performed and answered, and a change to be seen. None is no time at all."""

    write: Latency | None = None
    watch: Latency | None = None


class _Driven:
    """A controller with its feeds, and the changes and replies that are delayed on their way to it."""

    def __init__(self, controller: Controller, store: Store) -> None:
        self.controller = controller
        self.questions = Questions(controller)
        self._store = store
        self._followed: dict[Watch, Kind] = {}
        self._feeds: list[Feed] = []
        self._generation = -1
        self._follow()
        self.changes: deque[tuple[float, Change]] = deque()
        self.replies: deque[tuple[float, Reply]] = deque()
        self.last_change_due = self.last_write_due = float("-inf")
        self.wake_at: float | None = float("-inf")  # the first step brings all there is, even if that is nothing

    def _follow(self) -> None:
        """Follow what the controller watches, and kinds whose definitions have changed since."""
        served = {watch: self._store.registry.served(watch.kind) for watch in self.controller.watches}
        more = [watch for watch, kind in served.items() if self._followed.get(watch) is not kind]
        if more:
            self._feeds.append(self._store.feed(more))
        self._followed, self._generation = served, self._store.registry.generation

    def follow_more(self) -> None:
        if len(self.controller.watches) > len(self._followed) or self._generation != self._store.registry.generation:
            self._follow()

    def has_work(self, now: float) -> bool:
        """Whether a change has come, or something is due."""
        for feed in self._feeds:
            if feed.waiting:
                return True
        return self.next_due() <= now

    def news(self) -> list[Change]:
        changes: list[Change] = []
        for feed in self._feeds:
            if feed.waiting:
                changes += feed.drain()
        return changes

    def next_due(self) -> float:
        wake = _NEVER if self.wake_at is None else self.wake_at
        if self.changes:
            wake = min(wake, self.changes[0][0])
        return min(wake, self.replies[0][0]) if self.replies else wake

    def step(self, now: float, changes: list[Change]) -> list[Write]:
        while self.changes and self.changes[0][0] <= now:
            changes.append(self.changes.popleft()[1])
        replies = []
        while self.replies and self.replies[0][0] <= now:
            replies.append(self.replies.popleft()[1])
        writes = self.controller.step(now, changes, replies)
        self.wake_at = self.controller.wake_at()
        self.follow_more()
        return writes


class VirtualRuntime:
    def __init__(
        self,
        store: Store,
        controllers: Iterable[Controller],
        *,
        start: float = 0.0,
        seed: int = 0,
        clock: VirtualClock | None = None,
        latencies: Latencies | None = None,
        perform: Perform | None = None,
    ) -> None:
        """The Store's clock must be `clock`, or one that answers with this runtime's `now`. `perform` carries out the
        controllers' writes, or does not, as a network might; the Store does unless it is given."""
        self._clock = clock or VirtualClock(start)
        self._store = store
        self._rng = Random(seed)
        self._latencies = latencies or Latencies()
        self._carry_out: Perform = perform or (lambda controller, write: store.perform(write))
        self._agenda: list[tuple[float, int, Deed]] = []
        self._sequence = 0
        self._next_tick = self._clock.now + _TICK
        self._driven = [_Driven(controller, store) for controller in controllers]
        self._work_outside: list[WorksOutside]
        self._find_work_outside()

    @property
    def now(self) -> float:
        return self._clock.now

    @property
    def controllers(self) -> Sequence[Controller]:
        return [driven.controller for driven in self._driven]

    def add(self, controller: Controller) -> None:
        """Add a controller; its first step brings all objects that it watches."""
        self._driven.append(_Driven(controller, self._store))
        self._find_work_outside()

    def ask(self, controller: AnyController, question: Callable[[AnyController], Answer]) -> Future[Answer]:
        """Call a function with a controller. There is one thread, so a caller does so between two steps, and the
        Future is done when it is returned. What a question gave the controller to do is done in its next step."""
        asked = next(driven for driven in self._driven if driven.controller is controller)
        future = asked.questions.put(question)
        asked.questions.answer_next()
        if asked.wake_at != float("-inf"):
            asked.wake_at = asked.controller.wake_at()
        return future

    def remove(self, controller: Controller) -> None:
        """One less, as if its process had been killed: what was on its way to it is lost, what it wrote is not."""
        self._driven = [driven for driven in self._driven if driven.controller is not controller]
        self._find_work_outside()

    def _find_work_outside(self) -> None:
        controllers = self.controllers
        self._work_outside = [one for one in controllers if isinstance(one, WorksOutside)]

    def at(self, time: float, deed: Deed) -> None:
        """Do something at that time (at once if it has passed), before the controllers step."""
        self._sequence += 1
        heapq.heappush(self._agenda, (max(time, self.now), self._sequence, deed))

    def run(self, until: float) -> None:
        """Let time pass until the given time."""
        self._pass(until, self._jump)

    def keep_pace(self, until: float) -> None:
        """The same where the given time is that of the machine. Work outside then has had that time as well, and is not
        waited for: it may need whatever else the calling thread does."""
        self._pass(until, self._set_clock)

    def run_until(self, predicate: Callable[[], bool], *, limit: float = 3600.0) -> bool:
        """Let time pass until the predicate holds, for `limit` seconds at most; says whether it does."""
        end = self.now + limit
        self.settle()
        while not predicate():
            due = self._next_due()
            if due > end:
                self._jump(end)
                return predicate()
            self._jump(due)
            self.settle()
        return True

    def go_on(self, until: float) -> bool:
        """Let time pass until something is due, and do it; False if nothing is before the given time."""
        due = self._next_due()
        if due > until:
            self._jump(until)
            return False
        self._jump(due)
        self.settle()
        return True

    def settle(self) -> None:
        """Do everything that is due at this instant."""
        for _ in range(_TURNS_PER_INSTANT):
            self._do_deeds()
            if not self._turn():
                return
        busy = ", ".join(driven.controller.name for driven in self._driven if driven.has_work(self.now))
        raise ScenarioError(f"the controllers do not come to rest at {self.now:g} s; still busy: {busy}")

    # One instant

    def _do_deeds(self) -> None:
        agenda, now = self._agenda, self._clock.now
        while agenda and agenda[0][0] <= now:
            heapq.heappop(agenda)[2]()

    def _turn(self) -> bool:
        """Let each controller that has something to do take one step; says whether any had."""
        busy, now, latency = False, self._clock.now, self._latencies.watch
        for driven in self._driven:
            if latency is not None:
                self._send(driven, latency)
            if driven.has_work(now):
                busy = True
                self._step(driven, now)
        return busy

    def _step(self, driven: _Driven, now: float) -> None:
        writes = driven.step(now, driven.news())
        if not writes:
            return
        if self._latencies.write is None:
            replies, perform = driven.replies, self._perform
            with self._store.batch():
                for write in writes:
                    replies.append((now, perform(driven, write)))
        else:
            for write in writes:
                self._post(driven, write, self._latencies.write)

    def _perform(self, driven: _Driven, write: Write) -> Reply:
        try:
            return Reply(write, self._carry_out(driven.controller, write))
        except ApiError as error:
            return Reply(write, None, error)

    # Messages on their way

    def _post(self, driven: _Driven, write: Write, latency: Latency) -> None:
        """Perform a write a little later; its reply comes with it."""
        due = max(driven.last_write_due, self.now + latency(self._rng))
        driven.last_write_due = due
        self.at(due, lambda: driven.replies.append((self.now, self._perform(driven, write))))

    def _send(self, driven: _Driven, latency: Latency) -> None:
        """Delay what was just published by the latency of watches."""
        for change in driven.news():
            driven.last_change_due = max(driven.last_change_due, self.now + latency(self._rng))
            driven.changes.append((driven.last_change_due, change))

    # Time

    def _pass(self, until: float, jump: Callable[[float], None]) -> None:
        self.settle()
        while (due := self._next_due()) <= until:
            jump(due)
            self.settle()
        jump(until)

    def _next_due(self) -> float:
        due = self._agenda[0][0] if self._agenda else _NEVER
        for driven in self._driven:
            due = min(due, driven.next_due())
        return due

    def _jump(self, time: float) -> None:
        """Set the clock once the work outside has ended."""
        if time > self._clock.now:
            for controller in self._work_outside:
                for work in controller.outside:
                    work.wait()
        self._set_clock(time)

    def _set_clock(self, time: float) -> None:
        """The Store drops old history at the same intervals as in a live cluster."""
        while self._next_tick <= time:
            self._clock.now = max(self._clock.now, self._next_tick)
            self._next_tick += _TICK
            self._store.tick()
        self._clock.now = max(self._clock.now, time)
