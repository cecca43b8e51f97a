"""Volcano's admission: which of its webhooks' rules the server applies to which kind.

The rules are beside their subjects (queues, jobs, flows). What the original's webhooks let pass and should not is in
admission_repairs.py, and depends on the quirks that are kept. A create is looked at by the repairs first and an update
last, which shows in the message of an object that has several faults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.cluster.admission.hooks import Admit, KindHooks, when_created
from fairlead.core.family import settings_of
from fairlead.core.model import kinds as k
from fairlead.volcano import admission_repairs as repairs
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.flows import admission as flows
from fairlead.volcano.jobs import admission as jobs
from fairlead.volcano.kinds import (
    VC_CRON_JOB,
    VC_HYPER_NODE,
    VC_JOB,
    VC_JOB_FLOW,
    VC_JOB_TEMPLATE,
    VC_POD_GROUP,
    VC_QUEUE,
)
from fairlead.volcano.queues import admission as queues

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind
    from fairlead.volcano.records.quirks import Quirks


def hooks(settings: Sequence[object]) -> Mapping[Kind, KindHooks]:
    own = settings_of(settings, VolcanoSettings)
    quirks = own.quirks
    return {
        VC_QUEUE: KindHooks(
            mutate=when_created(lambda view, new: queues.mutate_queue(new)),
            admit=lambda view, spoken, new, old: queues.admit_queue(view, new, old),
            admit_status=None if quirks.queue_state_by_hand else repairs.admit_queue_state,
            release=queues.admit_queue_deletion if quirks.queue_goes_under_its_jobs else _release_queue,
        ),
        VC_POD_GROUP: KindHooks(
            mutate=when_created(queues.mutate_group), admit=_admit_group(quirks, open_queue=own.all_webhooks)
        ),
        VC_JOB: KindHooks(
            mutate=when_created(lambda view, new: jobs.mutate_job(new)),
            seen=None if quirks.refuses_unlimited_restarts else repairs.with_allowed_limits,
            admit=_admit_job(quirks),
        ),
        VC_JOB_FLOW: KindHooks(
            admit=lambda view, spoken, new, old: flows.admit_flow(new),
            warn=None if quirks.flow_probes_ignored_silently else repairs.warnings_about_flow,
        ),
        VC_JOB_TEMPLATE: KindHooks(admit=None if quirks.templates_unchecked else _admit_template),
        VC_CRON_JOB: KindHooks(admit=_admit_cron_job(quirks)),
        VC_HYPER_NODE: KindHooks(
            check=flows.check_selectors, admit=lambda view, spoken, new, old: flows.admit_hyper_node(new)
        ),
        k.POD: KindHooks(admit=_admit_pod),
    }


def _release_queue(view: DocView, name: str) -> None:
    queues.admit_queue_deletion(view, name)
    repairs.admit_queue_going(view, name)


def _admit_group(quirks: Quirks, *, open_queue: bool) -> Admit:
    def admit(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
        if old is not None:
            return
        if open_queue:
            flows.admit_queue_of_group(view, new)
        if not quirks.groups_in_inner_queues:
            repairs.admit_queue_without_children(view, new)
        flows.admit_group(new)

    return admit


def _admit_job(quirks: Quirks) -> Admit:
    def admit(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
        if old is not None:
            jobs.admit_job_update(new, old)
            return
        if not quirks.exit_code_actions_unchecked:
            repairs.admit_code_actions(new)
        jobs.admit_job(view, new)

    return admit


def _admit_template(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    repairs.admit_template(view, new)


def _admit_cron_job(quirks: Quirks) -> Admit:
    def admit(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
        if old is None and not quirks.templates_unchecked:
            repairs.admit_template_of_cron_job(view, new)
        flows.admit_cron_job(new)
        if old is not None and not quirks.templates_unchecked:
            repairs.admit_template_of_cron_job(view, new)

    return admit


def _admit_pod(view: DocView, spoken: Kind, new: Doc, old: Doc | None) -> None:
    if old is None:
        queues.admit_pod(new)
