"""The ports of `fairlead controllers`: health and metrics, under the original's flags, and off unless requested."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest

from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.ops_server import OpsServer, Pages, Vitals
from fairlead.errors import ConfigError
from fairlead.runtime.metrics import Name, gauge
from fairlead.volcano.jobs.figures import GROUP_PHASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from fairlead.runtime.leader import Elector
    from fairlead.volcano.jobs.figures import VolcanoFigures

_JOB_LABELS, _FLOW_LABELS = ("job_name", "queue_name"), ("jobflow_namespace",)


class ControllerPorts(NamedTuple):
    """Addresses like `:8081`; None is off."""

    health: str | None = None
    metrics: str | None = None

    async def open(self, opened: AsyncExitStack, figures: VolcanoFigures, elector: Elector | None) -> list[OpsServer]:
        """Serve until `opened` is closed."""
        servers = []
        for address in dict.fromkeys(one for one in (self.health, self.metrics) if one is not None):
            server = _server(address, figures, elector)
            await server.start()
            opened.push_async_callback(server.stop)
            servers.append(server)
        return servers


def _server(address: str, figures: VolcanoFigures, elector: Elector | None) -> OpsServer:
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise ConfigError(f'"{address}" is no address', hint="HOST:PORT, or :PORT for all of this machine's")
    checks = {"ping": lambda: True} if elector is None else {"leaderElection": lambda: elector.healthy}
    collected = CollectorRegistry(auto_describe=False)
    collected.register(_Collector(figures))

    async def exposition() -> bytes:
        return generate_latest(collected)

    vitals = Vitals(healthz=checks, livez=checks, readyz=checks)
    host = host.strip("[]") or "0.0.0.0"
    pages = Pages(metrics=exposition, reset=lambda: None, config=dict)
    return OpsServer(vitals=vitals, pages=pages, at=Endpoint(host, int(port)))


class _Collector:
    def __init__(self, figures: VolcanoFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        for failed, word in ((False, "completed"), (True, "failed")):
            name = Name(f"volcano_job_{word}_phase_count", f"How often a Job has {word}.", _JOB_LABELS)
            yield gauge(name, self._figures.jobs(failed=failed))
        for failed, word in ((False, "succeed"), (True, "failed")):
            name = Name(f"volcano_jobflow_{word}_phase_count", "How many JobFlows ended so.", _FLOW_LABELS)
            yield gauge(name, self._figures.flows(failed=failed))
        groups = self._figures.groups()
        for phase in GROUP_PHASES:
            text = f"PodGroups of a queue that are {phase}."
            name = Name(f"volcano_queue_pod_group_{phase.lower()}_count", text, ("queue_name",))
            yield gauge(name, {(queue,): count for (queue, one), count in groups.items() if one == phase})
