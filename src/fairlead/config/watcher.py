"""ConfigWatcher: looks at a configuration file when asked, and says whether there is a new configuration.

A look reads the file only if its time, size or inode changed, and loads it only if its content did. A broken file
changes nothing: the last good configuration stays in force, and the error is reported once for each content.

    SAME ── stamp and content as before, or a broken content that was reported already
    CHANGED ── a new configuration is in force
    INVALID ── the file cannot be used; the last good configuration is kept

Invariant: `current` is always a configuration that loaded without error.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

from fairlead.config.source import read_text
from fairlead.errors import ConfigError

Config = TypeVar("Config")
Stamp = tuple[int, int, int]
Load = Callable[[str], Config]
"""Turns the text of the file into a configuration, or raises ConfigError."""
Notify = Callable[[str], None]


class ReloadOutcome(Enum):
    SAME = "same"
    CHANGED = "changed"
    INVALID = "invalid"


class ConfigWatcher(Generic[Config]):
    """Watches one file. The first load happens here and raises, because there is nothing yet to fall back to."""

    def __init__(self, path: str | pathlib.Path, load: Load[Config], notify: Notify) -> None:
        self._path = pathlib.Path(path)
        self._load = load
        self._notify = notify
        self._stamp = self._stamp_now()
        self._text = read_text(self._path)
        self._trouble = ""
        self.current: Config = load(self._text)

    @property
    def trouble(self) -> str:
        """What is wrong with the file as it is now; empty if it is in force."""
        return self._trouble

    def look(self) -> ReloadOutcome:
        """Look at the file once."""
        stamp = self._stamp_now()
        if stamp == self._stamp and stamp is not None:
            return ReloadOutcome.SAME
        try:
            text = read_text(self._path)
        except ConfigError as error:
            return self._invalid(str(error))
        self._stamp = stamp
        return self._consider(text)

    def _consider(self, text: str) -> ReloadOutcome:
        if text == self._text:
            if self._trouble:
                self._notify(f"{self._path}: the file is again as it was when it was loaded")
            self._trouble = ""
            return ReloadOutcome.SAME
        try:
            config = self._load(text)
        except ConfigError as error:
            return self._invalid(str(error))
        self._text, self._trouble = text, ""
        changed = config != self.current
        self.current = config
        self._notify(f"{self._path}: configuration reloaded" if changed else f"{self._path}: nothing changed in effect")
        return ReloadOutcome.CHANGED if changed else ReloadOutcome.SAME

    def _invalid(self, trouble: str) -> ReloadOutcome:
        if trouble == self._trouble:
            return ReloadOutcome.SAME
        self._trouble = trouble
        self._notify(f"{trouble}\n{self._path}: the last good configuration stays in force")
        return ReloadOutcome.INVALID

    def _stamp_now(self) -> Stamp | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)
