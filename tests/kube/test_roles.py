"""Roles grant what is used and nothing else: the API server's audit log, right by right, for every way of running."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli.roles.documents import bindings
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import Verb, Write
from fairlead.errors import Invalid
from tests.support.processes.scheduler_process import GANG_GATES
from tests.support.real.audited import Lab, fairlead, laboratory, refused, used_rights
from tests.support.real.control_plane import ControlPlane, define_volcano_kinds, free_port
from tests.support.real.roles import CHECKED_WITHIN, CONFIG, OURS, all_that_schedulers_do

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=50)]

LESSER, READER = "lesser", "reader"
LEASES = ("coordination.k8s.io", "leases", "get")


async def only_binders_may_allocate(lab: Lab) -> None:
    """The right that the log does not name is one that a status with an allocation cannot be written without."""
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["patch"]}]
    role = {"apiVersion": k.CLUSTER_ROLE.api_version, "kind": "ClusterRole", "metadata": {"name": "lesser"}}
    await lab.make(k.CLUSTER_ROLE, {**role, "rules": rules})
    (bound,) = bindings([role], {"kind": "User", "name": LESSER, "apiGroup": k.CLUSTER_ROLE.group})
    await lab.make(k.CLUSTER_ROLE_BINDING, bound)
    api = KubeApi(load_kubeconfig(lab.plane.kubeconfig_of(LESSER)))
    try:
        body = {"status": {"reservedFor": []}}
        with pytest.raises(Invalid, match="resourceclaims/binding"):
            await api.perform(Write(Verb.PATCH, k.RESOURCE_CLAIM, "default", "one", body, subresource="status"))
    finally:
        await api.close()


async def test_a_second_scheduler_uses_all_that_it_may_and_nothing_else(tmp_path: Path) -> None:
    plane = ControlPlane(
        tmp_path,
        gates=f"{GANG_GATES},DRAExtendedResource=true",
        runtime_config="scheduling.k8s.io/v1alpha2=true",
        accounts=(OURS, LESSER),
        audited=True,
    )
    config, port = tmp_path / "scheduler.yaml", free_port()
    config.write_text(CONFIG)
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        await lab.define(k.X_POD_GROUP)
        granted = await lab.bind_roles("second", OURS, lease=("default", "fairlead"))
        flags = ("--bind-address", "0.0.0.0", "--secure-port", str(port), "--feature-gates", GANG_GATES)
        with fairlead(lab, OURS, "scheduler", "--config", str(config), *flags) as log:
            await all_that_schedulers_do(lab, port)
        assert refused(plane, OURS) == set()
        assert "this account may do all that is needed" in log.read_text()
        await only_binders_may_allocate(lab)
        assert used_rights(plane, OURS) | CHECKED_WITHIN == granted


async def test_a_reader_uses_all_that_it_may_and_writes_nothing(tmp_path: Path) -> None:
    """`snapshot save` and `record` read everything that the commands that only look read."""
    plane = ControlPlane(
        tmp_path, gates=GANG_GATES, runtime_config="scheduling.k8s.io/v1alpha2=true", accounts=(READER,), audited=True
    )
    async with laboratory(plane) as lab:
        await asyncio.to_thread(define_volcano_kinds, lab.plane.kubeconfig)
        await lab.define(k.X_POD_GROUP)
        granted = await lab.bind_roles("reader", READER, lease=("default", "fairlead"))
        assert {right for right in granted if right[2] not in ("list", "watch")} == {LEASES}
        with (
            fairlead(lab, READER, "snapshot", "save", str(tmp_path / "cluster.yaml")),
            fairlead(lab, READER, "record", str(tmp_path / "decisions")),
        ):
            await lab.until_used(READER, *(right for right in granted if right[2] == "list"))
            command = [sys.executable, "-m", "fairlead", "status", "--kubeconfig", str(plane.kubeconfig_of(READER))]
            await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=60, check=False)
            await lab.until_used(READER, LEASES)  # it looks for the leader, whoever that is
            await asyncio.sleep(3)  # watches follow the lists, and the log has them when they end
        assert refused(plane, READER) == set()
        assert used_rights(plane, READER) == granted
