"""Batch policies on a pool of GPUs: reservations that can be seen, and what is kept for whom."""

from __future__ import annotations

import pytest

from papers.queues.backfill import ConservativeBackfill, EasyBackfill
from papers.queues.policies import POLICIES
from papers.queues.pool import GpuPool, QueueJob, play


def job(id: int, gpus: int, submit: int, duration: int, estimate: int | None = None) -> QueueJob:
    return QueueJob(id, gpus, submit, duration, estimate or duration)


def test_a_short_job_overtakes_only_if_it_ends_before_the_reservation() -> None:
    jobs = [job(0, 3, 0, 100), job(1, 4, 1, 50), job(2, 1, 2, 98), job(3, 1, 3, 200)]
    play(EasyBackfill(GpuPool(4)), jobs)
    assert [one.start for one in jobs] == [0, 100, 2, 150]


def test_the_reservation_of_the_first_waiting_job_is_visible() -> None:
    pool = GpuPool(4)
    policy = EasyBackfill(pool)
    first, second = job(0, 3, 0, 10, estimate=100), job(1, 4, 0, 50)
    for one in (first, second):
        policy.arrived(one)
    policy.schedule()
    assert policy.reserved == (second, 100)


def test_conservative_backfilling_reserves_for_everybody() -> None:
    policy = ConservativeBackfill(GpuPool(4))
    for one in (job(0, 3, 0, 10, estimate=100), job(1, 4, 0, 50), job(2, 2, 0, 10)):
        policy.arrived(one)
        policy.schedule()
    assert policy.reserved == {1: 100, 2: 150}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_ends_every_job(name: str) -> None:
    jobs = [job(id, 1 + id % 4, 7 * id, 30 + 1700 * (id % 3)) for id in range(40)]
    play(POLICIES[name](GpuPool(4)), jobs)
    assert all(one.end is not None and one.executed == one.duration for one in jobs)


def test_a_job_larger_than_the_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="job 0 wants 9 GPUs, and the pool has 8"):
        play(POLICIES["fifo"](GpuPool(8)), [job(0, 9, 0, 1)])
