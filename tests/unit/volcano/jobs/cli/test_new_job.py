"""What `fairlead job run` makes of the resources and the run time that are typed."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.errors import ConfigError
from fairlead.volcano.jobs.cli.gpus import gpus_of
from fairlead.volcano.jobs.cli.new_job import made_job, resources_of
from fairlead.volcano.jobs.cli.tables import viewed
from fairlead.volcano.jobs.cli.waiting import JobScene


def test_gpus_are_requested_and_limited() -> None:
    assert resources_of({"cpu": "2"}, {}, 4) == {
        "requests": {"cpu": "2", "nvidia.com/gpu": "4"},
        "limits": {"nvidia.com/gpu": "4"},
    }


@pytest.mark.parametrize(("requests", "limits"), [({"amd.com/gpu": "2"}, {}), ({}, {"amd.com/gpu": "2"})])
def test_an_extended_resource_that_is_given_once_stands_in_both(
    requests: dict[str, str], limits: dict[str, str]
) -> None:
    assert resources_of(requests, limits, 0) == {"requests": {"amd.com/gpu": "2"}, "limits": {"amd.com/gpu": "2"}}


def test_cpu_may_have_a_limit_of_its_own() -> None:
    assert resources_of({"cpu": "1"}, {"cpu": "2"}, 0) == {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}


def test_two_amounts_of_one_extended_resource_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"nvidia.com/gpu: 2 and 4 are asked for"):
        resources_of({"nvidia.com/gpu": "2"}, {}, 4)


@pytest.mark.parametrize(
    ("amounts", "shown"),
    [
        ({"nvidia.com/gpu": "2"}, "6"),
        ({"amd.com/gpu": "1", "cpu": "4"}, "3"),
        ({"koordinator.sh/gpu": "50"}, "1.5"),
        ({"cpu": "1"}, "-"),
    ],
)
def test_the_gpus_of_a_job_are_those_of_all_its_pods(amounts: dict[str, str], shown: str) -> None:
    assert gpus_of(job(resources_of(amounts, {}, 0))["spec"]) == shown


def test_the_run_time_is_an_annotation_of_the_pods() -> None:
    template = job({}, run_time=90.0)["spec"]["tasks"][0]["template"]
    assert template["metadata"]["annotations"] == {"fairlead.io/run-time": "1m30s"}


@pytest.mark.parametrize(
    ("phases", "ran"),
    [
        ([("Pending", "00"), ("Running", "10"), ("Completed", "11")], "Ran for:  1s"),
        ([("Pending", "00"), ("Running", "10")], "Ran for:  50s"),
        ([("Pending", "00")], ""),
    ],
)
def test_a_job_has_run_while_it_was_running_and_not_while_it_waited(phases: list[tuple[str, str]], ran: str) -> None:
    made = job({})
    made["metadata"] |= {"namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    conditions = [{"status": phase, "lastTransitionTime": f"2026-01-01T00:00:{at}Z"} for phase, at in phases]
    made["status"] = {"conditions": conditions, "runningDuration": "11s", "state": {"phase": phases[-1][0]}}
    lines = viewed(JobScene(made, None, None, [], []), [], now=1767225660.7).splitlines()
    assert [line for line in lines if line.startswith("Ran for")] == ([ran] if ran else [])


def job(resources: Any, *, run_time: float | None = None) -> Any:
    return made_job(
        "train", image="x", replicas=3, minimum=None, queue="default", priority="",
        resources=resources, run_time=run_time, plugins=(), command=(),
    )  # fmt: skip
