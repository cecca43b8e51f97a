"""kubeadm's static pod of kube-scheduler, changed as docs/real-cluster.md says, with the probes that kubeadm wrote."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model import kinds as k
from tests.support.real.audited import Lab
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.control_plane import ControlPlane, real_binary
from tests.support.real.image_root import HOUSE, Pod, run_steps

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=40)]

PAGE = HOUSE / "docs" / "real-cluster.md"
USER = "system:kube-scheduler"
PROBE = """
import ssl, sys, urllib.error, urllib.request
context = ssl._create_unverified_context()  # a kubelet does not verify either
try:
    with urllib.request.urlopen(sys.argv[1], timeout=float(sys.argv[2]), context=context) as answer:
        print(answer.status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError as error:
    print(error)
"""


def written_by_kubeadm(root: Path) -> dict[str, Any]:
    """The static pod of kube-scheduler, as `kubeadm init` makes it on a new control-plane node."""
    (root / "etc").mkdir(parents=True)
    (root / "tmp").mkdir()
    shutil.copy("/etc/hosts", root / "etc" / "hosts")
    words = ["init", "phase", "control-plane", "scheduler", f"--rootfs={root}"]
    done = subprocess.run([real_binary("kubeadm"), *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load((root / "etc/kubernetes/manifests/kube-scheduler.yaml").read_text())
    return found


def as_the_page_says(manifest: dict[str, Any]) -> dict[str, Any]:
    """The spec with the fields replaced that the page replaces."""
    text = PAGE.read_text()
    (command,) = re.findall(r"^\[(/opt/fairlead/bin/fairlead, scheduler, .*)\]$", text, re.MULTILINE)
    assert "`runAsUser: 0` and `runAsGroup: 0`" in text
    spec: dict[str, Any] = manifest["spec"]
    spec["containers"][0] |= {"image": "fairlead", "command": command.split(", ")}
    spec["securityContext"] |= {"runAsUser": 0, "runAsGroup": 0}
    return spec


def probed(pod: Pod, probe: dict[str, Any], ports: dict[str, int]) -> str:
    """What a kubelet gets from one probe."""
    get = probe["httpGet"]
    url = f"{get['scheme'].lower()}://{get['host']}:{ports.get(get['port'], get['port'])}{get['path']}"
    return pod.inside("python3", "-c", PROBE, url, str(probe["timeoutSeconds"])).stdout.strip()


def until_it_passes(pod: Pod, probe: dict[str, Any], ports: dict[str, int]) -> None:
    """As often as a kubelet tries before it gives up; it may not end meanwhile."""
    ends = time.monotonic() + probe.get("initialDelaySeconds", 0) + probe["failureThreshold"] * probe["periodSeconds"]
    while (said := probed(pod, probe, ports)) != "200":
        assert pod.process.poll() is None, pod.log.read_text()
        assert time.monotonic() < ends, f"{probe}: {said}"
        time.sleep(0.2)


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    made = ControlPlane(tmp_path, accounts=(USER,))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def with_own_authority(plane: ControlPlane) -> str:
    """kubeadm's scheduler.conf: everything is in the file."""
    config = json.loads(plane.kubeconfig_of(USER).read_text())
    cluster = {**config["clusters"][0]["cluster"]}
    cluster.pop("certificate-authority")
    cluster["certificate-authority-data"] = base64.b64encode(plane.ca.encode()).decode()
    config["clusters"][0]["cluster"] = cluster
    return json.dumps(config)


async def test_the_static_pod_that_kubeadm_writes_runs_fairlead_as_the_page_says(
    plane: ControlPlane, tmp_path: Path
) -> None:
    manifest = await asyncio.to_thread(written_by_kubeadm, tmp_path / "node")
    spec = as_the_page_says(manifest)
    (container,) = spec["containers"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == {"/etc/kubernetes/scheduler.conf"}, "kubeadm mounts nothing else"
    image = await asyncio.to_thread(run_steps, HOUSE / "deploy" / "Dockerfile", tmp_path / "image")
    files = {"etc/kubernetes": {"scheduler.conf": with_own_authority(plane)}}
    pod = Pod(image, spec, tmp_path / "pod", files, plane.server, secrets=["scheduler.conf"])
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            await asyncio.to_thread(until_it_passes, pod, container[probe], ports)
        lab = Lab(plane, api)
        await lab.make(k.NODE, node_document("n0"))
        await lab.make(k.POD, pod_document("plain", cpu="1m"))
        await lab.until(k.POD, "plain", lambda doc: doc["spec"].get("nodeName"))
        closed = {
            **container["readinessProbe"],
            "httpGet": {**container["readinessProbe"]["httpGet"], "path": "/metrics"},
        }
        assert probed(pod, closed, ports) == "403", "nothing but health without a token"
        lease = await api.get(k.LEASE, "kube-system", "kube-scheduler")
        assert "BEGIN CERTIFICATE" in lease["metadata"]["annotations"]["fairlead.io/port"]
    except AssertionError as error:
        raise AssertionError(f"{error}\n{pod.log.read_text()[-3000:]}") from None
    finally:
        pod.kill()
        await api.close()
