"""A legacy Policy on the command line of `fairlead scheduler`: from a file, and from a ConfigMap of the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fairlead.cli.scheduler import scheduler_command
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.testing.harness import Harness

POLICY = json.dumps({
    "kind": "Policy", "apiVersion": "v1",
    "predicates": [{"name": "PodFitsResources"}],
    "priorities": [{"name": "MostRequestedPriority", "weight": 2}],
})  # fmt: skip


def written(target: Path, *flags: str) -> dict[str, object]:
    answer = CliRunner().invoke(scheduler_command, [*flags, "--write-config-to", str(target)])
    assert answer.exit_code == 0, answer.output
    loaded: dict[str, object] = yaml.safe_load(target.read_text())
    return loaded


def strategy(config: dict[str, object]) -> str:
    profiles = config["profiles"]
    assert isinstance(profiles, list)
    args = {entry["name"]: entry["args"] for entry in profiles[0]["pluginConfig"]}
    found: str = args["NodeResourcesFit"]["scoringStrategy"]["type"]
    return found


def test_a_policy_file_becomes_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(POLICY)
    assert strategy(written(tmp_path / "out.yaml", "--policy-config-file", str(file))) == "MostAllocated"


def test_a_policy_in_a_config_map_is_read_from_the_cluster(tmp_path: Path) -> None:
    cluster = Harness(nodes=1)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "policy", "namespace": "kube-system"},
            "data": {"policy.cfg": POLICY}}  # fmt: skip
    cluster.store.perform(Write(Verb.CREATE, kinds.CONFIG_MAP, "kube-system", "policy", body))
    kubeconfig = str(cluster.serve())
    try:
        flags = ("--policy-configmap", "policy", "--kubeconfig", kubeconfig)
        assert strategy(written(tmp_path / "out.yaml", *flags)) == "MostAllocated"
        missing = CliRunner().invoke(scheduler_command, ["--policy-configmap", "nope", "--kubeconfig", kubeconfig])
    finally:
        cluster.close()
    assert missing.exit_code == 1
    assert 'kube-system/nope: cannot be read: configmaps "nope" not found' in str(missing.exception)


def test_two_sources_of_policy_exclude_each_other(tmp_path: Path) -> None:
    flags = ["--config", str(tmp_path / "a"), "--policy-configmap", "b"]
    answer = CliRunner().invoke(scheduler_command, flags)
    assert answer.exit_code == 2
    assert "exclude each other" in answer.output


@pytest.mark.parametrize(
    ("provider", "expected"), [("DefaultProvider", "LeastAllocated"), ("ClusterAutoscalerProvider", "MostAllocated")]
)
def test_an_algorithm_provider_chooses_how_nodes_are_filled(tmp_path: Path, provider: str, expected: str) -> None:
    assert strategy(written(tmp_path / "out.yaml", "--algorithm-provider", provider)) == expected


def test_an_algorithm_provider_that_never_was_is_refused(tmp_path: Path) -> None:
    flags = ["--algorithm-provider", "Default", "--write-config-to", str(tmp_path / "out.yaml")]
    answer = CliRunner().invoke(scheduler_command, flags)
    assert 'algorithm provider "Default" is not registered' in str(answer.exception)
