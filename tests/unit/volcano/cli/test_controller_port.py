"""Health and metrics of `fairlead controllers`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from fairlead.core.model.flow import Change, Happened
from fairlead.errors import ConfigError
from fairlead.volcano.cli.controller_port import ControllerPorts
from fairlead.volcano.jobs.figures import VolcanoFigures
from fairlead.volcano.kinds import VC_JOB, VC_JOB_FLOW, VC_POD_GROUP, VC_QUEUE
from tests.support.controllers import Documents


def figures() -> VolcanoFigures:
    made = VolcanoFigures(Documents())

    def tell(kind: Any, name: str, spec: Any, status: Any, how: Happened = Happened.MODIFIED) -> None:
        metadata = {"name": name, "namespace": "ns", "uid": f"{kind.kind}-{name}", "resourceVersion": "1"}
        made.observe(Change(how, kind, {"metadata": metadata, "spec": spec, "status": status}))

    tell(VC_QUEUE, "q", {}, {})
    for phase in ("Running", "Completed", "Completed"):
        tell(VC_JOB, "done", {"queue": "q"}, {"state": {"phase": phase}})
    for phase in ("Restarting", "Failed"):
        tell(VC_JOB, "lost", {"queue": "q"}, {"state": {"phase": phase}})
    tell(VC_JOB, "old", {"queue": "q"}, {"state": {"phase": "Failed"}})
    for phase in ("Running", "Failed"):
        tell(VC_JOB_FLOW, "flow", {}, {"state": {"phase": phase}})
    for name, phases in (("a", ("Pending", "Running")), ("b", ("Inqueue",)), ("c", ("Running",))):
        for phase in phases:
            tell(VC_POD_GROUP, name, {"queue": "q"}, {"phase": phase})
    tell(VC_POD_GROUP, "c", {"queue": "q"}, {"phase": "Running"}, Happened.DELETED)
    return made


async def test_phases_are_counted_and_served_with_health() -> None:
    async with AsyncExitStack() as opened:
        session = await opened.enter_async_context(aiohttp.ClientSession())
        ports = ControllerPorts("127.0.0.1:0", None)
        (server,) = await ports.open(opened, figures(), None)
        async with session.get(f"{server.url}/healthz") as answer:
            assert await answer.text() == "ok"
        async with session.get(f"{server.url}/metrics") as answer:
            told = set((await answer.text()).splitlines())
    assert {
        'volcano_job_completed_phase_count{job_name="ns/done",queue_name="q"} 1.0',
        'volcano_job_failed_phase_count{job_name="ns/lost",queue_name="q"} 1.0',
        'volcano_jobflow_failed_phase_count{jobflow_namespace="ns"} 1.0',
        'volcano_queue_pod_group_running_count{queue_name="q"} 1.0',
        'volcano_queue_pod_group_inqueue_count{queue_name="q"} 1.0',
        'volcano_queue_pod_group_pending_count{queue_name="q"} 0.0',
    } <= told
    assert not any("old" in line for line in told)


async def test_what_is_no_address_is_said() -> None:
    async with AsyncExitStack() as opened:
        with pytest.raises(ConfigError, match='"here" is no address'):
            await ControllerPorts(None, "here").open(opened, figures(), None)
