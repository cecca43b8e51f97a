"""UsageCollector: asks a metrics source at intervals how busy nodes are, and writes it to the UsageBoard.

The source is `metrics` of the configuration in force, read before each request, so that a reload takes effect at once.
If a request fails, the old numbers stay with their times, and plugins decide whether they are too old.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from fairlead.client.node_metrics import node_metrics
from fairlead.core.model.durations import parse_duration
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.client.node_metrics import NodeMetrics, Raw
    from fairlead.core.model.usage import UsageBoard

log = logging.getLogger("fairlead.usage")

_INTERVAL = 30.0
_UNTIL_NODES = 0.1
"""How soon to look again while no node is known: when everything starts, nodes come in a moment."""


class UsageCollector:
    """`names` are the nodes to ask about, `raw` the way to the cluster's own API, `now` the time in seconds."""

    def __init__(
        self, board: UsageBoard, *, names: Callable[[], Collection[str]], raw: Raw, now: Callable[[], float]
    ) -> None:
        self._board = board
        self._names, self._raw, self._now = names, raw, now
        self._asked: Mapping[str, str] = {}
        self._source: NodeMetrics | None = None
        self._trouble = ""

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self.collect()
                await asyncio.sleep(self.interval if self._names() else min(self.interval, _UNTIL_NODES))
        finally:
            await self._forget_source()

    @property
    def interval(self) -> float:
        """Seconds between two questions."""
        try:
            seconds = parse_duration(self._board.metrics.get("interval", ""))
        except ValueError:
            return _INTERVAL
        return seconds if seconds > 0 else _INTERVAL

    async def collect(self) -> None:
        """One request, if the configuration names a source."""
        metrics, names = self._board.metrics, self._names()
        if not metrics.get("type") or not names:
            return
        try:
            source = await self._source_of(metrics)
            self._board.put(await source.usage(names, self._now()))
        except (FairleadError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._log_trouble(f"{type(error).__name__}: {error}")
        else:
            self._trouble = ""

    async def _source_of(self, metrics: Mapping[str, str]) -> NodeMetrics:
        if self._source is None or metrics != self._asked:
            await self._forget_source()
            self._source = node_metrics(metrics, self._raw)
            self._asked = metrics
        return self._source

    async def _forget_source(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            await source.close()

    def _log_trouble(self, trouble: str) -> None:
        """Log a failure, unless it is the same as the last one."""
        if trouble != self._trouble:
            log.warning("how busy nodes are could not be found out: %s", trouble)
        self._trouble = trouble
