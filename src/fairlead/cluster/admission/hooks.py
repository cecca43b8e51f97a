"""What admission does for single kinds besides their defaults and rules: the table that a kind joins with one line.

    keep          update: fields that an update which does not name them takes over from the old object
    mutate        after the defaults, before validation; `old` is None for a create
    admit         after validation: rules that read other objects; raises what speaks against the object
    release       before a delete; raises what speaks against it
    check_status  the rules of a status

Hooks return new documents and leave their arguments as they are. New pods are admitted by pod_admission.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.cluster.admission import builtin, groups
from fairlead.cluster.admission.limits import check_claim_limits
from fairlead.cluster.admission.plain_rules import check_namespace_status
from fairlead.cluster.admission.service_addresses import keep_addresses, with_addresses
from fairlead.cluster.admission.workload_defaults import mark_daemon_set, own_job
from fairlead.cluster.admission.workloads import check_workload_status
from fairlead.core.model import kinds as k
from fairlead.koordinator.admission import pods as koord_pods
from fairlead.koordinator.quotas import admission as koord_quotas
from fairlead.volcano.flows import admission as volcano_flows
from fairlead.volcano.jobs import admission as volcano_jobs
from fairlead.volcano.queues import admission as volcano

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind

Mutate = Callable[["DocView", "Doc", "Doc | None"], "Doc"]
Admit = Callable[["DocView", "Kind", "Doc", "Doc | None"], None]
"""Gets the kind as it was spoken, whose version may be another than the stored one."""


@dataclass(frozen=True, slots=True)
class KindHooks:
    """A hook that is None does nothing."""

    keep: Callable[[Doc, Doc], Doc] | None = None
    mutate: Mutate | None = None
    admit: Admit | None = None
    release: Callable[[DocView, str], None] | None = None
    check_status: Callable[[ValidationProblems, Doc], None] | None = None


def _when_created(mutate: Callable[[DocView, Doc], Doc]) -> Mutate:
    return lambda view, new, old: mutate(view, new) if old is None else new


def _admit_claim(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    if old is None:
        check_claim_limits(view, new)


def _mutate_group(view: DocView, new: Doc, old: Doc | None) -> Doc:
    prepared = groups.without_what_is_off(new)
    return groups.with_priority(view, prepared) if old is None else prepared


def _admit_group(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    if old is None and spoken is k.POD_GROUP:
        groups.check_reference(view, new)


def _check_group_status(problems: ValidationProblems, doc: Doc) -> None:
    groups.check_conditions(problems, (doc.get("status") or {}).get("conditions") or ())


def _admit_volcano_group(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    if old is None:
        volcano_flows.admit_group(new)


def _admit_volcano_job(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    if old is None:
        volcano_jobs.admit_job(view, new)
    else:
        volcano_jobs.admit_job_update(new, old)


def _admit_pod_update(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    koord_pods.admit_pod(koord_pods.QuotaOfPods(view), new, old)


_COUNTS = KindHooks(check_status=check_workload_status)

HOOKS: Mapping[Kind, KindHooks] = {
    k.DEPLOYMENT: _COUNTS,
    k.REPLICA_SET: _COUNTS,
    k.REPLICATION_CONTROLLER: _COUNTS,
    k.NAMESPACE: KindHooks(check_status=check_namespace_status),
    k.JOB: KindHooks(mutate=_when_created(lambda view, new: own_job(new))),
    k.DAEMON_SET: KindHooks(mutate=lambda view, new, old: mark_daemon_set(new, old)),
    k.SERVICE: KindHooks(keep=keep_addresses, mutate=lambda view, new, old: with_addresses(new, view)),
    k.PERSISTENT_VOLUME_CLAIM: KindHooks(mutate=_when_created(builtin.with_default_class), admit=_admit_claim),
    k.POD_GROUP_BETA: KindHooks(mutate=_mutate_group, admit=_admit_group, check_status=_check_group_status),
    k.WORKLOAD_BETA: KindHooks(mutate=lambda view, new, old: groups.without_what_is_off(new)),
    k.VC_QUEUE: KindHooks(
        mutate=_when_created(lambda view, new: volcano.mutate_queue(new)),
        admit=lambda view, spoken, new, old: volcano.admit_queue(view, new, old),
        release=volcano.admit_queue_deletion,
    ),
    k.VC_POD_GROUP: KindHooks(mutate=_when_created(volcano.mutate_group), admit=_admit_volcano_group),
    k.VC_JOB: KindHooks(mutate=_when_created(lambda view, new: volcano_jobs.mutate_job(new)), admit=_admit_volcano_job),
    k.VC_JOB_FLOW: KindHooks(admit=lambda view, spoken, new, old: volcano_flows.admit_flow(new)),
    k.VC_CRON_JOB: KindHooks(admit=lambda view, spoken, new, old: volcano_flows.admit_cron_job(new)),
    k.POD: KindHooks(admit=_admit_pod_update),
    k.KOORD_ELASTIC_QUOTA: KindHooks(
        mutate=_when_created(koord_quotas.mutate_quota),
        admit=lambda view, spoken, new, old: koord_quotas.admit_quota(view, new, old),
        release=koord_quotas.admit_deletion,
    ),
    k.VC_HYPER_NODE: KindHooks(admit=lambda view, spoken, new, old: volcano_flows.admit_hyper_node(new)),
}
NO_HOOKS = KindHooks()
