"""The flags of `fairlead scheduler`, as far as they are settled before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fairlead.cli.main import cli

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 20s}
clientConnection: {qps: 11}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.yaml"
    path.write_text(CONFIG)
    return path


def run(*options: object) -> Result:
    return CliRunner().invoke(cli, ["scheduler", *map(str, options)])


def written(tmp_path: Path, *options: object) -> dict[str, object]:
    target = tmp_path / "written.yaml"
    result = run(*options, "--write-config-to", target)
    assert result.exit_code == 0, result.output
    document: dict[str, object] = yaml.safe_load(target.read_text())
    return document


def test_without_a_file_flags_change_the_default(tmp_path: Path) -> None:
    config = written(tmp_path, "--kube-api-qps", 7, "--kube-api-burst", 9, "--leader-elect=false")
    assert config["clientConnection"]["qps"] == 7  # type: ignore[index]
    assert config["clientConnection"]["burst"] == 9  # type: ignore[index]
    assert config["leaderElection"]["leaderElect"] is False  # type: ignore[index]


def test_with_a_file_only_flags_about_leading_count(tmp_path: Path, file: Path) -> None:
    options = ("--config", file, "--kube-api-qps", 7, "--leader-elect-renew-deadline", "12s")
    config = written(tmp_path, *options, "--leader-elect-resource-name", "mine")
    assert config["clientConnection"]["qps"] == 11  # type: ignore[index]
    election = config["leaderElection"]
    assert election["leaseDuration"] == "20s"  # type: ignore[index]
    assert election["renewDeadline"] == "12s"  # type: ignore[index]
    assert election["resourceName"] == "mine"  # type: ignore[index]
    assert election["leaderElect"] is True  # type: ignore[index]


def test_an_open_path_begins_with_a_slash() -> None:
    result = run("--authorization-always-allow-paths", "/healthz,metrics")
    assert (result.exit_code, "metrics does not begin with /" in result.output) == (2, True)


def test_a_wrong_file_is_reported_with_a_suggestion(file: Path) -> None:
    file.write_text(CONFIG + "paralellism: 3\n")
    result = run("--config", file)
    assert result.exit_code == 2
    assert "paralellism" in result.output
    assert "parallelism" in result.output


@pytest.mark.parametrize(
    "options",
    [
        ("--leader-elect-lease-duration", "soon"),
        ("--feature-gates", "NoSuchGate=true"),
        ("--tls-cert-file", "x"),
        ("--secure-port", "99999"),
        ("positional",),
    ],
)
def test_wrong_usage_is_exit_code_2(options: tuple[str, ...]) -> None:
    assert run(*options).exit_code == 2
