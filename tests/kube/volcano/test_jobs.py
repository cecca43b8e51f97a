"""Volcano Jobs on a real kube-apiserver: our controllers and scheduler, Volcano's own, and one of each, run the same
twenty Jobs to the same ends, and our controllers do not write more for it than Volcano's."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.support.job_cases import TWENTY, Case, spec, task
from tests.support.processes.kubectl_suite import Kubectl, fairlead_up
from tests.support.real.control_plane import ControlPlane, real_binary
from tests.support.real.job_teams import (
    CONTROLLERS,
    SCHEDULER,
    TEAMS,
    USERS,
    JobRun,
    at_work,
    furnished,
    until,
    writes_of,
)

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=50)]

SETTLING = 2.0
"""Seconds in which a Job that is over is still written to."""
WIDE = tuple(Case(f"wide-{index}", spec(task("t", 10)), "Completed") for index in range(3))


async def test_twenty_jobs_end_alike_whatever_controls_and_schedules_them(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, users=USERS)
    ends, writes = {}, {}
    try:
        plane.start()
        async with furnished(plane) as api:
            for team in TEAMS:
                with at_work(team, plane):
                    ends[team.name] = await JobRun(api, team.name).ends(TWENTY)
                    await JobRun(api, f"{team.name}-wide").ends(WIDE)
                    await asyncio.sleep(SETTLING)
                writes[team.name] = writes_of(plane.audit_log, f"{team.name}-wide", (CONTROLLERS, SCHEDULER))
    finally:
        plane.stop()
    assert {name: end["phase"] for name, end in ends["volcano"].items()} == {case.name: case.ends for case in TWENTY}
    for team in TEAMS:
        assert ends[team.name] == ends["volcano"]
    told = {name: dict(counts) for name, counts in writes.items()}
    assert writes["ours"][CONTROLLERS] <= writes["volcano"][CONTROLLERS], told


def test_the_real_vcctl_works_on_the_embedded_api(tmp_path: Path) -> None:
    with fairlead_up(tmp_path, "--nodes", "3", "--volcano-conf", "shipped") as kubeconfig:
        kubectl = Kubectl(real_binary("kubectl"), kubeconfig, "default")

        def vcctl(*words: str) -> str:
            command = [real_binary("vcctl"), *words, "--kubeconfig", str(kubeconfig)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        def phase() -> str:
            found = kubectl.json("get", "vcjob", "quick")
            return str(found.get("status", {}).get("state", {}).get("phase"))

        assert "run job quick successfully" in vcctl("job", "run", "-N", "quick", "-r", "2", "-m", "2", "-i", "busybox")
        until(lambda: phase() in ("Running", "Completed"), "the job's start")
        vcctl("job", "suspend", "-N", "quick")
        until(lambda: phase() in ("Aborted", "Completed"), "the job's suspension")
        vcctl("job", "resume", "-N", "quick")
        until(lambda: phase() == "Completed", "the job's end")
        assert "quick" in vcctl("job", "list")
        assert "quick" in vcctl("job", "view", "-N", "quick")
        assert "delete job quick successfully" in vcctl("job", "delete", "-N", "quick")
        vcctl("queue", "create", "-n", "team", "-w", "3")
        until(lambda: "team" in vcctl("queue", "list"), "the queue")
        vcctl("queue", "operate", "-n", "team", "-a", "close")
        until(lambda: "Closed" in vcctl("queue", "get", "-n", "team"), "the queue's end")
        vcctl("queue", "delete", "-n", "team")
