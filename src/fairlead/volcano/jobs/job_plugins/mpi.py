"""The job plugin `mpi`: masters know the hosts of the workers (MPI_HOST), and every container opens the ssh port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_plugins.job_plugin import (
    JobPlugin,
    PluginFlags,
    PluginMeans,
    add_env,
    addresses_of,
    containers_of,
    find_task,
    open_port,
    task_of,
    too_many_hosts,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc


class MpiPlugin(JobPlugin):
    name = "mpi"

    def __init__(self, arguments: Sequence[str], means: PluginMeans) -> None:
        super().__init__(arguments, means)
        flags = PluginFlags(arguments, master="master", worker="worker", port=22)
        self._master, self._worker = flags.text("master"), flags.text("worker")
        self._port = flags.number("port")

    def outgrows(self, job: Doc) -> str:
        workers = find_task(job, self._worker)
        has_both_roles = workers is not None and find_task(job, self._master) is not None
        return too_many_hosts(job, [workers]) if has_both_roles and workers is not None else ""

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        workers, is_master = find_task(job, self._worker), task_of(pod) == self._master
        if is_master and workers is None:
            return
        for container in containers_of(pod, init=True):
            open_port(container, "mpijob-port", self._port)
            if is_master and workers is not None:
                add_env(container, {"name": "MPI_HOST", "value": ",".join(addresses_of(job, workers))})
