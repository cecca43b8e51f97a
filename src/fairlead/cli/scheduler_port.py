"""Who may use the port of `fairlead scheduler`, and over what: its guard, its certificate, and where both are found.

Like kube-scheduler's the port speaks TLS on every address, with a certificate of its own unless one is given, and wants
a token for all but health. A certificate of one's own is nobody's to know in advance, so the public part stands where
those who ask already look: in an annotation of the lease (`console/scheduler_search.py` reads it), and in a file of the
user's on this machine that also holds a token for the user's own commands (`console/port_file.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.port_guard import LocalToken, OneToken, Open, Reviews
from fairlead.console.port_file import PortFile, port_file_path
from fairlead.console.scheduler_search import ANNOTATION
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.cli.scheduler_flags import PortFlags
    from fairlead.client.credentials import Connection
    from fairlead.cluster.server.ops_server import OpsServer
    from fairlead.cluster.server.port_guard import PortGuard

log = logging.getLogger("fairlead.scheduler")

LOOK_EVERY = 5.0
"""Seconds between two looks at the files of a certificate."""


class PortCertificate:
    """The certificate of the port. One that was given is read again when its files change, and a broken one changes
    nothing: connections go on with the last good one."""

    def __init__(self, certificate: Path | None, key: Path | None) -> None:
        self._files = None if certificate is None or key is None else (certificate, key)
        self._stamp = self._stamp_now()
        if self._files is None:
            made = Credentials.generate(now=time.time(), hosts=(socket.gethostname(),))
            self.tls, self.public = made.tls(), made.certificate.decode()
            return
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self.public = self._load()

    def _load(self) -> str:
        assert self._files is not None
        certificate, key = self._files
        try:
            trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # a context that a pair half fits is of no use any more
            trial.load_cert_chain(certificate, key)
            self.tls.load_cert_chain(certificate, key)
            return leaf_of(certificate.read_text())
        except (OSError, ssl.SSLError) as error:
            raise FairleadError(f"{certificate}: cannot be used with {key}: {error}") from error

    def _stamp_now(self) -> tuple[tuple[int, int], ...]:
        with suppress(OSError):
            return tuple((path.stat().st_mtime_ns, path.stat().st_ino) for path in self._files or ())
        return ()

    def look(self) -> bool:
        """Look at the files once; whether there is a new certificate."""
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            public = self._load()
        except FairleadError as error:
            log.warning("%s; the port goes on with the last good certificate", error)
            return False
        changed, self.public = public != self.public, public
        if changed:
            log.info("the port has a new certificate", extra={"file": str(self._files and self._files[0])})
        return changed


class Port:
    """What a scheduler's port needs, from its flags; and where others find out how to reach it."""

    def __init__(self, flags: PortFlags, cluster: Connection) -> None:
        self._flags, self._cluster = flags, cluster
        encrypted = bool(flags.secure_port) and not flags.insecure_http
        self._certificate = PortCertificate(flags.tls_cert_file, flags.tls_private_key_file) if encrypted else None
        self._file = PortFile(port_file_path(flags.secure_port)) if encrypted else None

    @property
    def tls(self) -> ssl.SSLContext | None:
        return None if self._certificate is None else self._certificate.tls

    def guard(self, opened: AsyncExitStack) -> PortGuard:
        """Everybody for plain HTTP; else the token of the local file, and the one that is given or those that the API
        server knows."""
        flags = self._flags
        if flags.insecure_http or self._file is None:
            return Open()
        if flags.authentication_token_file is not None:
            return LocalToken(self._file.token, OneToken(TokenFile(flags.authentication_token_file)))
        authenticate = _asked(flags.authentication_kubeconfig, self._cluster, opened)
        authorize = _asked(flags.authorization_kubeconfig, self._cluster, opened)
        return LocalToken(self._file.token, Reviews(authenticate, authorize, complain=log.warning))

    def annotations(self, holder: str) -> dict[str, str]:
        """What the lease of `holder` says of its port."""
        if self._certificate is None:
            return {}
        place = {
            "holder": holder,
            "server": f"https://{_reachable(self._flags)}:{self._flags.secure_port}",
            "certificate": self._certificate.public,
        }
        if os.environ.get("KUBERNETES_SERVICE_HOST") and not self._flags.on_loopback:
            place |= {"namespace": self._cluster.namespace, "pod": socket.gethostname()}
        return {ANNOTATION: json.dumps(place)}

    def publish(self, server: OpsServer, opened: AsyncExitStack) -> None:
        """Write the local file, until `opened` is closed."""
        if self._file is None or self._certificate is None:
            log.info("serving health, metrics and explanations", extra={"url": server.url})
            return
        url = f"https://{'127.0.0.1' if not self._flags.on_loopback else self._flags.bind_address}:{server.port}"
        try:
            self._file.write(url, self._certificate.public)
        except OSError as error:
            log.info("serving health, metrics and explanations", extra={"url": server.url})
            log.warning("%s cannot be written: %s; commands here need a token", self._file.path, error.strerror)
            return
        opened.callback(self._file.remove)
        where = {"url": server.url, "credentials": str(self._file.path)}
        log.info("serving health, metrics and explanations", extra=where)

    async def follow(self, server: OpsServer) -> None:
        """Take over certificates that are renewed, until cancelled."""
        while self._certificate is not None and self._flags.tls_cert_file is not None:
            await asyncio.sleep(LOOK_EVERY)
            if await asyncio.to_thread(self._certificate.look) and self._file is not None and self._file.written:
                with suppress(OSError):
                    self._file.write(self._file.server, self._certificate.public)


_END_OF_CERTIFICATE = "-----END CERTIFICATE-----"


def leaf_of(chain: str) -> str:
    """The first certificate of a file: who trusts only that one trusts nobody whom the others have signed."""
    return chain[: chain.index(_END_OF_CERTIFICATE) + len(_END_OF_CERTIFICATE)] + "\n"


class TokenFile:
    """The token in a file, read again when the file changes. A file that is gone or empty leaves the last one good."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = 0
        self._token = ""
        self._token = self()
        if not self._token:
            raise FairleadError(f"{path}: the token is empty")

    def __call__(self) -> str:
        try:
            stamp = self._path.stat().st_mtime_ns
            if stamp != self._stamp:
                self._stamp = stamp
                self._token = self._path.read_text().strip() or self._token
        except OSError as error:
            if not self._token:
                raise FairleadError(f"{self._path}: {error.strerror}") from error
        return self._token


def _asked(kubeconfig: Path | None, cluster: Connection, opened: AsyncExitStack) -> KubeApi:
    """An api of its own: a process that stands by may not write, and yet may ask."""
    api = KubeApi(cluster if kubeconfig is None else load_kubeconfig(kubeconfig), attempts=2)
    opened.push_async_callback(api.close)
    return api


def _reachable(flags: PortFlags) -> str:
    """An address of this machine, or pod, by which the port can be reached."""
    if flags.bind_address not in ("0.0.0.0", "::", ""):
        return f"[{flags.bind_address}]" if ":" in flags.bind_address else flags.bind_address
    with suppress(OSError):
        return str(socket.gethostbyname(socket.gethostname()))
    return "127.0.0.1"
