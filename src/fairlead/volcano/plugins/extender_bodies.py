"""What is sent to an extender of tasks, nodes, jobs and queues: their fields by the original's Go names.

Of pods, nodes, groups and queues it gets the whole documents too, if somebody can supply them: the core keeps none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds
from fairlead.core.model.times import timestamp
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind
    from fairlead.volcano.records.amounts import Amounts
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

Body = dict[str, Any]
Documents = Callable[["Kind", str, str], "Doc | None"]
"""The document of a kind by namespace and name; None if there is none to be had."""

_ZONE = "volcano.sh/revocable-zone"
_LEAST, _MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


def no_documents(kind: Kind, namespace: str, name: str) -> Doc | None:
    return None


def of_amounts(amounts: Amounts) -> Body:
    scalars = dict(amounts.scalars)
    return {
        "MilliCPU": amounts.cpu,
        "Memory": amounts.memory,
        "ScalarResources": scalars,
        "MaxTaskNum": int(scalars.get("pods", 0)),
    }


class Bodies:
    """Of one round."""

    def __init__(self, round: Round, documents: Documents = no_documents) -> None:
        self._round = round
        self._documents = documents

    def of_task(self, task: Task) -> Body:
        """The status is a bit flag there."""
        amounts = of_amounts(task.request)
        return {
            "UID": task.uid,
            "Job": task.job.uid if task.job is not None else "",
            "Name": task.name,
            "Namespace": task.namespace,
            "TaskRole": task.role,
            "Resreq": amounts,
            "InitResreq": amounts,
            "NodeName": self._round.cluster.table.name(task.row) if task.row >= 0 else "",
            "EvictionOccurred": task.eviction_occurred,
            "JobAllocatedHyperNode": task.hyper_node,
            "Status": 1 << task.status,
            "Priority": task.priority,
            "Preemptable": task.preemptable,
            "BestEffort": task.best_effort,
            "RevocableZone": task.revocable_zone,
            "SchGated": task.gated,
            "Pod": self._documents(kinds.POD, task.namespace, task.name) or _pod(task),
        }

    def of_tasks(self, tasks: Iterable[Task]) -> dict[str, Body]:
        return {task.uid: self.of_task(task) for task in tasks}

    def of_node(self, row: int) -> Body:
        resources, table = self._round.resources, self._round.cluster.table
        name, node = table.name(row), table.nodes[row]
        allocatable = of_amounts(resources.at(resources.allocatable, row))
        return {
            "Name": name,
            "Node": self._documents(kinds.NODE, "", name) or {"metadata": {"name": name}},
            "State": {"Phase": 1, "Reason": ""},
            "Allocatable": allocatable,
            "Capacity": allocatable,
            "Idle": of_amounts(resources.at(resources.idle, row)),
            "Used": of_amounts(resources.at(resources.used, row)),
            "Releasing": of_amounts(resources.at(resources.releasing, row)),
            "Pipelined": of_amounts(resources.at(resources.pipelined, row)),
            "RevocableZone": node.labels.get(_ZONE, "") if node is not None else "",
            "Tasks": self.of_tasks(resources.tasks_on(row)),
        }

    def of_job(self, job: Job) -> Body:
        group, annotations = job.group, job.group.annotations
        return {
            "UID": job.uid,
            "Name": job.name,
            "Namespace": job.namespace,
            "Queue": job.queue,
            "Priority": job.priority,
            "MinAvailable": job.min_available,
            "TaskMinAvailable": dict(job.role_minimums),
            "TaskMinAvailableTotal": job.role_total,
            "AllocatedHyperNode": job.allocated_hyper_node,
            "Tasks": self.of_tasks(job.tasks.values()),
            "Allocated": of_amounts(job.allocated),
            "TotalRequest": of_amounts(job.total_request),
            "CreationTimestamp": timestamp(job.created),
            "Preemptable": job.preemptable,
            "RevocableZone": job.revocable_zone,
            "Budget": {"MinAvailable": annotations.get(_LEAST, ""), "MaxUnavailable": annotations.get(_MOST, "")},
            "PodGroup": self._documents(VC_POD_GROUP, group.namespace, group.name) or _group(job),
        }

    def of_queue(self, queue: QueueState) -> Body:
        record = queue.queue
        plain = {"metadata": {"name": queue.name}, "status": {"state": record.state}}
        return {
            "UID": queue.name,
            "Name": queue.name,
            "Weight": record.weight,
            "Queue": self._documents(VC_QUEUE, "", queue.name) or plain,
        }

    def of_round(self) -> Body:
        round, table = self._round, self._round.cluster.table
        nodes = {table.name(row): self.of_node(row) for row in round.rows.tolist()}
        return {
            "Jobs": {uid: self.of_job(job) for uid, job in round.jobs.items()},
            "Nodes": nodes,
            "Queues": {name: self.of_queue(queue) for name, queue in round.queues.items()},
            "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
            "NodeList": list(nodes),
        }


def _pod(task: Task) -> Body:
    pod = task.pod
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    return {"metadata": {**metadata, "labels": dict(pod.labels), "annotations": dict(pod.annotations)}}


def _group(job: Job) -> Body:
    return {"metadata": {"name": job.name, "namespace": job.namespace}, "status": {"phase": job.phase}}
