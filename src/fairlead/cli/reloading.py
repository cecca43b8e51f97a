"""Following configuration files while a scheduler runs.

Files are looked at and loaded in a thread of their own, so that a large one holds up nobody. What has changed is then a
question to the scheduler, which takes it over between two steps. A file that cannot be used changes nothing; the last
good configuration stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fairlead.assembly.schedulers import Look, Reload

log = logging.getLogger("fairlead.scheduler")

LOOK_EVERY = 1.0
"""Seconds between two looks at the files."""
AskReload = Callable[["Reload"], "Future[Mapping[str, str]]"]


async def follow_files(looks: Sequence[Look], ask: AskReload) -> None:
    """Look at files once a second, until cancelled. `ask` is a runtime's, with the scheduler given."""
    while looks:
        for look in looks:
            await _look(look, ask)
        await asyncio.sleep(LOOK_EVERY)


async def _look(look: Look, ask: AskReload) -> None:
    try:
        reload = await asyncio.to_thread(look)
        if reload is not None:
            loaded = await asyncio.wrap_future(ask(reload))
            log.info("the new configuration is in force", extra=dict(loaded))
    except Exception:
        log.exception("the new configuration cannot be used; the last good one stays in force")


def log_config_change(words: str) -> None:
    """What a ConfigWatcher says, as a line of the log; a file that cannot be used is a warning."""
    log.log(logging.WARNING if "stays in force" in words else logging.INFO, words)
