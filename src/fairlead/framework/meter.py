"""Meter: how long plugins take, as data. The core has no clock, so one is given from outside; without it nothing here
runs and nothing is slower.

As in the original, one cycle in ten is measured plugin by plugin; every attempt is measured as a whole. Whoever
publishes takes the samples off. `costliest` names the plugin that took the most time since the start.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.model.figures import Sample
from fairlead.model.reasons import Code, Status
from fairlead.model.round_figures import Lapse

if TYPE_CHECKING:
    from fairlead.framework.cycle import Cycle
    from fairlead.model.round_figures import Span

EVERY = 10
_KEPT = 100_000


class Evaluated(NamedTuple):
    """Attempts that asked the same plugins: all of a profile, but for those that stepped aside."""

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
        """How long each attempt took to choose a node, or not to."""
        self.lapses: deque[Lapse] = deque(maxlen=_KEPT)
        """What took how long in rounds."""
        self.evaluated: Counter[Evaluated] = Counter()
        self.totals: Counter[str] = Counter()
        """Measured nanoseconds by plugin."""

    def for_next_cycle(self) -> Meter | None:
        """Itself, for the cycles that are measured."""
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
            self.samples.append(Sample(self._cycles, cycle.profile.name, plugin, point, status, seconds))
            self.totals[plugin] += int(seconds * 1e9)

    def lapsed(self, span: Span, *labels: str, since: float) -> None:
        """Something of a round has ended that began at `since`."""
        self.lapses.append(Lapse(span, labels, self.clock() - since))

    def attempted(self, cycle: Cycle, seconds: float, *, scored: bool) -> None:
        """An attempt has ended: how long it took and whom it asked."""
        self.algorithm.append(seconds)
        no_filter, no_score = frozenset(cycle.no_filter), frozenset(cycle.no_score)
        self.evaluated[Evaluated(cycle.profile.name, no_filter, no_score, scored)] += 1

    def costliest(self) -> tuple[str, float] | None:
        """The plugin that took the most of the measured time, and its share of it."""
        if not self.totals:
            return None
        plugin, nanoseconds = self.totals.most_common(1)[0]
        return plugin, nanoseconds / max(1, self.totals.total())
