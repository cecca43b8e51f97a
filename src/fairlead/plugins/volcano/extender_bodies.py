"""What an extender is told of tasks, nodes, jobs and queues: their fields by the original's Go names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.model.documents import timestamp

if TYPE_CHECKING:
    from fairlead.framework.round import Job, QueueState, Round, Task
    from fairlead.model.amounts import Amounts

Body = dict[str, Any]


def of_amounts(amounts: Amounts) -> Body:
    return {"MilliCPU": amounts.cpu, "Memory": amounts.memory, "ScalarResources": dict(amounts.scalars)}


def of_task(round: Round, task: Task) -> Body:
    """The status is a bit flag there."""
    pod = task.pod
    return {
        "UID": task.uid,
        "Job": task.job.uid if task.job is not None else "",
        "Name": task.name,
        "Namespace": task.namespace,
        "TaskRole": task.role,
        "Resreq": of_amounts(task.request),
        "InitResreq": of_amounts(task.request),
        "NodeName": round.cluster.table.name(task.row) if task.row >= 0 else "",
        "Status": 1 << task.status,
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "BestEffort": task.best_effort,
        "RevocableZone": task.revocable_zone,
        "SchGated": task.gated,
        "Pod": {
            "metadata": {
                "name": pod.name,
                "namespace": pod.namespace,
                "uid": pod.uid,
                "labels": dict(pod.labels),
                "annotations": dict(pod.annotations),
            }
        },
    }


def of_node(round: Round, row: int) -> Body:
    books = round.books
    return {
        "Name": round.cluster.table.name(row),
        "Allocatable": of_amounts(books.at(books.allocatable, row)),
        "Idle": of_amounts(books.at(books.idle, row)),
        "Used": of_amounts(books.at(books.used, row)),
        "Releasing": of_amounts(books.at(books.releasing, row)),
        "Pipelined": of_amounts(books.at(books.pipelined, row)),
    }


def of_job(job: Job) -> Body:
    return {
        "UID": job.uid,
        "Name": job.name,
        "Namespace": job.namespace,
        "Queue": job.queue,
        "Priority": job.priority,
        "MinAvailable": job.min_available,
        "TaskMinAvailable": dict(job.role_minimums),
        "Allocated": of_amounts(job.allocated),
        "TotalRequest": of_amounts(job.total_request),
        "CreationTimestamp": timestamp(job.created),
        "Preemptable": job.preemptable,
        "PodGroup": {
            "metadata": {"name": job.name, "namespace": job.namespace},
            "status": {"phase": job.phase},
        },
    }


def of_queue(queue: QueueState) -> Body:
    record = queue.queue
    return {
        "UID": queue.name,
        "Name": queue.name,
        "Weight": record.weight,
        "Queue": {"metadata": {"name": queue.name}, "status": {"state": record.state}},
    }


def of_round(round: Round) -> Body:
    return {
        "Jobs": {uid: of_job(job) for uid, job in round.jobs.items()},
        "Nodes": {round.cluster.table.name(row): of_node(round, row) for row in round.rows.tolist()},
        "Queues": {name: of_queue(queue) for name, queue in round.queues.items()},
    }
