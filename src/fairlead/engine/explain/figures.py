"""From a Scheduler to its figures. Reading is safe from another thread: single operations of the interpreter, and sums
that are out of date by one attempt at worst."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, TypeVar

from fairlead.model.figures import Figures, Observed
from fairlead.state.cluster import PodPlace

if TYPE_CHECKING:
    from fairlead.engine.scheduler import Scheduler
    from fairlead.framework.meter import Evaluated
    from fairlead.framework.profile import Profile

T = TypeVar("T")
_FILTERING, _SCORING = ("prepare", "filter"), ("prepare_scores", "score")


def figures_of(scheduler: Scheduler) -> Figures:
    """How things stand."""
    backlog, cluster, meter = scheduler.backlog, scheduler.cluster, scheduler.meter
    plugins = [plugin for profile in scheduler.profiles.values() for plugin in profile.plugins()]
    pod_states = list(cluster.pods.values())
    return Figures(
        pending=backlog.counts(),
        incoming=dict(backlog.incoming),
        blamed=dict(backlog.blamed),
        in_flight=backlog.in_flight.counts,
        evaluations=_evaluations(scheduler),
        nodes=len(cluster.table),
        pods=sum(pod_state.place is not PodPlace.PENDING for pod_state in pod_states),
        assumed=sum(pod_state.place is PodPlace.ASSUMED for pod_state in pod_states),
        preemptions=sum(getattr(plugin, "attempts", 0) for plugin in plugins),
        domains_tried=scheduler.gangs.domains_tried,
        rows_judged=sum(evaluator.rows_judged for evaluator in scheduler.evaluators.values()),
        rows_one_by_one={plugin.name: rows for plugin in plugins if (rows := getattr(plugin, "rows_one_by_one", 0))},
        costliest=meter.costliest() if meter is not None else None,
        rounds=tuple(driver.figures() for driver in scheduler.drivers),
    )


def take(scheduler: Scheduler) -> Observed:
    """What happened since the last time. To be called between steps, by one taker."""
    meter = scheduler.meter
    victims, scheduler.evictions.victims = tuple(scheduler.evictions.victims), []
    return Observed(
        decisions=_emptied(scheduler.decisions),
        algorithm=_emptied(meter.algorithm) if meter is not None else (),
        samples=_emptied(meter.samples) if meter is not None else (),
        victims=victims,
        complaints=_emptied(scheduler.backlog.complaints),
        lapses=_emptied(meter.lapses) if meter is not None else (),
    )


def _emptied(waiting: deque[T]) -> tuple[T, ...]:
    taken = tuple(waiting)
    waiting.clear()
    return taken


def _evaluations(scheduler: Scheduler) -> Counter[tuple[str, str, str]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    evaluated = dict(scheduler.meter.evaluated) if scheduler.meter is not None else {}
    for asked, attempts in evaluated.items():
        profile = scheduler.profiles.get(asked.profile)
        for plugin, point in _took_part(profile, asked) if profile is not None else ():
            counts[plugin, point, asked.profile] += attempts
    return counts


def _took_part(profile: Profile, asked: Evaluated) -> list[tuple[str, str]]:
    """Who was asked where; who stepped aside does not count."""
    found = [(p.name, point) for point in _FILTERING for p in profile.at(point) if p.name not in asked.no_filter]
    if asked.scored:
        found += [(p.name, point) for point in _SCORING for p in profile.at(point) if p.name not in asked.no_score]
    return found
