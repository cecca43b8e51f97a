"""ApiHealth: how a process stands with the API server, as metrics and as checks for /readyz and /healthz.

Readiness is lost while the API cannot be reached or a watch is silent for longer than bookmarks allow. Health is lost
only when a watch gets nothing for minutes although the API answers others: that is what a restart would mend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.runtime.metrics import Name, counter, gauge

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from fairlead.runtime.reporting import ApiReporter
    from fairlead.runtime.write_queue import WriteFigures

NOT_READY_AFTER, UNHEALTHY_AFTER = 180.0, 600.0
"""Seconds of silence of a watch. A quiet one gets a bookmark each minute, and one whose server sends no bookmarks is
begun again after 75 seconds of silence."""
UNREACHABLE_AFTER = 30.0

QUEUED = Name("fairlead_queued_writes", "[ALPHA] Writes that wait to be sent, by class.", ("class",))
OLDEST = Name("fairlead_oldest_queued_write_seconds", "[ALPHA] Age of the write that waits longest.", ("class",))
FAILED = Name("fairlead_failed_writes_total", "[ALPHA] Writes that failed, by class and reason.", ("class", "reason"))
SILENCE = Name("fairlead_watch_silence_seconds", "[ALPHA] Seconds since a watch last answered.", ("resource",))
UNREACHABLE = Name("fairlead_api_unreachable_seconds", "[ALPHA] For how long the API server has not answered, or 0.")


class ApiHealth:
    def __init__(
        self,
        reporter: ApiReporter,
        silences: Callable[[float], Mapping[str, float]],
        writing: Callable[[], WriteFigures],
    ) -> None:
        self._reporter, self._silences, self._writing = reporter, silences, writing

    def metrics(self) -> Iterator[Metric]:
        figures = self._writing()
        yield gauge(QUEUED, {(rank.name.lower(),): count for rank, count in figures.waiting.items()})
        yield gauge(OLDEST, {(rank.name.lower(),): age for rank, age in figures.oldest.items()})
        yield counter(FAILED, self._reporter.failures)
        yield gauge(SILENCE, {(resource,): seconds for resource, seconds in self._silence_now().items()})
        yield gauge(UNREACHABLE, {(): self._reporter.unreachable_for})

    def ready(self) -> bool:
        reporter = self._reporter
        answered = max(reporter.unreachable_for, reporter.unauthorized_for) < UNREACHABLE_AFTER
        return answered and self._longest() < NOT_READY_AFTER

    def healthy(self) -> bool:
        return self._reporter.unreachable_for > 0 or self._longest() < UNHEALTHY_AFTER

    def _silence_now(self) -> Mapping[str, float]:
        return self._silences(asyncio.get_running_loop().time())

    def _longest(self) -> float:
        return max(self._silence_now().values(), default=0.0)
