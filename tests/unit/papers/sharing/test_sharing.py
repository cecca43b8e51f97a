"""Sharing GPUs in rounds: fair shares in time, and types that suit a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.lab.omega.setup import ExperimentError
from papers.reference.shockwave import static_report
from papers.sharing.max_min import MaxMinBySpeed
from papers.sharing.rounds import SharingJob, run_rounds
from papers.sharing.shares import SHARE_POLICIES, FinishTimeShares


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


def test_by_speed_a_job_moves_to_a_faster_type_that_has_become_free() -> None:
    def pair() -> list[SharingJob]:
        return [SharingJob(0, 0.0, 720.0, (2.0, 1.0)), SharingJob(1, 0.0, 1080.0, (2.0, 1.0))]

    assert run_rounds(SHARE_POLICIES["fifo"]((1, 1)), pair(), range(2)) == (360 + 1080) / 2
    assert run_rounds(SHARE_POLICIES["fifo_perf"]((1, 1)), pair(), range(2)) == (360 + 720) / 2


def test_a_job_that_fell_behind_gets_the_larger_share() -> None:
    late, early = SharingJob(0, 0.0, 1000.0, (1.0,)), SharingJob(1, 900.0, 1000.0, (1.0,))
    shares = FinishTimeShares((1,)).shares([late, early], 900.0)
    assert shares[0][0] > shares[1][0]
    assert 0.99 < sum(share for (share,) in shares.values()) <= 1.0


def test_a_job_of_several_gpus_gets_all_of_them_or_none() -> None:
    wide, narrow = SharingJob(0, 0.0, 360.0, (1.0,), gpus=4), SharingJob(1, 0.0, 360.0, (1.0,))
    run_rounds(SHARE_POLICIES["max_min_fairness"]((4,)), [wide, narrow], range(2))
    assert sorted([wide.end, narrow.end]) == [360.0, 720.0]


def test_first_come_lets_nobody_overtake_a_wide_job() -> None:
    jobs = [SharingJob(0, 0.0, 360.0, (1.0,), gpus=3), SharingJob(1, 0.0, 360.0, (1.0,), gpus=2)]
    jobs.append(SharingJob(2, 0.0, 360.0, (1.0,)))
    run_rounds(SHARE_POLICIES["fifo"]((4,)), jobs, range(3))
    assert [job.end for job in jobs] == [360.0, 720.0, 720.0]


def test_max_min_divides_gpu_time_and_not_jobs() -> None:
    jobs = [SharingJob(0, 0.0, 1.0, (1.0,), gpus=4), SharingJob(1, 0.0, 1.0, (1.0,), gpus=1)]
    shares = SHARE_POLICIES["max_min_fairness"]((4,)).shares(jobs, 0.0)
    assert shares == {0: (0.75,), 1: (1.0,)}


def test_max_min_by_speed_gives_each_job_the_type_that_suits_it() -> None:
    jobs = [SharingJob(0, 0.0, 1.0, (4.0, 1.0)), SharingJob(1, 0.0, 1.0, (1.0, 1.0))]
    shares = SHARE_POLICIES["max_min_fairness_perf"]((1, 1)).shares(jobs, 0.0)
    assert shares[0] == pytest.approx((1.0, 0.0), abs=1e-6)
    assert shares[1] == pytest.approx((0.0, 1.0), abs=1e-6)


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_max_min_by_speed_uses_no_more_than_there_is_and_no_level_is_below_an_equal_share(
    drawn: list[tuple[int, int, int]],
) -> None:
    policy = MaxMinBySpeed((8, 4))
    jobs = [
        SharingJob(at, 0.0, 1.0, (float(fast), float(slow)), gpus=min(4, gpus))
        for at, (gpus, fast, slow) in enumerate(drawn)
    ]
    shares = policy.shares(jobs, 0.0)
    assert all(sum(share) <= 1 + 1e-6 for share in shares.values())
    for kind, capacity in enumerate(policy.capacity):
        assert sum(shares[job.id][kind] * job.gpus for job in jobs) <= capacity + 1e-6
    levels = {}
    for job in jobs:
        equal = (8 * job.speeds[0] + 4 * job.speeds[1]) / 12
        levels[job.id] = job.gpus * sum(s * v for s, v in zip(shares[job.id], job.speeds, strict=True)) / equal
    fair = min(12 / len(jobs), min(job.gpus for job in jobs))
    assert min(levels.values()) >= fair - 1e-6


def test_shockwaves_jobs_run_as_static_work_beside_the_published_figures(tmp_path: Path) -> None:
    (tmp_path / "throughputs_v100.csv").write_text("job_type,gpus,steps\n")
    published = {"makespan": 500, "avg_jct": 300, "worst_ftf": 2, "unfair_fraction_pct": 50, "cluster_util": 0.5}
    (tmp_path / "results.json").write_text(json.dumps({"canonical/allox": published, "fidelity-physical/allox": {}}))
    (tmp_path / "jobs120.csv").write_text("job,gpus,static_seconds,arrival\n0,32,240,0\n1,16,240,0\n")
    rows = list(static_report(tmp_path, 120))
    assert [row[:2] for row in rows] == [
        ("ours", "fifo"),
        ("ours", "max_min_fairness"),
        ("ours", "finish_time_fairness"),
        ("published", "allox"),
    ]
    first = rows[0][2]
    assert (first.makespan, first.mean_seconds) == (480, 360)
    assert first.utilisation == pytest.approx((32 * 240 + 16 * 240) / (480 * 32))
    assert rows[-1][2].unfair == 0.5


def test_a_list_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="not Shockwave's traces"):
        list(static_report(tmp_path, 120))
