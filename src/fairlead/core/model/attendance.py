"""Attendance: who acts on which objects in an embedded cluster, so that nobody waits in silence.

The API stores every kind that it serves, and a pod may name any scheduler. An object that nobody will act on looks
exactly like one that is about to be acted on, so its creator is told at once: by a warning in the answer, by an Event
on the object, and by `fairlead explain`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

DEFAULT_SCHEDULER = "default-scheduler"
VOLCANO = "volcano"

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
    """`scheduler_names` are those that pods may name; None if somebody outside this process schedules too. `volcano`
    says whether somebody schedules in Volcano's manner."""

    scheduler_names: frozenset[str] | None = None
    volcano: bool = True

    def complaints(self, kind: Kind, doc: Doc) -> Iterator[str]:
        """Why an object, or the pods that it stands for, will wait for ever; nothing if somebody acts on it."""
        if kind in NOBODY_ACTS:
            yield f"{kind.resource} are stored, but nobody acts on them here: {NOBODY_ACTS[kind]}"
        if kind is k.VC_QUEUE and not self.volcano:
            yield f"{kind.resource} are stored, but nobody schedules in Volcano's manner: start with --volcano-conf"
        if (kind in TEMPLATES or kind is k.VC_JOB) and self.scheduler_names is not None:
            name = _scheduler_name(kind, doc)
            if name not in self.scheduler_names:
                yield self.unserved(name)

    def unserved(self, name: str) -> str:
        """What to say of pods with a schedulerName that nobody serves."""
        served = ", ".join(sorted(self.scheduler_names or ())) or "none"
        hint = "; start with --volcano-conf to serve it" if name == VOLCANO else ""
        return f'nobody schedules pods with schedulerName "{name}" here (served: {served}{hint})'


def _scheduler_name(kind: Kind, doc: Doc) -> str:
    if kind is k.VC_JOB:
        return (doc.get("spec") or {}).get("schedulerName") or VOLCANO
    found: Any = doc
    for step in TEMPLATES[kind]:
        found = (found or {}).get(step)
    return ((found or {}).get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER
