"""LiveRuntime: runs controllers against the clock of the machine, on asyncio with one thread per controller.

Watches, writes, the lease and the API server are on the event loop. Each controller's `step` runs in a thread of its
own, so a slow plugin delays scheduling only. Changes are collected in an inbox while a step runs and given to the next
step, so a step sees a state that does not move. A controller sleeps until something is in its inbox, its `wake_at` has
come, or it has been idle for a while. Questions (`ask`) are answered on its thread, between two steps.

    (standing by ─▶) waiting for first lists ─▶ step ─▶ writes ─▶ doze ─▶ step ...   ─stop▶ finish writes ─▶ ended

Invariant: one step at a time per controller; a step that raises is logged and costs its own changes, nothing else. What
raises while a step is reported to telemetry costs nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from fairlead.client.retry import RetryDelays
from fairlead.errors import Unreachable
from fairlead.runtime.one_thread import OneThread
from fairlead.runtime.questions import Answer, AnyController, Questions
from fairlead.runtime.reporting import OncePerMinute
from fairlead.runtime.write_queue import WriteFigures, sum_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fairlead.core.model.flow import Change, Controller, Reply, Write
    from fairlead.runtime.worlds import Following, World

log = logging.getLogger("fairlead.runtime")

_Notice = TypeVar("_Notice")
_AFTER_FAILURE = RetryDelays(first=0.1, most=10.0)


class Clock:
    """Seconds since the epoch that never jump: anchored once, then driven by the monotonic clock."""

    def __init__(self) -> None:
        self._anchor = time.time() - time.monotonic()

    def now(self) -> float:
        return self._anchor + time.monotonic()


@dataclass(frozen=True, slots=True)
class Stepped:
    """Measurements of one step, for telemetry."""

    controller: str
    seconds: float
    changes: int
    replies: int
    writes: int
    failed: bool


_Outcome = tuple[list["Write"], float | None]
OnStep = Callable[[Stepped], None]
OnWrite = Callable[[str, "Reply"], None]
OnTurn = Callable[["Controller"], None]
"""Called after each step, on the controller's own thread, to take what the step left behind."""


@dataclass(frozen=True, slots=True)
class StepListeners:
    """Functions that watch the controllers: called after each step, after each write, and after each step on the
    controller's own thread, to take what the step left behind."""

    on_step: OnStep | None = None
    on_write: OnWrite | None = None
    on_turn: OnTurn | None = None


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """`in_flight` writes per controller; `stop_within` seconds for a step and its writes to end when stopped;
    `list_within` seconds that a controller waits for the objects of a watch that it adds while running; `idle` seconds
    without anything to do until a controller steps all the same, for what it does now and then, as the scheduler's
    audit of its table."""

    in_flight: int = 64
    stop_within: float = 5.0
    list_within: float = 5.0
    idle: float = 2.0


_LIMITS = RuntimeLimits()


class LiveRuntime:
    """Drives controllers in a World until stopped. `stop` may be called from signal handlers, on the loop's thread."""

    def __init__(
        self,
        world: World,
        controllers: Sequence[Controller],
        *,
        clock: Clock | None = None,
        limits: RuntimeLimits = _LIMITS,
        on_step: OnStep | None = None,
        on_write: OnWrite | None = None,
        on_turn: OnTurn | None = None,
    ) -> None:
        self._world = world
        self._limits = limits
        clock = clock or Clock()
        self._drivers = [
            _Driver(controller, world, clock=clock, limits=limits, listeners=StepListeners(on_step, on_write, on_turn))
            for controller in controllers
        ]

    def ask(self, controller: AnyController, question: Callable[[AnyController], Answer]) -> Future[Answer]:
        """Call a function with one of the controllers, between two of its steps and on its own thread; the Future has
        what it returns or raises. To be called on the loop's thread."""
        return next(driver for driver in self._drivers if driver.controller is controller).ask(question)

    def stop(self) -> None:
        for driver in self._drivers:
            driver.stop()

    @property
    def held(self) -> frozenset[str]:
        """Parts of controllers that wait for what this account may not read."""
        return frozenset().union(*(driver.held for driver in self._drivers))

    @property
    def stepping(self) -> bool:
        """Whether every controller has seen the whole of what it watches, and made its first step."""
        return all(driver.steps for driver in self._drivers)

    def writing(self) -> WriteFigures:
        """What waits to be written, of all controllers."""
        return sum_of([driver.writer.figures() for driver in self._drivers])

    async def stand_by(self) -> None:
        """Watch without acting, until cancelled. `run_until_stopped` then begins with what is known, without lists."""
        await self._world.run()

    async def run_until_stopped(self, standing_by: asyncio.Task[None] | None = None) -> None:
        """Returns after `stop`, when every controller has ended. If cancelled, everything ends at once.
        A task of `stand_by` is taken over, its watches go on, and it ends with this."""
        for driver in self._drivers:
            driver.follow()
        async with asyncio.TaskGroup() as group:
            world = group.create_task(_taken_over(standing_by) if standing_by else self._world.run(), name="world")
            drivers = [group.create_task(driver.run(), name=driver.name) for driver in self._drivers]
            await asyncio.gather(*drivers)
            world.cancel()


async def _taken_over(standing_by: asyncio.Task[None]) -> None:
    await standing_by


class _StepLog:
    """The log of one controller's steps: what failed, and how often in a row."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        self._failed_notices: set[str] = set()
        self._said = OncePerMinute()
        self._rng = random.Random(name)

    def troubles(self, controller: Controller, now: float) -> None:
        """Log what went wrong for single objects in the step of that time, for controllers that remember it."""
        for trouble in [*getattr(controller, "errors", ())]:
            if trouble.at == now:
                where = "/".join(map(str, trouble.key)) if isinstance(trouble.key, tuple) else trouble.key
                cause = (trouble.controller, trouble.message)
                self._said.say(
                    cause,
                    logging.WARNING,
                    "%s failed over %s and tries again: %s",
                    trouble.controller,
                    where,
                    trouble.message,
                )

    def call(self, listener: Callable[[_Notice], None], notice: _Notice) -> None:
        """Call somebody who watches the steps. If that fails, the writes of the step are sent all the same."""
        try:
            listener(notice)
        except Exception as error:
            if repr(error) not in self._failed_notices:
                self._failed_notices.add(repr(error))
                log.error(
                    "what a step of %s did could not be reported; this is logged once",
                    self.name,
                    exc_info=error,
                    extra={"controller": self.name},
                )

    def failed(self, error: Exception) -> float:
        """A step failed; returns how long to wait before the next."""
        self.failures += 1
        delay = _AFTER_FAILURE.delay(self.failures, self._rng)
        log.error(
            "a step of %s failed, the next in %.1f s at the latest",
            self.name,
            delay,
            exc_info=error,
            extra={"controller": self.name},
        )
        return delay


class _Answering:
    """Answers questions to one controller, on the thread of its steps while it has one."""

    def __init__(self, controller: Controller) -> None:
        self._name = controller.name
        self._questions = Questions(controller)
        self._thread: OneThread | None = None
        self._ended = False

    def begin(self, thread: OneThread) -> None:
        self._thread = thread

    def end(self) -> None:
        self._thread, self._ended = None, True

    def ask(self, question: Callable[[AnyController], Answer]) -> Future[Answer]:
        """Before the first step nobody else touches the controller, so the answer comes at once."""
        future = self._questions.put(question)
        if self._ended:
            future.set_exception(Unreachable(f"the {self._name} has been stopped"))
        elif self._thread is None:
            self._questions.answer_next()
        else:
            self._thread.submit(self._questions.answer_next)
        return future


class _Driver:
    """One controller, its inbox, its thread."""

    def __init__(
        self,
        controller: Controller,
        world: World,
        *,
        clock: Clock,
        limits: RuntimeLimits,
        listeners: StepListeners,
    ) -> None:
        self.controller = controller
        self.steps = 0
        self._world = world
        self._clock = clock
        self._limits = limits
        self._listeners = listeners
        self._answering = _Answering(controller)
        self._awake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._replies: list[Reply] = []
        self._turning: asyncio.Future[_Outcome] | None = None
        self._log = _StepLog(controller.name)
        self._following: Following
        self._followed = 0
        world.anticipate(controller.watches)
        self.writer = world.writer(self._receive, in_flight=limits.in_flight)

    @property
    def held(self) -> frozenset[str]:
        return self._following.held if self._followed else frozenset()

    @property
    def name(self) -> str:
        return self.controller.name

    def follow(self) -> None:
        """Collect changes from now on. Called when the first step is near, because nobody drains the inbox before."""
        watches = self.controller.watches
        self._following = self._world.follow(watches, self._awake.set)
        self._followed = len(watches)

    def stop(self) -> None:
        self._stopping.set()
        self._awake.set()
        if self._turning is not None:
            self._turning.get_loop().call_later(self._limits.stop_within, self._turning.cancel)

    def ask(self, question: Callable[[AnyController], Answer]) -> Future[Answer]:
        return self._answering.ask(question)

    async def run(self) -> None:
        thread = OneThread(self.name)
        self._answering.begin(thread)
        try:
            while not self._following.ready and not self._stopping.is_set():
                await self._doze(None)
            while not self._stopping.is_set():
                wake_at = await self._step(thread)
                if len(self.controller.watches) > self._followed:
                    await self._follow_more()
                else:
                    idle_until = self._clock.now() + self._limits.idle
                    await self._doze(idle_until if wake_at is None else min(wake_at, idle_until))
            if left := await self.writer.finish(self._limits.stop_within):
                log.warning("%d writes given up at the end", left, extra={"controller": self.name})
        finally:
            self.writer.cut()
            self._following.close()
            self._answering.end()
            thread.shutdown(wait=False)  # not before the questions that wait have been answered

    async def _follow_more(self) -> None:
        """The controller has added watches. Wait a little for their objects, so that its next step sees them."""
        watches = self.controller.watches
        self._following.also(watches[self._followed :])
        self._followed = len(watches)
        patience = self._clock.now() + self._limits.list_within
        while not self._following.ready and not self._stopping.is_set() and self._clock.now() < patience:
            await self._doze(patience)

    async def _step(self, thread: OneThread) -> float | None:
        """One step; the answer is when to make the next even if nothing happens."""
        changes = self._following.drain()
        replies, self._replies = self._replies, []
        began = time.monotonic()
        turn = asyncio.get_running_loop().run_in_executor(thread, self._turn, changes, replies)
        try:
            writes, wake_at = await self._patiently(turn)
        except Exception as error:
            writes, wake_at = [], self._clock.now() + self._log.failed(error)
        else:
            self._log.failures = 0
            self.writer.submit(writes)
        self.steps += 1
        if self._listeners.on_step is not None:
            seconds = time.monotonic() - began
            made = Stepped(self.name, seconds, len(changes), len(replies), len(writes), bool(self._log.failures))
            self._log.call(self._listeners.on_step, made)
        return wake_at

    async def _patiently(self, turn: asyncio.Future[_Outcome]) -> _Outcome:
        """The outcome of a step. After `stop`, a step that does not end in time is abandoned in its thread."""
        self._turning = turn
        try:
            return await turn
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise TimeoutError("the step did not end in time and was left behind") from None
        finally:
            self._turning = None

    def _turn(self, changes: Sequence[Change], replies: Sequence[Reply]) -> _Outcome:
        """Step and request the next wake-up, both in the worker thread, so that a controller is used by one thread."""
        now = self._clock.now()
        self._hold()
        writes = self.controller.step(now, changes, replies)
        self._log.troubles(self.controller, now)
        if self._listeners.on_turn is not None:
            self._log.call(self._listeners.on_turn, self.controller)
        return writes, self.controller.wake_at()

    def _hold(self) -> None:
        """Say which parts of the controller have to wait, to controllers that have parts."""
        if any(watch.part for watch in self.controller.watches):
            getattr(self.controller, "hold")(self.held)  # noqa: B009 (only controllers whose watches name parts have it)

    def _receive(self, replies: Sequence[Reply]) -> None:
        self._replies.extend(replies)
        self._awake.set()
        if self._listeners.on_write is not None:
            for reply in replies:
                self._listeners.on_write(self.name, reply)

    async def _doze(self, until: float | None) -> None:
        """Sleep until woken or until that time. None is no time limit."""
        if until is not None and until <= self._clock.now():
            # A yield, or a controller that always has more to do would keep the loop from everybody else.
            await asyncio.sleep(0)
        else:
            try:
                async with asyncio.timeout(None if until is None else until - self._clock.now()):
                    await self._awake.wait()
            except TimeoutError:
                pass
        self._awake.clear()
