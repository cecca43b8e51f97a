"""How a running scheduler is, as one document for `fairlead status`: leader, watches, queues, pods a second, errors.

Everything here is taken from what others keep anyway. The document is made on the event loop; the scheduler's own
figures are requested, so they show one moment between two of its steps.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead import __version__
from fairlead.core.model.times import timestamp

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fairlead.core.model.figures import Figures
    from fairlead.core.model.flow import Doc
    from fairlead.runtime.lease_chain import Candidate

API_VERSION, KIND = "fairlead.io/v1", "SchedulerStatus"
_WINDOW = 60


class Rate:
    """How often something happens: events a second over the last minute, counted by whole seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._seconds: deque[tuple[int, int]] = deque(maxlen=_WINDOW + 1)

    def add(self) -> None:
        second = int(self._clock())
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = (second, self._seconds[-1][1] + 1)
        else:
            self._seconds.append((second, 1))

    def per_second(self) -> float:
        now = self._clock()
        recent = sum(count for second, count in self._seconds if second > now - _WINDOW)
        return recent / max(1.0, min(_WINDOW, now - self._began))


class LastError(logging.Handler):
    """Remembers the last line that was logged as an error or a warning."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last: Doc | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.last = {"time": timestamp(record.created), "level": record.levelname.lower(), "text": record.getMessage()}


class SchedulerStatus:
    """`figures` asks the scheduler, `silences` gives seconds since each watch answered, `unreachable` seconds since
    the API server answered; a scheduler in the process of its API server has neither."""

    def __init__(
        self,
        figures: Callable[[], Future[Figures]],
        *,
        elector: Candidate | None,
        bound: Rate,
        unreachable: Callable[[], float] = lambda: 0.0,
        silences: Callable[[float], Mapping[str, float]] = lambda _: {},
        profiles: Callable[[], Sequence[str]],
        failing: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`failing` names the checks that keep the process from being ready."""
        self._figures, self._elector, self._bound = figures, elector, bound
        self._unreachable, self._silences, self._profiles = unreachable, silences, profiles
        self._failing = failing
        self._last_error = LastError()
        self._began = time.time()

    @contextmanager
    def keeping_last_error(self) -> Iterator[None]:
        """Remember what is logged from here on."""
        root = logging.getLogger("fairlead")
        root.addHandler(self._last_error)
        try:
            yield
        finally:
            root.removeHandler(self._last_error)

    async def document(self) -> Doc:
        figures = await asyncio.wrap_future(self._figures())
        now = asyncio.get_running_loop().time()
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "version": __version__,
            "startedAt": timestamp(self._began),
            "profiles": list(self._profiles()),
            "leader": self._leader(),
            "notReady": list(self._failing()),
            "watches": [
                {"resource": resource, "silentSeconds": round(silent, 1)}
                for resource, silent in sorted(self._silences(now).items())
            ],
            "nodes": figures.nodes,
            "pods": figures.pods,
            "queues": dict(figures.pending),
            "boundPerSecond": round(self._bound.per_second(), 2),
            "apiUnreachableSeconds": round(self._unreachable(), 1),
            "exceptions": sum(figures.raised.values()),
            "quarantined": figures.quarantined,
            "drift": figures.drift,
            "lastError": self._last_error.last,
        }

    def _leader(self) -> Doc:
        if self._elector is None:
            return {"elected": False, "leading": True, "holder": "", "since": timestamp(self._began)}
        leading = self._elector.leading
        since = timestamp(self._elector.led_since) if leading else None
        return {"elected": True, "leading": leading, "holder": self._elector.leader, "since": since}
