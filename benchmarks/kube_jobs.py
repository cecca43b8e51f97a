"""`make bench-kube-jobs`: the writes that Volcano's controllers and scheduler, and ours, need for the same Jobs.

One Job of many pods and many Jobs of one pod, from submission to Running, on the real API server, with simulated nodes
whose kubelets are ours for both. The server's audit log says who wrote what; Events and the status of the queue count
like every other write. The command fails if ours write more for a pod than Volcano's do.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from fairlead.client.port import Query
from fairlead.core.model.kinds import EVENT_V1
from fairlead.volcano.kinds import VC_JOB
from tests.support.job_cases import FOR_EVER, Case, spec, task
from tests.support.real.contenders import create, make_namespace
from tests.support.real.control_plane import ControlPlane
from tests.support.real.job_teams import CONTROLLERS, SCHEDULER, TEAMS, USERS, Team, at_work, furnished

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi

PARTS = (CONTROLLERS, SCHEDULER)
PATIENCE = 1200.0
SETTLING = 3.0
"""Seconds in which Jobs that run are still written to."""
COMPARED = tuple(team for team in TEAMS if team.our_controllers == team.our_scheduler)


class Story(NamedTuple):
    name: str
    jobs: int
    pods: int

    def cases(self) -> list[Case]:
        return [Case(f"job-{index}", spec(task("t", self.pods, run=FOR_EVER)), "Running") for index in range(self.jobs)]


Written = dict[str, dict[str, Counter[str]]]
"""By story and team: how many writes of which part to which kind."""


async def count_writes(directory: Path, stories: list[Story], nodes: int) -> Written:
    """Run every story with both teams, one after the other, each on a control plane of its own."""
    found: Written = {story.name: {} for story in stories}
    for team in COMPARED:
        for story in stories:
            place = directory / f"{story.name}-{team.name}"
            place.mkdir()
            found[story.name][team.name] = await _played(place, team, story, nodes)
    return found


async def _played(directory: Path, team: Team, story: Story, nodes: int) -> Counter[str]:
    plane = ControlPlane(directory, users=USERS)
    try:
        await asyncio.to_thread(plane.start)
        async with furnished(plane, nodes) as api:
            with at_work(team, plane):
                await make_namespace(api, "stories")
                cases = [case.document("stories") for case in story.cases()]
                await create(api, VC_JOB, "stories", cases)
                async with asyncio.timeout(PATIENCE):
                    await _all_run(api, story)
                await asyncio.sleep(SETTLING)
            return _writes(plane.audit_log) + await _events(api)
    finally:
        await asyncio.to_thread(plane.stop)


async def _all_run(api: KubeApi, story: Story) -> None:
    while True:
        jobs = (await api.list(VC_JOB, Query(namespace="stories"))).items
        if sum((job.get("status") or {}).get("running", 0) for job in jobs) == story.jobs * story.pods:
            return
        await asyncio.sleep(1)


def _writes(audit_log: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in audit_log.read_text().splitlines():
        entry = json.loads(line)
        about, user = entry.get("objectRef") or {}, entry["user"]["username"]
        if user in PARTS and about.get("resource") != "leases":
            found[user] += 1
            inner = f"/{about['subresource']}" if about.get("subresource") else ""
            found[f"{user} {entry['verb']} {about.get('resource')}{inner}"] += 1
    return found


async def _events(api: KubeApi) -> Counter[str]:
    """How many Events of each reason there are, and how often they were emitted."""
    found: Counter[str] = Counter()
    for event in (await api.list(EVENT_V1, Query(namespace="stories"))).items:
        about = f"Event {event['regarding']['kind']} {event.get('reason')}"
        found[about] += 1
        series = event.get("series") or {}
        found[f"{about}, told"] += series.get("count") or event.get("deprecatedCount") or 1
    return found


def total(counts: Counter[str]) -> int:
    return sum(counts[part] for part in PARTS)


@click.command()
@click.option("--pods", default=1000, show_default=True, help="Of the one Job, and Jobs of one pod.")
@click.option("--nodes", default=1000, show_default=True)
@click.option("--details", is_flag=True, help="Also by part, verb and resource.")
def main(pods: int, nodes: int, details: bool) -> None:
    """Count the writes of Volcano's controllers and scheduler, and of ours, for the same Jobs."""
    stories = [Story(f"1x{pods}", 1, pods), Story(f"{pods}x1", pods, 1)]
    with tempfile.TemporaryDirectory(prefix="fairlead-jobs-") as name:
        found = asyncio.run(count_writes(Path(name), stories, nodes))
    above = []
    for story in stories:
        for team, counts in found[story.name].items():
            parts = ", ".join(f"{part} {counts[part] / pods:.2f}" for part in PARTS)
            click.echo(f"{story.name} {team}: {total(counts) / pods:.2f} writes a pod ({parts})")
            for what, count in sorted(counts.items()) if details else ():
                click.echo(f"  {what}: {count}")
        if total(found[story.name]["ours"]) > total(found[story.name]["volcano"]):
            above.append(story.name)
    if above:
        raise click.ClickException(f"ours write more: {', '.join(above)}")


if __name__ == "__main__":
    main()
