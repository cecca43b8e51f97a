"""Of every kind of change with an amount, the smallest that admits the workload is the one suggested: found here by
trying all smaller ones on small clusters."""

from __future__ import annotations

import os
from itertools import combinations
from random import Random
from typing import Any

import pytest

from fairlead.testing import Harness, node, pod
from tests.support.claims import device_class, devices, gpus, template
from tests.support.koordinator import elastic_quota
from tests.support.suggested_changes import changes, commands, patch

SEEDS = range(int(os.environ.get("FAIRLEAD_QUESTION_CLUSTERS", "1")))
QUOTA = {"quota.scheduling.koordinator.sh/name": "team"}


def busy(rng: Random, nodes: int) -> Harness:
    """Nodes of a few cores with a pod on each."""
    cluster = Harness(nodes=[node(f"n{at}").offers(cpu=str(rng.randint(3, 5))) for at in range(nodes)])
    for at in range(nodes):
        here = {"kubernetes.io/hostname": f"n{at}"}
        cluster.apply(*(pod(f"p{at}-{one}").asks(cpu="1").selects(here) for one in range(rng.randint(1, 2))))
    cluster.run(5)
    return cluster


@pytest.mark.parametrize("seed", SEEDS)
def test_the_fewest_evictions(seed: int) -> None:
    rng = Random(seed)
    cluster = busy(rng, 2)
    wanted = pod("new").asks(cpu="4")
    if cluster.would(wanted).runs:
        return
    found = changes(cluster, wanted).get("evictions")
    there = dict(cluster.bindings())
    helping = [
        size
        for size in (1, 2, 3)
        for gone in combinations(sorted(there), size)
        if len({there[name] for name in gone}) == 1 and without(random_of(seed), gone).would(wanted).runs
    ]
    suggested = 0 if found is None else len(commands(found))
    assert suggested == min(helping, default=0)


def random_of(seed: int) -> Harness:
    return busy(Random(seed), 2)


def without(cluster: Harness, names: tuple[str, ...]) -> Harness:
    for name in names:
        cluster.delete("pod", name)
    cluster.run(5)
    return cluster


def test_the_fewest_labelled_nodes() -> None:
    names = ("n0", "n1", "n2")

    def made(labelled: tuple[str, ...]) -> Harness:
        cluster = Harness(
            nodes=[node(name).offers(cpu="2").labelled({"disk": "ssd"} if name in labelled else {}) for name in names]
        )
        cluster.run(2)
        return cluster

    wanted = [pod(f"w{at}").asks(cpu="1").selects(disk="ssd") for at in range(4)]
    found = changes(made(()), *wanted)["label"]
    suggested = commands(found)[0].split(" disk=")[0].split()[3:]
    helping = [some for size in (1, 2, 3) for some in combinations(names, size) if would(made(some), wanted)]
    assert len(suggested) == len(helping[0])
    assert tuple(sorted(suggested)) in helping


def would(cluster: Harness, wanted: list[Any]) -> bool:
    return cluster.would(*wanted).runs


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_quota(seed: int) -> None:
    rng = Random(seed)
    asks, most = rng.randint(3, 6), rng.randint(1, 2)
    wanted = pod("new").asks(cpu=str(asks)).labelled(QUOTA).scheduled_by("koord-scheduler")

    def made(limit: int) -> Harness:
        cluster = Harness(nodes=[node("n0").offers(cpu="8")], config="koordinator")
        cluster.apply(elastic_quota("team", least={"cpu": "1"}, most={"cpu": f"{limit}m"}))
        cluster.run(3)
        return cluster

    found = patch(changes(made(most * 1000), wanted)["allowance"])["spec"]["max"]["cpu"]
    least = next(limit for limit in range(most * 1000, 8001, 1000) if made(limit).would(wanted).runs)
    assert int(found) * 1000 == least


def test_the_most_devices_of_a_claim() -> None:
    cluster = Harness(nodes=[node("n0"), node("n1")])
    cluster.apply(device_class(), gpus("n0", 3), gpus("n1", 2))
    cluster.run(3)

    def asking(count: int) -> list[Any]:
        claims = [{"name": "g", "resourceClaimTemplateName": f"of-{count}"}]
        members = [pod(f"m{at}").asks(cpu="1").having(resourceClaims=claims).doc() for at in range(2)]
        for member in members:
            member["spec"]["containers"][0]["resources"]["claims"] = [{"name": "g"}]
        return [template(f"of-{count}", devices(count)), *members]

    most = max(count for count in range(1, 5) if cluster.would(*asking(count)).runs)
    found = changes(cluster, *asking(4))["devices"]
    assert found["says"] == f"with {most} instead of 4 devices in each request of its claims"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_most_pods_the_largest_request_and_the_fewest_nodes(seed: int) -> None:
    rng = Random(seed)
    sizes = [rng.randint(2, 4) for _ in range(2)]
    count, cpu = rng.randint(5, 6), 2

    def made(more: int = 0) -> Harness:
        nodes = [*enumerate(sizes), *((f"new-{at}", sizes[0]) for at in range(more))]
        cluster = Harness(nodes=[node(f"n{name}").offers(cpu=str(size)) for name, size in nodes])
        cluster.run(2)
        return cluster

    def wanted(pods: int, millis: int) -> list[Any]:
        return [pod(f"w{at}").asks(cpu=f"{millis}m") for at in range(pods)]

    cluster = made()
    if cluster.would(*wanted(count, cpu * 1000)).runs:
        return
    found = changes(cluster, *wanted(count, cpu * 1000))
    most = max((n for n in range(1, count) if cluster.would(*wanted(n, cpu * 1000)).runs), default=0)
    assert (f"with {most} instead of" in found["replicas"]["says"]) if most else "replicas" not in found
    words = found["request"]["says"].split()[5]
    suggested = int(words[:-1]) if words.endswith("m") else int(words) * 1000
    larger = [
        millis
        for millis in (suggested + 10, suggested + 20, *range(suggested + 200, cpu * 1000, 200))
        if cluster.would(*wanted(count, millis)).runs
    ]
    assert not larger
    assert cluster.would(*wanted(count, suggested)).runs
    number = int(found["nodes"]["says"].split()[1])
    fewest = next(more for more in range(1, 8) if made(more).would(*wanted(count, cpu * 1000)).runs)
    assert number <= fewest, "of the shapes the one with the fewest nodes is suggested"
