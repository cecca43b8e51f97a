"""What annotations say of a simulated pod's life."""

from __future__ import annotations

from random import Random

import pytest

from fairlead.cluster.kubelets.pod_script import RUN_TIME, PodScript, default_for, read_script


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5s", 1.5), (" 2m ", 120.0), ("1h2m3s", 3723.0), ("7", 7.0), ("0", 0.0)]
    + [(wrong, None) for wrong in ("", "soon", "-1s", "5x", "-3", "inf", "nan")],
)
def test_a_run_time_is_a_duration_or_a_number_of_seconds_or_nothing(text: str, seconds: float | None) -> None:
    assert read_script({RUN_TIME: text}, Random(0), PodScript()).run_time == seconds


def test_only_pods_of_jobs_end_after_the_run_time_of_jobs() -> None:
    told = PodScript(job_run_time=600.0)
    of_a_job = {"metadata": {"ownerReferences": [{"kind": "Job"}]}}
    of_a_set = {"metadata": {"ownerReferences": [{"kind": "ReplicaSet"}]}}
    assert default_for(of_a_job, told).run_time == 600.0
    assert default_for(of_a_set, told).run_time is None
    assert default_for(of_a_job, PodScript()).run_time == 1.0
