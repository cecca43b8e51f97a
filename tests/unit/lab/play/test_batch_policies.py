"""Batch policies as plugins of a scenario file: on four GPUs, who starts when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.lab.command import lab_group
from fairlead.errors import ConfigError
from fairlead.lab import load
from fairlead.lab.play.run import RunKey, play
from fairlead.lab.scenario.batch_policies import BATCH_POLICIES, JobCounts
from fairlead.lab.scenario.reading import read_scenario

JOBS = """\
job,gpus,submit,duration
0,3,0,100
1,4,10,100
2,1,20,50
3,1,30,500
"""
"""The second job needs everything; the third would be done before the first is, the fourth would not."""
SCENARIO = """\
name: pool
cluster:
  nodes: [{count: 1, resources: {cpu: 64, memory: 64Gi, nvidia.com/gpu: 4}}]
loads:
- {name: jobs, trace: {file: jobs.csv, format: pool}}
policies:
- {name: kube}
- {name: first-come, plugins: ["fairlead.lab.scenario.batch_policies:first_come"]}
- policy: fifo
- policy: easy
- {name: shortest, policy: sjf}
- policy: smallest
seeds: [1]
"""


def order(tmp_path: Path, policy: str, jobs: str = JOBS, scenario: str = SCENARIO) -> list[str]:
    """The jobs in the order in which they got their nodes."""
    (tmp_path / "jobs.csv").write_text(jobs)
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario)
    directory = play(read_scenario(file), RunKey(policy, "jobs", 1), tmp_path / "out", base=tmp_path)
    played = load(directory).jobs.sort_values("placed")
    assert played["placed"].notna().all()
    return list(played["job"])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("kube", ["job-0", "job-2", "job-3", "job-1"]),
        ("first-come", ["job-0", "job-1", "job-2", "job-3"]),
        ("fifo", ["job-0", "job-1", "job-2", "job-3"]),
        ("easy", ["job-0", "job-2", "job-1", "job-3"]),
    ],
)
def test_who_overtakes_whom(policy: str, expected: list[str], tmp_path: Path) -> None:
    assert order(tmp_path, policy) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("shortest", ["job-0", "job-2", "job-1", "job-3"]), ("smallest", ["job-0", "job-3", "job-1", "job-2"])],
)
def test_the_queue_is_ordered_by_run_time_or_by_size(policy: str, expected: list[str], tmp_path: Path) -> None:
    """When the first job ends, three wait: the smallest is also the longest."""
    waiting = "job,gpus,submit,duration\n0,4,0,100\n1,4,10,300\n2,4,20,200\n3,3,30,500\n"
    assert order(tmp_path, policy, waiting) == expected


ESTIMATED = "job,gpus,submit,duration,asked\n0,3,0,100,100\n1,4,10,100,100\n2,1,20,50,500\n3,1,30,500,50\n"
BY_ESTIMATE = SCENARIO.replace(
    "format: pool", "columns: {name: job, arrival: submit, gpus: gpus, estimate: asked}, gang: false"
)


def test_easy_goes_by_estimates_where_there_are_some(tmp_path: Path) -> None:
    """The third job would be done in time and the fourth would not; their estimates say the opposite."""
    assert order(tmp_path, "easy", ESTIMATED, BY_ESTIMATE) == ["0", "3", "1", "2"]


def test_the_shortest_job_is_the_one_with_the_shortest_estimate(tmp_path: Path) -> None:
    waiting = "job,gpus,submit,duration,asked\n0,4,0,100,100\n1,4,10,300,1\n2,4,20,200,2\n3,3,30,500,3\n"
    assert order(tmp_path, "shortest", waiting, BY_ESTIMATE) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("policy", ["fifo", "easy"])
def test_counts_of_pods_are_kept_as_if_they_were_counted_anew_each_time(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh, seen = JobCounts.refresh, []

    def compared(self: JobCounts) -> None:
        refresh(self)
        fresh = JobCounts(self._cluster, self._jobs)
        seen.append((self.waiting, self.placed, self.first) == (fresh.waiting, fresh.placed, fresh.first))

    monkeypatch.setattr(JobCounts, "refresh", compared)
    order(tmp_path, policy)
    assert len(seen) > 10
    assert all(seen)


def test_a_batch_policy_of_rounds_and_an_unknown_one_are_refused_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(JOBS)
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO.replace("- policy: fifo", "- {policy: fifo, volcano: default}"))
    with pytest.raises(ConfigError, match=r"scenario\.yaml:9: .*fifo has no effect on Volcano's rounds"):
        read_scenario(file)
    file.write_text(SCENARIO.replace("- policy: fifo", "- policy: fiffo"))
    with pytest.raises(ConfigError, match=r"scenario\.yaml:9: .*one of fifo, easy, sjf, smallest"):
        read_scenario(file)


def test_the_schema_and_the_help_list_the_batch_policies() -> None:
    schema = json.loads(CliRunner().invoke(lab_group, ["schema"]).output)
    assert schema["properties"]["policies"]["items"]["properties"]["policy"]["enum"] == list(BATCH_POLICIES)
    said = CliRunner().invoke(lab_group, ["--help"]).output
    assert all(name in said for name in BATCH_POLICIES)
