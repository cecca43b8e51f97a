"""The batch policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from fairlead.lab.queues.attained import AttainedService
from fairlead.lab.queues.backfill import ConservativeBackfill, EasyBackfill
from fairlead.lab.queues.first_come import FirstCome
from fairlead.lab.queues.preemptive import SortedPreemptive

if TYPE_CHECKING:
    from fairlead.lab.queues.pool import GpuPool, PoolPolicy

POLICIES: Mapping[str, Callable[[GpuPool], PoolPolicy]] = {
    "fifo": FirstCome,
    "fcfs": FirstCome,
    "fifo-skip": partial(FirstCome, skipping=True),
    "smallest": partial(SortedPreemptive, key=lambda job, now: job.gpus),
    "srtf": partial(SortedPreemptive, key=lambda job, now: job.remaining(now)),
    "srtf-gpu": partial(SortedPreemptive, key=lambda job, now: job.remaining(now) * job.gpus),
    "las": AttainedService,
    "las-gpu": partial(AttainedService, by_gpus=True),
    "easy": EasyBackfill,
    "easy-sjbf": partial(EasyBackfill, shortest=True),
    "conservative": ConservativeBackfill,
}
