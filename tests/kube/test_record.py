"""`fairlead record` beside the real kube-scheduler: its bindings and refusals are written down, and replay as ours."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.testing.builders import node, pod
from tests.support.real.control_plane import ControlPlane

pytestmark = pytest.mark.kube

PODS = {"first": "1", "second": "2", "third": "1", "huge": "999"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    plane = ControlPlane(tmp_path_factory.mktemp("record"))
    try:
        plane.start()
        plane.start_scheduler()
        yield plane
    finally:
        plane.stop()


async def begun(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    async with asyncio.timeout(180):
        assert (await process.stderr.readline()).startswith(b"recording in")


async def decided(api: KubeApi, name: str) -> None:
    async with asyncio.timeout(180):
        while True:
            found = await api.get(kinds.POD, "default", name)
            if found["spec"].get("nodeName") or found["status"].get("conditions"):
                return
            await asyncio.sleep(0.1)


async def test_what_kube_scheduler_decides_is_recorded_and_replays(plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl"
    command = [sys.executable, "-m", "fairlead", "record", str(file), "--kubeconfig", str(plane.kubeconfig)]
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    process = await asyncio.create_subprocess_exec(
        *command, "--count", str(len(PODS)), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        for number in range(3):
            doc = node(f"n{number}").doc()
            await api.perform(Write(Verb.CREATE, kinds.NODE, "", doc["metadata"]["name"], doc))
        await begun(process)
        for name, cpu in PODS.items():
            await api.perform(Write(Verb.CREATE, kinds.POD, "default", name, pod(name).asks(cpu=cpu).doc()))
            await decided(api, name)
        async with asyncio.timeout(180):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
        await api.close()
    assert said.decode().startswith(f"recorded {len(PODS)} decisions in {file}")
    replayed = CliRunner().invoke(cli, ["replay", str(file), "-o", "json"])
    report = json.loads(replayed.output)
    assert (report["total"], report["differences"]) == (len(PODS), [])
