"""What `fairlead explain --changes` prints for eight clusters, done with kubectl over HTTP as it is printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from subprocess import run

import pytest
from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.core.model.flow import Doc
from fairlead.testing import Harness
from tests.support.answers.follower import Follower, suggestions
from tests.support.answers.worlds import world
from tests.support.real.control_plane import real_binary

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=90)]
SEEDS = (0, 1, 3, 6, 7, 8, 9, 10)
"""Clusters of all manners in which something waits after the file was applied."""
MOST = 3
"""Suggestions that are done for each cluster, because each takes the scheduler's own seconds."""


class ByKubectl(Follower):
    """Types every command as it is printed, and applies the file with kubectl."""

    def __init__(self, cluster: Harness, file: Sequence[Doc], directory: Path) -> None:
        super().__init__(cluster, file)
        self._file = directory / "workload.json"
        self.kubeconfig: Path | None = None

    def serve(self) -> None:
        self.kubeconfig = self.cluster.serve()

    def apply(self) -> None:
        if self.kubeconfig is None:
            super().apply()
            return
        self._file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": self.file}))
        self._kubectl(["apply", "-f", str(self._file)])

    def _kubectl(self, words: list[str]) -> None:
        command = [real_binary("kubectl"), "--kubeconfig", str(self.kubeconfig), *words]
        done = run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def waiting(cluster: Harness) -> list[Doc]:
    return [one for one in cluster.list("pods") if not one["spec"].get("nodeName")]


def own(cluster: Harness) -> list[Doc]:
    living = (one for one in cluster.list("pods") if not one["metadata"].get("deletionTimestamp"))
    return [one for one in living if (one["metadata"].get("labels") or {}).get("app") == "w"]


def there(seed: int, directory: Path) -> ByKubectl:
    cluster, file = world(seed)
    follower = ByKubectl(cluster, file, directory)
    follower.apply()
    cluster.run(240)
    return follower


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_printed_is_done_by_kubectl(seed: int, tmp_path: Path) -> None:
    follower = there(seed, tmp_path)
    assert waiting(follower.cluster)
    with follower.cluster as cluster:
        follower.serve()
        pod = waiting(cluster)[0]["metadata"]["name"]
        command = ["explain", "pod", pod, "--changes", "--kubeconfig", str(follower.kubeconfig)]
        answer = CliRunner().invoke(cli, command)
        assert answer.exit_code == 3, answer.output
    for suggestion in suggestions(answer.output.splitlines())[:MOST]:
        fresh = there(seed, tmp_path)
        wanted = suggestion.pods or len(own(fresh.cluster))
        with fresh.cluster as cluster:
            fresh.serve()
            if suggestion.steps:
                fresh.follow(suggestion)
            else:
                fresh._without_steps(suggestion.says)
            cluster.until(partial(settled, cluster, wanted), limit=60)


def settled(cluster: Harness, wanted: int) -> bool:
    pods = own(cluster)
    return len(pods) == wanted and all(one["spec"].get("nodeName") for one in pods)
