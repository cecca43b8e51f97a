"""ThreadedWork: jobs that threads do for a Controller between its steps, such as a request to an extender.

Time that passes by itself needs no count of them. A virtual runtime does: it waits until all have ended before it lets
time pass, or an hour would be over before an answer could be there that takes a millisecond.

A lock that jobs share would stay locked in a copy of the process that is made while a job holds it; threads can be
joined without one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Thread


class ThreadedWork:
    """An OutsideWork. `begin` is called by the controller's thread alone."""

    def __init__(self) -> None:
        self._threads: deque[Thread] = deque()

    @property
    def under_way(self) -> bool:
        """Whether a job has not ended."""
        return any(thread.is_alive() for thread in self._threads)

    def begin(self, job: Callable[[], None], *, name: str) -> None:
        """Do a job in a thread of its own. The end of the process does not wait for it."""
        while self._threads and not self._threads[0].is_alive():
            self._threads.popleft()
        thread = Thread(target=job, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def wait(self) -> None:
        """Return when all jobs that have begun have ended."""
        while self._threads:
            self._threads[0].join()
            self._threads.popleft()
