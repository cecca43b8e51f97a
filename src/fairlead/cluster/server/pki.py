"""The credentials of an embedded cluster: a CA, a server certificate, a random token, and the kubeconfig of them all.

Kept in a directory they are made once and used again, so that a kubeconfig goes on working after a restart. Files are
readable by their owner only and replaced atomically; a kubeconfig that is half written is never seen by anybody.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import secrets
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlead.errors import JournalError

YEARS = 10
SHORTEST_TOKEN = 32
HOSTS = ("localhost", "fairlead", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", "::1")
CLUSTER = "fairlead"
_FILES = {"ca": "ca.crt", "certificate": "server.crt", "key": "server.key", "token": "token"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """All in the form in which files hold them: PEM, and a line of text."""

    ca: bytes
    certificate: bytes
    key: bytes
    token: str

    @classmethod
    def generate(cls, *, now: float, hosts: tuple[str, ...] = ()) -> Credentials:
        """A new CA, a certificate for loopback (and further hosts) signed by it, and a token."""
        start = datetime.fromtimestamp(now, UTC) - timedelta(hours=1)
        ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        ca = _certificate_authority(ca_key, start)
        certificate = _server_certificate(key, ca, ca_key, start, hosts)
        return cls(
            ca=ca.public_bytes(serialization.Encoding.PEM),
            certificate=certificate.public_bytes(serialization.Encoding.PEM),
            key=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
            token=secrets.token_urlsafe(32),
        )

    @classmethod
    def kept_in(cls, directory: Path, *, now: float, hosts: tuple[str, ...] = ()) -> Credentials:
        """Those of a directory; made and put there the first time."""
        try:
            paths = {name: directory / file for name, file in _FILES.items()}
            if all(path.exists() for path in paths.values()):
                read = {name: path.read_bytes() for name, path in paths.items()}
                return _checked(directory, read, now, hosts)
            made = cls.generate(now=now, hosts=hosts)
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name, path in paths.items():
                value = getattr(made, name)
                write_private(path, value if isinstance(value, bytes) else value.encode())
            return made
        except OSError as error:
            raise JournalError(f"the credentials in {directory} cannot be used: {error.strerror}") from error

    def tls(self) -> ssl.SSLContext:
        """The server's side of TLS. OpenSSL takes keys only from files, so they are files for a moment."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        with tempfile.TemporaryDirectory() as name:
            certificate, key = Path(name, "server.crt"), Path(name, "server.key")
            write_private(certificate, self.certificate)
            write_private(key, self.key)
            context.load_cert_chain(certificate, key)
        return context

    def kubeconfig(self, server: str) -> bytes:
        """What kubectl needs to reach the server."""
        cluster = {"server": server, "certificate-authority-data": base64.b64encode(self.ca).decode()}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CLUSTER, "cluster": cluster}],
            "users": [{"name": CLUSTER, "user": {"token": self.token}}],
            "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": CLUSTER, "namespace": "default"}}],
            "current-context": CLUSTER,
        }
        return yaml.safe_dump(document, sort_keys=False).encode()


def write_private(path: Path, content: bytes) -> None:
    """Replace a file at once, for its owner's eyes only. A power cut leaves the old content or the new one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checked(directory: Path, read: Mapping[str, bytes], now: float, hosts: tuple[str, ...]) -> Credentials:
    """The credentials that files hold. An empty or short token would let anybody in, so it is refused like a broken
    certificate; the error says what to do."""
    token = read["token"].decode("ascii", "replace").strip()
    if len(token) < SHORTEST_TOKEN or not token.isprintable() or not token.isascii():
        raise _unusable(directory, "token", f"holds no token of at least {SHORTEST_TOKEN} characters")
    try:
        x509.load_pem_x509_certificate(read["ca"])
    except ValueError:
        raise _unusable(directory, "ca", "holds no certificate") from None
    try:
        certificate = x509.load_pem_x509_certificate(read["certificate"])
    except ValueError:
        raise _unusable(directory, "certificate", "holds no certificate") from None
    try:
        key = serialization.load_pem_private_key(read["key"], password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _unusable(directory, "key", "holds no private key") from None
    if key.public_key() != certificate.public_key():
        raise _unusable(directory, "key", f"does not belong to {_FILES['certificate']}")
    begin, end = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    if not begin <= now <= end:
        dates = f"{certificate.not_valid_before_utc:%Y-%m-%d} to {certificate.not_valid_after_utc:%Y-%m-%d}"
        clock = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M}"
        raise _unusable(directory, "certificate", f"is valid from {dates} and the machine's clock says {clock}")
    known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    for host in hosts:
        if _alternative(host) not in known:
            raise _unusable(directory, "certificate", f"was made for other addresses than {host}")
    return Credentials(read["ca"], read["certificate"], read["key"], token)


def _unusable(directory: Path, name: str, why: str) -> JournalError:
    files = ", ".join(_FILES.values())
    return JournalError(
        f"{directory / _FILES[name]} {why}; put the file back, or remove {files} there to have new ones made"
        " (clients then need the new kubeconfig)"
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate_authority(key: ec.EllipticCurvePrivateKey, start: datetime) -> x509.Certificate:
    name = _name("fairlead-ca")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _dated(start)
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _server_certificate(
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    start: datetime,
    hosts: tuple[str, ...],
) -> x509.Certificate:
    names = x509.SubjectAlternativeName([_alternative(host) for host in dict.fromkeys((*ADDRESSES, *HOSTS, *hosts))])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _dated(start)
        .subject_name(_name("fairlead"))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _dated(start: datetime) -> x509.CertificateBuilder:
    end = start + timedelta(days=365 * YEARS)
    return (
        x509.CertificateBuilder(serial_number=x509.random_serial_number()).not_valid_before(start).not_valid_after(end)
    )
