"""Ring: which of several replicas a name belongs to, as consistent hashing has it.

Every replica has a number of points on a circle of CRC32 values; a name belongs to the first point beyond its own. The
points are Volcano's, so that replicas of it and of this scheduler, side by side, divide a cluster the same way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from zlib import crc32

_POINTS = 20


class Ring:
    """The replicas by name; nobody comes or goes while it is used."""

    def __init__(self, members: Iterable[str]) -> None:
        self.members = tuple(members)
        if not self.members:
            raise ValueError("a ring needs a member")
        owners = {_hash(f"{number}{member}"): member for member in self.members for number in range(_POINTS)}
        self._points = sorted(owners)
        self._owners = [owners[point] for point in self._points]

    def owner(self, name: str) -> str:
        """The replica that a name belongs to."""
        beyond = bisect_right(self._points, _hash(name))
        return self._owners[beyond if beyond < len(self._points) else 0]


def _hash(text: str) -> int:
    return crc32(text.encode())
