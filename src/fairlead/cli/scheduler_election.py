"""The leases that `fairlead scheduler` stands for, and what follows from them for its health and its answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from fairlead.client.client import KubeApi
from fairlead.cluster.server.ops_server import Vitals
from fairlead.errors import NotLeading
from fairlead.runtime.leader import Election, Elector, identity
from fairlead.runtime.lease_chain import LeaseChain

if TYPE_CHECKING:
    import asyncio
    from contextlib import AsyncExitStack

    from fairlead.cli.scheduler_flags import SchedulerFlags
    from fairlead.cli.scheduler_port import Port
    from fairlead.client.credentials import Connection
    from fairlead.kube.config.records import KubeConfig
    from fairlead.runtime.api_health import ApiHealth
    from fairlead.runtime.lease_chain import Candidate
    from fairlead.runtime.live import LiveRuntime


def elector_of(
    opened: AsyncExitStack, connection: Connection, flags: SchedulerFlags, config: KubeConfig, port: Port
) -> Candidate | None:
    """The elector, if there is an election. It has an api of its own, so that queued writes never delay a renewal."""
    election = config.leader_election
    if not election.leader_elect:
        return None
    leases = [flags.first_lease] if flags.first_lease is not None else []
    api, own = KubeApi(connection), identity()
    opened.push_async_callback(api.close)
    electors = [
        Elector(
            api,
            Election(
                name,
                namespace,
                identity=own,
                lease=election.lease_duration,
                renew=election.renew_deadline,
                retry=election.retry_period,
            ),
            annotations=partial(port.annotations, own),
        )
        for namespace, name in [*leases, (election.resource_namespace, election.resource_name)]
    ]
    return electors[0] if len(electors) == 1 else LeaseChain(electors)


def not_leading(elector: Candidate | None) -> NotLeading | None:
    """The answer to questions while another replica leads."""
    if elector is None or elector.leading:
        return None
    leader = elector.leader
    return NotLeading(
        f"this replica stands by; {leader or 'nobody'} leads", details={"kind": "schedulers", "name": leader}
    )


def vitals_of(
    elector: Candidate | None,
    runtime: LiveRuntime,
    stopping: asyncio.Event,
    health: ApiHealth,
    *,
    standing_by: Callable[[], bool],
) -> Vitals:
    election: dict[str, Callable[[], bool]] = {}
    informed: dict[str, Callable[[], bool]] = {}
    if elector is not None:
        election["leaderElection"] = lambda: elector.healthy
        informed["leaderElection"] = lambda: elector.healthy and elector.knows

    def synced() -> bool:
        return runtime.stepping or (elector is not None and not elector.leading and standing_by())

    ping = {"ping": lambda: True}
    return Vitals(
        healthz={**(election or ping), "watches": health.healthy},
        livez=ping,
        readyz={
            **informed,
            "shutdown": lambda: not stopping.is_set(),
            "sched-handler-sync": synced,
            "modes": lambda: not runtime.held,
            "api": health.ready,
        },
    )


def leading_of(elector: Candidate | None, config: KubeConfig) -> tuple[str, bool] | None:
    return None if elector is None else (config.leader_election.resource_name, elector.leading)
