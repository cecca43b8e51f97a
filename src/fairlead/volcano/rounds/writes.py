"""What a round writes to the API: statuses of groups, queues and pods, evictions, and the events about them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.events import EventText
from fairlead.core.engine.cycle.outcome import status_patch
from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.quantity import format_quantity
from fairlead.core.model.times import timestamp
from fairlead.volcano.kinds import VC_NUMATOPOLOGY, VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.rounds.closing import said_of
from fairlead.volcano.rounds.job import QUEUE_GATE
from fairlead.volcano.rounds.written import WrittenStatuses

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.events import EventRecorder
    from fairlead.core.model.flow import Change, Doc
    from fairlead.core.model.group import GroupCondition
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Pod
    from fairlead.volcano.rounds.closing import Closing, GroupReport, PodReport
    from fairlead.volcano.rounds.round import Job, Round, Task

_WAITING_PHASES = ("Unknown", "Pending", "Inqueue")


class RoundWriter:
    """`name` is the scheduler's, as events give it."""

    def __init__(self, name: str, recorder: EventRecorder) -> None:
        self._name = name
        self._recorder = recorder
        self.written = WrittenStatuses()

    # ---- the end of a round ----

    def closing(self, round: Round, closing: Closing) -> list[Write]:
        writes: list[Write] = []
        self.written.holding = False
        gathering: set[str] = set()
        for group in closing.groups:
            if self.written.is_gathering(group, round.now):
                gathering.add(group.job.uid)
            else:
                writes += self._group(round, group)
        for pod in closing.pods:
            if pod.task.job is None or pod.task.job.uid not in gathering:
                writes += self._pod(round, pod)
        writes += self._queues(round, closing)
        for (_, note), job in round.outcome.notes.items():
            writes += self._emit_event(round, job, kind="Normal", reason="Unschedulable", note=note)
        self.written.keep((group.job.group.uid for group in closing.groups), len(closing.pods))
        return writes

    def _group(self, round: Round, report: GroupReport) -> list[Write]:
        if self.written.is_binding(report, round.now) or self.written.is_counting(report, round.now):
            return []
        job, changed = report.job, report.changed and self._is_new_status(report)
        group = job.group
        writes = [_status(VC_POD_GROUP, group.namespace, group.name, _group_status(report))] if changed else []
        waiting = len(job.tasks) - job.counts.ready
        if report.phase in _WAITING_PHASES:
            if not waiting:
                return writes  # its pods are being bound: the original warns that none of them is unschedulable
            note = f"{waiting}/{len(job.tasks)} tasks in gang unschedulable: {job.fit_error()}"
            return writes + self._emit_event(round, job, kind="Warning", reason="Unschedulable", note=note)
        if changed and job.tasks:
            writes += self._emit_event(round, job, kind="Normal", reason="Scheduled", note="pod group is ready")
        return writes

    def _is_new_status(self, report: GroupReport) -> bool:
        group, said = report.job.group, (report.phase, report.counted, said_of(report.conditions))
        return self.written.is_new(VC_POD_GROUP, group.namespace, group.name, version=group.resource_version, said=said)

    def _emit_event(self, round: Round, job: Job, *, kind: str, reason: str, note: str) -> list[Write]:
        if not self.written.is_news(job.group.uid, kind, reason, note, round.now):
            return []
        return self._recorder.record(
            job.group,
            EventText(kind=kind, reason=reason, action=reason, note=note),
            now=round.now,
            controller=self._name,
        )

    def _pod(self, round: Round, report: PodReport) -> list[Write]:
        pod_state = round.cluster.pods.get(report.task.uid)
        if pod_state is None or pod_state.seen.node_name:
            return []
        patch = status_patch(
            pod_state.seen,
            now=round.now,
            reason=report.reason,
            message=report.message,
            nominated=report.nominated or None,
        )
        said = (report.reason, report.message, report.nominated)
        if patch is None or not self.written.is_new(
            kinds.POD, patch.namespace, patch.name, version=pod_state.seen.resource_version, said=said
        ):
            return []
        return [
            patch,
            *self._recorder.record(
                pod_state.seen,
                EventText(kind="Warning", reason="FailedScheduling", action="Scheduling", note=report.message),
                now=round.now,
                controller=self._name,
            ),
        ]

    def _queues(self, round: Round, closing: Closing) -> Iterator[Write]:
        for name, allocated in closing.allocated.items():
            units, queue = allocated.to_units(), round.queues[name].queue
            known = queue.allocated
            if known is None or not Amounts.of(known).equal(allocated) or not allocated.equal(Amounts.of(known)):
                listed = {resource: format_quantity(amount, resource) for resource, amount in units.items()}
                gone = {resource: None for resource in known or () if resource not in units}
                said = listed | gone
                if self.written.is_new_sum(name, version=queue.resource_version, said=said, now=round.now):
                    yield _status(VC_QUEUE, "", name, {"allocated": said})

    def raised(self, pods: Iterable[Pod], reason: str, now: float) -> list[Write]:
        """A job that raised is left alone for a while; its pods say why."""
        writes: list[Write] = []
        for pod in pods:
            if pod.node_name:
                continue
            patch = status_patch(pod, now=now, reason="SchedulerError", message=reason)
            writes += [patch] if patch is not None else []
            writes += self._recorder.record(
                pod,
                EventText(kind="Warning", reason="FailedScheduling", action="Scheduling", note=reason),
                now=now,
                controller=self._name,
            )
        return writes

    # ---- gates ----

    def gate_removal(self, task: Task) -> Write:
        """The queue's gate goes; whatever other gates a pod has by then stay."""
        gate = {"name": QUEUE_GATE, "$patch": "delete"}
        pod, body = task.pod, {"spec": {"schedulingGates": [gate]}}
        return Write(Verb.PATCH, kinds.POD, pod.namespace, pod.name, body, patch_type=PatchType.STRATEGIC)

    # ---- evictions ----

    def eviction(self, round: Round, task: Task, reason: str, why: tuple[str, str] = ("", "")) -> list[Write]:
        """Conditions that say why, then the deletion of this very pod; budgets are not asked, as in the original. `why`
        is for whom and by which rule, for those who ask later; what the original writes has the reason alone."""
        pod = task.pod
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
        delete = Write(Verb.DELETE, kinds.POD, pod.namespace, pod.name, options, note=(why[0], why[1] or reason))
        writes = [_disruption(task, reason, round.now), delete]
        writes += self._recorder.record(
            pod,
            EventText(kind="Warning", reason="Evict", action="Evict", note=reason),
            now=round.now,
            controller=self._name,
        )
        if task.job is not None:
            writes += self._recorder.record(
                task.job.group,
                EventText(kind="Normal", reason="Evict", action="Evict", note=reason),
                now=round.now,
                controller=self._name,
            )
        return writes


def orphaned_layouts(changes: Iterable[Change], layouts: Container[str]) -> Iterator[Write]:
    """The NUMA layout of a node that has gone goes with it."""
    for change in changes:
        if change.kind is kinds.NODE and change.gone:
            name = change.doc["metadata"]["name"]
            if name in layouts:
                yield Write(Verb.DELETE, VC_NUMATOPOLOGY, "", name)


def _status(kind: Kind, namespace: str, name: str, status: Doc) -> Write:
    subresource = "status" if "status" in kind.subresources else ""
    return Write(Verb.PATCH, kind, namespace, name, {"status": status}, subresource=subresource)


def _group_status(report: GroupReport) -> Doc:
    running, succeeded, failed = report.counted
    return {
        "phase": report.phase,
        "running": running or None,
        "succeeded": succeeded or None,
        "failed": failed or None,
        "conditions": [_condition(condition) for condition in report.conditions],
    }


def _condition(condition: GroupCondition) -> Doc:
    doc: Doc = {
        "type": condition.type,
        "status": condition.status,
        "transitionID": condition.transition_id,
        "lastTransitionTime": timestamp(condition.transition_time),
        "reason": condition.reason,
    }
    return doc | {"message": condition.message} if condition.message else doc


def _disruption(task: Task, reason: str, now: float) -> Write:
    pod = task.pod
    changed = {"status": "True", "lastProbeTime": None, "lastTransitionTime": timestamp(now)}
    conditions = [
        {
            "type": "Ready",
            **changed,
            "status": "False",
            "reason": "Evict",
            "message": f"Pod is evicted, because of {reason}",
        },
        {
            "type": "DisruptionTarget",
            **changed,
            "reason": "PreemptionByScheduler",
            "message": f"{pod.scheduler_name}: preempting to accommodate a higher priority pod",
        },
    ]
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": conditions}}
    return Write(
        Verb.PATCH, kinds.POD, pod.namespace, pod.name, body, subresource="status", patch_type=PatchType.STRATEGIC
    )
