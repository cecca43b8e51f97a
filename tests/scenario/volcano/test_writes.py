"""How many writes the controllers and the scheduler need for a pod of a Volcano Job, from submission to Running.

Writes and watches take their time, rounds come faster than the API answers, and pods start one after the other: what is
written too early has to be written again. Volcano's own parts need 11.3 to 13 writes for each of many Jobs of one pod,
and 3.3 to 5.7 for each pod of one Job (`make bench-kube-jobs` counts both on a real API server).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairlead.cluster.kubelets.pod_script import START_DELAY
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Controller, Doc, Write
from fairlead.runtime.virtual import Latencies
from fairlead.volcano.kinds import VC_JOB, VC_POD_GROUP
from tests.support.job_cases import FOR_EVER, Case, spec, task
from tests.support.job_cluster import JobCluster, volcano_controllers

PODS = 60
LATENCIES = Latencies(write=lambda rng: rng.uniform(0.01, 0.3), watch=lambda rng: rng.uniform(0.0, 0.5))


class Count:
    """Carries out writes, and counts those of Volcano's controllers and of the scheduler."""

    def __init__(self) -> None:
        self.writes: Counter[str] = Counter()

    def __call__(self, store: Store, controller: Controller, write: Write) -> Doc:
        if controller.name != "kubelet":
            self.writes[_named(write)] += 1
        return store.perform(write)


def _named(write: Write) -> str:
    """`create Pod`, `Pod binding`, `patch Job status`, `Event Scheduled of a Pod`."""
    if write.kind.kind == "Event":
        about = write.body.get("regarding") or write.body["involvedObject"]
        return f"Event {write.body['reason']} of a {about['kind']}"
    if write.subresource == "binding":
        return "Pod binding"
    return f"{write.verb.value} {write.kind.kind} {write.subresource}".rstrip()


def a_job(name: str, pods: int, delay: float) -> Case:
    one = task("t", pods, run=FOR_EVER)
    one["template"]["metadata"]["annotations"][START_DELAY] = f"{delay:g}s"
    return Case(name, spec(one), "Running")


def counted(cases: Sequence[Case]) -> Counter[str]:
    """The writes that Jobs cost until all their pods run."""
    count = Count()
    cluster = JobCluster(cases, volcano_controllers, perform=count, latencies=LATENCIES, flags={"period": 0.2})
    world = cluster.harness
    count.writes.clear()
    for case in cases:
        world.apply(case.document("default"))
    world.run(60)
    statuses = [job["status"] for job in world.list(VC_JOB)]
    groups = [group["status"] for group in world.list(VC_POD_GROUP)]
    assert {status["state"]["phase"] for status in statuses} == {group["phase"] for group in groups} == {"Running"}
    assert sum(status["running"] for status in statuses) == sum(group["running"] for group in groups) == PODS
    assert {tuple(one["status"] for one in status["conditions"]) for status in statuses} == {("Pending", "Running")}
    return count.writes


def test_a_pod_of_one_job_costs_its_creation_its_bind_and_its_event() -> None:
    """What concerns the Job and not one of its pods is written a few times in all, however many pods it has."""
    writes = counted([a_job("job", PODS, 0.5)])
    for_pods = {name: writes.pop(name) for name in ("create Pod", "Pod binding", "Event Scheduled of a Pod")}
    assert set(for_pods.values()) == {PODS}, for_pods
    assert writes == {
        "create PodGroup": 1,
        "patch PodGroup": 3,
        "Event Scheduled of a PodGroup": 1,
        "patch Job status": 3,
        "patch Queue status": 2,
    }


def test_a_job_of_one_pod_costs_ten_to_eleven_writes() -> None:
    """Two statuses of the Job (Pending, Running; a third if its pod is pending for more than a second) and three of its
    PodGroup (Inqueue, Running, the number that runs), with what makes and binds the pod and an Event for each."""
    writes = counted([a_job(f"job-{index}", 1, 0.5 + index % 5) for index in range(PODS)])
    assert writes.pop("patch Queue status") <= PODS // 10
    once = {
        name: writes.pop(name)
        for name in (
            "create PodGroup",
            "create Pod",
            "Pod binding",
            "Event Scheduled of a Pod",
            "Event Scheduled of a PodGroup",
        )
    }
    assert set(once.values()) == {PODS}, once
    assert writes.pop("patch Job status") <= 2.5 * PODS
    assert writes.pop("patch PodGroup") <= 3 * PODS
    assert not writes, "nothing else is written"
