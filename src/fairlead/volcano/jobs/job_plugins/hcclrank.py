"""The job plugin `hcclrank`: the rank by which Ascend's collective library knows a pod, as an annotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_plugins.job_plugin import (
    JobPlugin,
    PluginFlags,
    PluginMeans,
    containers_of,
    find_task,
    index_of,
    replicas_of,
    task_of,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_RANK = "hccl/rankIndex"


class HcclRankPlugin(JobPlugin):
    name = "hcclrank"
    marks_job = False

    def __init__(self, arguments: Sequence[str], means: PluginMeans) -> None:
        super().__init__(arguments, means)
        flags = PluginFlags(arguments, master="master", worker="worker")
        self._master, self._worker = flags.text("master"), flags.text("worker")

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        notes = pod["metadata"]["annotations"]
        if notes.get(_RANK):
            return
        rank = _rank_of(pod)
        if rank is None and task_of(pod) == self._master:
            rank = str(index_of(pod))
        elif rank is None and task_of(pod) == self._worker:
            rank = str(replicas_of(find_task(job, self._master)) + index_of(pod))
        if rank is not None:
            notes[_RANK] = rank


def _rank_of(pod: Doc) -> str | None:
    """The first RANK that a container is given."""
    for container in containers_of(pod):
        for variable in container.get("env") or ():
            if variable.get("name") == "RANK" and variable.get("value"):
                return str(variable["value"])
    return None
