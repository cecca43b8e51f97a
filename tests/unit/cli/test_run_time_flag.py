"""`fairlead up --run-time`: how long simulated Jobs run."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from fairlead.cli import up
from fairlead.cli.embedded import EmbeddedCluster, UpOptions
from fairlead.cluster.kubelets.kubelet import Kubelet


def options_of(monkeypatch: pytest.MonkeyPatch, directory: Path, *flags: str) -> UpOptions:
    made: list[UpOptions] = []
    monkeypatch.setattr(up, "_leave_quietly_on_signals", lambda: None)
    monkeypatch.setattr(up, "_up", made.append)
    monkeypatch.setattr(up.asyncio, "run", lambda started: None)
    usual = ["--nodes", "0", "--kubeconfig", str(directory / "kubeconfig")]
    with click.Context(up.up_command):
        up.up_command.main([*usual, *flags], standalone_mode=False)
    monkeypatch.undo()
    return made[0]


@pytest.mark.parametrize(("flags", "seconds"), [(["--run-time", "10m"], 600), (["--run-time", "90"], 90), ([], 1)])
async def test_the_kubelets_of_a_cluster_let_jobs_run_as_long_as_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: list[str], seconds: float
) -> None:
    cluster = EmbeddedCluster(options_of(monkeypatch, tmp_path, *flags))
    await cluster.start(lambda count: None)
    try:
        controllers = [driver.controller for driver in cluster._runtime._drivers]
        groups = [member for one in controllers for member in getattr(one, "members", [one])]
        assert [one._default.job_run_time for one in groups if isinstance(one, Kubelet)] == [seconds]
    finally:
        await cluster.stop()


@pytest.mark.parametrize(("text", "words"), [("soon", "for example 90, 30s or 10m"), ("-1s", "before the start")])
def test_what_is_no_time_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        options_of(monkeypatch, tmp_path, "--run-time", text)
