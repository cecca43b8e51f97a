"""The job plugin `ray`: the head starts a Ray cluster, workers join it, and a Service leads to the head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.kinds import SERVICE
from fairlead.volcano.jobs.job_plugins.job_plugin import (
    Beside,
    JobPlugin,
    PluginFlags,
    PluginMeans,
    address_of,
    containers_of,
    find_task,
    open_port,
    owned_by,
    task_of,
)
from fairlead.volcano.jobs.job_pods import JOB_NAME, JOB_NAMESPACE, TASK_SPEC

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind


class RayPlugin(JobPlugin):
    name = "ray"

    def __init__(self, arguments: Sequence[str], means: PluginMeans) -> None:
        super().__init__(arguments, means)
        flags = PluginFlags(
            arguments,
            head="head",
            headContainer="head",
            worker="worker",
            workerContainer="worker",
            port=6379,
            dashboardPort=8265,
            clientPort=10001,
        )
        self._head, self._head_container = flags.text("head"), flags.text("headContainer")
        self._worker, self._worker_container = flags.text("worker"), flags.text("workerContainer")
        self._ports = {
            "gcs": flags.number("port"),
            "dashboard": flags.number("dashboardPort"),
            "client-server": flags.number("clientPort"),
        }

    def refuses(self, job: Doc) -> str:
        known = find_task(job, self._head) is not None
        return "" if known else f"job {job['metadata']['name']} doesn't have head task {self._head}"

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        head, own = find_task(job, self._head), task_of(pod)
        if head is None:
            return
        for container in containers_of(pod):
            if own == self._head and container["name"] == self._head_container:
                for name, number in self._ports.items():
                    open_port(container, name, number)
                container["command"] = ["sh", "-c", self._start_head()]
            if own == self._worker and container["name"] == self._worker_container:
                join = f"ray start --block --address={address_of(job, head, 0)}:{self._ports['gcs']}"
                container["command"] = ["sh", "-c", join]

    def _start_head(self) -> str:
        gcs, dashboard, client = self._ports.values()
        ports = f"--port={gcs} --dashboard-port={dashboard} --ray-client-server-port={client}"
        return f"ray start --head --block --dashboard-host=0.0.0.0 {ports}"

    def names_beside(self, job: Doc) -> Sequence[tuple[Kind, str]]:
        return [(SERVICE, _service_name(job))]

    def objects(self, job: Doc) -> Iterator[Beside]:
        metadata = job["metadata"]
        selector = {JOB_NAME: metadata["name"], JOB_NAMESPACE: metadata["namespace"], TASK_SPEC: self._head}
        by_name = self.means.quirks.ray_service_targets_names
        ports = [
            {"name": name, "port": number, "targetPort": name if by_name else number, "protocol": "TCP"}
            for name, number in self._ports.items()
        ]
        yield owned_by(job, SERVICE, _service_name(job), spec={"selector": selector, "ports": ports})


def _service_name(job: Doc) -> str:
    return f"{job['metadata']['name']}-head-svc"
