"""Who may use the port of `fairlead scheduler`, and over what: its bearer token and its certificate."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING

from fairlead.api.server.pki import Credentials
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.cli.scheduler_flags import PortFlags


def token_of(flags: PortFlags) -> str:
    path = flags.authentication_token_file
    try:
        token = path.read_text().strip() if path is not None else ""
    except OSError as error:
        raise FairleadError(f"{path}: {error.strerror}") from error
    if path is not None and not token:
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
