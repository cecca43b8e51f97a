"""Evictions outlive the scheduler on a real API server: it keeps them in a ConfigMap, and the next process reads it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.core.model import kinds as k
from tests.support.real.audited import Lab, fairlead, laboratory, refused, used_rights
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.control_plane import ControlPlane, free_port
from tests.support.real.roles import CONFIG, OURS, extra_rights, has_node, ours

pytestmark = pytest.mark.kube


async def evict(lab: Lab, number: int) -> None:
    """A pod of low priority goes for one of high priority."""
    await lab.make(k.POD, ours(pod_document(f"low-{number}", cpu="3")))
    await lab.until(k.POD, f"low-{number}", has_node)
    await lab.make_in_time(k.POD, ours(pod_document(f"urgent-{number}", cpu="3"), priorityClassName="high"))
    await lab.until(k.POD, f"urgent-{number}", has_node)


def known(port: int) -> list[tuple[str, str]]:
    """Who was evicted for whom, as the command says it."""
    command = [
        sys.executable,
        "-m",
        "fairlead",
        "evictions",
        "-A",
        "-o",
        "json",
        "--server",
        f"https://127.0.0.1:{port}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return [(one["name"], one["beneficiary"]) for one in json.loads(done.stdout)["items"]] if done.stdout else []


async def test_the_next_process_knows_the_evictions_of_the_one_before(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, accounts=(OURS,), audited=True)
    config, port = tmp_path / "scheduler.yaml", free_port()
    config.write_text(CONFIG)
    async with laboratory(plane) as lab:
        await lab.bind_roles("second", OURS, lease=("default", "fairlead"), extras=("evictions",))
        await lab.make(k.PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 1000})
        flags = (
            "scheduler",
            "--config",
            str(config),
            "--evictions-in",
            "default/evictions",
            "--secure-port",
            str(port),
        )
        with fairlead(lab, OURS, *flags):
            for number in range(2):
                await lab.make(k.NODE, node_document(f"n{number}", cpu="4"))
                await evict(lab, number)
            await lab.until(k.CONFIG_MAP, "evictions", lambda doc: len(doc["data"]) == 2)
        with fairlead(lab, OURS, *flags):

            async def look() -> bool:
                told = await asyncio.to_thread(known, port)
                return told == [("low-1", "default/urgent-1"), ("low-0", "default/urgent-0")]

            await lab.until_true(look, "the evictions of the first process are known")
        assert refused(plane, OURS) == set()
        assert extra_rights("evictions") <= used_rights(plane, OURS)
