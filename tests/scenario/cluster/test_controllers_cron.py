"""CronJobs over simulated days."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import CRON_JOB, JOB
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness
from fairlead.testing.workload_builders import cron_job

MINUTE, HOUR, DAY = 60, 3600, 86400
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=1)


def jobs(cluster: Harness) -> list[str]:
    return sorted(one["metadata"]["annotations"][SCHEDULED] for one in cluster.list(JOB))


def created(cluster: Harness, name: str) -> int:
    return sum(reason == "SuccessfulCreate" for reason, _ in cluster.events(name))


def status(cluster: Harness, name: str) -> Doc:
    found = cluster.get(CRON_JOB, name)
    assert found is not None
    told: Doc = found["status"]
    return told


def brief() -> object:
    return pod("t").running_for("10s")


def test_a_job_is_made_whenever_the_schedule_is_due_and_old_ones_go(cluster: Harness) -> None:
    cluster.apply(cron_job("nightly", "30 2 * * *").of(brief()))  # type: ignore[arg-type]
    cluster.run(5 * DAY)
    assert jobs(cluster) == ["2026-01-03T02:30:00Z", "2026-01-04T02:30:00Z", "2026-01-05T02:30:00Z"]
    told = status(cluster, "nightly")
    assert told["lastScheduleTime"] == "2026-01-05T02:30:00Z"
    assert told["lastSuccessfulTime"] == "2026-01-05T02:30:10Z"
    assert not told.get("active")
    names = {one["metadata"]["name"] for one in cluster.list(JOB)}
    assert "nightly-29459670" in names  # minutes since 1970


def test_a_running_job_is_listed_and_its_end_reported(cluster: Harness) -> None:
    cluster.apply(cron_job("tick", "*/5 * * * *").of(pod("t").running_for("90s")))
    cluster.run(5 * MINUTE + 10)
    (active,) = status(cluster, "tick")["active"]
    assert active["kind"] == "Job"
    cluster.run(2 * MINUTE)
    assert not status(cluster, "tick").get("active")
    text = f"Saw completed job: {active['name']}, condition: Complete"
    assert ("SawCompletedJob", text) in cluster.events("tick")


def test_forbidden_concurrency_skips_what_is_due_while_a_job_runs(cluster: Harness) -> None:
    cluster.apply(cron_job("slow", "* * * * *").having(concurrencyPolicy="Forbid").of(pod("t").running_for("150s")))
    cluster.run(10 * MINUTE)
    assert created(cluster, "slow") == 4
    assert "JobAlreadyActive" in {reason for reason, _ in cluster.events("slow")}


def test_replacing_concurrency_has_only_the_newest_job(cluster: Harness) -> None:
    cluster.apply(cron_job("latest", "* * * * *").having(concurrencyPolicy="Replace").of(pod("t").running_for("1h")))
    cluster.run(5 * MINUTE + 30)
    assert jobs(cluster) == ["2026-01-01T00:05:00Z"]


def test_a_suspended_cron_job_makes_up_only_for_the_last_time_it_missed(cluster: Harness) -> None:
    cluster.apply(cron_job("hourly", "0 * * * *").having(suspend=True).of(brief()))  # type: ignore[arg-type]
    cluster.run(5 * HOUR + 20 * MINUTE)
    assert jobs(cluster) == []
    cluster.patch(CRON_JOB, "hourly", {"spec": {"suspend": False}})
    cluster.run(MINUTE)
    assert jobs(cluster) == ["2026-01-01T05:00:00Z"]


def test_a_time_missed_by_more_than_the_deadline_is_not_made_up_for(cluster: Harness) -> None:
    late = cron_job("hourly", "0 * * * *").having(suspend=True, startingDeadlineSeconds=600)
    cluster.apply(late.of(brief()))  # type: ignore[arg-type]
    cluster.run(5 * HOUR + 20 * MINUTE)
    cluster.patch(CRON_JOB, "hourly", {"spec": {"suspend": False}})
    cluster.run(MINUTE)
    assert jobs(cluster) == []
    cluster.run(HOUR)
    assert jobs(cluster) == ["2026-01-01T06:00:00Z"]


def test_times_are_those_of_the_time_zone(cluster: Harness) -> None:
    cluster.apply(cron_job("lunch", "0 12 * * *").having(timeZone="Asia/Tokyo").of(brief()))  # type: ignore[arg-type]
    cluster.run(DAY)
    assert jobs(cluster) == ["2026-01-01T12:00:00+09:00"]
    assert status(cluster, "lunch")["lastScheduleTime"] == "2026-01-01T03:00:00Z"


def test_failed_jobs_are_kept_apart_from_good_ones(cluster: Harness) -> None:
    bad = cron_job("bad", "0 * * * *").of(pod("t").running_for("1s").exiting(1))
    doc = bad.doc()
    doc["spec"]["jobTemplate"]["spec"]["backoffLimit"] = 0
    cluster.apply(doc)
    cluster.run(5 * HOUR + 30)
    assert jobs(cluster) == ["2026-01-01T05:00:00Z"]


def test_deleting_a_cron_job_takes_its_jobs_along(cluster: Harness) -> None:
    cluster.apply(cron_job("tick", "* * * * *"))
    cluster.run(2 * MINUTE)
    cluster.delete(CRON_JOB, "tick")
    cluster.run(MINUTE)
    assert list(cluster.list(JOB)) == []
