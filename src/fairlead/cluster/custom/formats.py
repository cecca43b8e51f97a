"""The string formats that schemas may request; formats that are not listed here are not looked at."""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Callable
from datetime import date, datetime
from urllib.parse import urlsplit

from fairlead.cel.patterns import pattern

_HOSTNAME = pattern(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*")
_ATOM = r"[^\x00-\x20()<>\[\]:;@\\,.\"\x7f]+"
_ADDRESS = rf"(?:{_ATOM}(?:\.{_ATOM})*|\"(?:[^\"\\]|\\.)*\")@(?:{_ATOM}(?:\.{_ATOM})*|\[[^\[\]\\]*\])"
_EMAIL = pattern(rf"\s*(?:{_ADDRESS}|(?:[^<>@\"\\]|\"(?:[^\"\\]|\\.)*\")*<{_ADDRESS}>)\s*")
"""An address with or without a name, as Go's net/mail reads it."""
_UUID = pattern(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_MAC = pattern(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}")
_DURATION = pattern(r"[+-]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h|d|w))+|0")
_TIME = pattern(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _date_time(text: str) -> object:
    if not _TIME.is_all_of(text):
        raise ValueError(text)
    return datetime.fromisoformat(text.upper().replace(" ", "T"))


def _uri(text: str) -> object:
    if not urlsplit(text).scheme and not text.startswith("/"):
        raise ValueError(text)
    return text


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _parses(_date_time),
    "datetime": _parses(_date_time),
    "date": _parses(date.fromisoformat),
    "duration": _DURATION.is_all_of,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _parses(lambda text: ipaddress.ip_network(text, strict=False) if "/" in text else int("no")),
    "uri": _parses(_uri),
    "email": _EMAIL.is_all_of,
    "hostname": _HOSTNAME.is_all_of,
    "byte": _parses(lambda text: base64.b64decode(text, validate=True)),
    "uuid": _UUID.is_all_of,
    "mac": _MAC.is_all_of,
}
