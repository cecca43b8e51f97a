"""Every change that is suggested admits the workload when it is made, and a smaller one of its kind does not."""

import os
from random import Random
from typing import Any

import pytest

from fairlead.testing import Harness, deployment, node, pod, podgroup
from fairlead.testing.asking import answer_of
from fairlead.testing.builders import Builder

CLUSTERS = int(os.environ.get("FAIRLEAD_QUESTION_CLUSTERS", "2"))
"""On how many random clusters suggestions are tried; `FAIRLEAD_QUESTION_CLUSTERS=300` for a long search."""


def changes(cluster: Harness, *objects: Builder) -> dict[str, dict[str, Any]]:
    question = {"kind": "SimulateQuestion", "changes": True}
    answer = answer_of(cluster, question, [one.doc() for one in objects])
    assert answer["verdict"] == "Waits"
    return {one["kind"]: one for one in answer["changes"]}


def web(replicas: int, cpu: str) -> Builder:
    return deployment("web").replicas(replicas).of(pod("web").asks(cpu=cpu))


def test_the_most_pods_the_largest_request_and_the_fewest_nodes() -> None:
    cluster = Harness(nodes=[node(f"n{number}").offers(cpu="4") for number in range(2)])
    cluster.run(1)
    found = changes(cluster, web(5, "2"))
    assert found["replicas"]["command"] == "kubectl scale deployment/web --replicas=4"
    assert "cpu 1330m instead of 2" in found["request"]["says"]
    assert "1 more node like n0" in found["nodes"]["says"]
    assert cluster.would(web(4, "2")).runs
    assert cluster.would(web(5, "1330m")).runs
    assert not cluster.would(web(5, "1340m")).runs


def test_a_selector_less_and_a_toleration_more() -> None:
    cluster = Harness(nodes=[node("plain").offers(cpu="4"), node("gpu").offers(cpu="64").tainted("gpu", value="yes")])
    cluster.run(1)
    assert list(changes(cluster, pod("a").asks(cpu="1").selects(disk="ssd"))) == ["selector"]
    found = changes(cluster, pod("a").asks(cpu="32"))
    assert found["toleration"]["patch"]["spec"]["tolerations"][-1]["key"] == "gpu"
    assert "cpu 4 instead of 32" in found["request"]["says"]


def test_a_gang_may_be_smaller() -> None:
    cluster = Harness(nodes=[node("only").offers(cpu="4")])
    cluster.run(1)
    members = [pod(f"m-{number}").asks(cpu="1").in_group("gang") for number in range(6)]
    found = changes(cluster, podgroup("gang", 6), *members)
    assert found["replicas"]["says"] == "with 4 instead of 6 pods"


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_changes_on_random_clusters_help(seed: int) -> None:
    rng = Random(seed)
    cluster = Harness(nodes=[node(f"n{i}").offers(cpu=str(rng.randint(1, 6))) for i in range(rng.randint(1, 4))])
    cluster.apply(*(pod(f"p{i}").asks(cpu=str(rng.randint(1, 3))) for i in range(rng.randint(0, 4))))
    cluster.run(5)
    replicas, cpu = rng.randint(4, 9), rng.randint(1, 4)
    if cluster.would(web(replicas, str(cpu))).runs:
        return
    found = changes(cluster, web(replicas, str(cpu)))
    if "replicas" in found:
        fewer = int(found["replicas"]["command"].rpartition("=")[2])
        assert cluster.would(web(fewer, str(cpu))).runs
        assert not cluster.would(web(fewer + 1, str(cpu))).runs
    else:
        assert not cluster.would(web(1, str(cpu))).runs
    if "request" in found:
        smaller = found["request"]["says"].split()[5]
        cluster.apply(web(replicas, smaller))
        cluster.run(30)
        assert sum(name.startswith("web") for name in cluster.bindings()) == replicas
