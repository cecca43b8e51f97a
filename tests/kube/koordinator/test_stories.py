"""Koordinator's scheduler and ours, each with a real control plane of its own and the same configuration file: the same
pods run, the same are refused, in the same words. Ours runs with the original's slips, because some are in the words.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.koordinator.config.preset import KOORDINATOR_PRESET
from tests.kube.audited import laboratory
from tests.kube.control_plane import ControlPlane, define_koordinator_kinds, free_port, real_binary
from tests.kube.koordinator_stories import STORIES, Cluster

pytestmark = pytest.mark.kube

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


async def _told_under(directory: Path, command: list[str]) -> dict[str, Any]:
    await asyncio.to_thread(directory.mkdir)
    outcomes: dict[str, Any] = {}
    async with laboratory(ControlPlane(directory)) as lab:
        await asyncio.to_thread(define_koordinator_kinds, lab.plane.kubeconfig)
        cluster = Cluster(lab)
        await cluster.furnish()
        with scheduling(command, lab.plane):
            await cluster.ready()
            for story in STORIES:
                outcomes[story.__name__] = await story(cluster)
                await cluster.clear()
    return outcomes


async def test_the_same_pods_run_and_the_same_are_refused(tmp_path: Path) -> None:
    theirs, ours = await asyncio.gather(
        _told_under(tmp_path / "theirs", [real_binary("koord-scheduler")]),
        _told_under(tmp_path / "ours", [sys.executable, "-m", "fairlead", "scheduler", "--koordinator-compatible"]),
    )
    assert ours == theirs
