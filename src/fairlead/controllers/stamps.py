"""Times as API documents spell them, both ways.

Objects carry whole seconds in RFC 3339 (`2026-01-02T03:04:05Z`), and Leases carry microseconds. Controllers count in
seconds since the epoch.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


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
