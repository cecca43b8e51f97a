"""Authorization: the header that a connection's credentials give, asked for anew when it is old.

The source may run a plugin that asks a server of its own, so it is called in a thread, once for all requests that need
it at the same moment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_FRESH_FOR = 60.0
"""Seconds for which a header is used before its source is asked again."""


class Authorization:
    """`source` returns the header's value; None for a connection without one."""

    def __init__(self, source: Callable[[], str] | None) -> None:
        self._source = source
        self._value = ""
        self._since = float("-inf")
        self._asking = asyncio.Lock()

    def __bool__(self) -> bool:
        return self._source is not None

    def expire(self) -> None:
        """The server did not accept it: ask the source before the next request."""
        self._since = float("-inf")

    async def fields(self) -> dict[str, str]:
        """The header, if there is one."""
        if self._source is None:
            return {}
        if time.monotonic() - self._since > _FRESH_FOR:
            async with self._asking:
                if time.monotonic() - self._since > _FRESH_FOR:
                    self._value = await asyncio.to_thread(self._source)
                    self._since = time.monotonic()
        return {"Authorization": self._value}
