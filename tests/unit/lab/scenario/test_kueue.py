"""The loads of Kueue's performance test through our queues, in virtual time: the baseline with a tenth of its workloads
and one cohort of five, the large-scale load with ten of its thousand queues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlead.lab.play.run import LabRun
from fairlead.lab.scenario.jobs import jobs_of
from fairlead.lab.scenario.reading import read_scenario
from fairlead.lab.scenario.records import JobClassSpec, LabScenario, QueueSpec

EXAMPLES = Path(__file__).parents[4] / "examples"
COHORT, CORES = "cohort-0", 120


class _Jobs:
    """Keeps the rows of jobs: queue, cores, when each was placed and ended."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, float, float]] = []

    def add(self, table: str, *row: Any) -> None:
        if table == "jobs":
            self.rows.append((row[2], row[7], row[12], row[14]))


def _smaller(scenario: LabScenario, *, part: int, queues: int, cores: int) -> LabScenario:
    """One cohort with so many queues and cores, and a part of each queue's workloads."""

    def fewer(jobs: JobClassSpec) -> JobClassSpec:
        assert jobs.arrivals.count is not None
        return replace(jobs, arrivals=replace(jobs.arrivals, count=jobs.arrivals.count // part), queues=["q-0"])

    (load,), quota = scenario.loads, {"cpu": str(cores)}
    cohort = QueueSpec(COHORT, deserved=quota, capability=quota)
    (members,) = (one for one in scenario.cluster.queues if one.name == "q-0")
    return replace(
        scenario,
        cluster=replace(scenario.cluster, queues=[cohort, replace(members, count=queues)]),
        loads=[replace(load, jobs=[fewer(jobs) for jobs in load.jobs])],
    )


def _played(scenario: LabScenario) -> tuple[LabRun, _Jobs]:
    jobs = _Jobs()
    run = LabRun(scenario, scenario.policies[0], scenario.loads[0], 1, jobs, base=EXAMPLES)
    run.play()
    return run, jobs


def test_a_cohort_is_busy_until_the_end_and_never_over_its_quota() -> None:
    run, jobs = _played(_smaller(read_scenario(EXAMPLES / "kueue.yaml"), part=10, queues=6, cores=CORES))
    assert len(jobs.rows) == 6 * (35 + 10 + 5)
    core_seconds = 6 * (35 * 1 * 0.2 + 10 * 5 * 0.5 + 5 * 20 * 1.0)
    assert core_seconds / CORES <= run.recorder.last_end <= 7.5
    changes = sorted([(placed, cores) for _, cores, placed, _ in jobs.rows] + [(end, -c) for _, c, _, end in jobs.rows])
    held = peak = 0.0
    for _, cores in changes:
        held += cores
        peak = max(peak, held)
    assert CORES * 0.9 <= peak <= CORES


def test_a_cohort_of_the_large_scale_load_ends_within_twice_the_least_time() -> None:
    run, jobs = _played(_smaller(read_scenario(EXAMPLES / "kueue-large.yaml"), part=1, queues=10, cores=200))
    assert len(jobs.rows) == 10 * (35 + 11 + 4)
    core_seconds = 10 * (35 * 1 * 0.15 + 11 * 5 * 0.35 + 4 * 20 * 0.7)
    assert core_seconds / 200 <= run.recorder.last_end <= 8.0


def test_both_loads_have_as_many_workloads_as_kueues_own() -> None:
    for name, workloads in (("kueue.yaml", 15_000), ("kueue-large.yaml", 50_000)):
        scenario = read_scenario(EXAMPLES / name)
        assert len(jobs_of(scenario.loads[0], 1, scenario.cluster.queues)) == workloads
