"""Times and durations as API documents spell them, both ways.

Objects carry whole seconds in RFC 3339 (`2026-01-02T03:04:05Z`), Leases carry microseconds, and annotations carry
durations as Go prints them (`1h2m3.5s`). Controllers count in seconds since the epoch.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_PART = re.compile(r"([0-9]*\.?[0-9]+)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def stamp(now: float) -> str:
    """A `metav1.Time`."""
    return _stamp(int(now // 1))


@lru_cache(maxsize=256)
def _stamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(now: float) -> str:
    """A `metav1.MicroTime`."""
    micros = round(now * 1_000_000)
    return f"{_stamp(micros // 1_000_000)[:-1]}.{micros % 1_000_000:06d}Z"


@lru_cache(maxsize=4096)
def seconds_of(text: str) -> float:
    """Seconds since the epoch of a Time or MicroTime."""
    return datetime.fromisoformat(text).timestamp()


def duration(text: str) -> float | None:
    """Seconds of `1.5s`, `2m`, `1h30m`, or of a bare number of seconds; None for anything else."""
    text = text.strip()
    if text and _PART.sub("", text) == "":
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
