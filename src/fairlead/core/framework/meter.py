"""Meter: how long plugins take, as data. The core has no clock, so the caller brings one; without a Meter nothing is
measured, at no cost.

As in kube-scheduler, one cycle in ten is measured plugin by plugin; every attempt is measured as a whole. The publisher
of metrics removes the samples it reads. `costliest` names the plugin that took the most time since the start.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.core.model.figures import Lapse, Sample
from fairlead.core.model.reasons import Code, Status

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle

EVERY = 10
"""One cycle in so many is measured plugin by plugin (kube-scheduler's pluginMetricsSamplePercent of 10)."""
_KEPT = 100_000
"""The latest samples that are kept if nobody reads them."""


class Evaluated(NamedTuple):
    """Which plugins an attempt called: all of its profile but for those that stepped aside."""

    profile: str
    no_filter: frozenset[str]
    no_score: frozenset[str]
    scored: bool


class Meter:
    def __init__(self, clock: Callable[[], float], *, every: int = EVERY) -> None:
        self.clock = clock
        self._every = every
        self._cycles = 0
        self.samples: deque[Sample] = deque(maxlen=_KEPT)
        self.algorithm: deque[float] = deque(maxlen=_KEPT)
        """Seconds that each attempt took to find a node or to fail."""
        self.lapses: deque[Lapse] = deque(maxlen=_KEPT)
        """Durations that scheduling modes measured."""
        self.evaluated: Counter[Evaluated] = Counter()
        self.totals: Counter[str] = Counter()
        """Measured nanoseconds by plugin."""

    def for_next_cycle(self) -> Meter | None:
        """This meter if the next cycle is to be measured plugin by plugin, else None."""
        self._cycles += 1
        return self if self._cycles % self._every == 0 else None

    def call(self, cycle: Cycle, plugin: str, point: str, deed: Callable[[], Any]) -> Any:
        began = self.clock()
        status = Code.ERROR.label
        try:
            answer = deed()
            status = answer.code.label if isinstance(answer, Status) else Code.SUCCESS.label
            return answer
        finally:
            seconds = self.clock() - began
            sample = Sample(self._cycles, cycle.profile.name, plugin, point, status, seconds, cycle.pod.key, began)
            self.samples.append(sample)
            self.totals[plugin] += int(seconds * 1e9)

    def lapsed(self, span: str, *labels: str, since: float) -> None:
        """Keep the duration of something that began at `since` and has ended."""
        self.lapses.append(Lapse(span, labels, self.clock() - since))

    def attempted(self, cycle: Cycle, seconds: float, *, scored: bool) -> None:
        """An attempt has ended: how long it took and which plugins it called."""
        self.algorithm.append(seconds)
        no_filter, no_score = frozenset(cycle.no_filter), frozenset(cycle.no_score)
        self.evaluated[Evaluated(cycle.profile.name, no_filter, no_score, scored)] += 1

    def costliest(self) -> tuple[str, float] | None:
        """The plugin that took the most of the measured time, and its share of it."""
        if not self.totals:
            return None
        plugin, nanoseconds = self.totals.most_common(1)[0]
        return plugin, nanoseconds / max(1, self.totals.total())
