"""The chart, the manifests and the image as an operator uses them, on a real API server and with the real Helm."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model import kinds as k
from fairlead.core.model.kinds import Kind
from fairlead.errors import NotFound
from tests.support.real.audited import Lab
from tests.support.real.contenders import node_document, pod_document
from tests.support.real.control_plane import ControlPlane, real_binary
from tests.support.real.image_root import ACCOUNT, HOUSE, Image, Pod, run_steps

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=90)]

CHART, SPACE = HOUSE / "deploy" / "chart", "fairlead-system"
MONITORING = [
    Kind("monitoring.coreos.com", "v1", kind, f"{kind.lower()}s")
    for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule")
]
EVERYTHING = (
    "serviceMonitor.enabled=true,podMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,"
    "rbac.extra={owners,cards,replacing}"
)
TRANSIENT = ("events", "endpoints", "endpointslices", "componentstatuses", "bindings")


@asynccontextmanager
async def lab_on(plane: ControlPlane) -> AsyncIterator[Lab]:
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        yield Lab(plane, api)
    finally:
        await api.close()


def helm(lab: Lab, *words: str) -> str:
    command = [real_binary("helm"), "--kubeconfig", str(lab.plane.kubeconfig), "--namespace", SPACE, *words]
    home = str(lab.plane.directory)
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, env={"HOME": home})
    assert done.returncode == 0, done.stderr
    return done.stdout


def everything(lab: Lab) -> set[str]:
    """The names of all objects of all kinds."""
    kinds = lab.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    wanted = [kind for kind in kinds if kind.partition(".")[0] not in TRANSIENT]
    return set(lab.kubectl("get", ",".join(wanted), "--all-namespaces", "-o", "name", "--ignore-not-found").split())


async def test_every_object_is_accepted_and_nothing_is_left_behind(control_plane: ControlPlane) -> None:
    async with lab_on(control_plane) as lab:
        await lab.define(*MONITORING)
        await lab.make(k.NAMESPACE, {"metadata": {"name": SPACE}})
        before = await asyncio.to_thread(everything, lab)
        for mode in ("second", "default", "both", "volcano", "shards", "koordinator"):
            sets = ("--set", f"mode={mode},{EVERYTHING}")
            printed = helm(lab, "template", "trial", str(CHART), "--kube-version", "1.36.0", *sets)
            objects = lab.plane.directory / f"{mode}.yaml"
            objects.write_text(printed)
            lab.kubectl("apply", "--dry-run=server", "-f", str(objects))
            maps = [doc for doc in yaml.safe_load_all(printed) if doc and doc["kind"] == "ConfigMap"]
            (config,) = (doc["data"]["scheduler.yaml"] for doc in maps if "scheduler.yaml" in doc["data"])
            assert SchedulerAssembly().load(config, file=mode).profiles[0].scheduler_name
        one_file = HOUSE / "deploy" / "fairlead.yaml"
        lab.kubectl("apply", "--dry-run=server", "-f", str(one_file))
        base = list(yaml.safe_load_all(lab.kubectl("kustomize", str(HOUSE / "deploy" / "kustomize" / "base"))))
        key = lambda doc: (doc["kind"], doc["metadata"]["name"])  # noqa: E731
        assert sorted(base, key=key) == sorted(yaml.safe_load_all(one_file.read_text()), key=key)
        helm(lab, "install", "fairlead", str(CHART))
        installed = await asyncio.to_thread(everything, lab)
        assert {"deployment.apps/fairlead", "lease.coordination.k8s.io/fairlead"} <= installed
        helm(lab, "upgrade", "fairlead", str(CHART), "--set", f"replicaCount=3,verbosity=2,{EVERYTHING}")
        assert "configmap/fairlead-dashboard" in await asyncio.to_thread(everything, lab)
        helm(lab, "rollback", "fairlead", "1")
        assert {name for name in await asyncio.to_thread(everything, lab) if "helm.release" not in name} == {
            name for name in installed if "helm.release" not in name
        }
        helm(lab, "uninstall", "fairlead")
        assert await asyncio.to_thread(everything, lab) == before
        await lab.delete(k.NAMESPACE, SPACE)
        for kind in MONITORING:
            await lab.delete(k.CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{kind.group}")


def test_the_manifests_are_those_of_the_chart() -> None:
    command = [str(HOUSE / "tools" / "deploy" / "generate.py"), "--check"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


async def replica(lab: Lab, image: Image, number: int) -> Pod:
    """A pod of the installed Deployment, with the files that a kubelet would mount."""
    workload = await lab.api.get(k.DEPLOYMENT, SPACE, "fairlead")
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}" == image.user
    config = await lab.api.get(k.CONFIG_MAP, SPACE, spec["volumes"][0]["configMap"]["name"])
    token = lab.kubectl("create", "token", spec["serviceAccountName"], "-n", SPACE)
    account = {"token": token.strip(), "ca.crt": lab.plane.ca, "namespace": SPACE}
    files = {mounts["config"]: config["data"], ACCOUNT: account}
    return Pod(image, spec, lab.plane.directory / f"pod-{number}", files, lab.plane.server)


def has_node(doc: dict[str, Any]) -> bool:
    return bool(doc["spec"].get("nodeName"))


def ours(name: str) -> dict[str, Any]:
    pod = pod_document(name, cpu="1m")
    pod["spec"]["schedulerName"] = "fairlead"
    return pod


LOOK = """
import json, os, sys, urllib.request, ssl
context = ssl._create_unverified_context()
def get(path):
    token = {"Authorization": "Bearer " + sys.argv[1]}
    request = urllib.request.Request("https://127.0.0.1:10259" + path, headers=token)
    with urllib.request.urlopen(request, timeout=20, context=context) as answer:
        return answer.read().decode()
print(json.dumps({"ready": get("/readyz"), "metrics": get("/metrics")}))
"""


async def test_pods_of_the_chart_place_pods_and_a_standby_takes_over(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path)
    image = await asyncio.to_thread(run_steps, HOUSE / "deploy" / "Dockerfile", tmp_path / "image")
    assert image.user == "65532:65532"
    pods: list[Pod] = []
    try:
        await asyncio.to_thread(plane.start)
        async with lab_on(plane) as lab:
            await lab.make(k.NAMESPACE, {"metadata": {"name": SPACE}})
            helm(lab, "install", "fairlead", str(CHART))
            await lab.make(k.NODE, node_document("n0"))
            pods.append(await replica(lab, image, 0))
            await lab.make(k.POD, ours("first"))
            try:
                await lab.until(k.POD, "first", has_node)
                pods.append(await replica(lab, image, 1))
                look = ["python3", "-c", LOOK, plane.token]

                async def ready() -> bool:
                    return pods[1].inside(*look).returncode == 0

                await lab.until_true(ready, "the standby is ready")
                seen = json.loads(pods[0].inside(*look).stdout)
                status = _process_status(pods[0])
                pods[0].kill()
                await lab.make(k.POD, ours("second"))
                await lab.until(k.POD, "second", has_node)
            except AssertionError as error:
                raise AssertionError("\n".join([str(error), *(pod.log.read_text()[-2500:] for pod in pods)])) from None
    finally:
        for pod in pods:
            pod.kill()
        await asyncio.to_thread(plane.stop)
    assert seen["ready"] == "ok"
    assert 'leader_election_master_status{name="fairlead"} 1.0' in seen["metrics"]
    lines = dict(line.split(":", 1) for line in status.splitlines())
    assert set(lines["Uid"].split()) == set(lines["Gid"].split()) == {"65532"}
    assert int(lines["CapEff"], 16) == int(lines["CapPrm"], 16) == 0
    logs = "".join(pod.log.read_text() for pod in pods)
    assert "this account may do all that is needed" in logs
    assert "Read-only" not in logs


def _process_status(pod: Pod) -> str:
    """What the kernel says of the process of fairlead, which is the first of the pod's own."""
    children = Path(f"/proc/{pod.process.pid}/task/{pod.process.pid}/children").read_text().split()
    return Path(f"/proc/{children[0]}/status").read_text()


async def test_a_change_of_mode_leaves_no_moment_in_which_two_serve_one_name(tmp_path: Path) -> None:
    """From beside kube-scheduler into its place, with replicas of both modes alive, as a rollout has them."""
    plane = ControlPlane(tmp_path)
    image = await asyncio.to_thread(run_steps, HOUSE / "deploy" / "Dockerfile", tmp_path / "image")
    pods: list[Pod] = []
    try:
        await asyncio.to_thread(plane.start)
        async with lab_on(plane) as lab:
            await lab.make(k.NAMESPACE, {"metadata": {"name": SPACE}})
            await lab.make(k.NODE, node_document("n0"))
            helm(lab, "install", "fairlead", str(CHART))
            before = await lab.api.get(k.DEPLOYMENT, SPACE, "fairlead")
            pods += [await replica(lab, image, number) for number in (0, 1)]
            await lab.make(k.POD, ours("first"))
            try:
                await lab.until(k.POD, "first", has_node)
                own = await holder(lab, SPACE, "fairlead")
                helm(lab, "upgrade", "fairlead", str(CHART), "--set", "mode=default")
                after = await lab.api.get(k.DEPLOYMENT, SPACE, "fairlead")
                assert _at_start(before) != _at_start(after), "another mode makes new pods"
                pods.append(await replica(lab, image, 2))
                await lab.make(k.POD, ours("second"))
                await lab.until(k.POD, "second", has_node)
                await lab.until_true(lambda: _says(pods[2], "this account may do all"), "the new replica runs")
                assert await holder(lab, SPACE, "fairlead") == own, "the old one leads until it ends"
                assert not await holder(lab, "kube-system", "kube-scheduler"), "and the new one waits for it"
                config = await lab.api.get(k.CONFIG_MAP, SPACE, "fairlead")
                for number in (0, 1):  # as a kubelet brings the new ConfigMap into the pods that are still there
                    (tmp_path / f"pod-{number}" / "volume-0" / "scheduler.yaml").write_text(
                        config["data"]["scheduler.yaml"]
                    )
                await lab.until_true(lambda: _ended(pods[:2]), "both old replicas end by themselves")
                plain = pod_document("plain", cpu="1m")
                await lab.make(k.POD, plain)
                await lab.make(k.POD, ours("third"))
                for name in ("plain", "third"):
                    await lab.until(k.POD, name, has_node)
                both = {await holder(lab, SPACE, "fairlead"), await holder(lab, "kube-system", "kube-scheduler")}
                assert len(both) == 1, "one process holds both leases"
                assert both != {own}
            except AssertionError as error:
                raise AssertionError("\n".join([str(error), *(pod.log.read_text()[-2500:] for pod in pods)])) from None
    finally:
        for pod in pods:
            pod.kill()
        await asyncio.to_thread(plane.stop)
    assert [pod.process.returncode for pod in pods[:2]] == [0, 0]
    assert all("leaderElection has changed" in pod.log.read_text() for pod in pods[:2])
    assert not any(" is forbidden" in pod.log.read_text() for pod in pods[2:])


async def holder(lab: Lab, namespace: str, name: str) -> str:
    """Who holds a lease; empty if nobody does."""
    try:
        lease = await lab.api.get(k.LEASE, namespace, name)
    except NotFound:
        return ""
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _at_start(workload: dict[str, Any]) -> str:
    return str(workload["spec"]["template"]["metadata"]["annotations"]["fairlead.io/at-start"])


async def _says(pod: Pod, words: str) -> bool:
    return words in pod.log.read_text()


async def _ended(pods: list[Pod]) -> bool:
    return all(pod.process.poll() is not None for pod in pods)
