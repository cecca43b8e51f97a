from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import Doc
from fairlead.volcano.jobs.cli.progress import bar, follow, summary
from fairlead.volcano.jobs.cli.tables import listed, viewed
from fairlead.volcano.jobs.cli.waiting import JobScene, reasons_of_waiting

OPEN: Doc = {"status": {"state": "Open"}}
LET_IN: Doc = {"status": {"phase": "Inqueue"}}


def job(phase: str = "Pending", *tasks: Doc, **status: Any) -> Doc:
    return {
        "metadata": {"name": "train", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "queue": "default",
            "minAvailable": 1,
            "maxRetry": 3,
            "tasks": list(tasks) or [{"name": "w", "replicas": 2}],
        },
        "status": {"state": {"phase": phase}, **status},
    }


def pod(index: int, *, node: str = "", phase: str = "Pending", told: str = "", task: str = "w") -> Doc:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    notes = {"volcano.sh/job-name": "train", "volcano.sh/task-spec": task, "volcano.sh/job-version": "0"}
    conditions = [{"type": "PodScheduled", "status": "False", "message": told}] if told else []
    return {
        "metadata": {
            "name": f"train-{task}-{index}",
            "namespace": "default",
            "uid": f"p{index}",
            "annotations": notes,
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        (JobScene(job("Completed")), []),
        (
            JobScene(job("")),
            ["no controller has looked at it: is `fairlead controllers` or vc-controller-manager running?"],
        ),
        (JobScene(job("Aborted")), ["it is suspended: `fairlead job resume train` lets it go on"]),
        (
            JobScene(job("Restarting"), pods=[{"metadata": {"deletionTimestamp": "x"}}]),
            ["1 pod has to end before it starts again"],
        ),
        (JobScene(job(), None, LET_IN), ['queue "default" does not exist']),
        (
            JobScene(job(), {"status": {"state": "Closed"}}, LET_IN),
            ['queue "default" is Closed: nothing new is let in'],
        ),
        (JobScene(job(), OPEN, None), ['its PodGroup "train-u" has not been made yet']),
        (
            JobScene(
                job(),
                OPEN,
                {
                    "status": {
                        "phase": "Pending",
                        "conditions": [{"type": "Unschedulable", "status": "True", "message": "queue is full"}],
                    }
                },
            ),
            ["the scheduler has not let it into its queue: queue is full"],
        ),
        (
            JobScene(job(), OPEN, LET_IN, [pod(0, told="0/2 nodes"), pod(1, told="0/2 nodes")]),
            ["2 pods have no node: 0/2 nodes"],
        ),
        (JobScene(job(), OPEN, LET_IN, [pod(0, node="n"), pod(1, node="n", phase="Running")]), ["1 pod is starting"]),
        (
            JobScene(
                job(), OPEN, LET_IN, [pod(0, node="n", phase="Running")], [{"type": "Warning", "message": "quota"}]
            ),
            ["1 pod is missing: quota"],
        ),
        (
            JobScene(
                job(
                    "Pending",
                    {"name": "w", "replicas": 1, "minAvailable": 1},
                    {"name": "b", "replicas": 1, "dependsOn": {"name": ["w"]}},
                ),
                OPEN,
                LET_IN,
                [pod(0, node="n")],
            ),
            ['task "b" waits for w', "1 pod is starting"],
        ),
    ],
)
def test_the_reason_of_waiting_is_said(scene: JobScene, said: list[str]) -> None:
    assert reasons_of_waiting(scene) == said


def test_a_view_shows_tasks_phases_and_what_is_waited_for() -> None:
    counted = {"w": {"phase": {"Running": 1, "Pending": 1}}}
    conditions = [{"status": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    shown = viewed(
        JobScene(job(taskStatusCount=counted, conditions=conditions), OPEN, LET_IN), ["1 pod has no node"],
        now=1767225660.0,
    )  # fmt: skip
    lines = shown.splitlines()
    assert lines[0] == "Job:      default/train"
    assert "w      2          2     1         1         0           0" in lines
    assert "  1 pod has no node" in lines
    assert "Phases:   Pending 60s ago" in lines


def test_a_wide_list_has_counters_and_plugins() -> None:
    one = job("Running", running=2, retryCount=1)
    one["spec"]["plugins"] = {"svc": [], "env": []}
    head, row = listed([one], now=1767225660.0, wide=True, namespaces=True).splitlines()
    assert head.split()[:7] == ["NAMESPACE", "NAME", "PHASE", "READY", "GPUS", "QUEUE", "AGE"]
    assert row.split() == [
        "default",
        "train",
        "Running",
        "2/2",
        "-",
        "default",
        "60s",
        "1",
        "0",
        "2",
        "0",
        "0",
        "1",
        "env,svc",
    ]


def test_progress_is_drawn_and_reported() -> None:
    assert bar({"Succeeded": 1, "Running": 1}, 2) == "█" * 12 + "▒" * 12
    assert summary(job("Running", running=1, pending=1)) == "train: Running (1 pending, 1 running)"


async def test_a_job_that_no_controller_has_looked_at_is_waited_for() -> None:
    fresh: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {}}
    looks = iter([[fresh], [{**fresh, "status": {"state": {"phase": "Completed"}}}]])

    async def look() -> list[dict[str, Any]]:
        return next(looks)

    assert await follow(look, ["a", "gone"], "", patience=30) == {"a": "Completed", "gone": ""}
