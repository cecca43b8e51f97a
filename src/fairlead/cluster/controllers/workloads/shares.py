"""Numbers that documents give as a count or as a share of another number: `2`, `"30%"`."""

from __future__ import annotations


def share(value: int | str, whole: int, *, round_up: bool) -> int:
    """As many as `value` says; a percentage is one of `whole`."""
    if isinstance(value, int):
        return value
    part = int(value.removesuffix("%")) * whole
    return -(-part // 100) if round_up else part // 100
