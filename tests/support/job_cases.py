"""Twenty Volcano Jobs that between them use every ending, policies of every scope, plugins, dependencies and Commands.

Pods do what annotations tell the simulated kubelet. Everything that Volcano's webhooks would fill in is written out,
because a bare API server has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairlead.cluster.kubelets.pod_script import EXIT_CODE, RUN_TIME

Doc = dict[str, Any]

GONE = "gone"
FOR_EVER = "3600s"


@dataclass(frozen=True)
class Case:
    """A Job, the Commands that it is sent (each when the Job is in a phase), and the phase that it ends in."""

    name: str
    spec: Doc
    ends: str
    commands: tuple[tuple[str, str], ...] = field(default=())

    def document(self, namespace: str) -> Doc:
        metadata = {"name": self.name, "namespace": namespace}
        return {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": metadata,
            "spec": self.spec,
        }


def task(name: str, replicas: int = 1, *, run: str = "1s", code: int = 0, **fields: Any) -> Doc:
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "10m"}}}
    annotations = {RUN_TIME: run, EXIT_CODE: str(code)}
    template = {
        "metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]},
    }  # fmt: skip
    return {"name": name, "replicas": replicas, "minAvailable": replicas, "maxRetry": 3, "template": template, **fields}


def spec(*tasks: Doc, **fields: Any) -> Doc:
    minimum = sum(one["minAvailable"] for one in tasks)
    return {
        "minAvailable": minimum,
        "schedulerName": "volcano",
        "queue": "default",
        "maxRetry": 3,
        "tasks": list(tasks),
        **fields,
    }


def on(event: str, action: str) -> list[Doc]:
    return [{"event": event, "action": action}]


_LONG = task("long", run=FOR_EVER)
"""Beside a task that fails: a Job all of whose pods have ended is over before Volcano has looked at its policies."""
_BAD = task("bad", code=3)

TWENTY = (
    Case("one", spec(task("t")), "Completed"),
    Case("gang", spec(task("t", 4)), "Completed"),
    Case("two-tasks", spec(task("a", 2), task("b", 2)), "Completed"),
    Case("fails", spec(_BAD, task("good")), "Failed"),
    Case("restart-job", spec(_BAD, _LONG, policies=on("PodFailed", "RestartJob"), maxRetry=2), "Failed"),
    Case("restart-task", spec(_BAD, _LONG, policies=[{"exitCode": 3, "action": "RestartTask"}], maxRetry=2), "Failed"),
    Case("restart-pod", spec(_BAD, _LONG, policies=on("PodFailed", "RestartPod"), maxRetry=2), "Failed"),
    Case("aborts", spec(_BAD, _LONG, policies=on("PodFailed", "AbortJob")), "Aborted"),
    Case("terminates", spec(_BAD, _LONG, policies=on("PodFailed", "TerminateJob")), "Terminated"),
    Case("completes", spec(_BAD, _LONG, policies=on("PodFailed", "CompleteJob")), "Completed"),
    Case("master-done", spec(task("master", policies=on("TaskCompleted", "CompleteJob")), _LONG), "Completed"),
    Case("min-success", spec(task("t", 2), _LONG, minSuccess=2), "Completed"),
    Case("min-available", spec(task("t", 3), task("bad", code=1, minAvailable=0), minAvailable=3), "Completed"),
    # The first goes on running: Volcano 1.14 does not take a task that has succeeded for ready.
    Case(
        "depends",
        spec(task("first", run=FOR_EVER), task("then", dependsOn={"name": ["first"]}), minAvailable=1, minSuccess=1),
        "Completed",
    ),
    Case("plugins", spec(task("t", 2), plugins={"svc": [], "env": [], "ssh": []}), "Completed"),
    Case("pytorch", spec(task("master"), task("worker", 2), plugins={"svc": [], "pytorch": []}), "Completed"),
    Case("suspended", spec(_LONG), "Aborted", (("Running", "AbortJob"),)),
    Case(
        "resumed",
        spec(_LONG),
        "Completed",
        (("Running", "AbortJob"), ("Aborted", "ResumeJob"), ("Running", "CompleteJob")),
    ),
    Case("ended", spec(_LONG, _LONG | {"name": "other"}), "Terminated", (("Running", "TerminateJob"),)),
    Case("forgotten", spec(task("t"), ttlSecondsAfterFinished=1), GONE),
)
