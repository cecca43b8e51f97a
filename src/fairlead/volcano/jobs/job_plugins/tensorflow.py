"""The job plugin `tensorflow`: TF_CONFIG, which says who is in the cluster and which of them this pod is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_plugins.job_plugin import (
    JobPlugin,
    PluginFlags,
    PluginMeans,
    add_env,
    address_of,
    containers_of,
    index_of,
    replicas_of,
    task_of,
    too_many_hosts,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_ROLES = ("ps", "worker", "chief", "evaluator")


class TensorflowPlugin(JobPlugin):
    name = "tensorflow"

    def __init__(self, arguments: Sequence[str], means: PluginMeans) -> None:
        super().__init__(arguments, means)
        flags = PluginFlags(arguments, ps="ps", worker="worker", chief="chief", evaluator="evaluator", port=2222)
        self._tasks = {role: flags.text(role) for role in _ROLES}
        self._port = flags.number("port")

    def outgrows(self, job: Doc) -> str:
        listed = self._tasks.values()
        return too_many_hosts(job, [task for task in job["spec"].get("tasks") or () if task.get("name") in listed])

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        tasks = job["spec"].get("tasks") or []
        if len(tasks) == 1 and replicas_of(tasks[0]) == 1:
            return  # nobody to find
        own = task_of(pod)
        role = next((role for role in ("chief", "worker", "ps", "evaluator") if self._tasks[role] == own), own)
        tf_config = {"cluster": self._cluster(job, tasks), "task": {"type": role, "index": index_of(pod)}}
        text = json.dumps(tf_config, separators=(",", ":"))
        for container in containers_of(pod):
            add_env(container, {"name": "TF_CONFIG", "value": text})

    def _cluster(self, job: Doc, tasks: list[Doc]) -> dict[str, list[str]]:
        hosts: dict[str, list[str]] = {}
        for task in tasks:
            role = next((role for role in _ROLES if self._tasks[role] == task.get("name")), None)
            if role is not None and replicas_of(task):
                hosts[role] = [f"{address_of(job, task, index)}:{self._port}" for index in range(replicas_of(task))]
        return {role: hosts[role] for role in _ROLES if role in hosts}
