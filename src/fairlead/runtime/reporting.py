"""What is logged for operators about the API: when it cannot be reached and when it is back, and which writes failed
and why.

One line per outage at each end, and one line per cause and minute for everything else: a thousand writes that fail for
one reason are one line with a count. Everything is counted, whether said or not.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.errors import Interrupted, NotFound, NotSent, Unauthorized, Unreachable
from fairlead.runtime.write_queue import WriteClass, class_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Reply, Watch
    from fairlead.errors import ApiError

log = logging.getLogger("fairlead.runtime")

_SILENT_FOR = 3.0
"""Seconds without any answer after which a failure is an outage, and not one bad request among good ones."""
_WRITES = "writes"
_DOING = {
    WriteClass.BIND: "binding",
    WriteClass.EVICTION: "deleting",
    WriteClass.STATUS: "writing",
    WriteClass.EVENT: "emitting",
}


class OncePerMinute:
    """Logs a cause once a minute at most. What was held back is counted in the cause's next line."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, every: float = 60.0, log: logging.Logger = log
    ) -> None:
        self._clock, self._every, self._log = clock, every, log
        self._said: dict[object, tuple[float, int]] = {}

    def say(self, cause: object, level: int, text: str, *arguments: object) -> None:
        now = self._clock()
        said_at, held_back = self._said.get(cause, (float("-inf"), 0))
        if now - said_at < self._every:
            self._said[cause] = (said_at, held_back + 1)
            return
        if len(self._said) > 1000:
            self._said = {known: said for known, said in self._said.items() if now - said[0] < self._every}
        self._said[cause] = (now, 0)
        more = f" (and {held_back} more since this was last said)" if held_back else ""
        self._log.log(level, text + "%s", *arguments, more)


class ApiReporter:
    """Gets every answer and every failure. `waiting` says how many writes wait."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, waiting: Callable[[], int] = lambda: 0) -> None:
        self._clock, self.waiting = clock, waiting
        self._said = OncePerMinute(clock)
        self._answered_at = clock()
        self._failing_since: float | None = None
        self._failed_meanwhile = 0
        self._unknown_since: dict[str, float] = {}
        """Since when the API says that it does not know who asks, by what was asked: a resource to watch, or writes."""
        self.failures: Counter[tuple[str, str]] = Counter()
        """Writes that failed, by class and reason."""

    @property
    def unreachable_for(self) -> float:
        """Seconds for which the API has not answered while it was asked; 0 when it answers."""
        return 0.0 if self._failing_since is None else self._clock() - self._failing_since

    @property
    def unauthorized_for(self) -> float:
        """Seconds for which the API has answered 401 to something, and to the same never anything else; 0 otherwise."""
        since = min(self._unknown_since.values(), default=None)
        return 0.0 if since is None else self._clock() - since

    # ---- watches ----

    def watch_answered(self, watch: Watch) -> None:
        self._works()
        self._unknown_since.pop(watch.kind.resource, None)

    def watch_failed(self, watch: Watch, error: ApiError, pause: float) -> None:
        if isinstance(error, Interrupted):
            log.debug("the watch of %s broke off: %s", watch.kind.resource, error)
        elif isinstance(error, Unreachable):
            self._fails(error)
        elif isinstance(error, NotFound):
            self._works()
            log.debug("there are no %s on this server", watch.kind.resource)
        elif isinstance(error, Unauthorized):
            self._works()
            self._unknown_since.setdefault(watch.kind.resource, self._clock())
            text = "the API server does not know this account any more (401): watching %s and other kinds fails: %s"
            self._said.say(Unauthorized, logging.WARNING, text, watch.kind.resource, error)
        else:
            self._works()
            cause = (watch.kind.resource, type(error))
            self._said.say(
                cause, logging.WARNING, "watching %s failed, again in %.1f s: %s", watch.kind.resource, pause, error
            )

    # ---- writes ----

    def answered(self, reply: Reply) -> None:
        error = reply.error
        if error is None:
            self._works()
            self._unknown_since.pop(_WRITES, None)
            return
        if isinstance(error, Unauthorized):
            self._unknown_since.setdefault(_WRITES, self._clock())
        write, rank = reply.write, class_of(reply.write)
        self.failures[rank.name.lower(), error.reason] += 1
        if isinstance(error, Unreachable):
            self._fails(error)
        elif not isinstance(error, NotSent):
            self._works()
        if isinstance(error, NotFound) and rank is not WriteClass.BIND:
            return  # it is gone, and nothing is left to be done
        self._said.say(
            (rank, type(error)),
            logging.WARNING,
            "%s %s %s/%s failed: %s",
            _DOING[rank],
            write.kind.resource,
            write.namespace,
            write.name,
            error,
        )

    # ---- outages ----

    def _works(self) -> None:
        now = self._clock()
        self._answered_at = now
        failed, self._failed_meanwhile = self._failed_meanwhile, 0
        if self._failing_since is not None:
            lasted, self._failing_since = now - self._failing_since, None
            log.warning(
                "the API server is back after %.1f s: %d requests failed, %d writes waited",
                lasted,
                failed,
                self.waiting(),
            )

    def _fails(self, error: ApiError) -> None:
        self._failed_meanwhile += 1
        if self._failing_since is None and self._clock() - self._answered_at > _SILENT_FOR:
            self._failing_since = self._answered_at
            log.error(
                "the API server cannot be reached since %.1f s ago: %s; nothing is scheduled until it is back",
                self._clock() - self._answered_at,
                error,
            )
