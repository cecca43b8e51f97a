"""InlineDisks: the disks that pods on nodes name in their own spec, by what makes two of them the same disk.

Few pods do that nowadays, so the index is a dictionary and not a column: a disk leads to the rows where it is mounted
and to how it is mounted there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.core.model.pod_volumes import PodVolume, VolumeSource

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod

EXCLUSIVE = frozenset({VolumeSource.GCE, VolumeSource.EBS, VolumeSource.RBD, VolumeSource.ISCSI})
"""Disks that several pods cannot mount as they like."""
_Key = tuple[VolumeSource, str, str]


def exclusive_disks(pod: Pod) -> Iterator[PodVolume]:
    return (volume for volume in pod.shape.volumes if volume.source in EXCLUSIVE)


def disks_conflict(wanted: PodVolume, mounted: PodVolume) -> bool:
    """Whether two mounts cannot be on one node: the same disk, and not read only on both sides. An EBS disk is never
    shared, and two RBD images are the same only if the clusters have a monitor in common."""
    if (wanted.source, wanted.name, wanted.pool) != (mounted.source, mounted.name, mounted.pool):
        return False
    if wanted.source is VolumeSource.EBS:
        return True
    if wanted.source is VolumeSource.RBD and not set(wanted.monitors) & set(mounted.monitors):
        return False
    return not (wanted.read_only and mounted.read_only)


class InlineDisks:
    def __init__(self) -> None:
        self._mounts: dict[_Key, dict[int, Counter[PodVolume]]] = {}

    def add(self, pod: Pod, row: int) -> None:
        for disk in exclusive_disks(pod):
            self._mounts.setdefault(_key(disk), {}).setdefault(row, Counter())[disk] += 1

    def remove(self, pod: Pod, row: int) -> None:
        for disk in exclusive_disks(pod):
            rows = self._mounts[_key(disk)]
            mounts = rows[row]
            mounts[disk] -= 1
            if not mounts[disk]:
                del mounts[disk]
            if not mounts:
                del rows[row]
            if not rows:
                del self._mounts[_key(disk)]

    def rows_in_conflict(self, wanted: PodVolume) -> set[int]:
        rows = self._mounts.get(_key(wanted), {})
        return {row for row, mounts in rows.items() if any(disks_conflict(wanted, mounted) for mounted in mounts)}

    def __len__(self) -> int:
        return len(self._mounts)


def _key(disk: PodVolume) -> _Key:
    return disk.source, disk.name, disk.pool
