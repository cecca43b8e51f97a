"""Volcano Jobs in a whole cluster: pods that run and end, restarts, commands, and controllers that are killed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fairlead.cluster.housekeeping import choose_controllers, housekeepers
from fairlead.cluster.kubelets.kubelet import PodScript
from fairlead.cluster.store.store import Store
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.errors import ConfigError
from fairlead.testing.builders import nodes
from fairlead.volcano.cli.controller_choice import choose_volcano_controllers
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.family import VOLCANO_CONTROLLERS
from fairlead.volcano.jobs.jobs import VolcanoJobs
from fairlead.volcano.kinds import VC_COMMAND, VC_JOB
from fairlead.volcano.records.quirks import ORIGINAL
from tests.support.volcano import VolcanoHarness

FOR_EVER = 10_000.0


def job(name: str, replicas: int = 2, **spec: Any) -> Doc:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
    task = {
        "name": "w",
        "replicas": replicas,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": [task], **spec},
    }


def world(run_time: float = 5.0, **options: Any) -> VolcanoHarness:
    return VolcanoHarness(PRESETS["shipped"], nodes(4), script=PodScript(run_time=run_time), **options)


def phase(cluster: VolcanoHarness, name: str) -> str:
    found = cluster.get(VC_JOB, name)
    return "" if found is None else found["status"]["state"]["phase"]


def command(cluster: VolcanoHarness, name: str, action: str) -> None:
    found = cluster.get(VC_JOB, name)
    assert found is not None
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "uid": found["metadata"]["uid"]}
    cluster.apply(
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "action": action,
            "target": target,
            "metadata": {"generateName": f"{name}-", "namespace": "default"},
        }
    )


def test_a_job_runs_to_its_end_and_says_how_many_succeeded() -> None:
    cluster = world()
    cluster.apply(job("train", 3))
    cluster.until(lambda: phase(cluster, "train") == "Running", limit=60)
    cluster.until(lambda: phase(cluster, "train") == "Completed", limit=60)
    cluster.run(5)
    found = cluster.get(VC_JOB, "train")
    assert found is not None
    assert found["status"]["succeeded"] == 3
    assert [one["status"] for one in found["status"]["conditions"]] == ["Pending", "Running", "Completed"]


def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    cluster = world(FOR_EVER)
    cluster.apply(job("train"))
    cluster.until(lambda: phase(cluster, "train") == "Running", limit=60)
    command(cluster, "train", "AbortJob")
    cluster.until(lambda: phase(cluster, "train") == "Aborted", limit=120)
    assert not cluster.list(kinds.POD)
    assert not cluster.list(VC_COMMAND)
    command(cluster, "train", "ResumeJob")
    cluster.until(lambda: phase(cluster, "train") == "Running", limit=120)
    assert len(cluster.list(kinds.POD)) == 2
    assert not cluster.list(VC_COMMAND)


def test_pods_that_are_lost_together_are_one_retry() -> None:
    cluster = world(FOR_EVER)
    cluster.apply(job("train", 3, policies=[{"event": "PodEvicted", "action": "RestartPod"}]))
    cluster.until(lambda: phase(cluster, "train") == "Running", limit=60)
    for pod in cluster.list(kinds.POD):
        cluster.delete(kinds.POD, pod["metadata"]["name"])
    cluster.run(60)
    found = cluster.get(VC_JOB, "train")
    assert found is not None
    assert (phase(cluster, "train"), found["status"]["retryCount"]) == ("Running", 1)


def test_pods_that_the_api_refuses_are_tried_again_more_and_more_rarely() -> None:
    cluster = world()
    refused = job("train")
    refused["spec"]["tasks"][0]["template"]["spec"]["priorityClassName"] = "nosuch"
    cluster.apply(refused)
    cluster.run(20)
    assert phase(cluster, "train") == "Pending"
    assert "FailedCreate" in {reason for reason, _ in cluster.events("train")}
    cluster.run(400)
    assert phase(cluster, "train") == "Terminated", "the limit of retries is reached"


@pytest.mark.parametrize("seed", range(6))
def test_controllers_that_are_killed_anywhere_lose_and_double_nothing(seed: int) -> None:
    """Each time the job controller is made anew from what stands in the API, in the middle of its work."""
    cluster = world(housekeeping="-volcano-job-controller")
    rng = Random(seed)
    created: dict[str, set[str]] = {}
    cluster.runtime.add(controller := _Mortal(cluster.store))
    for at in range(4):
        cluster.apply(job(f"j{at}", 2, policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    for _ in range(20):
        cluster.run(rng.uniform(0.1, 2.0))
        for pod in cluster.list(kinds.POD):
            created.setdefault(pod["metadata"]["name"], set()).add(pod["metadata"]["uid"])
        controller.die_after(rng.randrange(3))
    cluster.run(60)
    assert [phase(cluster, f"j{at}") for at in range(4)] == ["Completed"] * 4
    assert {name: len(uids) for name, uids in created.items()} == {
        f"j{at}-w-{index}": 1 for at in range(4) for index in range(2)
    }


class _Mortal:
    """The job controller, which forgets everything after some more steps, its writes of that step unheard."""

    name = "mortal"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: int | None = None
        self._inner = VolcanoJobs(store)
        self._new = True

    watches = VolcanoJobs.watches

    def die_after(self, steps: int) -> None:
        self._left = steps

    def step(self, now: float, changes: Any, replies: Any) -> Any:
        if self._left == 0:
            self._left, self._inner = None, VolcanoJobs(self._store)
            changes = [
                Change(Happened.ADDED, watch.kind, doc)
                for watch in self.watches
                for doc in self._store.list(watch.kind)
            ]
            return self._inner.step(now, changes, ())
        if self._left is not None:
            self._left -= 1
        return self._inner.step(now, changes, replies)

    def wake_at(self) -> float | None:
        return self._inner.wake_at()


def test_volcanos_grammar_chooses_controllers() -> None:
    everything = choose_volcano_controllers("*,-sharding-controller")
    assert set(everything) == {*VOLCANO_CONTROLLERS} - {"volcano-sharding-controller"}
    assert choose_volcano_controllers("*") == choose_volcano_controllers("*,+sharding-controller")
    assert choose_volcano_controllers("+job-controller,gc-controller") == (
        "volcano-job-controller",
        "volcano-gc-controller",
    )
    assert "volcano-queue-controller" not in choose_volcano_controllers("*,-queue-controller")
    with pytest.raises(ConfigError, match="did you mean job-controller"):
        choose_volcano_controllers("jobs-controller")
    with pytest.raises(ConfigError, match="both on and off"):
        choose_volcano_controllers("job-controller,-job-controller")


def test_the_originals_quirks_are_kept_on_request() -> None:
    assert housekeepers(
        Store(clock=lambda: 0.0, rng=Random(0)),
        names=choose_controllers("all"),
        settings=[VolcanoSettings(quirks=ORIGINAL)],
    )
