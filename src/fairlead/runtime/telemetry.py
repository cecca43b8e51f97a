"""Telemetry: the metrics and log lines of a scheduler, made from the data that its steps leave behind.

    scheduler's thread: after each step, `hand_over(take(scheduler, reader))`
    event loop:         then `after_step` adds up what was handed over; a scrape asks the scheduler for its Figures
                        and writes both with `exposition`

The sums belong to the event loop, which never reads the scheduler itself. A plugin that is not built in and takes most
of the measured time is named in the log.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from fairlead.core.model.figures import Figures, Observed
from fairlead.runtime import metrics
from fairlead.runtime.metrics import Histogram, counter, from_figures, gauge
from fairlead.runtime.reporting import OncePerMinute
from fairlead.runtime.status import Rate

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from fairlead.core.model.figures import Decision, EvictedPod, Sample
    from fairlead.runtime.metrics import MetricsSource

log = logging.getLogger("fairlead.scheduler")

MANY_ATTEMPTS = 15
_SUSPICIOUS_SHARE = 0.5
_NAMED_EVERY = 1000
"""Attempts between two looks at who is the costliest."""


class Histograms:
    """The histograms that are kept here."""

    def __init__(self) -> None:
        self.attempt_seconds = Histogram(metrics.ATTEMPT_SECONDS)
        self.algorithm_seconds = Histogram(metrics.ALGORITHM_SECONDS)
        self.victims = Histogram(metrics.VICTIMS)
        self.sli_seconds = Histogram(metrics.SLI_SECONDS)
        self.pod_attempts = Histogram(metrics.POD_ATTEMPTS)
        self.point_seconds = Histogram(metrics.POINT_SECONDS)
        self.plugin_seconds = Histogram(metrics.PLUGIN_SECONDS)

    def all(self) -> tuple[Histogram, ...]:
        return tuple(vars(self).values())


class CostliestPlugin:
    """Logs the plugin that takes most of the measured time, unless it is built in; looks now and then."""

    def __init__(self, built_in: frozenset[str]) -> None:
        self._built_in = built_in
        self._until_named = _NAMED_EVERY
        self._named = ""

    def watch(self, observed: Observed) -> None:
        self._until_named -= len(observed.algorithm)
        if self._until_named > 0:
            return
        self._until_named = _NAMED_EVERY
        if observed.costliest is None:
            return
        plugin, share = observed.costliest
        if plugin not in self._built_in and share > _SUSPICIOUS_SHARE and plugin != self._named:
            self._named = plugin
            log.warning(
                "plugin %s takes %.0f %% of the time of all plugins", plugin, 100 * share, extra={"plugin": plugin}
            )


class Telemetry:
    """`requests` counts API requests by (code, host, method); `leading` says whether this process leads, or None
    without an election; `sources` are the metrics of families, `also` further ones; `log_decisions` writes every
    decision to the log."""

    def __init__(
        self,
        *,
        requests: Callable[[], Mapping[tuple[str, str, str], int]] = dict,
        leading: Callable[[], tuple[str, bool] | None] = lambda: None,
        sources: Sequence[MetricsSource] = (),
        also: Callable[[], Iterable[Metric]] = tuple,
        log_decisions: bool = False,
        built_in: frozenset[str] = frozenset(),
    ) -> None:
        self._sources, self._also = sources, also
        self._said = OncePerMinute()
        self._unread: deque[Observed] = deque()
        self._figures = Figures()
        self._requests, self._leading = requests, leading
        self._log_decisions = log_decisions
        self._costliest = CostliestPlugin(built_in)
        self._attempts: Counter[tuple[str, str]] = Counter()
        self._histograms = Histograms()
        self.bound = Rate()
        self._refused_pods: Mapping[str, int] = {}
        self.traced: Callable[[tuple[Sample, ...]], None] = lambda samples: None
        """Called with every measured call of a plugin, in cycles that are traced."""
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    # ---- taking in ----

    def hand_over(self, observed: Observed) -> None:
        """What a step left behind, to be added up later. On the scheduler's thread."""
        self._unread.append(observed)

    def refused(self, counts: Mapping[str, int], complaints: tuple[str, ...]) -> None:
        """Pods that kubelets refused, by reason, and what is to be said of the latest."""
        self._refused_pods = counts
        self._unread.append(Observed(complaints=complaints))

    def after_step(self) -> None:
        """Add up what was handed over. On the event loop."""
        while self._unread:
            self._add(self._unread.popleft())

    def _add(self, observed: Observed) -> None:
        for decision in observed.decisions:
            self._decided(decision)
        for loud in observed.loud:
            if not self._log_decisions:
                _log_decision(loud.decision)
            if loud.explanation is not None:
                about = {"pod": loud.decision.pod, "explanation": loud.explanation.to_document()}
                log.info("What was looked at", extra=about)
        self.traced(observed.samples)
        for seconds in observed.algorithm:
            self._histograms.algorithm_seconds.observe(seconds)
        for victims in observed.victims:
            self._histograms.victims.observe(victims)
        if observed.samples:
            self._sampled(observed.samples)
        for source in self._sources:
            source.take(observed)
        for evicted in observed.evicted:
            _log_eviction(evicted)
        for complaint in observed.complaints:
            self._said.say(complaint.partition(":")[0], logging.WARNING, "%s", complaint)
        self._costliest.watch(observed)

    def _decided(self, decision: Decision) -> None:
        labels = (decision.profile, decision.result)
        self._attempts[labels] += 1
        if decision.took is not None:
            self._histograms.attempt_seconds.observe(decision.took, labels)
        if decision.result == "scheduled":
            self.bound.add()
            self._histograms.pod_attempts.observe(decision.attempts)
            attempts = str(decision.attempts) if decision.attempts < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
            self._histograms.sli_seconds.observe(decision.waited, (attempts,))
        if self._log_decisions:
            _log_decision(decision)

    def _sampled(self, samples: tuple[Sample, ...]) -> None:
        """One observation per call of a plugin, and one per point and cycle."""
        points: dict[tuple[int, str, str], float] = defaultdict(float)
        failed: set[tuple[int, str, str]] = set()
        for sample in samples:
            point = metrics.POINTS[sample.point]
            self._histograms.plugin_seconds.observe(sample.seconds, (point, sample.plugin, sample.status))
            key = (sample.cycle, point, sample.profile)
            points[key] += sample.seconds
            if sample.status == "Error":
                failed.add(key)
        for key, seconds in points.items():
            status = "Error" if key in failed else "Success"
            self._histograms.point_seconds.observe(seconds, (key[1], key[2], status))

    # ---- giving out ----

    def exposition(self, figures: Figures) -> bytes:
        """All metrics in Prometheus' text format."""
        self._figures = figures
        text = generate_latest(self._registry)
        for source in self._sources:
            text = source.renamed(text)
        return text

    def reset(self) -> None:
        """Forget what was added up here; what the scheduler itself counts stays."""
        self._attempts.clear()
        for histogram in self._histograms.all():
            histogram.reset()
        for source in self._sources:
            source.reset()

    def collect(self) -> Iterator[Metric]:
        yield counter(metrics.ATTEMPTS, self._attempts)
        for histogram in self._histograms.all():
            yield histogram.family()
        figures = self._figures
        yield from from_figures(figures)
        for source in self._sources:
            yield from source.collect(figures)
        yield counter(metrics.REFUSED_PODS, {(reason,): count for reason, count in self._refused_pods.items()})
        yield counter(metrics.REQUESTS, self._requests())
        yield from self._also()
        leading = self._leading()
        if leading is not None:
            yield gauge(metrics.LEADING, {(leading[0],): float(leading[1])})


def _log_eviction(evicted: EvictedPod) -> None:
    about = {"pod": evicted.pod, "node": evicted.node, "for": evicted.beneficiary, "rule": evicted.rule}
    log.info("Evicted pod", extra=about | {"priority": evicted.priority, "lostSeconds": round(evicted.lost, 1)})


def _log_decision(decision: Decision) -> None:
    about = {"pod": decision.pod, "profile": decision.profile, "attempts": decision.attempts}
    if decision.result == "scheduled":
        log.info("Successfully bound pod to node", extra=about | {"node": decision.node})
    elif decision.result == "unschedulable":
        log.info("Unable to schedule pod; no fit; waiting", extra=about | {"err": decision.message})
    else:
        log.error("Error scheduling pod; retrying", extra=about | {"err": decision.message})
