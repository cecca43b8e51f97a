"""Attendance: who acts on which objects in an embedded cluster, so that nobody waits in silence.

The API stores every kind that it serves, and a pod may name any scheduler. An object that nobody will act on looks
exactly like one that is about to be acted on, so its creator is warned at once: by a warning in the answer, by an Event
on the object, and by `fairlead explain`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from fairlead.core.family import SchedulerField, families, tables
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

DEFAULT_SCHEDULER = "default-scheduler"

TEMPLATES: Mapping[Kind, tuple[str, ...]] = {
    k.POD: (),
    k.DEPLOYMENT: ("spec", "template"),
    k.REPLICA_SET: ("spec", "template"),
    k.REPLICATION_CONTROLLER: ("spec", "template"),
    k.STATEFUL_SET: ("spec", "template"),
    k.DAEMON_SET: ("spec", "template"),
    k.JOB: ("spec", "template"),
    k.CRON_JOB: ("spec", "jobTemplate", "spec", "template"),
}
"""Where a workload keeps its pods' template."""

NOBODY_ACTS: Mapping[Kind, str] = {
    k.HORIZONTAL_POD_AUTOSCALER: "no controller scales anything; set spec.replicas, or `kubectl scale`",
    k.INGRESS: "no controller routes traffic",
    k.NETWORK_POLICY: "simulated nodes have no network to restrict",
}
"""Kinds that are stored while nobody acts on them, and what that means."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """`scheduler_names` are those that pods may name; None if somebody outside this process schedules too. `unattended`
    are kinds of families without a scheduler here, each with what is said of them."""

    scheduler_names: frozenset[str] | None = None
    unattended: Mapping[Kind, str] = field(default_factory=dict)

    def complaints(self, kind: Kind, doc: Doc) -> Iterator[str]:
        """Why an object, or the pods that it stands for, will wait for ever; nothing if somebody acts on it."""
        if kind in NOBODY_ACTS:
            yield f"{kind.resource} are stored, but nobody acts on them here: {NOBODY_ACTS[kind]}"
        if kind in self.unattended:
            yield f"{kind.resource} are stored, but {self.unattended[kind]}"
        if self.scheduler_names is not None:
            name = _scheduler_name(kind, doc)
            if name is not None and name not in self.scheduler_names:
                yield self.unserved(name)

    def unserved(self, name: str) -> str:
        """What to say of pods with a schedulerName that nobody serves."""
        served = ", ".join(sorted(self.scheduler_names or ())) or "none"
        hint = next((f"; {family.served_by[name]}" for family in families() if name in family.served_by), "")
        return f'nobody schedules pods with schedulerName "{name}" here (served: {served}{hint})'


@cache
def _scheduler_fields() -> Mapping[Kind, SchedulerField]:
    """Where objects that stand for pods say who is to schedule them, for the kinds of Kubernetes and of families."""
    of_kubernetes = {kind: SchedulerField((*path, "spec"), DEFAULT_SCHEDULER) for kind, path in TEMPLATES.items()}
    return of_kubernetes | tables("scheduler_fields")


def _scheduler_name(kind: Kind, doc: Doc) -> str | None:
    """Who is to schedule the pods that an object stands for; None if it stands for none."""
    known = _scheduler_fields().get(kind)
    if known is None:
        return None
    found: Any = doc
    for step in known.path:
        found = (found or {}).get(step)
    return (found or {}).get("schedulerName") or known.default
