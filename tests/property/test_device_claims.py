"""Devices of random gangs and pods that come and go: none is given twice, none is held by nobody."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.model import kinds as k
from fairlead.testing.harness import Harness
from tests.scenario.test_resource_claims import device_class, devices, gang, gpus, held, pod, template

NODES, EACH, LABEL = 3, 3, "scheduling.x-k8s.io/pod-group"
Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["gang", "pod", "delete", "node"]), st.integers(1, 4), st.integers(1, 3)),
    min_size=1, max_size=7,
)  # fmt: skip


def _reserved(cluster: Harness) -> dict[str, list[str]]:
    """Allocated claims and the pods that have them."""
    return {
        doc["metadata"]["name"]: [user["name"] for user in doc["status"].get("reservedFor") or ()]
        for doc in cluster.store.list(k.RESOURCE_CLAIM)
        if (doc.get("status") or {}).get("allocation")
    }


def _take(cluster: Harness, number: int, step: Step) -> None:
    what, size, count = step
    bound = sorted(cluster.bindings())
    if what == "gang":
        cluster.apply(gang(f"g{number}", size))
        cluster.apply(*[pod(f"g{number}-{at}", of=f"t{count}", labels={LABEL: f"g{number}"}) for at in range(size)])
    elif what == "pod":
        cluster.apply(*[pod(f"p{number}-{at}", of=f"t{count}") for at in range(size)])
    elif what == "delete":
        for name in bound[:size]:
            cluster.delete(k.POD, name)
    elif not any(doc["metadata"]["name"] == f"extra-{number}" for doc in cluster.store.list(k.RESOURCE_SLICE)):
        cluster.apply(gpus("node-0", count) | {"metadata": {"name": f"extra-{number}"}} | _other_pool(number, count))


def _other_pool(number: int, count: int) -> dict[str, Any]:
    document = gpus("node-0", count)
    return {"spec": {**document["spec"], "pool": {"name": f"extra-{number}", "generation": 1, "resourceSliceCount": 1}}}


@given(STEPS)
@settings(max_examples=12, deadline=None)
def test_no_device_is_given_twice_and_none_leaks(steps: list[Step]) -> None:
    cluster = Harness(nodes=NODES)
    cluster.apply(device_class(), *[gpus(f"node-{at}", EACH) for at in range(NODES)])
    cluster.apply(*[template(f"t{count}", devices(count)) for count in (1, 2, 3)])
    for number, step in enumerate(steps):
        _take(cluster, number, step)
        cluster.run(40)
        given_out = held(cluster)
        assert len(given_out) == len(set(given_out))
        for claim, users in _reserved(cluster).items():
            assert users, f"{claim} holds devices for nobody"
            assert set(users) <= set(cluster.bindings())
    for doc in list(cluster.store.list(k.POD)):
        cluster.delete(k.POD, doc["metadata"]["name"])
    cluster.run(120)
    assert held(cluster) == []
    assert list(cluster.store.list(k.RESOURCE_CLAIM)) == []
