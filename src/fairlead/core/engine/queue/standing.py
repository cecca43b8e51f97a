"""An entry as a `Waiting`: its queue, since when it waits, for which plugins, and what would wake it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fairlead.core.engine.queue.entry import Entry, QueueName, Waiting

if TYPE_CHECKING:
    from fairlead.core.engine.queue.backoff import PodBackoff
    from fairlead.core.engine.queue.hints import Hints
    from fairlead.core.engine.queue.sweeps import Sweeps


def in_flight(entry: Entry) -> Waiting:
    return Waiting(entry.place.value, entry.since, entry.attempts, message=entry.refusal.message)


def in_queue(entry: Entry, backoff: PodBackoff, hints: Hints, sweeps: Sweeps) -> Waiting:
    until = backoff.until(entry)
    return Waiting(
        queue="gated" if entry.gated else entry.place.value,
        since=entry.since,
        attempts=entry.attempts,
        plugins=tuple(sorted(entry.blamed)),
        gated_by=entry.gated_by,
        backoff_until=None if until == -inf or entry.place is QueueName.ACTIVE else until,
        wakes_on=_wakes_on(entry, hints),
        retried_at=_retried_at(entry, backoff, sweeps),
        message=entry.refusal.message,
    )


def _wakes_on(entry: Entry, hints: Hints) -> tuple[str, ...]:
    if entry.place is not QueueName.PARKED:
        return ()
    plugins = frozenset({entry.gated_by}) if entry.gated else entry.blamed
    return hints.labels(entry.pod.scheduler_name, plugins)


def _retried_at(entry: Entry, backoff: PodBackoff, sweeps: Sweeps) -> float | None:
    if entry.place is QueueName.BACKOFF:
        return backoff.due(entry)
    return sweeps.of(entry, entry.parked_since) if entry.place is QueueName.PARKED else None
