"""Questions: how anybody but a runtime reads or changes a controller.

A controller's state is consistent only between two steps, and only its own thread may touch it. Explanations, metrics,
dumps and reloads are therefore functions of a controller that a runtime calls there; the asker gets a Future.

    runtime.ask(scheduler, lambda scheduler: scheduler.explain("default", "web-0")).result()

A step that is under way when a question arrives ends after the attempt that it is at, if its controller can do that
(`Interruptible`), so a question waits for one attempt and not for a whole slice.

Invariant: a question and a step of the same controller never run at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from fairlead.core.model.flow import Controller, Interruptible

AnyController = TypeVar("AnyController", bound=Controller)
Answer = TypeVar("Answer")


class Questions:
    """The questions that wait for one controller, in the order in which they were asked."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._waiting: deque[tuple[Callable[[Any], Any], Future[Any]]] = deque()
        if isinstance(controller, Interruptible):
            controller.interrupted_by = self._waiting

    def put(self, question: Callable[[AnyController], Answer]) -> Future[Answer]:
        """Queue a question; somebody must call `answer_next` for it on the controller's thread."""
        future: Future[Answer] = Future()
        self._waiting.append((question, future))
        return future

    def answer_next(self) -> None:
        """Answer the question that has waited longest. What it raises goes to the asker."""
        question, future = self._waiting.popleft()
        if not future.set_running_or_notify_cancel():
            return
        try:
            answer = question(self._controller)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(answer)
