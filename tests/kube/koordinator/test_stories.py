"""Koordinator's scheduler and ours, each with a real control plane of its own and the same configuration file: the same
pods run, the same are refused, in the same words. Ours runs with the original's slips, because some are in the words.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import yaml

from fairlead.koordinator.config.preset import KOORDINATOR_PRESET
from tests.support.real.audited import Lab, laboratory
from tests.support.real.control_plane import ControlPlane, define_koordinator_kinds, free_port, real_binary
from tests.support.real.koordinator_stories import STORIES, Cluster, Seen, Story

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=150)]

ARGUMENTS = {
    "ElasticQuota": {"monitorAllQuotas": True, "delayEvictTime": "1s", "revokePodInterval": "1s"},
    "Coscheduling": {"enablePreemption": True},
}


def configuration(kubeconfig: Path) -> str:
    """The profile that Koordinator ships, with Reservation under reserve, job preemption, and quotas that are brought
    back at once. Backoffs are short, so that a story settles soon."""
    document = yaml.safe_load(KOORDINATOR_PRESET)
    document["leaderElection"] = {"leaderElect": False}
    document["clientConnection"] = {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 500}
    document |= {"percentageOfNodesToScore": 100, "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
    profile = document["profiles"][0]
    reserve = profile["plugins"]["reserve"]["enabled"]
    if not any(one["name"] == "Reservation" for one in reserve):
        reserve.insert(0, {"name": "Reservation"})
    for name, arguments in ARGUMENTS.items():
        entry = next((one for one in profile["pluginConfig"] if one["name"] == name), None)
        if entry is None:
            kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{name}Args"}
            entry = {"name": name, "args": kind}
            profile["pluginConfig"].append(entry)
        entry["args"] |= arguments
    return yaml.safe_dump(document)


@contextmanager
def scheduling(command: list[str], plane: ControlPlane) -> Iterator[Path]:
    """A scheduler's process with the configuration; the path is that of its log."""
    config, log = plane.directory / "scheduler.yaml", plane.directory / "scheduler.log"
    config.write_text(configuration(plane.kubeconfig))
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--config", str(config), "--secure-port", str(free_port())],
            stdout=file, stderr=file, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        yield log
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
    finally:
        process.terminate()
        process.wait(30)


QUIET = (2.5, 4.0)
"""Seconds without a change after which a story goes on, from one telling to the next: one that ends differently is told
again, with more time to settle."""
OURS = [sys.executable, "-m", "fairlead", "scheduler", "--koordinator-compatible"]


@asynccontextmanager
async def _at_work(directory: Path, command: list[str]) -> AsyncIterator[Lab]:
    """A control plane with Koordinator's kinds, furnished, and a scheduler that has placed a first pod."""
    await asyncio.to_thread(directory.mkdir)
    async with laboratory(ControlPlane(directory)) as lab:
        await asyncio.to_thread(define_koordinator_kinds, lab.plane.kubeconfig)
        cluster = Cluster(lab, quiet=0.0)
        await cluster.furnish()
        with scheduling(command, lab.plane):
            await cluster.ready()
            yield lab


async def _told(lab: Lab, stories: Sequence[Story], quiet: float) -> list[list[Seen]]:
    """What shows in every story."""
    cluster, outcomes = Cluster(lab, quiet=quiet), []
    for story in stories:
        outcomes.append(await story(cluster))
        await cluster.clear()
    return outcomes


async def test_the_same_pods_run_and_the_same_are_refused(tmp_path: Path) -> None:
    stories: Sequence[Story] = STORIES
    commands = {"theirs": [real_binary("koord-scheduler"), "--port=0"], "ours": OURS}
    async with AsyncExitStack() as opened:
        labs = await asyncio.gather(
            *(opened.enter_async_context(_at_work(tmp_path / name, command)) for name, command in commands.items())
        )
        for quiet in QUIET:
            both = await asyncio.gather(*(_told(lab, stories, quiet) for lab in labs))
            found = [(story, *ends) for story, *ends in zip(stories, *both, strict=True) if ends[0] != ends[1]]
            stories = [story for story, *_ in found]
            if not stories:
                break
    assert {story.__name__: ours for story, _, ours in found} == {story.__name__: theirs for story, theirs, _ in found}
