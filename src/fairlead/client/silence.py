"""SilenceProbe: finds out whether watches that all fell silent are idle, or hang on connections that are dead.

A proxy that died, or lost its tables, keeps connections that look alive and carry nothing. Bookmarks would show it
after more than a minute. So after half a minute without a word on any watch one of them is begun again from its last
version, on a new connection to the same address. If that brings an event, the old connection had not: all others are
begun again too. If it cannot be begun, they are as well, and meet the same error. Otherwise nothing has happened, and
the others stay: an idle cluster costs two requests a minute, whatever is watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.client.reflector import Reflector

SILENT_AFTER = 30.0
_ANSWER_WITHIN = 5.0
"""A server that has events begins with them as soon as a watch is there."""


class SilenceProbe:
    def __init__(self, reflectors: Callable[[], Iterable[Reflector]]) -> None:
        self._reflectors = reflectors
        self._turn = 0

    async def run(self) -> None:
        """Until cancelled."""
        probed_at = _now()
        while True:
            # A look for a kind that is absent gets an answer now and then, which says nothing of watches.
            following = [one for one in self._reflectors() if one.is_following]
            contacts = [one.contact_at for one in following if one.contact_at is not None]
            quiet_since = max([probed_at, *contacts])
            if (left := quiet_since + SILENT_AFTER - _now()) > 0:
                await asyncio.sleep(left)
                continue
            await self._probe()
            probed_at = _now()

    async def _probe(self) -> None:
        following = [one for one in self._reflectors() if one.is_following]
        if not following:
            return
        chosen = self._next_of(following)
        before = chosen.contact_at
        chosen.renew()
        await asyncio.sleep(_ANSWER_WITHIN)
        if chosen.contact_at != before or not chosen.is_following:
            for one in following:
                if one is not chosen:
                    one.renew()

    def _next_of(self, following: Sequence[Reflector]) -> Reflector:
        """The one with the latest contact, as something most likely happens where it did; then the others in turn."""
        order = sorted(following, key=lambda one: one.contact_at or 0.0, reverse=True)
        self._turn += 1
        return order[0] if self._turn % 2 else order[self._turn // 2 % len(order)]


def _now() -> float:
    return asyncio.get_running_loop().time()
