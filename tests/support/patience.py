"""Waiting for a condition: the one loop that sleeps, so that no test guesses how long something takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE = 180.0
"""Seconds until a condition counts as not met; long, because machines are busy."""
_PAUSE = 0.01


async def until(holds: Callable[[], object], what: str = "") -> None:
    """Return once `holds()` is true; fails, saying `what`, if it does not become so."""
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends, f"condition not met within {PATIENCE:g} s: {what}"
        await asyncio.sleep(_PAUSE)


def wait_until(holds: Callable[[], object], what: str = "") -> None:
    """The same where no event loop runs."""
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends, f"condition not met within {PATIENCE:g} s: {what}"
        time.sleep(_PAUSE)
