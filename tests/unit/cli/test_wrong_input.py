"""Wrong input ends with exit code 2 and one clear line, never with a traceback and never in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import cli

PLUGINS = """
from fairlead import node_filter

def plain(pod, node):
    return True
"""
BARE = """
from fairlead import node_filter

@node_filter
def bare(pod, node):
    return True
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: "%s"}]
"""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["upp"], "Did you mean 'up'?"),
        (["scheduler", "--write-config-to", "/nonexistent/x"], "/nonexistent/x cannot be written: No such file"),
        (["explain", "pod", ""], "a name is needed"),
        (["explain", "pod", "x", "--server", "garbage"], "'garbage' is not a URL; for example http://"),
        (["up", "--shape", "gpu=8"], '"gpu" is not a resource of nodes'),
        (["up", "--zones", "-2"], '"-2" is not the name of a zone'),
        (["up", "--schedule-period", "-1s", "--volcano-conf", "default"], "-1s is no time at all"),
        (
            ["up", "--schedule-period", "1s"],
            "--schedule-period is about the Volcano profile, so it needs --volcano-conf",
        ),
        (["up", "--nodes-file", "nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory"),
        (["scheduler", "--profiling"], "a flag of kube-scheduler that is not there: no profiling endpoints are served"),
        (["scheduler", "--tls-min-version=VersionTLS13"], "'--tls-min-version' is a flag of kube-scheduler"),
    ],
)
def test_a_wrong_argument_is_one_clear_line(words: list[str], told: str) -> None:
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2, result.output
    assert told in result.output


def test_an_empty_recording_is_not_taken_for_agreement(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    result = CliRunner().invoke(cli, ["replay", str(empty)])
    assert result.exit_code == 2
    assert f"{empty}: no recorded decision in there" in result.output


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        (PLUGINS, "plain", "decorate a function of a pod and a node with @node_filter(reason=...)"),
        (BARE, "bare", "@node_filter needs parentheses and a reason"),
        ("raise RuntimeError('boom')", "any", "cannot be imported: RuntimeError: boom"),
    ],
)
def test_a_plugin_that_is_none_is_reported_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str, told: str
) -> None:
    module = f"wrong_plugin_{name}"
    (tmp_path / f"{module}.py").write_text(text)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG % f"{module}:{name}")
    monkeypatch.syspath_prepend(tmp_path)
    result = CliRunner().invoke(cli, ["config", "check", str(config)])
    assert result.exit_code == 2
    assert told in result.output


def test_explain_without_a_cluster_says_how_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("fairlead.console.scheduler_search.OPS_PORT", "http://127.0.0.1:1")
    result = CliRunner().invoke(cli, ["explain", "pod", "x"], env={"HOME": str(tmp_path)})
    assert result.exit_code == 1
    assert "there is no kubeconfig either: name a cluster with --kubeconfig" in result.output
