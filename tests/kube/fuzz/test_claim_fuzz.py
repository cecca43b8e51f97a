"""Fresh random devices and claims, decided by the real kube-scheduler and then by us: every decision must agree, and so
must every allocation.

As in test_fuzz.py; a run makes twice as many worlds as are asked for there, because these are small.
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
from tests.support.fuzz.claim_recorder import ClaimRecorder, Doc
from tests.support.fuzz.claims import CLAIM_FAMILIES, make_claim_world
from tests.support.fuzz.paths import CONFIG, ROOT
from tests.support.fuzz.worlds import FuzzCluster
from tests.support.real.control_plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=30)]

FAMILIAR = 771118
COUNT = 2 * int(os.environ.get("FAIRLEAD_FUZZ", "6"))
TRIES = ((0.4, 0.2), (1.0, 0.6), (3.0, 1.5))
"""Seconds to settle before the first decision and after each, from one try to the next."""
PROFILES = profiles_of(read_config(CONFIG), compatible=True)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own, with the scheduler that talks and the controller of claims."""
    plane = ControlPlane(tmp_path_factory.mktemp("claim-fuzz"))
    try:
        plane.start()
        config = plane.directory / "scheduler.yaml"
        text = f"{CONFIG.read_text()}clientConnection: {{kubeconfig: {plane.kubeconfig}, qps: 500, burst: 500}}\n"
        config.write_text(text)
        plane.start_scheduler("--config", str(config), "-v=10")
        plane.start_controllers("--controllers=resourceclaim-controller", "--kube-api-qps=500", "--kube-api-burst=500")
        yield plane
    finally:
        plane.stop()


async def test_the_real_kube_scheduler_allocates_claims_as_we_do(plane: ControlPlane) -> None:
    fresh = secrets.randbelow(10**6) if "FAIRLEAD_FUZZ" in os.environ else FAMILIAR
    seed = int(os.environ.get("FAIRLEAD_FUZZ_SEED") or fresh)
    file = ROOT / "build" / "fuzz" / f"claims-{seed}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    recorder = ClaimRecorder(api, plane.directory / "kube-scheduler.log")
    report = Report()
    try:
        await recorder.prepare()
        with file.open("wb") as lines:
            for number in range(COUNT):
                world = make_claim_world(seed + number, CLAIM_FAMILIES[number % len(CLAIM_FAMILIES)])
                recorded, found = await compared(recorder, world)
                lines.write(orjson.dumps(recorded) + b"\n")
                for differences in found:
                    report.add(world.family, differences)
    finally:
        await api.close()
    assert report.total >= COUNT
    assert report.differences == [], f"{report.agree} of {report.total} decisions of {file} agree"


async def compared(recorder: ClaimRecorder, world: FuzzCluster) -> tuple[Doc, list[list[DecisionDifference]]]:
    """A cluster as it was recorded, and for each decision in what we differ."""
    for settle, pause in TRIES:
        recorder.pause = pause
        recorded = await recorder.record(world, settle=settle)
        scenario = Scenario(f"seed {world.seed}", 1, KUBE_FORM, world.seed, world.family, recorded)
        found = list(KubeReplay(scenario, PROFILES).decisions())
        if not any(found):
            break
    return recorded, found
