"""Devices of random gangs and pods that come and go, while writes fail and the scheduler is killed: none is given
twice, none is held by nobody."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.core.model import kinds as k
from fairlead.testing.builders import priority_class
from fairlead.testing.harness import Harness
from tests.support.claims import claim, device_class, devices, gang, gpus, held, pod, template
from tests.support.faulty_port import Faults, FaultyWorld

NODES, EACH, LABEL = 3, 3, "scheduling.x-k8s.io/pod-group"
Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["gang", "gang", "pod", "urgent", "urgent gang", "team", "delete", "devices", "restart"]),
        st.integers(1, 4),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=7,
)


def _take(cluster: FaultyWorld, number: int, step: Step) -> None:
    what, size, count = step
    bound = sorted(cluster.bindings())
    name = f"{what.replace(' ', '-')}{number}"
    if what.endswith("gang"):
        urgent = {"priorityClassName": "high"} if what == "urgent gang" else {}
        cluster.apply(gang(name, size))
        cluster.apply(*[pod(f"{name}-{at}", of=f"t{count}", labels={LABEL: name}, **urgent) for at in range(size)])
    elif what == "pod":
        cluster.apply(*[pod(f"{name}-{at}", of=f"t{count}") for at in range(size)])
    elif what == "urgent":
        cluster.apply(pod(name, of=f"t{count}", priorityClassName="high"))
    elif what == "team":
        cluster.apply(claim(name, devices(count)), *[pod(f"{name}-{at}", shared=name) for at in range(size)])
    elif what == "delete":
        for one in bound[:size]:
            cluster.delete(k.POD, one)
    elif what == "devices":
        cluster.apply(_more_devices(number, count))
    else:
        cluster.restart()


def _more_devices(number: int, count: int) -> dict[str, Any]:
    document = gpus("node-0", count)
    pool = {"name": f"extra-{number}", "generation": 1, "resourceSliceCount": 1}
    return {**document, "metadata": {"name": f"extra-{number}"}, "spec": {**document["spec"], "pool": pool}}


def _held_by_nobody(cluster: Harness) -> list[str]:
    """Allocated claims that no pod has reserved, or only pods that are not there any more."""
    pods = {doc["metadata"]["uid"]: doc["metadata"]["name"] for doc in cluster.list(k.POD)}
    return [
        doc["metadata"]["name"]
        for doc in cluster.list(k.RESOURCE_CLAIM)
        if (doc.get("status") or {}).get("allocation")
        and not any(user["uid"] in pods for user in doc["status"].get("reservedFor") or ())
    ]


@given(STEPS, st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
@example([("gang", 3, 1), ("team", 2, 3), ("delete", 1, 1), ("team", 1, 1)], 659)  # an allocation whose answer was lost
def test_no_device_is_given_twice_and_none_leaks(steps: list[Step], seed: int) -> None:
    rng, faults = Random(seed), Faults()
    cluster = FaultyWorld(faults, NODES, watch_delay=rng.choice((0.0, 0.3)), seed=seed)
    cluster.apply(device_class(), *[gpus(f"node-{at}", EACH) for at in range(NODES)], priority_class("high", 1000))
    cluster.apply(*[template(f"t{count}", devices(count)) for count in (1, 2, 3)])
    faults.at_random(rng, rng.choice((0.0, 0.1, 0.4)))
    for number, step in enumerate(steps):
        _take(cluster, number, step)
        for _ in range(3):
            cluster.run(rng.choice((0.2, 2.0, 15.0)))
            given_out = held(cluster)
            assert len(given_out) == len(set(given_out))
    faults.stop()
    cluster.run(400)
    given_out = held(cluster)
    assert len(given_out) == len(set(given_out))
    assert _held_by_nobody(cluster) == []
    for doc in list(cluster.list(k.POD)):
        cluster.delete(k.POD, doc["metadata"]["name"])
    cluster.run(200)
    assert held(cluster) == []
