"""The port of `fairlead scheduler`: certificates and tokens that are renewed, and what its lease and its file say."""

from __future__ import annotations

import json
import ssl
import time
from pathlib import Path

import pytest

from fairlead.cli.scheduler_flags import PortFlags
from fairlead.cli.scheduler_port import Port, PortCertificate, TokenFile, leaf_of
from fairlead.client.credentials import Connection
from fairlead.cluster.server.pki import Credentials
from fairlead.console import port_file
from fairlead.console.port_file import PortFile, local_ports, port_file_path
from fairlead.console.scheduler_search import ANNOTATION
from fairlead.errors import FairleadError


def written(directory: Path, made: Credentials) -> tuple[Path, Path]:
    certificate, key = directory / "tls.crt", directory / "tls.key"
    certificate.write_bytes(made.certificate + made.ca)
    key.write_bytes(made.key)
    return certificate, key


def made() -> Credentials:
    return Credentials.generate(now=time.time())


def test_a_renewed_certificate_is_served_and_a_broken_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = made(), made()
    certificate, key = written(tmp_path, first)
    served = PortCertificate(certificate, key)
    assert served.public == leaf_of(first.certificate.decode())
    assert not served.look()
    key.write_bytes(second.key)
    certificate.write_text("nonsense")
    assert not served.look()
    assert "the port goes on with the last good certificate" in caplog.text
    written(tmp_path, second)
    assert served.look()
    assert served.public == leaf_of(second.certificate.decode())
    assert _served(served.tls, second)


def _served(context: ssl.SSLContext, expected: Credentials) -> bool:
    """Whether a handshake with the context shows this certificate."""
    client = Connection.pinned("https://x", expected.certificate.decode(), None, "").tls
    assert client is not None
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), context.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[0].getpeercert() is not None


def test_a_pinned_certificate_trusts_no_other() -> None:
    one, other = made(), made()
    with pytest.raises(ssl.SSLError):
        _served(one.tls(), other)


def test_a_token_file_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    token = TokenFile(file)
    assert token() == "old"
    file.write_text("new\n")
    assert token() == "new"
    file.unlink()
    assert token() == "new"
    file.write_text("\n")
    with pytest.raises(FairleadError, match="the token is empty"):
        TokenFile(file)


FLAGS = PortFlags("127.0.0.1", 10259, None, None, None, None, None, (), insecure_http=False)


def test_the_lease_says_how_to_reach_the_port_and_whom_to_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    said = json.loads(Port(FLAGS, Connection("https://api")).annotations("host_1")[ANNOTATION])
    assert (said["holder"], said["server"]) == ("host_1", "https://127.0.0.1:10259")
    assert said["certificate"].startswith("-----BEGIN CERTIFICATE-----")
    assert "pod" not in said
    assert not Port(PortFlags(*(*_values(FLAGS)[:-1], True)), Connection("https://api")).annotations("host_1")


def _values(flags: PortFlags) -> tuple[object, ...]:
    return tuple(getattr(flags, name) for name in PortFlags.__slots__)


def test_the_file_of_a_port_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    other = PortFile(port_file_path(5))
    other.write("https://127.0.0.1:5", "other")
    usual = PortFile(port_file_path(10259))
    usual.write("https://127.0.0.1:10259", "pem")
    assert [one.certificate for one in local_ports()] == ["pem", "other"], "that of the usual port first"
    assert usual.path.stat().st_mode & 0o777 == 0o600
    usual.path.chmod(0o666)
    assert [one.certificate for one in local_ports()] == ["other"], "others could have written it"
    other.remove()
    assert not other.path.exists()
    usual.path.parent.chmod(0o777)
    with pytest.raises(PermissionError):
        usual.write("https://127.0.0.1:10259", "pem")
    assert list(local_ports()) == []


def test_a_file_of_a_later_process_stays(tmp_path: Path) -> None:
    first, second = PortFile(tmp_path / "d" / "1.json"), PortFile(tmp_path / "d" / "1.json")
    first.write("https://127.0.0.1:1", "a")
    second.write("https://127.0.0.1:1", "b")
    first.remove()
    found = port_file._read(second.path)
    assert found is not None
    assert found.token == second.token
