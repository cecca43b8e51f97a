"""Times as API documents spell them, and seconds since the epoch, which is how everything else counts.

A Kubernetes Time is RFC 3339 in UTC with whole seconds (`2026-01-02T03:04:05Z`); a MicroTime, which Leases and Events
carry, has six more digits.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=256)
def timestamp(seconds: float) -> str:
    """A moment as a Time. Fractions are cut off. All documents of one step have the same."""
    return _timestamp(int(seconds // 1))


@lru_cache(maxsize=64)
def micro_timestamp(seconds: float) -> str:
    """A moment as a MicroTime, rounded to microseconds. All events of one step have the same."""
    micros = round(seconds * 1_000_000)
    return f"{_timestamp(micros // 1_000_000)[:-1]}.{micros % 1_000_000:06d}Z"


@lru_cache(maxsize=4096)
def seconds_of(text: str) -> float:
    """Seconds since the epoch of a Time or MicroTime."""
    return datetime.fromisoformat(text).timestamp()


@lru_cache(maxsize=256)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
