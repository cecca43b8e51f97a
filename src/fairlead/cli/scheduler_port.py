"""Who may use the port of `fairlead scheduler`, and over what: its guard and its certificate."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.port_guard import OneToken, Open, Reviews
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.cli.scheduler_flags import PortFlags
    from fairlead.client.credentials import Connection
    from fairlead.cluster.server.port_guard import PortGuard


def guard_of(flags: PortFlags, cluster: Connection, opened: AsyncExitStack) -> PortGuard:
    """A token if one is given; no caller is checked on loopback; elsewhere the API server says who may."""
    if flags.authentication_token_file is not None:
        return OneToken(_token(flags.authentication_token_file))
    if not flags.asks_who:
        return Open()
    return Reviews(
        _asked(flags.authentication_kubeconfig, cluster, opened),
        _asked(flags.authorization_kubeconfig, cluster, opened),
    )


def _asked(kubeconfig: Path | None, cluster: Connection, opened: AsyncExitStack) -> KubeApi:
    """An api of its own: a process that stands by may not write, and yet may ask."""
    api = KubeApi(cluster if kubeconfig is None else load_kubeconfig(kubeconfig), attempts=2)
    opened.push_async_callback(api.close)
    return api


def _token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise FairleadError(f"{path}: {error.strerror}") from error
    if not token:
        raise FairleadError(f"{path}: the token is empty")
    return token


def tls_of(flags: PortFlags) -> ssl.SSLContext | None:
    """The certificate that was given; off loopback one of our own, as the original makes one for itself."""
    if flags.tls_cert_file is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(flags.tls_cert_file, flags.tls_private_key_file)
        except (OSError, ssl.SSLError) as error:
            raise FairleadError(f"{flags.tls_cert_file}: cannot be used: {error}") from error
        return context
    if flags.on_loopback:
        return None
    return Credentials.generate(now=time.time(), hosts=(socket.gethostname(),)).tls()
