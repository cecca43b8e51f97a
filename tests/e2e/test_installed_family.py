"""A family of a third party: installed into an empty directory, its kind, plugin, controller and command all work."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import POD
from fairlead.errors import Invalid
from fairlead.testing.builders import pod
from tests.support.processes.up import Up

EXAMPLE = Path(__file__).parents[2] / "examples" / "family"
POOLS = "/apis/licenses.example.com/v1/licensepools"
LABEL = "licenses.example.com/pool"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, *offline, "--target", str(folder), str(EXAMPLE)], check=True, timeout=120)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])))
        yield folder


def test_a_cluster_serves_schedules_and_controls_an_installed_family(installed: Path, tmp_path: Path) -> None:
    assert {one.name for one in installed.iterdir()} == {"license_seats", "license_seats-1.dist-info"}
    with Up(tmp_path / "here", "--nodes", "2", "--config", str(EXAMPLE / "scheduler.yaml")) as up:
        up.wait_ready()
        asyncio.run(_use(up))
        said = [sys.executable, "-m", "fairlead", "licenses", "--kubeconfig", str(up.kubeconfig)]
        listed = subprocess.run(said, capture_output=True, text=True, check=True, timeout=60)
        assert listed.stdout == "cad: 1 of 1 seats used\n"
        up.signal(signal.SIGINT)
        assert up.wait() == 0, up.errors()


async def _use(up: Up) -> None:
    api = KubeApi(load_kubeconfig(up.kubeconfig))
    try:
        async with asyncio.timeout(120):
            with pytest.raises(Invalid, match="seats"):
                await api.post(POOLS, _pool(seats=-1))
            await api.post(POOLS, _pool(seats=1))
            for name in ("first", "second"):
                wanted = pod(name).labelled(**{LABEL: "cad"}).doc()
                await api.perform(Write(Verb.CREATE, POD, "default", name, wanted))
            placed, waiting = await _one_placed_one_refused(api)
            assert "all 1 seats of license pool cad are taken" in waiting["status"]["conditions"][0]["message"]
            await _until(api, POOLS, lambda pools: _used(pools) == 1)
            await api.perform(Write(Verb.DELETE, POD, "default", placed["metadata"]["name"]))
            await _until(api, POD.path("default", waiting["metadata"]["name"]), _has_node)
            await _until(api, POOLS, lambda pools: _used(pools) == 1)
    finally:
        await api.close()


async def _until(api: KubeApi, path: str, holds: Callable[[Any], bool]) -> Any:
    """What a path of the API says, once that holds."""
    while True:
        said = json.loads(await api.raw(path))
        if holds(said):
            return said
        await asyncio.sleep(0.05)


async def _one_placed_one_refused(api: KubeApi) -> tuple[Any, Any]:
    def decided(pods: Any) -> bool:
        return all(one["status"].get("conditions") for one in pods["items"]) and any(map(_has_node, pods["items"]))

    listed = await _until(api, POD.path("default"), decided)
    placed, waiting = sorted(listed["items"], key=_has_node, reverse=True)
    return placed, waiting


def _has_node(doc: Any) -> bool:
    return bool(doc["spec"].get("nodeName"))


def _used(pools: Any) -> int | None:
    return (pools["items"][0].get("status") or {}).get("used")


def _pool(*, seats: int) -> dict[str, Any]:
    about = {"apiVersion": "licenses.example.com/v1", "kind": "LicensePool", "metadata": {"name": "cad"}}
    return {**about, "spec": {"seats": seats}}


def test_the_help_lists_the_command_of_an_installed_family(installed: Path) -> None:
    shown = subprocess.run([sys.executable, "-m", "fairlead", "--help"], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "  licenses     List pools of licenses."
