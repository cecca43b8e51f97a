"""The job plugin `env`: every container gets the index, which of its task's pods it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_plugins.job_plugin import JobPlugin, add_env, containers_of, index_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc


class EnvPlugin(JobPlugin):
    name = "env"

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        index = str(index_of(pod))
        for container in containers_of(pod, init=True):
            add_env(container, *({"name": name, "value": index} for name in ("VK_TASK_INDEX", "VC_TASK_INDEX")))
