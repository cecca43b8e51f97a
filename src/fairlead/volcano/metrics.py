"""The metrics of a scheduler in rounds under Volcano's names, types, labels and buckets, for its users' dashboards.

As in Volcano, times are in milliseconds, `job_id` is a job's name without its namespace, and two counters do not end in
`_total`. Metrics that Volcano declares and never sets (the namespaces' shares, schedule_attempts) are left out. Those
that 1.16 adds (resources that queues reserve for groups let in, evictions by action) are there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.runtime.metrics import Histogram, Labels, Name, counter, gauge
from fairlead.volcano.records.round_figures import RoundFigures, Span

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from fairlead.core.model.figures import Figures, Observed
    from fairlead.volcano.records.round_figures import JobFigures, QueueFigures


def exponential_range(first: float, last: float, count: int) -> tuple[float, ...]:
    """Bounds in equal ratios between two values, computed as Go does so that they print the same."""
    growth = math.exp(1 / (count - 1) * math.log(last / first))
    return tuple(first * _power(growth, exponent) for exponent in range(count))


def _power(base: float, exponent: int) -> float:
    """A power by repeated squaring of mantissa and exponent, as Go computes it."""
    result, result_exponent = 1.0, 0
    mantissa, binary = math.frexp(base)
    while exponent:
        if exponent & 1:
            result *= mantissa
            result_exponent += binary
        mantissa, binary = mantissa * mantissa, binary * 2
        if mantissa < 0.5:
            mantissa, binary = mantissa + mantissa, binary - 1
        exponent >>= 1
    return math.ldexp(result, result_exponent)


_SESSION = exponential_range(1, 5000, 20)
HISTOGRAMS: Mapping[Span, Name] = {
    Span.ROUND: Name(
        "volcano_e2e_scheduling_latency_milliseconds", "Time that a round took, from its opening to its end.",
        buckets=_SESSION,
    ),
    Span.OPENING: Name(
        "volcano_open_session_duration_milliseconds", "Time that the opening of a round took.", buckets=_SESSION
    ),
    Span.JOB: Name(
        "volcano_e2e_job_scheduling_latency_milliseconds", "Age of jobs when tasks of theirs got a place.",
        buckets=exponential_range(100, 120000, 30),
    ),
    Span.PLUGIN: Name(
        "volcano_plugin_scheduling_latency_milliseconds", "Time that plugins took when rounds opened and closed.",
        ("plugin", "OnSession"), exponential_range(0.1, 100, 15),
    ),
    Span.ACTION: Name(
        "volcano_action_scheduling_latency_milliseconds", "Time that actions took.",
        ("action",), exponential_range(1, 2000, 20),
    ),
    Span.TASK: Name(
        "volcano_task_scheduling_latency_milliseconds", "Age of tasks when they came to a stage.",
        ("stage",), exponential_range(50, 60000, 30),
    ),
    Span.STAGE: Name(
        "volcano_scheduling_stage_duration_milliseconds", "Time that stages of placing a task took.",
        ("stage",), exponential_range(0.1, 500, 20),
    ),
}  # fmt: skip
_JOB = ("job_name", "queue", "job_namespace")
_QUEUE = ("queue_name",)
JOB_DURATION = Name(
    "volcano_e2e_job_scheduling_duration", "Age of a job when a task of it last got a place, in ms.", _JOB
)
JOB_START = Name("volcano_e2e_job_scheduling_start_time", "When a job was created.", _JOB)
JOB_LAST = Name("volcano_e2e_job_scheduling_last_time", "When a task of a job last got a place.", _JOB)
JOB_SHARE = Name("volcano_job_share", "A job's dominant share.", ("job_ns", "job_id"))
JOB_RETRIES = Name("volcano_job_retry_counts", "Rounds that could not start a job.", ("job_id",))
VICTIMS = Name("volcano_pod_preemption_victims", "Victims of the last preemption that was tried.")
PREEMPTIONS = Name("volcano_total_preemption_attempts", "Preemptions that were tried.")
UNSCHEDULED_TASKS = Name("volcano_unschedule_task_count", "Tasks that a gang lacks.", ("job_id",))
UNSCHEDULED_JOBS = Name("volcano_unschedule_job_count", "Gangs that lack tasks.")
QUEUE_SHARE = Name("volcano_queue_share", "A queue's share of what it deserves.", _QUEUE)
QUEUE_WEIGHT = Name("volcano_queue_weight", "A queue's weight.", _QUEUE)
QUEUE_OVERUSED = Name("volcano_queue_overused", "Whether a queue has what it deserves, or more.", _QUEUE)
EVICTIONS = Name("volcano_eviction_transactions_total", "Transactions that evicted somebody.", ("action",))
_SUMS = ("allocated", "request", "inqueue", "deserved", "capacity", "real_capacity")
_MISNAMED = (JOB_RETRIES, PREEMPTIONS)
_PER_SECOND = 1000.0


class VolcanoMetrics:
    """A MetricsSource of runtime/metrics.py."""

    def __init__(self) -> None:
        self._histograms: dict[str, Histogram] = {span: Histogram(name) for span, name in HISTOGRAMS.items()}

    def take(self, observed: Observed) -> None:
        for lapse in observed.lapses:
            if (histogram := self._histograms.get(lapse.span)) is not None:
                histogram.observe(lapse.seconds * _PER_SECOND, lapse.labels)

    def reset(self) -> None:
        for histogram in self._histograms.values():
            histogram.reset()

    def renamed(self, text: bytes) -> bytes:
        """The exposition with Volcano's names: prometheus-client appends `_total` to counters, and two must not have
        it."""
        for name in _MISNAMED:
            text = text.replace(f"{name.name}_total".encode(), name.name.encode())
        return text

    def collect(self, figures: Figures) -> Iterator[Metric]:
        rounds = [one for one in figures.of_modes.values() if isinstance(one, RoundFigures)]
        if not rounds:
            return
        for histogram in self._histograms.values():
            yield histogram.family()
        yield gauge(VICTIMS, {(): rounds[-1].victims})
        yield gauge(UNSCHEDULED_JOBS, {(): sum(one.unschedulable_jobs for one in rounds)})
        yield counter(PREEMPTIONS, {(): sum(one.preemptions for one in rounds)})
        evicting: Counter[Labels] = Counter()
        for one in rounds:
            evicting.update({(action,): times for action, times in one.evicting.items()})
        yield counter(EVICTIONS, evicting)
        yield from _of_jobs([job for one in rounds for job in one.jobs])
        yield from _of_queues([queue for one in rounds for queue in one.queues])


def _of_jobs(jobs: Sequence[JobFigures]) -> Iterator[Metric]:
    named = {(job.name, job.queue, job.namespace): job for job in jobs}
    durations = {labels: job.duration * _PER_SECOND for labels, job in named.items() if job.duration is not None}
    yield gauge(JOB_DURATION, durations)
    yield gauge(JOB_START, {labels: float(int(job.created)) for labels, job in named.items()})
    yield gauge(JOB_LAST, {key: float(int(job.placed_at)) for key, job in named.items() if job.placed_at is not None})
    yield gauge(JOB_SHARE, {(job.namespace, job.name): job.share for job in jobs if job.share is not None})
    yield gauge(UNSCHEDULED_TASKS, {(job.name,): job.lacking for job in jobs if job.lacking is not None})
    yield counter(JOB_RETRIES, {(job.name,): job.retries for job in jobs if job.retries})


def _of_queues(queues: Sequence[QueueFigures]) -> Iterator[Metric]:
    yield gauge(QUEUE_SHARE, {(queue.name,): queue.share for queue in queues if queue.share is not None})
    yield gauge(QUEUE_WEIGHT, {(queue.name,): queue.weight for queue in queues if queue.weight is not None})
    yield gauge(
        QUEUE_OVERUSED, {(queue.name,): float(queue.overused) for queue in queues if queue.overused is not None}
    )
    for what in _SUMS:
        sums = {queue.name: amounts for queue in queues if (amounts := getattr(queue, what)) is not None}
        words = f"{what.replace('_', ' ').capitalize()} of a queue"
        yield _amounts(Name(f"volcano_queue_{what}_milli_cpu", f"{words}: cpu.", _QUEUE), sums, "cpu")
        yield _amounts(Name(f"volcano_queue_{what}_memory_bytes", f"{words}: memory.", _QUEUE), sums, "memory")
        scalars: dict[Labels, float] = {
            (queue, resource): amount
            for queue, amounts in sums.items()
            for resource, amount in amounts.items()
            if resource not in ("cpu", "memory")
        }
        name = Name(f"volcano_queue_{what}_scalar_resources", f"{words}: anything else.", (*_QUEUE, "resource"))
        yield gauge(name, scalars)


def _amounts(name: Name, sums: Mapping[str, Mapping[str, float]], resource: str) -> Metric:
    return gauge(name, {(queue,): amounts.get(resource, 0.0) for queue, amounts in sums.items()})
