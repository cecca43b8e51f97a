"""Kubeconfig files and service accounts: what users have on their disks, right and wrong."""

from __future__ import annotations

import base64
import json
import os
import ssl
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairlead.client.credentials import connect, load_in_cluster, load_kubeconfig
from fairlead.errors import ConfigError


@pytest.fixture(scope="module")
def pem() -> tuple[bytes, bytes]:
    """A self-signed certificate and its key."""
    from datetime import UTC, datetime, timedelta

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def write(
    path: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any
) -> Path:
    name = more.pop("name", "c")
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "https://example:6443/"} | (cluster or {})}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "space"}}],
    } | more
    path.write_text(yaml.safe_dump(config))
    return path


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_token_and_a_ca_make_a_verified_connection(tmp_path: Path, pem: tuple[bytes, bytes]) -> None:
    file = write(tmp_path / "config", cluster={"certificate-authority-data": b64(pem[0])}, user={"token": "secret"})
    connection = load_kubeconfig(file)
    assert connection.server == "https://example:6443"
    assert connection.namespace == "space"
    assert connection.authorization is not None
    assert connection.authorization() == "Bearer secret"
    assert connection.tls is not None
    assert connection.tls.verify_mode is ssl.CERT_REQUIRED
    assert len(connection.tls.get_ca_certs()) == 1


def test_client_certificates_are_loaded_and_no_key_stays_on_disk(
    tmp_path: Path, pem: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    user = {"client-certificate-data": b64(pem[0]), "client-key-data": b64(pem[1])}
    for _ in range(2):
        connection = load_kubeconfig(write(tmp_path / "config", user=user))
        assert connection.tls is not None
        assert connection.authorization is None
        assert list(scratch.iterdir()) == []


def test_files_named_in_a_kubeconfig_are_relative_to_it(tmp_path: Path, pem: tuple[bytes, bytes]) -> None:
    (tmp_path / "ca.crt").write_bytes(pem[0])
    connection = load_kubeconfig(write(tmp_path / "config", cluster={"certificate-authority": "ca.crt"}))
    assert connection.tls is not None
    assert connection.tls.get_ca_certs()


def test_insecure_and_server_name_and_proxy_are_respected(tmp_path: Path) -> None:
    cluster = {"insecure-skip-tls-verify": True, "tls-server-name": "inner", "proxy-url": "http://proxy:3128"}
    connection = load_kubeconfig(write(tmp_path / "config", cluster=cluster))
    assert connection.tls is not None
    assert connection.tls.verify_mode is ssl.CERT_NONE
    assert (connection.server_name, connection.proxy) == ("inner", "http://proxy:3128")


def test_another_context_can_be_chosen_and_several_files_are_merged(tmp_path: Path) -> None:
    one = write(tmp_path / "one", name="one", user={"token": "1"})
    two = write(tmp_path / "two", name="two", user={"token": "2"})
    connection = load_kubeconfig(f"{one}{os.pathsep}{two}{os.pathsep}{tmp_path / 'absent'}", "two")
    assert connection.authorization is not None
    assert connection.authorization() == "Bearer 2"


def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    connection = load_kubeconfig(write(tmp_path / "config", user={"tokenFile": str(token)}))
    assert connection.authorization is not None
    assert connection.authorization() == "Bearer first"
    token.write_text("second\n")
    assert connection.authorization() == "Bearer second"


def plugin(tmp_path: Path, script: str) -> dict[str, Any]:
    path = tmp_path / "plugin.py"
    path.write_text(script)
    api = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": api, "command": sys.executable, "args": [str(path)], "interactiveMode": "Never"}}


EXPIRING = """
import json, pathlib, sys
calls = pathlib.Path(__file__).with_name("calls")
n = int(calls.read_text()) + 1 if calls.exists() else 1
calls.write_text(str(n))
status = {"token": f"t{n}", "expirationTimestamp": "2020-01-01T00:00:00Z"}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


def test_an_exec_plugin_is_run_again_when_its_token_has_expired(tmp_path: Path) -> None:
    connection = load_kubeconfig(write(tmp_path / "config", user=plugin(tmp_path, EXPIRING)))
    assert connection.authorization is not None
    assert connection.authorization() == "Bearer t2"
    assert connection.authorization() == "Bearer t3"


def test_an_exec_plugin_that_fails_is_named_with_its_own_words(tmp_path: Path) -> None:
    file = write(tmp_path / "config", user=plugin(tmp_path, "import sys; sys.exit('please log in')"))
    with pytest.raises(ConfigError, match="please log in") as caught:
        load_kubeconfig(file)
    assert str(file) in str(caught.value)


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere: no such file \(name an existing kubeconfig"):
        load_kubeconfig(tmp_path / "nowhere")


def test_a_directory_is_not_a_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_kubeconfig(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", r"config:1: not valid YAML"),
        ("", "empty"),
        ("just words", "not a usable configuration"),
        ("clusters: []\ncontexts: []\n", "Expected key current-context"),
        ("current-context: x\nclusters: []\ncontexts: []\nusers: []\n", "Expected object with name x"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        load_kubeconfig(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_context_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Expected object with name other"):
        load_kubeconfig(write(tmp_path / "config"), "other")


def test_a_certificate_that_is_none_is_an_error_with_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "config", cluster={"certificate-authority-data": b64(b"nonsense")})
    with pytest.raises(ConfigError, match="not a usable configuration") as caught:
        load_kubeconfig(file)
    assert str(file) in str(caught.value)


def test_a_pod_uses_its_service_account(tmp_path: Path, pem: tuple[bytes, bytes]) -> None:
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "ca.crt").write_bytes(pem[0])
    (tmp_path / "namespace").write_text("home\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = load_in_cluster(directory=tmp_path, environ=environ)
    assert (connection.server, connection.namespace) == ("https://[fd00::1]:443", "home")
    assert connection.authorization is not None
    assert connection.authorization() == "bearer pod-token"


def test_outside_a_pod_there_is_no_service_account(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Service host/port is not set"):
        load_in_cluster(directory=tmp_path, environ={})


def test_the_file_named_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = write(tmp_path / "named", cluster={"server": "http://named"})
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "environment", cluster={"server": "http://environment"})))
    assert connect(str(named)).server == "http://named"
    assert connect().server == "http://environment"


def test_with_nothing_to_go_by_the_user_is_shown_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match="--kubeconfig"):
        connect()


def test_an_unreadable_file_names_the_reason(tmp_path: Path) -> None:
    file = write(tmp_path / "config")
    file.chmod(0)
    if os.access(file, os.R_OK):
        file.write_bytes(b"\xff\xfe\x00")  # root reads everything, but nobody reads this
    with pytest.raises(ConfigError, match="cannot be read"):
        load_kubeconfig(file)
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)


def test_a_kubeconfig_in_json_is_one_too(tmp_path: Path) -> None:
    file = write(tmp_path / "config", user={"token": "x"})
    file.write_text(json.dumps(yaml.safe_load(file.read_text())))
    assert load_kubeconfig(file).server == "https://example:6443"


def test_every_command_looks_for_a_cluster_in_one_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def server(name: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cluster = {"name": "c", "cluster": {"server": f"http://{name.replace('/', '-')}.invalid"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        document = {
            "apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "current-context": "c",
            "users": [{"name": "u", "user": {}}],
        }  # fmt: skip
        path.write_text(json.dumps(document))
        return str(path)

    flag, configured, environment = server("flag"), server("configured"), server("environment")
    own, usual = server("fairlead.kubeconfig"), server("home/.kube/config")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KUBECONFIG", environment)
    assert connect(flag, configured=configured).source == f"--kubeconfig {flag}"
    assert connect(configured=configured).source == f"{configured}, named by the configuration file"
    assert str(connect()) == f"http://environment.invalid (from KUBECONFIG={environment})"
    monkeypatch.delenv("KUBECONFIG")
    assert connect().source == "./fairlead.kubeconfig"
    Path(own).unlink()
    assert connect().source == "~/.kube/config"
    Path(usual).unlink()
    with pytest.raises(ConfigError, match=r"KUBECONFIG is not set, \./fairlead\.kubeconfig and ~/\.kube/config do not"):
        connect()
