"""The table of what fairlead reads and writes on a cluster: one Grant per verb and resource.

What is read comes from the watches of the controllers themselves. What is written stands here, beside what does not
work without it; a test against a real API server compares the rows with the audit log, so a row too many fails it
as a row too few does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fairlead.core.model.flow import Watch
    from fairlead.core.model.kinds import Kind


class Grant(NamedTuple):
    """One verb on one resource. `group` is empty for the core group; `resource` may name a subresource
    (`pods/binding`). `otherwise` says what does not work without it."""

    group: str
    resource: str
    verb: str
    otherwise: str = ""

    @property
    def shown(self) -> str:
        """`create pods/binding`, `patch resourceclaims/status.resource.k8s.io`."""
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")

    @property
    def right(self) -> Grant:
        """The grant without its explanation: rights compare by this."""
        return self._replace(otherwise="")


def _table(rows: Mapping[str, str]) -> tuple[Grant, ...]:
    """Keys are `GROUP RESOURCE VERBS`, `-` for the core group; values are what does not work without."""
    found = []
    for key, otherwise in rows.items():
        group, resource, verbs = key.split(maxsplit=2)
        found += [Grant("" if group == "-" else group, resource, verb, otherwise) for verb in verbs.split()]
    return tuple(found)


PLACING = _table({
    "- pods/binding create": "no pod can be bound",
    "- pods/status patch": "pods do not say why they wait, and nobody is nominated to a node",
    "- pods delete": "nobody can be preempted",
    "events.k8s.io events create patch": "there are no events about decisions",
    "- persistentvolumes patch": "pods with volumes that wait for their first consumer cannot be bound",
    "- persistentvolumeclaims patch": "pods with volumes that wait for their first consumer cannot be bound",
    "resource.k8s.io resourceclaims patch": "pods with resource claims cannot be bound",
    "resource.k8s.io resourceclaims/status patch": "pods with resource claims cannot be bound",
    "resource.k8s.io resourceclaims/binding patch": "servers since 1.36 let nobody else allocate devices to claims",
})  # fmt: skip
"""What every scheduler writes, in kube's manner and in Volcano's."""

KUBE = _table({
    "resource.k8s.io resourceclaims create delete": "extended resources that devices stand for cannot be had",
    "scheduling.k8s.io podgroups/status patch": "groups do not say why they wait",
})  # fmt: skip
"""What only kube profiles write."""

VOLCANO = _table({
    "- pods patch": "gates of queues are not opened",
    "scheduling.volcano.sh podgroups patch": "groups do not move on to Inqueue and Running",
    "scheduling.volcano.sh queues create": "the queues root and default are not made",
    "scheduling.volcano.sh queues/status patch": "queues do not say what is allocated",
    "nodeinfo.volcano.sh numatopologies delete": "layouts of nodes that are gone stay",
})  # fmt: skip
"""What a profile in Volcano's manner writes besides."""

KOORDINATOR = _table({
    "- pods patch": "pods do not learn which CPUs, devices or reservation they got, so they are not bound",
    "- pods/eviction create": "quotas that use more than they are granted are not brought back (monitorAllQuotas)",
    "scheduling.koordinator.sh reservations patch": "reservations of CPUs and devices are not made",
    "scheduling.koordinator.sh reservations delete": "reservations that have ended stay",
    "scheduling.koordinator.sh reservations/status patch": "reservations are never available",
    "scheduling.sigs.k8s.io elasticquotas patch": "quotas do not say what they use and are granted",
    "scheduling.sigs.k8s.io podgroups patch": "groups do not say how many of their pods run",
})  # fmt: skip
"""What a profile with Koordinator's plugins writes besides."""

MOVING = _table({
    "scheduling.koordinator.sh podmigrationjobs create patch": "nobody is moved off overloaded nodes",
    "scheduling.koordinator.sh podmigrationjobs delete": "migration jobs that have ended stay",
    "scheduling.koordinator.sh podmigrationjobs/status patch": "migration jobs do not move on",
    "scheduling.koordinator.sh reservations create delete": "only migration jobs that evict directly work",
    "- pods/eviction create": "pods are not evicted",
    "- pods delete": "pods whose eviction policy is Delete are not moved",
    "- pods patch": "pods whose eviction policy is SoftEviction are not told to go",
    "- nodes patch": "nodes that are drained are not cordoned (autoCordon)",
    "- events create": "there are no events about migrations",
})  # fmt: skip
"""What the descheduler writes."""

CARDS = _table({
    "- nodes patch": "nodes with shared accelerator cards cannot be locked, so pods that share cards are not bound",
    "- configmaps get": "the description of shared accelerator cards is not read",
})  # fmt: skip
SHARDS = _table({"shard.volcano.sh nodeshards/status patch": "others do not learn which nodes of a shard are in use"})

LEASE = _table({"coordination.k8s.io leases get create update": "this process never leads"})
"""In the namespace of the lease."""
PORT = _table({
    "authentication.k8s.io tokenreviews create": "nobody can authenticate at the port",
    "authorization.k8s.io subjectaccessreviews create": "nobody is let in at the port",
})  # fmt: skip
EVICTIONS = _table({"- configmaps get create patch": "evictions are forgotten at a restart"})
REPLACING = _table({"- pods create": "pods without a controller that a kubelet refused are not made again"})

CONTROLLERS: Mapping[str, tuple[Grant, ...]] = {
    "volcano-podgroup-controller": _table({
        "scheduling.volcano.sh podgroups create delete": "plain pods get no groups",
        "- pods patch": "plain pods get no groups",
    }),
    "volcano-queue-controller": _table({
        "scheduling.volcano.sh queues patch": "queues cannot be closed",
        "scheduling.volcano.sh queues/status patch": "queues are never open",
        "bus.volcano.sh commands delete": "commands to queues are carried out again and again",
        "- events create": "there are no events about queues",
    }),
    "volcano-cronjob-controller": _table({
        "batch.volcano.sh jobs create delete": "cron jobs do not run",
        "batch.volcano.sh cronjobs/status patch": "cron jobs do not say when they ran",
        "- events create": "there are no events about cron jobs",
    }),
    "volcano-jobflow-controller": _table({
        "batch.volcano.sh jobs create delete": "flows do not run",
        "flow.volcano.sh jobflows/status patch": "flows do not say how far they are",
        "- events create": "there are no events about flows",
    }),
    "volcano-jobtemplate-controller": _table({
        "flow.volcano.sh jobtemplates/status patch": "templates do not list their jobs",
    }),
    "volcano-job-controller": _table({
        "batch.volcano.sh jobs patch": "claims of jobs are not kept",
        "batch.volcano.sh jobs/status patch": "jobs do not move on",
        "- pods create patch delete": "jobs have no pods",
        "scheduling.volcano.sh podgroups create patch delete": "jobs have no groups",
        "scheduling.volcano.sh queues create": "the queues root and default are not made",
        "bus.volcano.sh commands delete": "commands to jobs are carried out again and again",
        "- persistentvolumeclaims create": "claims of jobs are not made",
        "- services create delete": "the plugins svc and ray of jobs do not work",
        "- configmaps create patch delete": "the plugin svc of jobs does not work",
        "networking.k8s.io networkpolicies create delete": "the plugin svc of jobs does not work",
        "- secrets create delete": "the plugin ssh of jobs does not work",
        "- events create": "there are no events about jobs",
    }),
    "volcano-gc-controller": _table({"batch.volcano.sh jobs delete": "ended jobs are not cleaned up"}),
    "volcano-hypernode-controller": _table({
        "topology.volcano.sh hypernodes create patch delete": "HyperNodes are not made from labels of nodes",
        "- events create": "there are no events about wrong configurations",
    }),
    "volcano-sharding-controller": _table({
        "shard.volcano.sh nodeshards create patch": "nodes are not divided among schedulers",
        "- events create": "there are no events about wrong configurations",
    }),
}  # fmt: skip
"""What each controller of Volcano writes."""


def of_watches(watches: Iterable[Watch]) -> list[Grant]:
    """The right to list and to watch what controllers follow."""
    found = []
    for watch in watches:
        effect = "it counts as empty" if watch.optional else "this process waits until it may"
        found += [_of_kind(watch.kind, verb, effect) for verb in ("list", "watch")]
    return found


def of_kinds(kinds: Iterable[Kind], verbs: Sequence[str]) -> list[Grant]:
    return [_of_kind(kind, verb) for kind in kinds for verb in verbs]


def _of_kind(kind: Kind, verb: str, otherwise: str = "") -> Grant:
    return Grant(kind.group, kind.plural, verb, otherwise)


def distinct(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """Each right once, sorted; of two explanations the first counts."""
    found: dict[Grant, Grant] = {}
    for grant in grants:
        found.setdefault(grant.right, grant)
    return tuple(sorted(found.values()))
