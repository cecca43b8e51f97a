"""What Volcano's webhooks let pass and should not: refused by default, each unless its Quirk is kept.

A refusal has the form of the webhook that would have spoken. What CustomResourceDefinitions refuse without need is
taken out of their sight here, too. Which quirk keeps what out of force is said in admission.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlead.cluster.admission.problems import worded
from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.volcano.jobs.admission import ACTIONS, admit_job, mutate_job
from fairlead.volcano.kinds import VC_JOB, VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.queues.tree_rules import children_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind


class _OpenQueues:
    """A view in which every queue is there and open: a template is checked before its queue matters."""

    def __init__(self, view: DocView) -> None:
        self._view = view

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        if kind is VC_QUEUE:
            return {"metadata": {"name": name}, "spec": {}, "status": {"state": "Open"}}
        return self._view.get(kind, namespace, name)

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        return () if kind is VC_QUEUE else self._view.list(kind, namespace)


def admit_template(view: DocView, template: Doc) -> None:
    """Raises Denied if the Job of a JobTemplate would be refused."""
    _check_template(view, template, template.get("spec") or {}, "validatejob.volcano.sh")


def admit_template_of_cron_job(view: DocView, cron: Doc) -> None:
    """Raises Denied if the Job of a CronJob would be refused."""
    spec = ((cron.get("spec") or {}).get("jobTemplate") or {}).get("spec") or {}
    _check_template(view, cron, spec, "validatecronjob.volcano.sh")


def admit_queue_going(view: DocView, name: str) -> None:
    """Raises Denied if PodGroups are left in a queue that is to be deleted."""
    left = [
        f"{group['metadata'].get('namespace', '')}/{group['metadata']['name']}"
        for group in view.list(VC_POD_GROUP)
        if (group.get("spec") or {}).get("queue") == name and (group.get("status") or {}).get("phase") != "Completed"
    ]
    if left:
        shown = ", ".join(left[:3]) + (", …" if len(left) > 3 else "")
        why = f"queue {name} can not be deleted because it has {len(left)} PodGroups: {shown}"
        raise Denied("validatequeue.volcano.sh", why)


def admit_queue_state(view: DocView, new: Doc, old: Doc) -> None:
    """Raises Denied for a state that a queue cannot come to: Closing while nothing is in it, or Unknown."""
    before, after = ((doc.get("status") or {}).get("state") for doc in (old, new))
    if after == before or after not in ("Closing", "Unknown"):
        return
    name = new["metadata"]["name"]
    if after == "Closing" and any((one.get("spec") or {}).get("queue") == name for one in view.list(VC_POD_GROUP)):
        return
    why = f"queue {name} cannot be made {after}: open or close it by a Command (`fairlead vcctl queue operate`)"
    raise Denied("validatequeue.volcano.sh", why)


def with_allowed_limits(doc: Doc) -> Doc:
    """A Job as its schema is to see it: a task that may restart without limit says nothing to refuse."""
    tasks = (doc.get("spec") or {}).get("tasks")
    if not isinstance(tasks, list) or not any(isinstance(one, dict) and one.get("maxRetry") == -1 for one in tasks):
        return doc
    seen = [{**one, "maxRetry": 0} if isinstance(one, dict) and one.get("maxRetry") == -1 else one for one in tasks]
    return {**doc, "spec": {**doc["spec"], "tasks": seen}}


def warnings_about_flow(doc: Doc) -> Iterator[str]:
    """What of a JobFlow is stored and has no effect."""
    for index, flow in enumerate((doc.get("spec") or {}).get("flows") or ()):
        if (flow.get("dependsOn") or {}).get("probe"):
            yield f"spec.flows[{index}].dependsOn.probe is stored and not acted on"
        if flow.get("patch") is not None:
            yield f"spec.flows[{index}].patch is stored and not acted on"


def admit_code_actions(job: Doc) -> None:
    """Raises Denied if a policy of a Job names an action that does not exist."""
    spec = job.get("spec") or {}
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
    job = {"apiVersion": VC_JOB.api_version, "kind": VC_JOB.kind, "metadata": metadata, "spec": spec}
    try:
        admit_job(_OpenQueues(view), mutate_job(job))
    except Denied as refusal:
        raise Denied(webhook, f"its Job would be refused: {refusal.why}") from refusal


def admit_queue_without_children(view: DocView, group: Doc) -> None:
    """Raises Denied if a PodGroup's queue has children."""
    name = (group.get("spec") or {}).get("queue") or ""
    if name == "root" or (name and next(iter(children_of(view, name)), None) is not None):
        why = f"can not submit PodGroup to queue `{name}`: only a queue without children takes PodGroups"
        raise Denied("validatepodgroup.volcano.sh", why)
