"""Scores of VolumeBinding: how much of a node's storage a pod would use, by storage class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.kube.scoring import percent, rounded
from fairlead.kube.volumes.matching import NO_VOLUME, UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.kube.scoring import BrokenLine
    from fairlead.kube.volumes.matching import Layout


class _Class:
    """The requested amount and the capacity of one class on each row; `there` marks the rows that use the class."""

    def __init__(self, rows: int) -> None:
        self.requested: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        self.capacity: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        self.there: NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)


def capacity_scores(layout: Layout, rows: NDArray[np.int32], line: BrokenLine) -> NDArray[np.int64]:
    """Where a claim takes an existing volume only those count, with their capacities added up; elsewhere the pools of
    the volumes to be made, whose capacity is one and the same for all claims of a class."""
    classes: dict[str, _Class] = {}
    matched = np.zeros(len(rows), dtype=np.bool_)
    for match in layout.matches:
        choice = match.choice[rows]
        matched |= choice != NO_VOLUME
        for number in np.unique(choice[choice != NO_VOLUME]):
            volume, here = layout.volumes[number], choice == number
            share = classes.setdefault(volume.storage_class, _Class(len(rows)))
            share.requested += here * match.claim.request
            share.capacity += here * volume.capacity
            share.there |= here
    for provision in layout.provisions:
        pool = provision.pool[rows]
        here = provision.rows[rows] & (pool != UNKNOWN) & ~matched
        share = classes.setdefault(provision.claim.storage_class, _Class(len(rows)))
        share.requested += here * provision.claim.request
        share.capacity = np.where(here, pool, share.capacity)
        share.there |= here
    return _average(list(classes.values()), len(rows), line)


def _average(classes: list[_Class], size: int, line: BrokenLine) -> NDArray[np.int64]:
    total = np.zeros(size, dtype=np.int64)
    count = np.zeros(size, dtype=np.int64)
    for share in classes:
        over = (share.capacity == 0) | (share.requested > share.capacity)
        shares = np.where(over, 100, percent(np.where(over, 0, share.requested), share.capacity))
        total += np.where(share.there, line(shares), 0)
        count += share.there
    return rounded(total / np.maximum(count, 1))
