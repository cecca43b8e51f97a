"""Batch policies as plugins of a scenario file: on four GPUs, who starts when."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.lab import load
from fairlead.lab.play.run import RunKey, play
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
- {name: easy, plugins: ["fairlead.lab.scenario.batch_policies:easy"]}
- {name: shortest, plugins: ["fairlead.lab.scenario.batch_policies:shortest_first"]}
- {name: smallest, plugins: ["fairlead.lab.scenario.batch_policies:smallest_first"]}
seeds: [1]
"""


def order(tmp_path: Path, policy: str, jobs: str = JOBS) -> list[str]:
    """The jobs in the order in which they got their nodes."""
    (tmp_path / "jobs.csv").write_text(jobs)
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    directory = play(read_scenario(file), RunKey(policy, "jobs", 1), tmp_path / "out", base=tmp_path)
    played = load(directory).jobs.sort_values("placed")
    assert played["placed"].notna().all()
    return list(played["job"])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("kube", ["job-0", "job-2", "job-3", "job-1"]),
        ("first-come", ["job-0", "job-1", "job-2", "job-3"]),
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
