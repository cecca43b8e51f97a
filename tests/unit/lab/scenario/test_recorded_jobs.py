"""Recorded jobs: tables with totals that are split over nodes, public archives, and lists drawn anew for each seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.errors import ConfigError
from fairlead.lab.scenario.jobs import LabJob, jobs_of
from fairlead.lab.scenario.recorded_jobs import equal_parts
from fairlead.lab.scenario.records import JobTraceSpec, LoadSpec

GPU = "nvidia.com/gpu"


def read(tmp_path: Path, text: str, seed: int = 1, *, largest: float = 8.0, **fields: Any) -> list[LabJob]:
    file = tmp_path / "jobs.csv"
    file.write_text(text)
    load = LoadSpec("load", trace=JobTraceSpec(file=file, **fields))
    return jobs_of(load, seed, largest=lambda resource: largest)


def shape(job: LabJob) -> tuple[int, str]:
    return job.pods, job.resources.get(GPU, "")


def test_gpus_of_a_job_are_split_into_the_fewest_equal_pods_that_fit_on_nodes(tmp_path: Path) -> None:
    text = "arrival,duration,gpus\n" + "".join(f"{at},10,{gpus}\n" for at, gpus in enumerate((1, 8, 12, 16, 13, 0)))
    jobs = read(tmp_path, text, columns={"gpus": "gpus"})
    assert [shape(job) for job in jobs] == [(1, "1"), (1, "8"), (2, "6"), (2, "8"), (13, "1"), (1, "")]
    assert [job.minimum for job in jobs] == [job.pods for job in jobs]
    assert [job.line for job in jobs] == [2, 3, 4, 5, 6, 7]
    assert shape(read(tmp_path, text, columns={"gpus": "gpus"}, per_pod=4)[1]) == (2, "4")


def test_a_column_called_gpus_that_is_a_resource_of_pods_is_not_split(tmp_path: Path) -> None:
    (job,) = read(tmp_path, "arrival,duration,gpus\n0,10,16\n", resources={GPU: "gpus"})
    assert shape(job) == (1, "16")


def test_gpus_cannot_be_split_where_no_node_is_known_to_have_any(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no node is known to have nvidia.com/gpu.*perPod"):
        read(tmp_path, "arrival,duration,gpus\n0,10,16\n", largest=0.0, columns={"gpus": "gpus"})


@pytest.mark.parametrize(
    ("line", "said"), [("0,10,2,0.5", "0.5 is not a whole number"), ("0,10,3,8", "8 GPUs cannot be divided among 3")]
)
def test_gpus_that_cannot_be_split_are_refused_with_their_line(line: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"jobs\.csv:2.*{said}"):
        read(tmp_path, f"arrival,duration,pods,gpus\n{line}\n", columns={"gpus": "gpus"})


def test_equal_parts_are_as_few_as_possible() -> None:
    assert [equal_parts(amount, 8) for amount in (0, 8, 9, 10, 64)] == [1, 1, 3, 2, 8]


def test_an_estimate_is_read_from_its_column(tmp_path: Path) -> None:
    text = "arrival,duration,cpu,memory,asked\n0,10,1,1Gi,1h\n1,10,1,1Gi,\n"
    jobs = read(tmp_path, text, columns={"estimate": "asked"})
    assert [job.estimate for job in jobs] == [3600.0, None]


HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,ann,vc1,16,64,2,COMPLETED,2020-04-01 00:00:17,2020-04-01 00:00:20,2020-04-01 01:00:20,3600,3
8,bob,vc2,0,4,1,FAILED,2020-04-01 00:01:17,2020-04-01 00:01:20,2020-04-01 00:01:30,10,3
"""


def test_a_table_of_helios_is_read_as_it_is(tmp_path: Path) -> None:
    first, second = read(tmp_path, HELIOS, format="helios")
    assert (first.name, first.user, first.queue) == ("7", "ann", "vc1")
    assert (first.pods, dict(first.resources), first.duration) == (2, {GPU: "8", "cpu": "32000m"}, 3600.0)
    assert (second.arrival, dict(second.resources)) == (60.0, {"cpu": "4000m"})


def test_a_table_like_phillys_has_starts_and_ends_and_jobs_that_never_began(tmp_path: Path) -> None:
    text = (
        "jobid,user,vc,submitted_time,start_time,end_time,gpus,status\n"
        "a_1,u,v,2017-10-09 07:02:13,2017-10-09 07:02:53,2017-10-09 07:03:53,4,Pass\n"
        "a_2,u,v,2017-10-09 07:05:13,None,None,4,Killed\n"
    )
    (job,) = read(tmp_path, text, format="philly")
    assert (job.name, job.duration, shape(job)) == ("a-1", 60.0, (1, "4"))
    with pytest.raises(ConfigError, match=r"jobs\.csv:2.*before the start"):
        read(tmp_path, text.replace("07:03:53", "07:01:53"), format="philly")


SWF = """\
; Version: 2.2
; MaxProcs: 128
  1  0  5  100  16 -1 -1  16  200 -1 1  3 1 -1 2 -1 -1 -1
  2 10 -1   -1  -1 -1 -1   8  300 -1 5  3 1 -1 1 -1 -1 -1
  3 20  1   50  -1 -1 -1   4   -1 -1 1 -1 1 -1 1 -1 -1 -1
  3 20  1   25   4 -1 -1   4   -1 -1 2 -1 1 -1 1 -1 -1 -1
"""


def test_the_standard_workload_format_is_read(tmp_path: Path) -> None:
    first, third = read(tmp_path, SWF, format="swf")
    assert (first.name, first.user, first.queue, first.estimate) == ("job-1", "user-3", "queue-2", 200.0)
    assert (first.pods, dict(first.resources), first.duration, first.line) == (2, {"cpu": "8"}, 100.0, 3)
    assert (third.pods, dict(third.resources), third.estimate, third.user) == (1, {"cpu": "4"}, None, "")


@pytest.mark.parametrize(("cut", "said"), [(-14, "has 13 numbers"), (-2, "has 17 numbers")])
def test_a_line_of_that_format_that_breaks_off_is_refused(cut: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"jobs\.csv:6.*{said}"):
        read(tmp_path, SWF.rstrip()[:cut] + "\n", format="swf")


PLAIN = "arrival,duration,cpu,memory\n" + "".join(f"{10 * at},{at + 1},1,1Gi\n" for at in range(20))


def timed(jobs: list[LabJob]) -> list[tuple[float, float | None]]:
    return [(job.arrival, job.duration) for job in jobs]


def test_a_bootstrap_draws_other_jobs_with_each_seed_and_the_same_with_the_same(tmp_path: Path) -> None:
    recorded = timed(read(tmp_path, PLAIN))
    first, again, other = (timed(read(tmp_path, PLAIN, seed, order="bootstrap")) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == len(recorded)
    shift = {(arrival - (duration or 0) * 10) for arrival, duration in first}
    assert len(shift) == 1  # each with its own time, but for where the list begins
    assert len(set(first)) < len(recorded)


def test_jitter_moves_arrivals_by_no_more_than_it_says(tmp_path: Path) -> None:
    recorded = {job.name: job.arrival for job in read(tmp_path, PLAIN)}
    jobs = read(tmp_path, PLAIN, jitter=3.0)
    moved = [job.arrival - recorded[job.name] for job in jobs]
    assert max(moved) - min(moved) <= 6
    assert len(set(moved)) == len(moved)
    assert min(job.arrival for job in jobs) == 0


def test_dates_and_plain_numbers_of_eight_digits_are_distinguished(tmp_path: Path) -> None:
    assert timed(read(tmp_path, "arrival,duration,cpu,memory\n0,1,1,1Gi\n20200101,1,1,1Gi\n"))[1][0] == 20200101
    dated = "arrival,duration,cpu,memory\n2020-01-01T00:00:00Z,1,1,1Gi\n2020-01-01 00:01,1,1,1Gi\n"
    assert timed(read(tmp_path, dated))[1][0] == 60
