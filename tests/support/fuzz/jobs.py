"""Random stories of Volcano Jobs: Jobs with policies, restarts, dependencies and plugins, and what their pods do.

Everything comes from one seed. What Volcano's webhooks would fill in is written out, because a bare API server has none
of them, and Jobs that they would refuse are not made. Delays are short: all of them are over when a step is looked at.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fairlead.volcano.jobs.admission import mutate_job

Doc = dict[str, Any]

_EVENTS = ("PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "Unknown", "*")
_ACTIONS = ("AbortJob", "RestartJob", "RestartTask", "RestartPod", "TerminateJob", "CompleteJob")
_COMMANDS = ("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob")
_PLUGINS = (
    {"env": []}, {"svc": []}, {"svc": [], "env": []}, {"svc": ["--disable-network-policy=true"]},
    {"pytorch": ["--master=a", "--worker=b"], "svc": []},
)  # fmt: skip
_CODES = (1, 2, 3)
_JOB = "job"


def make_job_story(seed: int) -> Doc:
    """A story as recordings have it, without what the API answered."""
    return _Maker(seed).story()


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = Random(f"{seed}/jobs")
        self.seed = seed
        self.tasks: list[Doc] = []

    def story(self) -> Doc:
        rng = self.rng
        steps: list[Doc] = [{"do": "create", "object": self._job()}]
        if rng.random() < 0.85:
            steps.append({"do": "pods", "phase": "Running", "pods": self._pods()})
        steps += [self._happening() for _ in range(rng.randint(2, 5))]
        return {"seed": self.seed, "family": "fuzz", "namespace": f"fuzz-{self.seed}", "steps": steps}

    # ---- the Job ----

    def _job(self) -> Doc:
        rng = self.rng
        names = ("a", "b", "c")[: rng.choice((1, 2, 2, 3))]
        self.tasks = [self._task(name) for name in names]
        if len(names) > 1 and rng.random() < 0.15:
            self.tasks[1]["dependsOn"] = {"name": ["a"]}
        spec: Doc = {"tasks": self.tasks, "maxRetry": rng.choice((1, 2, 3))}
        if rng.random() < 0.7:
            spec["policies"] = self._policies()
        if rng.random() < 0.3:
            spec["plugins"] = rng.choice(_PLUGINS)
        total = sum(task["replicas"] for task in self.tasks)
        least = sum(task.get("minAvailable", task["replicas"]) for task in self.tasks)
        if rng.random() < 0.3:
            spec["minAvailable"] = rng.randint(1, least)
        if rng.random() < 0.2:
            spec["minSuccess"] = rng.randint(1, total)
        if rng.random() < 0.1:
            spec["ttlSecondsAfterFinished"] = 0
        job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": _JOB}, "spec": spec}
        return mutate_job(job)

    def _task(self, name: str) -> Doc:
        rng = self.rng
        container = {"name": "main", "image": "busybox:1.36", "resources": {"requests": {"cpu": "100m"}}}
        replicas = rng.choice((1, 1, 2, 3))
        task: Doc = {
            "name": name,
            "replicas": replicas,
            "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
        }
        if rng.random() < 0.3:
            task["minAvailable"] = rng.randint(1, replicas)
        if rng.random() < 0.4:
            task["policies"] = self._policies()
        if rng.random() < 0.4:
            task["maxRetry"] = rng.choice((1, 2))
        return task

    def _policies(self) -> list[Doc]:
        """No event and no exit code twice: that would be refused."""
        rng = self.rng
        events = list(rng.sample(_EVENTS, rng.randint(1, 3)))
        if "*" in events:
            events = ["*"]
        policies = [self._policy({"event": event}) for event in events]
        if len(events) > 1 and rng.random() < 0.3:
            policies = [self._policy({"events": events})]
        if rng.random() < 0.3:
            policies.append(self._policy({"exitCode": rng.choice(_CODES)}))
        return policies

    def _policy(self, about: Doc) -> Doc:
        delay = {"timeout": self.rng.choice(("1s", "2s"))} if self.rng.random() < 0.3 else {}
        return {**about, "action": self.rng.choice(_ACTIONS), **delay}

    # ---- what happens ----

    def _pods(self) -> list[str]:
        return [f"{_JOB}-{task['name']}-{index}" for task in self.tasks for index in range(task["replicas"])]

    def _happening(self) -> Doc:
        rng, pods = self.rng, self._pods()
        one = [rng.choice(pods)]
        task = rng.choice(self.tasks)["name"]
        of_task = [name for name in pods if name.startswith(f"{_JOB}-{task}-")]
        some = rng.choice((one, of_task, pods))
        match rng.choices(
            ("running", "succeeded", "failed", "unknown", "delete", "evict", "command", "scale"),
            (20, 25, 30, 3, 5, 5, 10, 4),
        )[0]:
            case "running":
                return {"do": "pods", "phase": "Running", "pods": pods}
            case "succeeded":
                return {"do": "pods", "phase": "Succeeded", "pods": some}
            case "failed":
                chosen = one if rng.random() < 0.7 else some
                return {"do": "pods", "phase": "Failed", "pods": chosen, "exitCode": rng.choice(_CODES)}
            case "unknown":
                return {"do": "pods", "phase": "Unknown", "pods": one}
            case "delete":
                return {"do": "delete", "kind": "Pod", "name": one[0]}
            case "evict":
                return {"do": "evict", "name": one[0]}
            case "scale":
                return self._scale()
        return {"do": "command", "action": rng.choice(_COMMANDS), "target": {"kind": "Job", "name": _JOB}}

    def _scale(self) -> Doc:
        """More of the first task: fewer would need other minima, too."""
        first = self.tasks[0]
        first["replicas"] += self.rng.randint(1, 2)
        patch = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": first["replicas"]}]
        return {"do": "patch", "kind": "Job", "name": _JOB, "patch": patch}
