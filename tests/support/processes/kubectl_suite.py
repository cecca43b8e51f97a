"""What stock kubectl users do, against a running `fairlead up`. The steps are here; who provides kubectl is not.

tests/e2e runs them with an installed kubectl, tests/kube with the pinned one that `make test-kube` builds.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

NODES = 4


class Failed(AssertionError):
    """A command that should have worked; the message holds all it said."""


class Kubectl:
    """kubectl with a kubeconfig, in a namespace."""

    def __init__(self, binary: str, kubeconfig: Path, namespace: str) -> None:
        self.namespace = namespace
        self._command = [binary, "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        # Discovery is cached per server; a cache of our own leaves the user's alone.
        self._environment = os.environ | {"KUBECACHEDIR": str(kubeconfig.parent / "kubecache")}

    def __call__(self, *arguments: str, stdin: Any = None) -> str:
        """Standard output of a command that must succeed."""
        code, output, errors = self.result(*arguments, stdin=stdin)
        if code:
            raise Failed(f"kubectl {' '.join(arguments)} ended with {code}:\n{output}{errors}")
        return output

    def error(self, *arguments: str, stdin: Any = None) -> str:
        """Standard error of a command that must fail."""
        code, output, errors = self.result(*arguments, stdin=stdin)
        if not code:
            raise Failed(f"kubectl {' '.join(arguments)} should have failed, but said:\n{output}")
        return errors

    def result(self, *arguments: str, stdin: Any = None) -> tuple[int, str, str]:
        text = stdin if isinstance(stdin, str) or stdin is None else yaml.safe_dump(stdin)
        done = subprocess.run(
            [*self._command, *arguments], input=text, capture_output=True, text=True, timeout=240, check=False,
            env=self._environment,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    @contextmanager
    def watching(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on until it is interrupted."""
        with subprocess.Popen(
            [*self._command, *arguments], stdout=subprocess.PIPE, text=True, env=self._environment
        ) as process:
            # Should nothing come, reading must end all the same.
            timer = threading.Timer(30, process.kill)
            timer.start()
            try:
                yield process
            finally:
                timer.cancel()
                process.kill()


@contextmanager
def fairlead_up(directory: Path, *options: str) -> Iterator[Path]:
    """A running `fairlead up`; gives its kubeconfig. Ends it with SIGINT and insists on exit code 0."""
    kubeconfig = directory / "fairlead.kubeconfig"
    command = [str(Path(sys.executable).with_name("fairlead")), "up", "--kubeconfig", str(kubeconfig), *options]
    with (
        (directory / "up.log").open("w+") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=directory, stdin=subprocess.DEVNULL
        ) as process,
    ):
        assert process.stdout is not None
        try:
            if not _becomes_ready(process):
                log.seek(0)
                pytest.fail(f"{' '.join(command)} did not become ready:\n{log.read()}", pytrace=False)
            yield kubeconfig
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


def _becomes_ready(process: subprocess.Popen[str]) -> bool:
    """Whether the line that users wait for comes; should it not, reading ends with the process."""
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        return any(line.startswith("ready") for line in process.stdout)
    finally:
        timer.cancel()


def columns(output: str) -> list[list[str]]:
    """The cells of a table as kubectl prints it: the header, then the rows."""
    return [re.split(r"\s{2,}", line.strip()) for line in output.strip().splitlines()]


def pod(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container]} | spec,
    }


class KubectlSuite:
    """Inherit it and provide a fixture `binary` with the path of a kubectl."""

    @pytest.fixture(scope="class")
    @classmethod
    def kubeconfig(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
        with fairlead_up(tmp_path_factory.mktemp("up"), "--nodes", str(NODES)) as kubeconfig:
            yield kubeconfig

    @pytest.fixture
    def kubectl(self, binary: str, kubeconfig: Path) -> Kubectl:
        kubectl = Kubectl(binary, kubeconfig, f"k-{uuid.uuid4().hex[:8]}")
        kubectl("create", "namespace", kubectl.namespace)
        return kubectl

    @pytest.fixture
    def node(self, kubectl: Kubectl) -> str:
        name: str = kubectl.json("get", "nodes")["items"][0]["metadata"]["name"]
        return name

    # finding one's way

    def test_version_shows_both_sides(self, kubectl: Kubectl) -> None:
        version = kubectl.json("version")
        assert version["serverVersion"]["gitVersion"].startswith("v1.")
        assert "Server Version: v1." in kubectl("version")

    def test_api_resources_lists_the_kinds_with_their_short_names(self, kubectl: Kubectl) -> None:
        rows = {row[0]: row[1:] for row in columns(kubectl("api-resources"))}
        assert rows["pods"] == ["po", "v1", "true", "Pod"]
        assert rows["nodes"] == ["no", "v1", "false", "Node"]
        assert rows["deployments"] == ["deploy", "apps/v1", "true", "Deployment"]
        assert rows["queues"][-3:] == ["scheduling.volcano.sh/v1beta1", "false", "Queue"]

    def test_the_nodes_are_ready(self, kubectl: Kubectl) -> None:
        header, *rows = columns(kubectl("get", "nodes"))
        assert header == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
        assert len(rows) == NODES
        assert {row[1] for row in rows} == {"Ready"}
        wide, *_ = columns(kubectl("get", "no", "-o", "wide"))
        assert wide[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]

    # pods

    def test_a_pod_is_created_runs_and_is_shown_in_every_form(self, kubectl: Kubectl) -> None:
        assert kubectl("create", "-f", "-", stdin=pod("web", labels={"app": "web"})) == "pod/web created\n"
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s")
        header, row = columns(kubectl("get", "pods"))
        assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert row[:4] == ["web", "1/1", "Running", "0"]
        header, row = columns(kubectl("get", "pod", "web", "-o", "wide"))
        assert header[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
        as_json, as_yaml = kubectl.json("get", "pod", "web"), yaml.safe_load(kubectl("get", "po/web", "-o", "yaml"))
        assert as_json["metadata"]["uid"] == as_yaml["metadata"]["uid"]
        assert row[6] == as_json["spec"]["nodeName"]
        assert kubectl("get", "pod", "web", "-o", "jsonpath={.status.phase}") == "Running"
        assert kubectl("get", "pods", "-o", "name") == "pod/web\n"
        assert columns(kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name"))[1] == ["web"]

    def test_get_chooses_by_label_by_field_and_over_all_namespaces(self, kubectl: Kubectl) -> None:
        for name, tier in (("a", "front"), ("b", "back")):
            kubectl("create", "-f", "-", stdin=pod(name, labels={"tier": tier}))
        assert kubectl("get", "pods", "-l", "tier=front", "-o", "name") == "pod/a\n"
        assert kubectl("get", "pods", "-l", "tier!=front", "-o", "name") == "pod/b\n"
        assert kubectl("get", "pods", "--field-selector", "metadata.name=b", "-o", "name") == "pod/b\n"
        header, *rows = columns(kubectl("get", "pods", "-A", "--show-labels"))
        assert header[0] == "NAMESPACE"
        assert {tuple(row[:2]) for row in rows} >= {(kubectl.namespace, "a"), (kubectl.namespace, "b")}
        assert "No resources found" in kubectl.result("get", "pods", "-l", "tier=none")[2]

    def test_get_watch_shows_what_comes(self, kubectl: Kubectl) -> None:
        kubectl("create", "-f", "-", stdin=pod("first"))
        with kubectl.watching("get", "pods", "-w") as watch:
            assert watch.stdout is not None
            assert watch.stdout.readline().split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
            assert watch.stdout.readline().startswith("first")
            kubectl("create", "-f", "-", stdin=pod("second"))
            assert any(line.startswith("second") and "Running" in line for line in watch.stdout)

    def test_describe_pod_shows_the_story_by_its_events(self, kubectl: Kubectl) -> None:
        kubectl("create", "-f", "-", stdin=pod("web"))
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s")
        node = kubectl("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}")
        story = kubectl("describe", "pod", "web")
        assert re.search(r"^Status:\s+Running$", story, re.M)
        assert re.search(rf"^Node:\s+{node}", story, re.M)
        assert f"Successfully assigned {kubectl.namespace}/web to {node}" in story
        assert re.search(r"Normal\s+Scheduled", story)

    def test_describe_pod_says_why_it_waits(self, kubectl: Kubectl) -> None:
        big = pod("big")
        big["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "10000"
        kubectl("create", "-f", "-", stdin=big)
        kubectl("wait", "--for=jsonpath={.status.conditions[0].reason}=Unschedulable", "pod/big", "--timeout=180s")
        story = kubectl("describe", "pod", "big")
        assert f"0/{NODES} nodes are available: {NODES} Insufficient cpu." in story
        assert re.search(r"Warning\s+FailedScheduling", story)

    def test_describe_node_counts_its_pods(self, kubectl: Kubectl) -> None:
        kubectl("create", "-f", "-", stdin=pod("web"))
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s")
        node = kubectl("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}")
        story = kubectl("describe", "node", node)
        assert re.search(r"^Non-terminated Pods:", story, re.M)
        assert re.search(rf"{kubectl.namespace}\s+web\s+100m", story)
        assert re.search(r"^Allocatable:", story, re.M)
        assert re.search(r"Ready\s+True", story)

    def test_delete_waits_until_a_pod_is_gone(self, kubectl: Kubectl) -> None:
        kubectl("create", "-f", "-", stdin=pod("web"))
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=180s")
        assert kubectl("delete", "pod", "web", "--grace-period=1").startswith('pod "web" deleted')
        assert kubectl.error("get", "pod", "web").strip() == 'Error from server (NotFound): pods "web" not found'

    # changing things

    def test_apply_creates_then_configures_then_leaves_alone(self, kubectl: Kubectl) -> None:
        doc: dict[str, Any] = {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"x": "1"}},
            "data": {"keep": "1", "drop": "1"},
        }  # fmt: skip
        assert kubectl("apply", "-f", "-", stdin=doc) == "configmap/c created\n"
        kubectl("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"others":"1"}}')
        doc["data"] = {"keep": "2", "new": "1"}
        assert kubectl("apply", "-f", "-", stdin=doc) == "configmap/c configured\n"
        assert kubectl.json("get", "cm", "c")["data"] == {"keep": "2", "new": "1", "others": "1"}
        assert kubectl("apply", "-f", "-", stdin=doc) == "configmap/c unchanged\n"

    def test_apply_merges_a_deployment_by_its_keys(self, kubectl: Kubectl) -> None:
        template = {"metadata": {"labels": {"app": "d"}}, "spec": pod("x")["spec"]}
        doc: dict[str, Any] = {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": template},
        }  # fmt: skip
        assert kubectl("apply", "-f", "-", stdin=doc) == "deployment.apps/d created\n"
        template["spec"]["containers"] += [{"name": "side", "image": "example.com/side:1"}]
        doc["spec"]["replicas"] = 2
        assert kubectl("apply", "-f", "-", stdin=doc) == "deployment.apps/d configured\n"
        kubectl("rollout", "status", "deployment/d", "--timeout=180s")
        stored = kubectl.json("get", "deploy", "d")
        assert [each["name"] for each in stored["spec"]["template"]["spec"]["containers"]] == ["main", "side"]
        assert stored["status"]["readyReplicas"] == 2

    @pytest.mark.parametrize(
        ("dialect", "patch"),
        [
            ("strategic", '{"metadata":{"labels":{"by":"strategic"}}}'),
            ("merge", '{"metadata":{"labels":{"by":"merge"}}}'),
            ("json", '[{"op":"add","path":"/metadata/labels","value":{"by":"json"}}]'),
        ],
    )
    def test_patch_speaks_three_dialects(self, kubectl: Kubectl, dialect: str, patch: str) -> None:
        kubectl("create", "configmap", "c")
        assert kubectl("patch", "cm", "c", f"--type={dialect}", "-p", patch) == "configmap/c patched\n"
        assert kubectl.json("get", "cm", "c")["metadata"]["labels"] == {"by": dialect}

    def test_label_and_annotate_set_change_and_remove(self, kubectl: Kubectl) -> None:
        kubectl("create", "configmap", "c")
        for word, done, field in (("label", "labeled", "labels"), ("annotate", "annotated", "annotations")):
            assert kubectl(word, "cm", "c", "a=1") == f"configmap/c {done}\n"
            assert "--overwrite is false" in kubectl.error(word, "cm", "c", "a=2")
            kubectl(word, "cm", "c", "a=2", "--overwrite")
            assert kubectl.json("get", "cm", "c")["metadata"][field]["a"] == "2"
            kubectl(word, "cm", "c", "a-")
            assert "a" not in kubectl.json("get", "cm", "c")["metadata"].get(field, {})

    def test_nodes_are_tainted_cordoned_and_freed_again(self, kubectl: Kubectl, node: str) -> None:
        assert kubectl("taint", "nodes", node, "dedicated=x:NoSchedule") == f"node/{node} tainted\n"
        taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
        assert taint in kubectl.json("get", "node", node)["spec"]["taints"]
        assert kubectl("taint", "nodes", node, "dedicated-") == f"node/{node} untainted\n"
        assert kubectl("cordon", node) == f"node/{node} cordoned\n"
        assert columns(kubectl("get", "node", node))[1][1] == "Ready,SchedulingDisabled"
        assert kubectl("uncordon", node) == f"node/{node} uncordoned\n"
        assert columns(kubectl("get", "node", node))[1][1] == "Ready"

    def test_a_deployment_is_created_rolled_out_scaled_and_deleted(self, kubectl: Kubectl) -> None:
        assert (
            kubectl("create", "deployment", "d", "--image=example.com/app:1", "--replicas=3")
            == "deployment.apps/d created\n"
        )
        assert "successfully rolled out" in kubectl("rollout", "status", "deployment/d", "--timeout=180s")
        header, row = columns(kubectl("get", "deployments"))
        assert header == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
        assert row[:4] == ["d", "3/3", "3", "3"]
        assert kubectl("scale", "deployment", "d", "--replicas=5") == "deployment.apps/d scaled\n"
        kubectl("wait", "--for=jsonpath={.status.readyReplicas}=5", "deployment/d", "--timeout=180s")
        assert len(kubectl.json("get", "pods", "-l", "app=d")["items"]) == 5
        kubectl("delete", "deployment", "d")
        kubectl("wait", "--for=delete", "pods", "-l", "app=d", "--timeout=180s")
        assert kubectl.json("get", "pods")["items"] == []

    def test_a_rollout_replaces_the_pods(self, kubectl: Kubectl) -> None:
        kubectl("create", "deployment", "d", "--image=example.com/app:1", "--replicas=2")
        kubectl("rollout", "status", "deployment/d", "--timeout=180s")
        kubectl("set", "image", "deployment/d", "app=example.com/app:2")
        kubectl("rollout", "status", "deployment/d", "--timeout=180s")
        kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deployment/d", "--timeout=180s")
        images = kubectl(
            "get",
            "rs",
            "-o",
            "jsonpath={range .items[*]}{.spec.replicas}={.spec.template.spec.containers[0].image};{end}",
        )
        assert sorted(images.strip(";").split(";")) == ["0=example.com/app:1", "2=example.com/app:2"]

    # refusals

    def test_an_invalid_manifest_names_the_field(self, kubectl: Kubectl) -> None:
        broken = pod("p")
        del broken["spec"]["containers"][0]["image"]
        broken["spec"]["restartPolicy"] = "Sometimes"
        words = kubectl.error("apply", "-f", "-", stdin=broken)
        assert 'The Pod "p" is invalid' in words
        assert "spec.containers[0].image: Required value" in words
        assert 'spec.restartPolicy: Unsupported value: "Sometimes"' in words

    def test_an_unknown_field_is_refused_by_name(self, kubectl: Kubectl) -> None:
        broken = pod("p", replica=3)
        words = kubectl.error("create", "-f", "-", stdin=broken)
        assert 'strict decoding error: unknown field "spec.replica"' in words

    def test_a_wrong_type_is_refused(self, kubectl: Kubectl) -> None:
        words = kubectl.error("create", "-f", "-", stdin=pod("p", terminationGracePeriodSeconds="soon"))
        assert "terminationGracePeriodSeconds" in words

    def test_what_does_not_exist_is_not_found(self, kubectl: Kubectl) -> None:
        assert "NotFound" in kubectl.error("get", "pod", "nobody")
        assert "doesn't have a resource type" in kubectl.error("get", "flowers")

    def test_a_namespace_goes_with_all_that_is_in_it(self, kubectl: Kubectl) -> None:
        kubectl("create", "configmap", "c")
        kubectl("create", "-f", "-", stdin=pod("web"))
        kubectl("delete", "namespace", kubectl.namespace, "--timeout=180s")
        assert "NotFound" in kubectl.error("get", "namespace", kubectl.namespace)
