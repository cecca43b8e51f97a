"""One version of Kubernetes: a second scheduler places plain pods, pods with volumes and pods with devices on it.

`make test-matrix` runs this for every version of tools/real/matrix; FAIRLEAD_MATRIX names the API server's binary.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from fairlead.core.model import kinds as k
from fairlead.errors import NotFound
from tests.support.claims import claim, device_class, devices, gpus
from tests.support.claims import pod as claiming_pod
from tests.support.real.audited import fairlead, laboratory, refused
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.control_plane import ControlPlane
from tests.support.real.roles import CONFIG, OURS, has_node, ours, volumes_are_chosen

pytestmark = pytest.mark.kube


async def test_a_second_scheduler_works_on_this_version(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, accounts=(OURS,), audited=True, suffix=os.environ.get("FAIRLEAD_MATRIX", "-next"))
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG)
    async with laboratory(plane) as lab:
        await lab.bind_roles("second", OURS, lease=("default", "fairlead"))
        with fairlead(lab, OURS, "scheduler", "--config", str(config), "--secure-port", "0"):
            for name in ("n0", "n1"):
                await lab.make(k.NODE, node_document(name))
            await asyncio.gather(*(lab.make(k.POD, ours(pod_document(f"p-{at}", cpu="1m"))) for at in range(20)))
            for at in range(20):
                await lab.until(k.POD, f"p-{at}", has_node)
            await volumes_are_chosen(lab)
            try:
                await lab.make(k.DEVICE_CLASS, device_class())
            except NotFound:
                pytest.fail("this server does not serve resource.k8s.io/v1")
            await lab.make(k.RESOURCE_SLICE, gpus("n0", 2))
            await lab.make(k.RESOURCE_CLAIM, claim("one", devices()))
            await lab.make(k.POD, ours(claiming_pod("devices", shared="one")))
            await lab.until(k.POD, "devices", has_node)
        assert refused(plane, OURS) == set()
