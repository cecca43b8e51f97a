"""The batch policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from papers.queues.attained import AttainedService
from papers.queues.backfill import ConservativeBackfill, EasyBackfill
from papers.queues.first_come import FirstCome
from papers.queues.preemptive import SortedPreemptive

if TYPE_CHECKING:
    from papers.queues.pool import GpuPool, PoolPolicy

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
