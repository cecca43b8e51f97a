"""Job lists of papers read as jobs of a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.core.model.flow import Doc
from fairlead.errors import ConfigError
from fairlead.lab.scenario.jobs import LabJob, jobs_of
from fairlead.lab.scenario.records import JobTraceSpec, LoadSpec, NodeTraceSpec
from fairlead.lab.scenario.traces import nodes_of_trace

LINES = {
    "omega": "job,workload,submitted,tasks,duration,cpus,mem\n7,Service,0.0,3,19.5,0.5,1.0\n",
    "pool": "job,gpus,submit,duration,estimate\n7,3,0,20,300\n",
    "shockwave": "job,job_type,steps,gpus,adaptation,static_seconds,arrival\n7,LM (batch size 10),9,3,gns,40,0\n",
    "gavel": "job,unit_arrival,job_type,gpus,v100_seconds,steps\n7,0.0,LM (batch size 10),3,10.5,9\n",
}


def read(tmp_path: Path, form: str, **more: object) -> list[LabJob]:
    file = tmp_path / f"{form}.csv"
    file.write_text(LINES[form])
    return jobs_of(LoadSpec("load", trace=JobTraceSpec(file=file, format=form, **more)), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "name", "job_class", "seconds"),
    [("omega", "service-7", "service", 19.5), ("pool", "job-7", "job", 20.0), ("shockwave", "job-7", "lm", 40.0),
     ("gavel", "job-7", "lm", 10.5)],
)  # fmt: skip
def test_a_line_is_a_gang_of_a_pod_for_each_task_or_gpu(
    form: str, name: str, job_class: str, seconds: float, tmp_path: Path
) -> None:
    (job,) = read(tmp_path, form)
    assert (job.name, job.job_class, job.pods, job.minimum, job.duration) == (name, job_class, 3, 3, seconds)
    wanted = {"cpu": "500m", "memory": str(1 << 30)} if form == "omega" else {"nvidia.com/gpu": "1"}
    assert job.resources == wanted


def test_jobs_that_are_no_gangs_may_run_in_part(tmp_path: Path) -> None:
    (job,) = read(tmp_path, "omega", gang=False)
    assert (job.pods, job.minimum) == (3, 1)


def test_the_mean_gap_of_gavels_arrivals_leaves_run_times_alone(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(LINES["gavel"] + "8,0.5,LM (batch size 10),1,10.5,9\n")
    jobs = jobs_of(LoadSpec("load", trace=JobTraceSpec(file=file, format="gavel", time_scale=1800.0)), 1)
    assert [(job.arrival, job.duration) for job in jobs] == [(0.0, 10.5), (900.0, 10.5)]


def test_a_list_of_another_form_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(LINES["pool"])
    with pytest.raises(ConfigError, match="has no column workload"):
        jobs_of(LoadSpec("load", trace=JobTraceSpec(file=file, format="omega")), 1)


def test_a_machine_of_omegas_cell_offers_what_is_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "cell.csv"
    file.write_text("machine,cpus,mem\n0,0,0\n1,1.5,4\n")
    nodes: list[Doc] = nodes_of_trace(NodeTraceSpec(file=file, format="omega"), now=0.0)
    offered = [(node["metadata"]["name"], node["status"]["allocatable"]) for node in nodes]
    assert [(name, amounts["cpu"], amounts["memory"]) for name, amounts in offered] == [
        ("machine-0", "4000m", str(16 << 30)),
        ("machine-1", "2500m", str(12 << 30)),
    ]
