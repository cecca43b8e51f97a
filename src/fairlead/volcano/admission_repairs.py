"""What Volcano's webhooks let pass and should not: refused by default, each unless its Quirk is kept.

A refusal has the form of the webhook that would have spoken. What CustomResourceDefinitions refuse without need is
taken out of their sight here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlead.cluster.admission.problems import worded
from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.core.model import kinds as k
from fairlead.volcano.jobs.admission import ACTIONS, admit_job, mutate_job
from fairlead.volcano.queues.tree_rules import children_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind
    from fairlead.volcano.records.quirks import Quirks


class _OpenQueues:
    """A view in which every queue is there and open: a template is checked before its queue matters."""

    def __init__(self, view: DocView) -> None:
        self._view = view

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        if kind is k.VC_QUEUE:
            return {"metadata": {"name": name}, "spec": {}, "status": {"state": "Open"}}
        return self._view.get(kind, namespace, name)

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        return () if kind is k.VC_QUEUE else self._view.list(kind, namespace)


def admit_repaired(view: DocView, kind: Kind, new: Doc, old: Doc | None, quirks: Quirks) -> None:
    """Raises Denied if an object may not be made or changed like that, though Volcano would let it."""
    spec = new.get("spec") or {}
    if kind is k.VC_JOB and old is None and not quirks.exit_code_actions_unchecked:
        _check_code_actions(spec)
    elif kind is k.VC_CRON_JOB and not quirks.templates_unchecked:
        _check_template(view, new, (spec.get("jobTemplate") or {}).get("spec") or {}, "validatecronjob.volcano.sh")
    elif kind is k.VC_JOB_TEMPLATE and not quirks.templates_unchecked:
        _check_template(view, new, spec, "validatejob.volcano.sh")
    elif kind is k.VC_POD_GROUP and old is None and not quirks.groups_in_inner_queues:
        _check_group_queue(view, spec.get("queue") or "")


def admit_queue_going(view: DocView, name: str, quirks: Quirks) -> None:
    """Raises Denied if PodGroups are left in a queue that is to be deleted."""
    if quirks.queue_goes_under_its_jobs:
        return
    left = [
        f"{group['metadata'].get('namespace', '')}/{group['metadata']['name']}"
        for group in view.list(k.VC_POD_GROUP)
        if (group.get("spec") or {}).get("queue") == name and (group.get("status") or {}).get("phase") != "Completed"
    ]
    if left:
        shown = ", ".join(left[:3]) + (", …" if len(left) > 3 else "")
        why = f"queue {name} can not be deleted because it has {len(left)} PodGroups: {shown}"
        raise Denied("validatequeue.volcano.sh", why)


def admit_queue_state(view: DocView, kind: Kind, new: Doc, old: Doc, quirks: Quirks) -> None:
    """Raises Denied for a state that a queue cannot come to: Closing while nothing is in it, or Unknown."""
    before, after = ((doc.get("status") or {}).get("state") for doc in (old, new))
    if kind is not k.VC_QUEUE or quirks.queue_state_by_hand or after == before or after not in ("Closing", "Unknown"):
        return
    name = new["metadata"]["name"]
    if after == "Closing" and any((one.get("spec") or {}).get("queue") == name for one in view.list(k.VC_POD_GROUP)):
        return
    why = f"queue {name} cannot be made {after}: open or close it by a Command (`fairlead vcctl queue operate`)"
    raise Denied("validatequeue.volcano.sh", why)


def with_allowed_limits(kind: Kind, doc: Doc, quirks: Quirks) -> Doc:
    """The document as its schema is to see it: a task that may restart without limit says nothing to refuse."""
    tasks = (doc.get("spec") or {}).get("tasks") if kind is k.VC_JOB and not quirks.refuses_unlimited_restarts else None
    if not isinstance(tasks, list) or not any(isinstance(one, dict) and one.get("maxRetry") == -1 for one in tasks):
        return doc
    seen = [{**one, "maxRetry": 0} if isinstance(one, dict) and one.get("maxRetry") == -1 else one for one in tasks]
    return {**doc, "spec": {**doc["spec"], "tasks": seen}}


def warnings_about(kind: Kind, doc: Doc, quirks: Quirks) -> Iterator[str]:
    """What is stored and has no effect."""
    if kind is not k.VC_JOB_FLOW or quirks.flow_probes_ignored_silently:
        return
    for index, flow in enumerate((doc.get("spec") or {}).get("flows") or ()):
        if (flow.get("dependsOn") or {}).get("probe"):
            yield f"spec.flows[{index}].dependsOn.probe is stored and not acted on"
        if flow.get("patch") is not None:
            yield f"spec.flows[{index}].patch is stored and not acted on"


def _check_code_actions(spec: Doc) -> None:
    lists = [("spec.policies", spec.get("policies") or ())]
    lists += [("spec.tasks.policies", task.get("policies") or ()) for task in spec.get("tasks") or ()]
    for path, policies in lists:
        for policy in policies:
            action = policy.get("action") or ""
            if policy.get("exitCode") is not None and action not in ACTIONS:
                why = f"{path}: Invalid value: {worded(action)}: invalid policy action"
                raise Denied("validatejob.volcano.sh", why)


def _check_template(view: DocView, owner: Doc, spec: Doc, webhook: str) -> None:
    metadata = {"name": owner["metadata"]["name"], "namespace": owner["metadata"].get("namespace", "")}
    job = {"apiVersion": k.VC_JOB.api_version, "kind": k.VC_JOB.kind, "metadata": metadata, "spec": spec}
    try:
        admit_job(_OpenQueues(view), mutate_job(job))
    except Denied as refusal:
        raise Denied(webhook, f"its Job would be refused: {refusal.why}") from refusal


def _check_group_queue(view: DocView, name: str) -> None:
    if name == "root" or (name and next(iter(children_of(view, name)), None) is not None):
        why = f"can not submit PodGroup to queue `{name}`: only a queue without children takes PodGroups"
        raise Denied("validatepodgroup.volcano.sh", why)
