"""The metrics of a scheduler under kube-scheduler's names, types, labels and buckets, so that existing dashboards and
alerts go on working.

Histograms are kept here, in plain arrays; counters and gauges are read from the scheduler's Figures at each scrape.
prometheus-client writes the exposition format. A name for which there is no data is left out, never made up:
docs/operations.md lists them.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from fairlead import __version__
from fairlead.core.family import brought

if TYPE_CHECKING:
    from fairlead.core.model.figures import Figures, Observed

Labels = tuple[str, ...]
AnyLabels = TypeVar("AnyLabels", bound=Labels)

POINTS = {
    "pre_enqueue": "PreEnqueue", "pre_filter": "PreFilter", "filter": "Filter", "filter_row": "Filter",
    "post_filter": "PostFilter", "pre_score": "PreScore", "score": "Score", "score_row": "Score",
    "normalize_score": "ScoreExtensionNormalize", "reserve": "Reserve", "permit": "Permit",
    "pre_bind_pre_flight": "PreBindPreFlight", "pre_bind": "PreBind", "bind": "Bind", "post_bind": "PostBind",
    "before_pre_filter": "BeforePreFilter", "preferred_nodes": "PreferNodes",
}  # fmt: skip
"""The methods of Plugin as kube-scheduler's label values; the last two, of ExtendedPlugin, have values of their own."""


class MetricsSource(Protocol):
    """The metrics of one family, beside those of kube-scheduler."""

    def take(self, observed: Observed) -> None:
        """Add up what a step left behind."""

    def reset(self) -> None:
        """Forget what was added up."""

    def collect(self, figures: Figures) -> Iterable[Metric]:
        """The metrics at a scrape; none if no profile is of this family."""

    def renamed(self, text: bytes) -> bytes:
        """The exposition with names that prometheus-client cannot write."""


def metrics_of_families() -> list[MetricsSource]:
    return [cast("MetricsSource", make()) for make in brought("metrics")]


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds that grow by a factor, multiplied up one by one so that they print as the original's do."""
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


@dataclass(frozen=True, slots=True)
class Name:
    """A metric's name, its labels and a help text that begins with its stability."""

    name: str
    help: str
    labels: Labels = ()
    buckets: tuple[float, ...] = ()


ATTEMPTS = Name(
    "scheduler_schedule_attempts_total",
    "[STABLE] Attempts to schedule a pod, by result: scheduled, unschedulable (no node would do) or error.",
    ("profile", "result"),
)
ATTEMPT_SECONDS = Name(
    "scheduler_scheduling_attempt_duration_seconds",
    "[STABLE] Seconds an attempt took, choosing and binding together.",
    ("profile", "result"),
    exponential(0.001, 2, 15),
)
ALGORITHM_SECONDS = Name(
    "scheduler_scheduling_algorithm_duration_seconds",
    "[ALPHA] Seconds it took to choose a node, or to find none.",
    (),
    exponential(0.001, 2, 15),
)
VICTIMS = Name(
    "scheduler_preemption_victims", "[STABLE] Pods chosen to be evicted, per preemption.", (), exponential(1, 2, 7)
)
PREEMPTIONS = Name("scheduler_preemption_attempts_total", "[STABLE] Attempts to make room by preemption.")
PENDING = Name(
    "scheduler_pending_pods",
    "[STABLE] Pods that wait, by queue: active, backoff, unschedulable (tried in vain) or gated (never tried).",
    ("queue",),
)
IN_FLIGHT = Name(
    "scheduler_inflight_events", "[ALPHA] Events kept for pods that are being scheduled, by event.", ("event",)
)
SLI_SECONDS = Name(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "[BETA] Seconds from a pod's first entry into the queue until it was scheduled, all attempts included.",
    ("attempts",),
    exponential(0.01, 2, 20),
)
POD_ATTEMPTS = Name(
    "scheduler_pod_scheduling_attempts", "[STABLE] Attempts that a scheduled pod needed.", (), exponential(1, 2, 5)
)
POINT_SECONDS = Name(
    "scheduler_framework_extension_point_duration_seconds",
    "[STABLE] Seconds for all plugins of an extension point, in the cycles that are measured (one in ten).",
    ("extension_point", "profile", "status"),
    exponential(0.0001, 2, 12),
)
PLUGIN_SECONDS = Name(
    "scheduler_plugin_execution_duration_seconds",
    "[ALPHA] Seconds for a plugin at an extension point, in the cycles that are measured (one in ten).",
    ("extension_point", "plugin", "status"),
    exponential(0.00001, 1.5, 20),
)
INCOMING = Name(
    "scheduler_queue_incoming_pods_total", "[STABLE] Pods that entered a queue, by event.", ("event", "queue")
)
CACHE = Name("scheduler_cache_size", "[ALPHA] Nodes, pods on nodes, and assumed pods that are kept.", ("type",))
BLAMED = Name(
    "scheduler_unschedulable_pods",
    "[BETA] Pods that wait because of a plugin. A pod counts for every plugin that refused it.",
    ("plugin", "profile"),
)
EVALUATIONS = Name(
    "scheduler_plugin_evaluation_total",
    "[BETA] Attempts in which a plugin was asked, for PreFilter, Filter, PreScore and Score.",
    ("extension_point", "plugin", "profile"),
)
BUILD = Name("fairlead_build_info", "[ALPHA] 1, with the versions of fairlead and Python.", ("version", "python"))
RELOADED = Name(
    "fairlead_config_last_reload_successful",
    "[ALPHA] Whether the configuration files as they are now are in force: 1, or 0 if one of them was refused.",
)
FAILING = Name("fairlead_failing_checks", "[ALPHA] Whether a check of /readyz fails: 1, or 0.", ("check",))
EVICTED = Name("fairlead_evictions_total", "[ALPHA] Pods that were evicted, by the rule that chose them.", ("rule",))
LEADING = Name("leader_election_master_status", "[ALPHA] Whether this process holds the lease: 1, or 0.", ("name",))
REQUESTS = Name(
    "rest_client_requests_total", "[ALPHA] Requests to the API server, by code and method.", ("code", "host", "method")
)
DOMAINS_TRIED = Name(
    "fairlead_gang_domains_tried_total", "[ALPHA] Racks, zones and HyperNodes in which gangs were tried."
)
RAISED = Name(
    "fairlead_exceptions_total", "[ALPHA] Exceptions that cost one object its turn, by what was being done.", ("doing",)
)
REFUSED_PODS = Name("fairlead_refused_pods_total", "[ALPHA] Pods that kubelets refused, by reason.", ("reason",))
QUARANTINED = Name("fairlead_quarantined_objects", "[ALPHA] Objects that are left alone because they raised.")
DRIFT = Name("fairlead_drift_found_total", "[ALPHA] How often the table differed from its pods, and was repaired.")
ROWS_JUDGED = Name("fairlead_rows_judged_total", "[ALPHA] Nodes judged by the plugins that are remembered.")
ONE_BY_ONE = Name(
    "fairlead_rows_one_by_one_total", "[ALPHA] Nodes judged one at a time, by lifted plugin.", ("plugin",)
)
COSTLIEST = Name(
    "fairlead_costliest_plugin_share", "[ALPHA] Share of the measured time of the costliest plugin.", ("plugin",)
)


class Histogram:
    """Counts by bucket, per label values."""

    def __init__(self, name: Name) -> None:
        self.name = name
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, labels: Labels = ()) -> None:
        if labels not in self._counts:
            self.show(labels)
        self._counts[labels][bisect_left(self.name.buckets, value)] += 1
        self._sums[labels] += value

    def show(self, labels: Labels = ()) -> None:
        """Expose these label values from now on, as zeros until something is observed."""
        self._counts.setdefault(labels, [0] * (len(self.name.buckets) + 1))
        self._sums.setdefault(labels, 0.0)

    def reset(self) -> None:
        self._counts.clear()
        self._sums.clear()

    def family(self) -> Metric:
        """All that was observed. One without labels is there from the start, with zeros, as clients of Prometheus
        have it: a rate needs a value before the first observation."""
        if not self.name.labels:
            self.show()
        family = HistogramMetricFamily(self.name.name, self.name.help, labels=self.name.labels)
        for labels, counts in self._counts.items():
            family.add_metric(labels, self._cumulative(counts), self._sums[labels])
        return family

    def _cumulative(self, counts: Sequence[int]) -> list[tuple[str, float]]:
        total, buckets = 0, []
        for bound, count in zip((*self.name.buckets, float("inf")), counts, strict=True):
            total += count
            buckets.append((_text(bound), float(total)))
        return buckets


def _text(bound: float) -> str:
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def counter(name: Name, values: Mapping[AnyLabels, float]) -> Metric:
    family = CounterMetricFamily(name.name, name.help, labels=name.labels)
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family


def gauge(name: Name, values: Mapping[AnyLabels, float]) -> Metric:
    family = GaugeMetricFamily(name.name, name.help, labels=name.labels)
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family


def about_process(refused: Sequence[str], failing: Mapping[str, bool]) -> Iterator[Metric]:
    """What runs, whether all configuration files are in force, and which checks of its readiness fail."""
    yield gauge(FAILING, {(check,): float(fails) for check, fails in failing.items()})
    yield gauge(BUILD, {(__version__, platform.python_version()): 1})
    yield gauge(RELOADED, {(): float(not refused)})


def from_figures(figures: Figures) -> Iterator[Metric]:
    """Metrics that are read from the scheduler's Figures."""
    yield gauge(PENDING, {(queue,): count for queue, count in figures.pending.items()})
    yield gauge(IN_FLIGHT, {(event,): count for event, count in figures.in_flight.items()})
    yield gauge(CACHE, {("nodes",): figures.nodes, ("pods",): figures.pods, ("assumed_pods",): figures.assumed})
    yield gauge(BLAMED, figures.blamed)
    yield counter(INCOMING, {(event, queue): count for (queue, event), count in figures.incoming.items()})
    yield counter(PREEMPTIONS, {(): figures.preemptions})
    yield counter(EVICTED, {(rule,): count for rule, count in figures.evicted.items()})
    evaluations = {
        (POINTS[point], plugin, profile): count for (plugin, point, profile), count in figures.evaluations.items()
    }
    yield counter(EVALUATIONS, evaluations)
    yield counter(ROWS_JUDGED, {(): figures.rows_judged})
    yield counter(DOMAINS_TRIED, {(): figures.domains_tried})
    yield counter(ONE_BY_ONE, {(plugin,): count for plugin, count in figures.rows_one_by_one.items()})
    yield counter(RAISED, {(doing,): count for doing, count in figures.raised.items()})
    yield gauge(QUARANTINED, {(): figures.quarantined})
    yield counter(DRIFT, {(): figures.drift})
    if figures.costliest is not None:
        yield gauge(COSTLIEST, {(figures.costliest[0],): figures.costliest[1]})
