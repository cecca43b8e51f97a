"""A configuration file that was refused, as an Event about the pod whose scheduler goes on with an older one.

The log says it once, and nobody may read the log before the next start, which fails. `kubectl describe pod` and
collectors of Events show it meanwhile; the metric `fairlead_config_last_reload_successful` is for alerts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import EVENT_V1
from fairlead.core.model.times import micro_timestamp
from fairlead.errors import ApiError

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection

log = logging.getLogger("fairlead.scheduler")

LOOK_EVERY = 1.0
_LONGEST_NOTE = 1000
"""Characters: the API server takes 1,024."""
Announce = Callable[[str], Awaitable[None]]


async def announce_refusals(refused: Callable[[], Sequence[str]], announce: Announce) -> None:
    """Announce each new reason for which files are refused, until cancelled."""
    announced = ""
    while True:
        trouble = "; ".join(refused())
        if trouble and trouble != announced:
            await announce(trouble)
        announced = trouble
        await asyncio.sleep(LOOK_EVERY)


def event_about(pod: str, namespace: str, trouble: str, now: float) -> Write:
    """The Event, as a write."""
    name = f"{pod}.{uuid.uuid4().hex[:16]}"
    body = {
        "apiVersion": EVENT_V1.api_version,
        "kind": EVENT_V1.kind,
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": micro_timestamp(now),
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": namespace},
        "type": "Warning",
        "reason": "ConfigurationRefused",
        "action": "Reload",
        "note": f"the last good configuration stays in force: {trouble}"[:_LONGEST_NOTE],
        "reportingController": "fairlead.io/scheduler",
        "reportingInstance": pod,
    }
    return Write(Verb.CREATE, EVENT_V1, namespace, name, body)


async def announce_on(connection: Connection, refused: Callable[[], Sequence[str]]) -> None:
    """Announce refusals in the cluster, if this process is a pod of it. By a client of its own: one that stands by may
    not write with the others."""
    from fairlead.client.client import KubeApi

    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        return
    api, pod = KubeApi(connection, attempts=2), socket.gethostname()

    async def announce(trouble: str) -> None:
        try:
            await api.perform(event_about(pod, connection.namespace, trouble, time.time()))
        except ApiError as error:
            log.info("no Event says that the configuration was refused: %s", error)

    try:
        await announce_refusals(refused, announce)
    finally:
        await api.close()
