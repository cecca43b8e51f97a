"""`fairlead job` on a cluster that is served: from submission to deletion, with what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fairlead.cli.main import cli
from fairlead.cluster.kubelets.kubelet import PodScript
from fairlead.testing.builders import nodes
from fairlead.volcano.config.presets import PRESETS
from tests.support.volcano import VolcanoHarness


class Shell:
    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = str(kubeconfig)

    def __call__(self, *words: str) -> Result:
        verb, *rest = words
        return CliRunner().invoke(cli, ["job", verb, "--kubeconfig", self._kubeconfig, *rest])


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with VolcanoHarness(PRESETS["shipped"], nodes(2), script=PodScript(run_time=0.3)) as cluster:
        yield Shell(cluster.serve())


def test_a_job_is_run_followed_viewed_and_deleted(shell: Shell) -> None:
    ran = shell("run", "quick", "--replicas", "2", "--wait", "--timeout", "60")
    assert (ran.exit_code, ran.stdout) == (0, "job quick created\njob quick: Completed\n"), ran.output
    assert "quick: Completed (2 succeeded)" in ran.stderr
    assert "Completed" in shell("list").stdout
    assert json.loads(shell("view", "quick", "-o", "json").stdout)["waitsFor"] == []
    assert yaml.safe_load(shell("list", "-o", "yaml").stdout)["items"][0]["metadata"]["name"] == "quick"
    logs = shell("logs", "quick")
    assert logs.exit_code == 1
    assert "quick-task-0" in logs.stderr
    assert shell("delete", "quick").stdout == "job quick deleted\n"
    gone = shell("view", "quick")
    assert (gone.exit_code, "not found" in gone.output) == (1, True)


def test_gpus_are_asked_for_in_one_word_and_listed(shell: Shell) -> None:
    ran = shell("run", "cards", "--replicas", "2", "--gpus", "3", "--limits", "cpu=1", "--run-time", "10m")
    assert (ran.exit_code, ran.stdout) == (0, "job cards created\n"), ran.output
    head, *rows = (line.split() for line in shell("list").stdout.splitlines())
    assert next(dict(zip(head, row, strict=True)) for row in rows if row[0] == "cards")["GPUS"] == "6"
    task = yaml.safe_load(shell("list", "-o", "yaml").stdout)["items"][0]["spec"]["tasks"][0]["template"]
    assert task["metadata"]["annotations"] == {"fairlead.io/run-time": "10m0s"}
    assert shell("delete", "cards").exit_code == 0


def test_a_job_that_cannot_run_says_why_and_one_that_is_suspended_too(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "9999"}}}
    task = {"name": "w", "replicas": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    spec = {"tasks": [task]}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "big"}, "spec": spec}
    file.write_text(yaml.safe_dump(job))
    assert shell("run", "-f", str(file)).stdout == "job big created\n"
    assert shell("wait", "big", "--for", "Pending", "--timeout", "30s").exit_code == 0
    wrong = shell("wait", "big", "--timeout", "soon")
    assert wrong.exit_code == 2
    assert "for example 90, 30s or 5m" in wrong.output
    late = shell("wait", "big", "--timeout", "1")
    assert (late.exit_code, late.stdout) == (1, "job big: Pending\n")
    assert "Waits:" in shell("view", "big").stdout
    assert shell("suspend", "big").stdout == "job big is being suspended\n"
    assert shell("wait", "big", "--for", "Aborted", "--timeout", "30").exit_code == 0
    assert "it is suspended" in shell("view", "big").stdout
    assert shell("resume", "big").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run",), "give either the NAME of a new Job or a file (-f)"),
        (("run", "x", "--requests", "cpu"), '"cpu" is no amount'),
        (("wait", "x", "--for", "Done"), 'there is no phase "Done"'),
        (("run", "-f", "/nonexistent.yaml"), "/nonexistent.yaml"),
    ],
)
def test_wrong_words_are_reported(shell: Shell, words: tuple[str, ...], said: str) -> None:
    result = shell(*words)
    assert result.exit_code == 2
    assert said in result.output
