"""Jobs that can never fit: which, why, and where in the file they stand."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.cluster.kubelets.simulated_nodes import simulated_node
from fairlead.lab.scenario.feasibility import jobs_that_never_fit
from fairlead.lab.scenario.jobs import LabJob

GPU = "nvidia.com/gpu"
NODES = [simulated_node(f"node-{at}", cpu="8", memory="32Gi", extra={GPU: "8"}) for at in range(2)]
NODES += [simulated_node("large", cpu="32", memory="32Gi", pods="2", labels={"disk": "ssd"})]


def reasons(**fields: Any) -> list[str]:
    return [one.reason for one in jobs_that_never_fit([LabJob("job", 0.0, **fields)], NODES)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"resources": {GPU: "16"}}, "they ask for more nvidia.com/gpu in one pod than any node has (8)"),
        ({"resources": {"memory": "64Gi"}}, "they ask for more memory in one pod than any node has (32Gi)"),
        ({"resources": {"a.b/c": "1"}}, "they ask for more a.b/c in one pod than any node has, which is none"),
        (
            {"resources": {"cpu": "16", GPU: "1"}},
            "no node has cpu and nvidia.com/gpu enough together for one of their pods",
        ),
        ({"node_selector": {"disk": "tape"}}, "no node has the label disk=tape"),
        ({"resources": {GPU: "1"}, "node_selector": {"disk": "ssd"}}, "they ask for more nvidia.com/gpu in one pod"),
        (
            {"resources": {GPU: "8"}, "pods": 3, "minimum": 3},
            "they ask for more pods at once than all nodes together could take",
        ),
        (
            {"node_selector": {"disk": "ssd"}, "pods": 3, "minimum": 3},
            "they ask for more pods at once than all nodes together could take",
        ),
    ],
)
def test_what_no_node_could_give_is_named(fields: dict[str, Any], reason: str) -> None:
    (found,) = reasons(**fields)
    assert found.startswith(reason)


@pytest.mark.parametrize(
    "fields",
    [
        {"resources": {GPU: "8", "cpu": "8"}},
        {"resources": {"cpu": "32"}, "node_selector": {"disk": "ssd"}},
        {"resources": {GPU: "8"}, "pods": 3, "minimum": 2},
        {"resources": {"kubernetes.io/batch-cpu": "1000"}},
        {},
    ],
)
def test_what_fits_on_an_empty_cluster_is_not_named(fields: dict[str, Any]) -> None:
    assert not reasons(**fields)


def test_jobs_are_named_by_their_lines_or_by_name() -> None:
    jobs = [LabJob(f"job-{at}", 0.0, resources={GPU: "16"}, line=at + 2) for at in range(7)]
    (found,) = jobs_that_never_fit(jobs, NODES)
    start = "7 of 9 jobs can never fit: they ask for more nvidia.com/gpu in one pod than any node has (8)"
    assert found.sentence(9, "jobs.csv") == f"{start} (lines 2, 3, 4, 5, 6 and 2 more of jobs.csv)"
    (drawn,) = jobs_that_never_fit([LabJob("large-0", 0.0, resources={GPU: "16"})], NODES)
    assert drawn.sentence(1).endswith("(large-0)")
