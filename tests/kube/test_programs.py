"""Programs that nobody here wrote do their usual work on `fairlead up`: Helm, Volcano, and two Python clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead.volcano.family import VOLCANO_CONTROLLERS
from tests.support.processes.kubectl_suite import Kubectl, fairlead_up
from tests.support.real.control_plane import real_binary

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=50)]

CHART = Path(__file__).parent / "chart"
PATIENCE = 180.0
VOLCANO_CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with fairlead_up(tmp_path_factory.mktemp("up"), "--nodes", "4") as kubeconfig:
        yield kubeconfig


@pytest.fixture
def kubectl(kubeconfig: Path) -> Kubectl:
    kubectl = Kubectl(real_binary("kubectl"), kubeconfig, f"p-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    return kubectl


def until(holds: Callable[[], Any], what: str) -> Any:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if found := holds():
            return found
        time.sleep(0.25)
    raise AssertionError(f"{what} did not happen in {PATIENCE:g} s")


# Helm


class Helm:
    def __init__(self, kubeconfig: Path, namespace: str, home: Path) -> None:
        self._command = [real_binary("helm"), "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        self._environment = os.environ | {f"HELM_{name}_HOME": str(home) for name in ("CACHE", "CONFIG", "DATA")}

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, timeout=300, check=False,
            env=self._environment,
        )  # fmt: skip
        assert not done.returncode, f"helm {' '.join(arguments)} ended with {done.returncode}: {done.stderr}"
        return done.stdout


def test_helm_installs_upgrades_rolls_back_and_uninstalls_a_chart(
    kubectl: Kubectl, kubeconfig: Path, tmp_path: Path
) -> None:
    helm = Helm(kubeconfig, kubectl.namespace, tmp_path)
    assert "STATUS: deployed" in helm("install", "demo", str(CHART), "--wait", "--timeout", "60s")
    assert kubectl.json("get", "deployment", "demo")["status"]["readyReplicas"] == 2
    assert kubectl.json("get", "greetings", "demo")["spec"] == {"words": "hello"}
    helm("upgrade", "demo", str(CHART), "--set", "replicas=3,greeting=bye", "--wait", "--timeout", "60s")
    assert kubectl.json("get", "deployment", "demo")["status"]["readyReplicas"] == 3
    assert kubectl.json("get", "configmap", "demo-settings")["data"] == {"greeting": "bye"}
    helm("rollback", "demo", "1", "--wait", "--timeout", "60s")
    assert kubectl.json("get", "greetings", "demo")["spec"] == {"words": "hello"}
    assert [release["revision"] for release in json.loads(helm("list", "-o", "json"))] == ["3"]
    helm("uninstall", "demo", "--wait", "--timeout", "60s")
    assert kubectl.json("get", "deployments,services,configmaps,greetings")["items"] == []


# the official client for Python


def test_the_official_python_client_creates_watches_patches_and_deletes(kubectl: Kubectl, kubeconfig: Path) -> None:
    from kubernetes import client, config, watch

    api_client = config.new_client_from_config(str(kubeconfig))
    core, apps, namespace = client.CoreV1Api(api_client), client.AppsV1Api(api_client), kubectl.namespace
    try:
        container = client.V1Container(name="main", image="example.com/app:1")
        template = client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels={"app": "d"}), spec=client.V1PodSpec(containers=[container])
        )
        spec = client.V1DeploymentSpec(
            replicas=3, selector=client.V1LabelSelector(match_labels={"app": "d"}), template=template
        )
        apps.create_namespaced_deployment(
            namespace, client.V1Deployment(metadata=client.V1ObjectMeta(name="d"), spec=spec)
        )
        running: set[str] = set()
        for event in watch.Watch().stream(core.list_namespaced_pod, namespace, timeout_seconds=60):
            if event["object"].status.phase == "Running":
                running.add(event["object"].metadata.name)
            if len(running) == 3:
                break
        apps.patch_namespaced_deployment_scale("d", namespace, {"spec": {"replicas": 1}})
        until(lambda: apps.read_namespaced_deployment("d", namespace).status.replicas == 1, "the scaling")
        events = core.list_namespaced_event(namespace, field_selector="reason=Scheduled")
        assert {event.involved_object.name for event in events.items} == running
        with pytest.raises(client.ApiException) as caught:
            core.read_namespaced_pod("nobody", namespace)
        assert (caught.value.status, json.loads(caught.value.body)["reason"]) == (404, "NotFound")
        apps.delete_namespaced_deployment("d", namespace)
        until(lambda: not core.list_namespaced_pod(namespace).items, "the end of the pods")
    finally:
        api_client.close()


def test_the_official_dynamic_client_applies_server_side(kubectl: Kubectl, kubeconfig: Path) -> None:
    from kubernetes import config, dynamic

    api_client = config.new_client_from_config(str(kubeconfig))
    try:
        maps = dynamic.DynamicClient(api_client).resources.get(api_version="v1", kind="ConfigMap")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
        maps.server_side_apply(body=body, namespace=kubectl.namespace, field_manager="test")
        assert maps.get(name="c", namespace=kubectl.namespace).data.to_dict() == {"a": "1"}
    finally:
        api_client.close()


# kr8s


def test_kr8s_creates_waits_scales_and_deletes(kubectl: Kubectl, kubeconfig: Path) -> None:
    """In a process of its own: kr8s leaves its connections to the end of the program."""
    story = Path(__file__).parents[1] / "support" / "real" / "kr8s_story.py"
    done = subprocess.run(
        [sys.executable, str(story), kubectl.namespace, str(kubeconfig)], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


# Volcano

WITHOUT_OURS = ["--controllers", ",".join(f"-{name}" for name in VOLCANO_CONTROLLERS)]
"""Options of `fairlead up` under which only the real controllers work on Jobs, PodGroups and Queues: two controllers on
one Job undo each other's statuses and delete each other's pods."""


@contextmanager
def volcano(kubeconfig: Path, directory: Path) -> Iterator[None]:
    """The real scheduler and controllers; their logs are kept outside the directory of the configuration, because the
    scheduler reads that anew at every write in there."""
    settings = directory / "settings"
    settings.mkdir()
    (settings / "scheduler.yaml").write_text(VOLCANO_CONFIGURATION)
    common = ["--kubeconfig", str(kubeconfig), "--leader-elect=false", "--enable-healthz=false", "--logtostderr"]
    with ExitStack() as running:
        for name, more in (
            ("vc-controller-manager", ["--scheduler-name=volcano"]),
            ("vc-scheduler", [f"--scheduler-conf={settings}/scheduler.yaml", "--enable-metrics=false"]),
        ):
            log = running.enter_context((directory / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [real_binary(name), *common, *more], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
            running.callback(process.wait)
            running.callback(process.kill)
        yield


def queue_states(kubectl: Kubectl) -> dict[str, str]:
    queues = kubectl.json("get", "queues.scheduling.volcano.sh")["items"]
    return {queue["metadata"]["name"]: queue.get("status", {}).get("state", "") for queue in queues}


def test_the_real_volcano_runs_a_job_as_a_gang(tmp_path: Path) -> None:
    definitions = Path(real_binary("vc-controller-manager")).parent / "volcano-definitions"
    with fairlead_up(tmp_path, "--nodes", "3", "--scheduler", "none", *WITHOUT_OURS) as kubeconfig:
        kubectl = Kubectl(real_binary("kubectl"), kubeconfig, "default")
        # Most of these kinds are built in; their definitions are stored and change nothing. One is not.
        kubectl("apply", "--server-side", "-f", str(definitions))
        with volcano(kubeconfig, tmp_path):
            container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "100m"}}}
            template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
            job = {
                "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "gang"},
                "spec": {
                    "minAvailable": 3, "schedulerName": "volcano", "queue": "default",
                    "tasks": [{"name": "worker", "replicas": 3, "template": template}],
                },
            }  # fmt: skip
            # Admission refuses Jobs of a queue that its controller has not opened yet.
            until(lambda: queue_states(kubectl).get("default") == "Open", "the open queue")
            kubectl("apply", "-f", "-", stdin=job)
            phase = lambda: kubectl.json("get", "vcjob", "gang").get("status", {}).get("state", {}).get("phase")  # noqa: E731
            until(lambda: phase() in ("Running", "Completed"), "the job's start")
            until(lambda: phase() == "Completed", "the job's end")
        pods = kubectl.json("get", "pods")["items"]
        assert [pod["metadata"]["name"] for pod in pods] == [f"gang-worker-{index}" for index in range(3)]
        assert all(pod["spec"]["nodeName"] and pod["status"]["phase"] == "Succeeded" for pod in pods)
        listed = subprocess.run(
            [real_binary("vcctl"), "job", "list", "--kubeconfig", str(kubeconfig)],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert "gang" in listed.stdout


def test_the_real_controller_asks_for_the_same_amounts_for_plain_pods(tmp_path: Path) -> None:
    """Only amounts of one pod of a plain Job; the real controllers run in the place of ours."""
    amounts = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "2"}
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": amounts, "limits": amounts}}
    template = {"spec": {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [container]}}
    job = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}, "spec": {"template": template},
    }  # fmt: skip
    needs: list[dict[str, str]] = []
    for ours in (True, False):
        directory = tmp_path / ("ours" if ours else "theirs")
        directory.mkdir()
        options = ["--nodes", "1", "--scheduler", "none"]
        options += [] if ours else WITHOUT_OURS
        with fairlead_up(directory, *options) as kubeconfig, ExitStack() as running:
            kubectl = Kubectl(real_binary("kubectl"), kubeconfig, "default")
            if not ours:
                definitions = Path(real_binary("vc-controller-manager")).parent / "volcano-definitions"
                kubectl("apply", "--server-side", "-f", str(definitions))
                running.enter_context(volcano(kubeconfig, directory))
            kubectl("apply", "-f", "-", stdin=job)
            groups = until(lambda k=kubectl: k.json("get", "podgroups.scheduling.volcano.sh")["items"], "a PodGroup")
            needs.append(groups[0]["spec"]["minResources"])
    assert needs[0] == needs[1]
