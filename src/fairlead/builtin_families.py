"""The families that come with fairlead, and those of installed distributions. Core calls `named_families` by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

BUILT_IN = (
    "fairlead.kube.family:FAMILY",
    "fairlead.volcano.family:FAMILY",
    "fairlead.koordinator.family:FAMILY",
    "fairlead.gpu_share.family:FAMILY",
)
"""Listed here instead of in entry points, because an editable install keeps the entry points of the commit at which it
was made."""
GROUP = "fairlead.families"
"""The group of entry points by which installed distributions add families."""


def named_families() -> tuple[str, ...]:
    """The "module:name" of every record: the built-in ones, then those of entry points by name."""
    if not any(GROUP.encode() in text for text in _entry_point_files()):
        return BUILT_IN
    from importlib.metadata import entry_points

    added = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return (*BUILT_IN, *(f"{entry.module}:{entry.attr}" for entry in added))


def _entry_point_files() -> Iterator[bytes]:
    """The texts of the entry points of installed distributions. Looking into them takes a millisecond, and importing
    importlib.metadata half as long as all of `fairlead --help`, so that it is imported where there is a family."""
    for folder in (path or "." for path in sys.path):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(f"{folder}/{name}/entry_points.txt", "rb") as file:
                        yield file.read()
                except OSError:
                    continue
