"""The baseline load of Kueue's performance test, a tenth of it and one cohort of five, through our queues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlead.lab.play.run import LabRun
from fairlead.lab.scenario.reading import read_scenario
from fairlead.lab.scenario.records import JobClassSpec, LabScenario

EXAMPLES = Path(__file__).parents[3] / "examples"
COHORT, CORES, TENTH = "cohort-0", 120, 10


class _Jobs:
    """Keeps the rows of jobs: queue, cores, when each was placed and ended."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, float, float]] = []

    def add(self, table: str, *row: Any) -> None:
        if table == "jobs":
            self.rows.append((row[2], row[7], row[12], row[14]))


def _smaller(scenario: LabScenario) -> LabScenario:
    def fewer(jobs: JobClassSpec) -> JobClassSpec:
        assert jobs.arrivals.count is not None
        arrivals = replace(jobs.arrivals, count=jobs.arrivals.count // TENTH)
        return replace(jobs, arrivals=arrivals, queues=[one for one in jobs.queues if one.startswith("q-0-")])

    (load,) = scenario.loads
    queues = [one for one in scenario.cluster.queues if COHORT in (one.name, one.parent)]
    return replace(
        scenario,
        cluster=replace(scenario.cluster, queues=queues),
        loads=[replace(load, jobs=[fewer(jobs) for jobs in load.jobs])],
    )


def test_a_cohort_is_busy_until_the_end_and_never_over_its_quota() -> None:
    scenario, jobs = _smaller(read_scenario(EXAMPLES / "kueue.yaml")), _Jobs()
    run = LabRun(scenario, scenario.policies[0], scenario.loads[0], 1, jobs, base=EXAMPLES)
    run.play()
    assert len(jobs.rows) == 6 * (35 + 10 + 5)
    core_seconds = 6 * (35 * 1 * 0.2 + 10 * 5 * 0.5 + 5 * 20 * 1.0)
    assert core_seconds / CORES <= run.recorder.last_end <= 7.5
    changes = sorted([(placed, cores) for _, cores, placed, _ in jobs.rows] + [(end, -c) for _, c, _, end in jobs.rows])
    held = peak = 0.0
    for _, cores in changes:
        held += cores
        peak = max(peak, held)
    assert CORES * 0.9 <= peak <= CORES
