"""Rows for people: the GPUs of a node, in thousandths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.rows import DeviceRow, FamilyRows
from fairlead.gpu_share.gpu_shares import MILLI, gpu_shares_of
from fairlead.gpu_share.share import GpuShare

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler


def device_rows(scheduler: Scheduler, row: int) -> Iterator[DeviceRow]:
    plugins = (plugin for profile in scheduler.profiles.values() for plugin in profile.plugins())
    if not any(isinstance(plugin, GpuShare) for plugin in plugins):
        return
    shares, name_of = gpu_shares_of(scheduler.cluster), scheduler.cluster.table.name
    pods = {pod.uid: pod.key for pod in scheduler.cluster.table.pods[row]}
    holders = shares.holders(row)
    for gpu in range(int(shares.gpus[row])):
        who = tuple(pods.get(uid, uid) for uid in holders.get(gpu, ()))
        yield DeviceRow("gpu", name_of(row), str(gpu), who, {MILLI: str(int(shares.free[row, gpu]))})


ROWS = FamilyRows(devices=device_rows)
