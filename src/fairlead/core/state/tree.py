"""NodeTree: the order in which kube-scheduler walks nodes: round robin over zones, so that a sample spreads.

Zones stand in the order in which they were first seen, nodes within a zone in the order of their arrival. A node whose
zone changes goes to the end of the new one; an emptied zone is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class NodeTree:
    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}
        self._rows: NDArray[np.int32] | None = None

    def put(self, name: str, zone: str) -> None:
        before = self._zone_of.get(name)
        if before == zone:
            return
        if before is not None:
            self.drop(name)
        self._zones.setdefault(zone, {})[name] = None
        self._zone_of[name] = zone
        self._rows = None

    def drop(self, name: str) -> None:
        zone = self._zone_of.pop(name)
        members = self._zones[zone]
        del members[name]
        if not members:
            del self._zones[zone]
        self._rows = None

    def names(self) -> list[str]:
        return [name for turn in zip_longest(*self._zones.values()) for name in turn if name is not None]

    def rows(self, row_of: Mapping[str, int]) -> NDArray[np.int32]:
        if self._rows is None or len(self._rows) != len(row_of):
            self._rows = np.fromiter((row_of[name] for name in self.names()), dtype=np.int32, count=len(self._zone_of))
        return self._rows
