"""volcano-scheduler.conf as frozen records, for the rest of fairlead.

Switches are kept as they are spelt in the file, because their spelling is part of the format. What a file does not say
is not filled in here: every switch is on unless it is named, but for `enableHierarchy`, and every argument has the
default that its plugin gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.volcano.records.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from fairlead.config.problems import Path
    from fairlead.config.source import Source

HIERARCHY = "enableHierarchy"


@dataclass(frozen=True, slots=True)
class ListedPlugin:
    """A plugin in its tier. `path` is where it stands in the file."""

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    path: Path = field(default=(), compare=False)

    def on(self, switch: str, *, default: bool = True) -> bool:
        return self.switches.get(switch, default)


@dataclass(frozen=True, slots=True)
class VolcanoConfig:
    """`quirks` are the behaviours of the original that are kept. `notices` are settings that were ignored because one
    of them says so."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[ListedPlugin, ...], ...]
    configurations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    quirks: Quirks = FIXED
    notices: tuple[str, ...] = field(default=(), compare=False)
    source: Source | None = field(default=None, compare=False, repr=False)

    def plugins(self) -> list[ListedPlugin]:
        """All of them, tier by tier."""
        return [plugin for tier in self.tiers for plugin in tier]

    def find(self, name: str) -> ListedPlugin | None:
        """The one of that name that answers: where a plugin is listed twice, the last."""
        return next((plugin for plugin in reversed(self.plugins()) if plugin.name == name), None)

    def has(self, *names: str) -> bool:
        return all(self.find(name) is not None for name in names)

    def line(self, path: Path) -> int | None:
        return self.source.line(path) if self.source is not None else None
