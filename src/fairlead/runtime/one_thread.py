"""OneThread: an executor with a single thread that the end of the process does not wait for.

A controller that builds something endless may never come back from a step. The interpreter joins the threads of a
ThreadPoolExecutor when it ends, so that a process with such a thread does not stop; this thread is a daemon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_Work = tuple["Future[Any]", Callable[[], Any]]


class OneThread(Executor):
    """Runs what is submitted, one after the other."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._work.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; what was submitted is still done, unless it is cancelled."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                while not self._work.empty():
                    if (item := self._work.get_nowait()) is not None:
                        item[0].cancel()
            self._work.put(None)
        if wait:
            self._thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, work = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del item, future, work  # nothing is kept alive while nothing is done
