"""Fresh random clusters, decided by the real kube-scheduler and then by us: every decision must agree.

`make fuzz` makes new ones: FAIRLEAD_FUZZ says how many and FAIRLEAD_FUZZ_SEED where to begin (`make fuzz N=300
SEED=7`). Without them the same ones are made each time, so that a change fails for what it changes. What was recorded
is kept in build/fuzz/, so that a difference can be looked at with `fairlead replay`. A cluster about which we differ is
recorded again, with more time to settle: what the scheduler had not heard of yet is no difference, and a real one shows
every time.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import orjson
import pytest

from fairlead.assembly.assemble import profiles_of
from fairlead.assembly.loading import read_config
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.kube.replay.forms import KUBE_FORM
from fairlead.kube.replay.recording import Scenario
from fairlead.kube.replay.replay import DecisionDifference, KubeReplay, Report
from tests.support.fuzz.paths import CONFIG, ROOT
from tests.support.fuzz.recorder import Doc, Recorder
from tests.support.fuzz.worlds import FAMILIES, FuzzCluster, make_world
from tests.support.real.control_plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=40)]

FAMILIAR = 771118
COUNT = int(os.environ.get("FAIRLEAD_FUZZ", "30"))
SETTLE = (0.4, 1.0, 3.0)
"""Seconds, from one try to the next."""
PROFILES = profiles_of(read_config(CONFIG))


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own, with the scheduler that talks and the controller that binds volumes."""
    plane = ControlPlane(tmp_path_factory.mktemp("fuzz"))
    try:
        plane.start()
        config = plane.directory / "scheduler.yaml"
        text = f"{CONFIG.read_text()}clientConnection: {{kubeconfig: {plane.kubeconfig}, qps: 500, burst: 500}}\n"
        config.write_text(text)
        plane.start_scheduler("--config", str(config), "-v=10")
        plane.start_controllers("--controllers=persistentvolume-binder-controller")
        yield plane
    finally:
        plane.stop()


async def test_the_real_kube_scheduler_decides_fresh_clusters_as_we_do(plane: ControlPlane) -> None:
    fresh = secrets.randbelow(10**6) if "FAIRLEAD_FUZZ" in os.environ else FAMILIAR
    seed = int(os.environ.get("FAIRLEAD_FUZZ_SEED") or fresh)
    file = ROOT / "build" / "fuzz" / f"seed-{seed}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    recorder = Recorder(api, plane.directory / "kube-scheduler.log")
    report = Report()
    try:
        await recorder.prepare()
        with file.open("wb") as lines:
            for number in range(COUNT):
                world = make_world(seed + number, FAMILIES[number % len(FAMILIES)])
                recorded, found = await compared(recorder, world)
                lines.write(orjson.dumps(recorded) + b"\n")
                for differences in found:
                    report.add(world.family, differences)
    finally:
        await api.close()
    assert report.total >= COUNT
    assert report.differences == [], f"{report.agree} of {report.total} decisions of {file} agree"


async def compared(recorder: Recorder, world: FuzzCluster) -> tuple[Doc, list[list[DecisionDifference]]]:
    """A cluster as it was recorded, and for each decision in what we differ."""
    for settle in SETTLE:
        recorded = await recorder.record(world, settle=settle)
        scenario = Scenario(f"seed {world.seed}", 1, KUBE_FORM, world.seed, world.family, recorded)
        found = list(KubeReplay(scenario, PROFILES).decisions())
        if not any(found):
            break
    return recorded, found
