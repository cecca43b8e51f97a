"""What a Scheduler can say of itself in numbers. To be called on its own thread, between two steps (`runtime.ask`)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from fairlead.core.model.figures import Figures, LoudDecision, Observed
from fairlead.core.state.cluster import PodPlace

if TYPE_CHECKING:
    from fairlead.core.engine.explain.decisions import DecisionReader
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.framework.meter import Evaluated
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.figures import Decision

T = TypeVar("T")
VERBOSITY_ANNOTATION = "scheduling.fairlead.io/verbosity"
"""On a pod: how much the log says of it, whatever the process' own verbosity is."""
LOGS_DECISIONS, LOGS_EXPLANATIONS = 2, 4
_FILTERING, _SCORING = ("pre_filter", "filter"), ("pre_score", "score")


def figures_of(scheduler: Scheduler) -> Figures:
    """Counts and sizes as they are now."""
    backlog, cluster, meter, pods = scheduler.backlog, scheduler.cluster, scheduler.meter, scheduler.pods
    plugins = [plugin for profile in scheduler.profiles.values() for plugin in profile.plugins()]
    places = Counter(pod_state.place for pod_state in cluster.pods.values())
    return Figures(
        pending=backlog.counts(),
        incoming=dict(backlog.tallies.incoming),
        blamed=dict(backlog.tallies.blamed),
        in_flight=backlog.in_flight.counts,
        evaluations=_evaluations(scheduler),
        nodes=len(cluster.table),
        pods=places.total() - places[PodPlace.PENDING],
        assumed=places[PodPlace.ASSUMED],
        preemptions=sum(getattr(plugin, "attempts", 0) for plugin in plugins),
        evicted=dict(scheduler.ledger.counts),
        domains_tried=pods.gangs.domains_tried,
        rows_judged=sum(evaluator.rows_judged for evaluator in pods.evaluators.values()),
        rows_one_by_one={plugin.name: rows for plugin in plugins if (rows := getattr(plugin, "rows_one_by_one", 0))},
        raised=dict(scheduler.guard.quarantine.raised),
        quarantined=len(scheduler.guard.quarantine.held),
        drift=scheduler.guard.audit.found,
        costliest=None if meter is None else meter.costliest(),
        of_modes={name: figures for mode in scheduler.modes for name, figures in mode.figures().items()},
    )


def take(scheduler: Scheduler, decisions: DecisionReader) -> Observed:
    """What happened since the last call. Decisions come from the caller's own reader; the rest is handed out once, so
    there can be one caller only."""
    meter = scheduler.meter
    victims = tuple(scheduler.pods.evictions.take_victims())
    decided = decisions.read()
    return Observed(
        decisions=decided,
        loud=loud_decisions(scheduler, decided),
        algorithm=_emptied(meter.algorithm) if meter is not None else (),
        samples=_emptied(meter.samples) if meter is not None else (),
        victims=victims,
        complaints=_emptied(scheduler.backlog.complaints),
        evicted=scheduler.ledger.take_new(),
        lapses=_emptied(meter.lapses) if meter is not None else (),
        costliest=None if meter is None else meter.costliest(),
    )


def loud_decisions(scheduler: Scheduler, decisions: Iterable[Decision]) -> tuple[LoudDecision, ...]:
    """Those about pods with the verbosity annotation."""
    found = []
    for decision in decisions:
        pod_state = scheduler.cluster.pods_by_key.get(decision.pod)
        if pod_state is None or VERBOSITY_ANNOTATION not in pod_state.seen.annotations:
            continue
        setting = pod_state.seen.annotations[VERBOSITY_ANNOTATION]
        verbosity = int(setting) if setting.isdecimal() else 0
        if verbosity >= LOGS_DECISIONS:
            explained = scheduler.explain(*decision.pod.split("/", 1)) if verbosity >= LOGS_EXPLANATIONS else None
            found.append(LoudDecision(decision, explained))
    return tuple(found)


def _emptied(waiting: deque[T]) -> tuple[T, ...]:
    taken = tuple(waiting)
    waiting.clear()
    return taken


def _evaluations(scheduler: Scheduler) -> Counter[tuple[str, str, str]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    evaluated = scheduler.meter.evaluated if scheduler.meter is not None else {}
    for asked, attempts in evaluated.items():
        profile = scheduler.profiles.get(asked.profile)
        for plugin, point in _took_part(profile, asked) if profile is not None else ():
            counts[plugin, point, asked.profile] += attempts
    return counts


def _took_part(profile: Profile, asked: Evaluated) -> list[tuple[str, str]]:
    """Plugins and points that took part in an attempt. A plugin that skipped itself does not count."""
    found = [(p.name, point) for point in _FILTERING for p in profile.at(point) if p.name not in asked.no_filter]
    if asked.scored:
        found += [(p.name, point) for point in _SCORING for p in profile.at(point) if p.name not in asked.no_score]
    return found
