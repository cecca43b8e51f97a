"""Files that somebody else put where a command looks: they run nothing and send nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.client.credentials import OWN_KUBECONFIG, connect
from fairlead.cluster.server.pki import Credentials
from fairlead.errors import ConfigError


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / OWN_KUBECONFIG
    path.write_bytes(Credentials.generate(now=time.time()).kubeconfig("https://127.0.0.1:1"))
    path.chmod(0o600)
    return path


def change(path: Path, part: str, **fields: Any) -> None:
    document = yaml.safe_load(path.read_text())
    document[f"{part}s"][0][part] |= fields
    path.write_text(yaml.safe_dump(document))


def test_the_file_that_up_writes_is_found(planted: Path) -> None:
    assert connect().server == "https://127.0.0.1:1"


def test_a_program_in_a_found_file_is_not_run(planted: Path) -> None:
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [str(planted) + ".pwned"]}
    change(planted, "user", exec=program)
    with pytest.raises(ConfigError, match=r"users\[\]\.user\.exec: was found in the working directory and says more"):
        connect()
    assert not Path(f"{planted}.pwned").exists()


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [("cluster", "insecure-skip-tls-verify", True), ("cluster", "proxy-url", "http://x"), ("user", "tokenFile", "/x")],
)
def test_a_found_file_says_nothing_but_where_and_the_token(planted: Path, part: str, field: str, value: Any) -> None:
    change(planted, part, **{field: value})
    with pytest.raises(ConfigError, match=f"{part}.{field}"):
        connect()
    if field == "insecure-skip-tls-verify":
        assert connect(str(planted)).server == "https://127.0.0.1:1"


def test_a_file_that_others_may_write_is_not_used(planted: Path) -> None:
    planted.chmod(0o666)
    with pytest.raises(ConfigError, match="can be written by others"):
        connect()


def test_a_link_to_a_file_elsewhere_is_not_used(planted: Path) -> None:
    planted.rename(planted.with_name("elsewhere"))
    planted.symlink_to("elsewhere")
    with pytest.raises(ConfigError, match="belongs to somebody else"):
        connect()


@pytest.mark.parametrize("name", ["os:abort", "os:getpid", "sys:exit", "builtins:dict"])
def test_a_check_calls_nothing_that_is_no_plugin(tmp_path: Path, name: str) -> None:
    kube, volcano = tmp_path / "kube.yaml", tmp_path / "volcano-scheduler.conf"
    kube.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: '{name}'}}]}}}}}}]\n"
    )
    volcano.write_text(f"actions: allocate\ntiers:\n- plugins:\n  - name: '{name}'\n")
    for file in (kube, volcano):
        result = CliRunner().invoke(cli, ["config", "check", str(file)])
        assert result.exit_code == 2, result.output
        assert name in result.output
