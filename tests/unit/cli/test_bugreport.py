"""`fairlead bug-report`: what is in it, and what must never be."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.cluster.store.redaction import Redactor, without_key_material

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "db-0", "namespace": "shop", "annotations": {"note": "s3cret"}, "labels": {"app": "db"}},
    "spec": {
        "nodeName": "worker-1",
        "containers": [
            {
                "name": "db", "image": "registry.example/db:1", "command": ["run", "--password=s3cret"],
                "env": [{"name": "PASSWORD", "value": "s3cret"}], "resources": {"requests": {"cpu": "1"}},
            }
        ],
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "w", "secret": {"secretName": "s3cret"}},
        ],
        "someNewField": "s3cret",
    },
    "status": {"phase": "Running", "podIP": "10.1.2.3"},
}  # fmt: skip


def test_of_a_pod_only_what_scheduling_reads_is_kept() -> None:
    kept = Redactor().document(POD)
    assert "s3cret" not in json.dumps(kept)
    assert kept["spec"]["containers"] == [
        {"name": "db", "image": "registry.example/db:1", "resources": {"requests": {"cpu": "1"}}}
    ]
    assert kept["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data"}
    assert kept["status"] == {"phase": "Running"}


def test_anonymous_names_still_fit_together() -> None:
    redaction = Redactor(anonymous=True)
    pod = redaction.document(POD)
    node = redaction.document(
        {"kind": "Node", "metadata": {"name": "worker-1"}, "status": {"allocatable": {"cpu": "4"}}}
    )
    text = json.dumps([pod, node])
    assert not any(word in text for word in ("db-0", "shop", "worker-1", "registry.example"))
    assert pod["spec"]["nodeName"] == node["metadata"]["name"]
    assert node["status"]["allocatable"] == {"cpu": "4"}


def test_a_workload_loses_its_template_and_a_config_its_keys() -> None:
    workload = {
        "kind": "ReplicaSet",
        "metadata": {"name": "x"},
        "spec": {"replicas": 1, "template": {"spec": POD["spec"]}},
    }
    assert Redactor().document(workload)["spec"] == {"replicas": 1}
    config = {"extenders": [{"tlsConfig": {"keyData": "c2VjcmV0", "caFile": "/x"}}]}
    assert without_key_material(config) == {"extenders": [{"tlsConfig": {"keyData": "REDACTED", "caFile": "/x"}}]}


def test_without_cluster_and_scheduler_the_report_says_what_is_missing(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3\n")
    output = tmp_path / "report.tar.gz"
    kubeconfig = tmp_path / "none"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "c", "user": {"token": "t0ken"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            }
        )
    )
    arguments = ["bug-report", "-o", str(output), "--config", str(config), "--kubeconfig", str(kubeconfig)]
    result = CliRunner().invoke(cli, [*arguments, "--server", "http://127.0.0.1:1"])
    assert result.exit_code == 0, result.output
    with tarfile.open(output) as archive:
        contents = {member.name.partition("/")[2]: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    facts = json.loads(contents["versions.json"])
    assert any(one.startswith("configuration and metrics of the running scheduler: ") for one in facts["missing"])
    assert all(f"missing: {one}" in result.output for one in facts["missing"]), "it is said, not only written"
    assert any("the API server's version" in missing for missing in facts["missing"])
    assert facts["libraries"]["numpy"] != "not installed"
    assert b"parallelism: 3" in contents["configuration.yaml"]
    assert not any(b"t0ken" in content for content in contents.values())
    assert output.stat().st_mode & 0o077 == 0
