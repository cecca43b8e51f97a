"""The string formats that schemas may ask for; formats that are not listed here are not looked at."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from urllib.parse import urlsplit

_HOSTNAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_MAC = re.compile(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}")
_DURATION = re.compile(r"[+-]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h|d|w))+|0")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _date_time(text: str) -> object:
    if not _TIME.fullmatch(text):
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
    "duration": _matches(_DURATION),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _parses(lambda text: ipaddress.ip_network(text, strict=False) if "/" in text else int("no")),
    "uri": _parses(_uri),
    "email": _matches(_EMAIL),
    "hostname": _matches(_HOSTNAME),
    "byte": _parses(lambda text: base64.b64decode(text, validate=True)),
    "uuid": _matches(_UUID),
    "mac": _matches(_MAC),
}
