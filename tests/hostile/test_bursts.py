"""One object that asks for two thousand million pods: a controller makes a burst, and others have their turn."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.cluster.controllers.workloads.job_progress import indexes_of
from fairlead.cluster.controllers.workloads.stateful_set import StatefulSets
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Change, Happened, Verb, Write
from fairlead.core.model.kinds import EVENT, POD, STATEFUL_SET
from fairlead.runtime.virtual import Latencies
from fairlead.testing.builders import deployment, nodes, pod
from fairlead.testing.workload_builders import stateful_set
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.flows.admission import admit_flow
from fairlead.volcano.jobs.job_pod_builder import WantedPods
from fairlead.volcano.jobs.job_pods import JobPods
from fairlead.volcano.jobs.job_restart import first_requests
from fairlead.volcano.records.quirks import FIXED
from tests.support.volcano import VolcanoHarness

MOST = 2**31 - 1


def test_a_parallel_stateful_set_comes_in_bursts() -> None:
    store = Store(clock=lambda: 0.0, rng=Random(1))
    doc = stateful_set("endless").replicas(MOST).in_parallel().doc()
    stored = store.perform(Write(Verb.CREATE, STATEFUL_SET, "default", "endless", body=doc))
    sets = StatefulSets(store)
    writes = sets.step(0.0, [Change(Happened.ADDED, STATEFUL_SET, stored)], [])
    writes += sets.step(0.0, [], [])
    created = [write.name for write in writes if write.kind is POD]
    assert created == [f"endless-{number}" for number in range(len(created))]
    assert 0 < len(created) <= 500


def _endless_job(name: str, *tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = [{"name": "t", "replicas": MOST, **task, "template": template} for task in tasks or ({},)]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "schedulerName": "volcano", "tasks": made, **spec},
    }


@pytest.mark.parametrize("tasks", [({},), ({"name": "a"}, {"name": "b"})])
def test_a_volcano_job_comes_in_bursts_and_others_get_their_pods_meanwhile(tasks: tuple[dict[str, Any], ...]) -> None:
    slow = Latencies(write=lambda rng: 0.02)
    cluster = VolcanoHarness(PRESETS["shipped"], nodes(1), latencies=slow)
    cluster.apply(_endless_job("endless", *tasks))
    cluster.apply(deployment("other").of(pod("").asks(cpu="1")).replicas(2))
    seen, began = 0, cluster.now
    while seen < 1500:
        cluster.run(0.05)
        pods = [doc["metadata"]["name"] for doc in cluster.list(POD)]
        of_job = sum(name.startswith("endless-") for name in pods)
        assert of_job - seen <= 1500
        seen = of_job
        assert cluster.now < began + 60
    assert sum(name.startswith("other-") for name in pods) == 2


@pytest.mark.parametrize("plugin", ["svc", "ssh", "tensorflow", "mpi"])
def test_hosts_that_no_object_could_list_are_not_listed(plugin: str) -> None:
    cluster = VolcanoHarness(PRESETS["shipped"], nodes(1))
    tasks = ({"name": "master", "replicas": 1}, {"name": "worker"})
    cluster.apply(_endless_job("endless", *tasks, plugins={plugin: []}))
    cluster.run(5)
    assert cluster.list(POD) == []
    assert "PluginError" in {event["reason"] for event in cluster.list(EVENT)}


def test_pods_that_the_status_of_a_volcano_job_counts_are_looked_for_in_bounds() -> None:
    status = {"state": {"phase": "Running"}, "taskStatusCount": {"t": {"phase": {"Running": MOST}}}}
    job = {**_endless_job("endless"), "status": status}
    job["metadata"].update(namespace="default", uid="u")
    assert len(list(first_requests(job, JobPods(), FIXED))) == 10_000


def test_names_of_pods_are_distinguished_from_others_without_building_them() -> None:
    job = _endless_job("endless", {"name": "a"}, {"name": "a-b", "replicas": 2})
    wanted = WantedPods(job)
    assert wanted.total == MOST + 2
    assert [name in wanted for name in ("endless-a-0", f"endless-a-{MOST - 1}", "endless-a-b-1")] == [True] * 3
    strangers = (
        f"endless-a-{MOST}",
        "endless-a-b-2",
        "endless-a-01",
        "endless-a-",
        "endless-a",
        "a-0",
        "endless-a-²",
        "endless-a-" + "9" * 100_000,
    )
    assert not any(name in wanted for name in strangers)


def test_layers_of_flows_are_followed_once() -> None:
    layers = [[f"f{layer}-{number}" for number in range(3)] for layer in range(60)]
    flows = [{"name": name} for name in layers[0]]
    for before, after in pairwise(layers):
        flows += [{"name": name, "dependsOn": {"targets": before}} for name in after]
    admit_flow({"spec": {"flows": flows}})
    flows[0]["dependsOn"] = {"targets": [layers[-1][0]]}
    with pytest.raises(Denied, match="not DAG"):
        admit_flow({"spec": {"flows": flows}})


def test_completed_indexes_that_somebody_wrote_are_read_in_bounds() -> None:
    assert indexes_of("1,3-5") == {1, 3, 4, 5}
    assert len(indexes_of(f"0-{MOST},5-{MOST}")) <= 1_000_000
