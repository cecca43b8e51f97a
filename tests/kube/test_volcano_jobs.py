"""Volcano Jobs on a real kube-apiserver: our controllers and scheduler, Volcano's own, and one of each, run the same
twenty Jobs to the same ends, and ours do not write more for it than Volcano's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kube.control_plane import ControlPlane
from tests.kube.job_teams import CONTROLLERS, SCHEDULER, TEAMS, USERS, JobRun, at_work, furnished, writes_of
from tests.kube.twenty_jobs import TWENTY, Case, spec, task

pytestmark = pytest.mark.kube

WIDE = tuple(Case(f"wide-{index}", spec(task("t", 10)), "Completed") for index in range(3))


async def test_twenty_jobs_end_alike_whoever_controls_and_schedules_them(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, users=USERS)
    ends, writes = {}, {}
    try:
        plane.start()
        async with furnished(plane) as api:
            for team in TEAMS:
                with at_work(team, plane):
                    ends[team.name] = await JobRun(api, team.name).ends(TWENTY)
                    await JobRun(api, f"{team.name}-wide").ends(WIDE)
                writes[team.name] = writes_of(plane.audit_log, f"{team.name}-wide", (CONTROLLERS, SCHEDULER))
    finally:
        plane.stop()
    assert {name: end["phase"] for name, end in ends["volcano"].items()} == {case.name: case.ends for case in TWENTY}
    for team in TEAMS:
        assert ends[team.name] == ends["volcano"]
    print({name: dict(counts) for name, counts in writes.items()})
    assert writes["ours"].total() <= writes["volcano"].total()
    for part in (CONTROLLERS, SCHEDULER):
        assert writes["ours"][part] <= writes["volcano"][part]
