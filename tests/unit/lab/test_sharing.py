"""Sharing GPUs in rounds: fair shares in time, and types that suit a job."""

from __future__ import annotations

from fairlead.lab.sharing.rounds import SharingJob, run_rounds
from fairlead.lab.sharing.shares import SHARE_POLICIES, FinishTimeShares


def test_two_jobs_share_one_gpu_by_turns() -> None:
    jobs = [SharingJob(0, 0.0, 720.0, (1.0,)), SharingJob(1, 0.0, 720.0, (1.0,))]
    assert run_rounds(SHARE_POLICIES["max_min_fairness"]((1,)), jobs, range(2)) == (1080 + 1440) / 2


def test_first_come_runs_the_first_to_its_end() -> None:
    jobs = [SharingJob(0, 0.0, 720.0, (1.0,)), SharingJob(1, 0.0, 720.0, (1.0,))]
    assert run_rounds(SHARE_POLICIES["fifo"]((1,)), jobs, range(2)) == (720 + 1440) / 2


def test_only_the_policy_that_looks_at_speeds_takes_the_faster_type() -> None:
    def job() -> list[SharingJob]:
        return [SharingJob(0, 0.0, 720.0, (1.0, 2.0))]

    assert run_rounds(SHARE_POLICIES["fifo"]((1, 1)), job(), range(1)) == 720
    assert run_rounds(SHARE_POLICIES["fifo_perf"]((1, 1)), job(), range(1)) == 360


def test_a_job_that_fell_behind_gets_the_larger_share() -> None:
    late, early = SharingJob(0, 0.0, 1000.0, (1.0,)), SharingJob(1, 900.0, 1000.0, (1.0,))
    shares = FinishTimeShares((1,)).shares([late, early], 900.0)
    assert shares[0][0] > shares[1][0]
    assert 0.99 < sum(share for (share,) in shares.values()) <= 1.0
