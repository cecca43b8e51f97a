"""Fresh random clusters with quotas, GPUs and CPU layouts, decided by the real koord-scheduler and then by us: every
decision must agree, and so must what is written on pods.

`make fuzz WHAT=koordinator` makes new ones: FAIRLEAD_FUZZ says how many and FAIRLEAD_FUZZ_SEED where to begin. Without
them the same one is decided every time. What was recorded is kept in build/fuzz/ for `fairlead replay`. A cluster
about which we differ is recorded again, with more time to settle.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.koordinator.replay.forms import KOORDINATOR_FORM
from fairlead.kube.replay.recording import Scenario
from fairlead.kube.replay.replay import DecisionDifference, Report
from tests.support.fuzz.koordinator import make_koordinator_world
from tests.support.fuzz.koordinator_recorder import Doc, KoordinatorRecorder, koordinator_config
from tests.support.fuzz.paths import ROOT
from tests.support.fuzz.worlds import FuzzCluster
from tests.support.real.control_plane import ControlPlane, define_koordinator_kinds, free_port, real_binary
from tests.support.replays import replayed

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=30)]

FAMILIAR = 103
COUNT = int(os.environ.get("FAIRLEAD_FUZZ", "1"))
SETTLE = (0.5, 1.0, 3.0)
"""Seconds, from one try to the next."""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[ControlPlane, Path]]:
    """A control plane with Koordinator's kinds, and the log of the scheduler that works on it."""
    plane, log = ControlPlane(tmp_path), tmp_path / "koord-scheduler.log"
    try:
        plane.start()
        define_koordinator_kinds(plane.kubeconfig)
        config = tmp_path / "scheduler.yaml"
        connection = {"kubeconfig": str(plane.kubeconfig), "qps": 500, "burst": 500}
        config.write_text(yaml.safe_dump({**koordinator_config(), "clientConnection": connection}))
        command = [
            real_binary("koord-scheduler"), "--config", str(config), "--secure-port", str(free_port()), "--port=0",
            "-v=10", "--feature-gates=SchedulerPopFromBackoffQ=false",
        ]  # fmt: skip
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        try:
            yield plane, log
        finally:
            process.terminate()
            process.wait(30)
    finally:
        plane.stop()


async def test_the_real_koord_scheduler_decides_fresh_clusters_as_we_do(log: tuple[ControlPlane, Path]) -> None:
    fresh = secrets.randbelow(10**6) if "FAIRLEAD_FUZZ" in os.environ else FAMILIAR
    seed = int(os.environ.get("FAIRLEAD_FUZZ_SEED") or fresh)
    file = ROOT / "build" / "fuzz" / f"koordinator-{seed}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    api, report = KubeApi(load_kubeconfig(log[0].kubeconfig)), Report()
    recorder = KoordinatorRecorder(api, log[1], koordinator_config())
    try:
        await recorder.prepare()
        with file.open("wb") as lines:
            for world in map(make_koordinator_world, range(seed, seed + COUNT)):
                recorded, found = await compared(recorder, world)
                lines.write(orjson.dumps(recorded) + b"\n")
                for differences in found:
                    report.add(world.family, differences)
    finally:
        await api.close()
    assert report.total >= 5 * COUNT
    assert report.differences == [], f"{report.agree} of {report.total} decisions of {file} agree"


async def compared(recorder: KoordinatorRecorder, world: FuzzCluster) -> tuple[Doc, list[list[DecisionDifference]]]:
    """A cluster as it was recorded, and for each decision in what we differ."""
    for settle in SETTLE:
        recorded = await recorder.record(world, settle=settle)
        scenario = Scenario(f"seed {world.seed}", 1, KOORDINATOR_FORM, world.seed, world.family, recorded)
        found = list(replayed(scenario))
        if not any(found):
            break
    return recorded, found
