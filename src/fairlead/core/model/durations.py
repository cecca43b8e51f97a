"""Durations as Go writes them (`1m30s`), to seconds and back.

Configuration files of Kubernetes are full of them, and what is written back has to look the same. Errors are Go's.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_PLAIN_SECONDS = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}s")
"""Seconds as most programs write them. So many digits are neither too long nor rounded before they are a float."""
_LONGEST = 2**63 - 1


def parse_duration(text: str, *, unit: str = "") -> float:
    """Seconds. Raises ValueError in Go's words. A number alone is wrong, unless a unit is given for it."""
    if _PLAIN_SECONDS.fullmatch(text):
        return float(text[:-1])
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0.0
    if unit and body.replace(".", "", 1).isdecimal():
        body += unit
    if not body:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    total, at = Decimal(0), 0
    while at < len(body):
        part = _PART.match(body, at)
        assert part is not None, "the pattern also matches nothing"
        total += _nanoseconds(part, text)
        at = part.end()
    if total > _LONGEST:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    return float((-total if text[0] == "-" else total) / 10**9)


def _nanoseconds(part: re.Match[str], text: str) -> Decimal:
    whole, fraction, unit = part.group(1), part.group(2) or "", part.group(3)
    if not whole and not fraction:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    if not unit:
        raise ValueError(f"time: missing unit in duration {_quoted(text)}")
    if unit not in _UNITS:
        raise ValueError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
    return Decimal(f"{whole or '0'}.{fraction or '0'}") * _UNITS[unit]


def format_duration(seconds: float) -> str:
    """`90.0` as `1m30s`, `0.01` as `10ms`."""
    nanoseconds = round(Decimal(str(seconds)) * 10**9)
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest == 0:
        return "0s"
    if rest < 10**9:
        unit = next(unit for unit in ("ms", "µs", "ns") if rest >= _UNITS[unit])
        return f"{sign}{_trimmed(rest, _UNITS[unit])}{unit}"
    minutes, rest = divmod(rest, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_trimmed(rest, 10**9)}s"


def _trimmed(value: int, unit: int) -> str:
    text = f"{Decimal(value) / unit:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
