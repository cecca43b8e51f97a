"""Every change that is suggested admits the workload when it is made, and a smaller one of its kind does not."""

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairlead.config.yaml_text import read_yaml
from fairlead.testing import Harness, deployment, node, pod, podgroup
from fairlead.testing.asking import answer_of
from fairlead.testing.builders import Builder
from tests.support.suggested_changes import commands, patch

VOLCANO_JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 4
  schedulerName: volcano
  queue: team
  tasks:
  - name: worker
    replicas: 4
    template:
      spec: {containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]}
"""
CLUSTERS = int(os.environ.get("FAIRLEAD_QUESTION_CLUSTERS", "2"))
"""On how many random clusters suggestions are tried; `FAIRLEAD_QUESTION_CLUSTERS=300` for a long search."""


def changes(cluster: Harness, *objects: Builder) -> dict[str, dict[str, Any]]:
    question = {"kind": "SimulateQuestion", "changes": True}
    answer = answer_of(cluster, question, [one.doc() for one in objects])
    assert answer["verdict"] == "Waits"
    return {one["kind"]: one for one in answer.get("changes", ())}


def web(replicas: int, cpu: str) -> Builder:
    return deployment("web").replicas(replicas).of(pod("web").asks(cpu=cpu))


def test_the_most_pods_the_largest_request_and_the_fewest_nodes() -> None:
    cluster = Harness(nodes=[node(f"n{number}").offers(cpu="4") for number in range(2)])
    cluster.run(1)
    found = changes(cluster, web(5, "2"))
    assert found["replicas"]["steps"] == [{"targets": ["deployment/web"], "patch": {"spec": {"replicas": 4}}}]
    assert "cpu 1330m instead of 2" in found["request"]["says"]
    assert "1 more node like n0" in found["nodes"]["says"]
    assert cluster.would(web(4, "2")).runs
    assert cluster.would(web(5, "1330m")).runs
    assert not cluster.would(web(5, "1340m")).runs


def test_a_selector_less_and_a_toleration_more() -> None:
    cluster = Harness(nodes=[node("plain").offers(cpu="4"), node("gpu").offers(cpu="64").tainted("gpu", value="yes")])
    cluster.run(1)
    assert list(changes(cluster, pod("a").asks(cpu="1").selects(disk="ssd"))) == ["selector", "label"]
    found = changes(cluster, pod("a").asks(cpu="32"))
    assert patch(found["toleration"])["spec"]["tolerations"][-1]["key"] == "gpu"
    assert "cpu 4 instead of 32" in found["request"]["says"]


def test_a_gang_may_be_smaller() -> None:
    cluster = Harness(nodes=[node("only").offers(cpu="4")])
    cluster.run(1)
    members = [pod(f"m-{number}").asks(cpu="1").in_group("gang") for number in range(6)]
    found = changes(cluster, podgroup("gang", 6), *members)
    assert found["replicas"]["says"] == "with 4 instead of 6 pods"


def test_a_label_on_the_fewest_nodes() -> None:
    cluster = Harness(nodes=[node(f"n{number}").offers(cpu="4") for number in range(3)])
    cluster.apply(pod("there").asks(cpu="3").selects(**{"kubernetes.io/hostname": "n0"}))
    cluster.run(5)
    wanting = deployment("web").replicas(2).of(pod("web").asks(cpu="2").selects(disk="ssd"))
    found = changes(cluster, wanting)
    name = commands(found["label"])[0].split()[3]
    assert found["label"]["says"] == f"with the label disk=ssd on the node {name}"
    assert name in ("n1", "n2")
    cluster.patch("node", name, {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.run(5)
    assert cluster.would(wanting).runs


def test_the_fewest_pods_that_would_have_to_go() -> None:
    """Of equal priority, so the scheduler itself evicts none of them."""
    cluster = Harness(nodes=[node("a").offers(cpu="4"), node("b").offers(cpu="4")])
    here = {"kubernetes.io/hostname": "a"}, {"kubernetes.io/hostname": "b"}
    small = [pod(f"small-{number}").asks(cpu="1").selects(**here[0]) for number in range(4)]
    cluster.apply(*small, pod("large").asks(cpu="3").selects(**here[1]))
    cluster.run(5)
    found = changes(cluster, pod("new").asks(cpu="3"))
    assert commands(found["evictions"]) == ["kubectl delete pod -n default large"]
    assert found["evictions"]["says"] == "if default/large (priority 0) went"


def test_a_volcano_job_is_patched_in_its_tasks_and_its_queue_may_allow_more(tmp_path: Path) -> None:
    cluster = Harness(nodes=[node("only").offers(cpu="8")], volcano="default")
    cluster.run(5)
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"}}
    cluster.apply(queue | {"spec": {"weight": 1, "capability": {"cpu": "3"}}})
    cluster.run(5)
    file = tmp_path / "job.yaml"
    file.write_text(VOLCANO_JOB)
    question = {"kind": "SimulateQuestion", "changes": True}
    document = read_yaml(VOLCANO_JOB)
    answer = answer_of(cluster, question, [document])
    found = {one["kind"]: one for one in answer["changes"]}
    assert found["allowance"]["says"] == "with capability cpu 4 instead of 3 in the Queue team"
    assert commands(found["allowance"]) == [
        'kubectl patch queues.scheduling.volcano.sh team --type=merge -p \'{"spec":{"capability":{"cpu":"4"}}}\''
    ]
    assert patch(found["replicas"]) == {"spec": {"minAvailable": 3, "tasks": [{"name": "worker", "replicas": 3}]}}
    cluster.patch("queue", "team", patch(found["allowance"]))
    cluster.run(5)
    assert cluster.would(file).runs


def test_a_quota_of_koordinator_may_allow_more() -> None:
    cluster = Harness(nodes=[node("only").offers(cpu="8")], config="koordinator")
    quota = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": "team"}}
    quota["metadata"]["namespace"] = "default"
    cluster.apply(quota | {"spec": {"min": {"cpu": "1", "memory": "8Gi"}, "max": {"cpu": "2", "memory": "8Gi"}}})
    cluster.run(5)
    label = {"quota.scheduling.koordinator.sh/name": "team"}
    wanting = pod("new").asks(cpu="3").labelled(**label).having(schedulerName="koord-scheduler")
    found = changes(cluster, wanting)
    assert found["allowance"]["says"] == "with max cpu 3 instead of 2 in the ElasticQuota team"
    assert found["request"]["says"] == "with a request of cpu 2 instead of 3 in each pod"
    cluster.patch("elasticquota", "team", patch(found["allowance"]))
    cluster.run(5)
    assert cluster.would(wanting).runs


def random_cluster(rng: Random) -> Harness:
    cluster = Harness(nodes=[node(f"n{i}").offers(cpu=str(rng.randint(1, 6))) for i in range(rng.randint(1, 4))])
    cluster.apply(*(pod(f"p{i}").asks(cpu=str(rng.randint(1, 3))) for i in range(rng.randint(0, 4))))
    cluster.run(5)
    return cluster


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_changes_on_random_clusters_help(seed: int) -> None:
    rng = Random(seed)
    cluster = random_cluster(rng)
    replicas, cpu = rng.randint(4, 9), rng.randint(1, 4)
    if cluster.would(web(replicas, str(cpu))).runs:
        return
    found = changes(cluster, web(replicas, str(cpu)))
    if "replicas" in found:
        fewer = patch(found["replicas"])["spec"]["replicas"]
        assert cluster.would(web(fewer, str(cpu))).runs
        assert not cluster.would(web(fewer + 1, str(cpu))).runs
    else:
        assert not cluster.would(web(1, str(cpu))).runs
    if "request" in found:
        smaller = found["request"]["says"].split()[5]
        cluster.apply(web(replicas, smaller))
        cluster.run(30)
        assert sum(name.startswith("web") for name in cluster.bindings()) == replicas
    if "nodes" in found:
        words = found["nodes"]["says"].split()
        like = random_cluster(Random(seed))
        offers = {"cpu": like.get("node", words[5])["status"]["allocatable"]["cpu"]}
        like.apply(*(node(f"new-{at}").offers(offers) for at in range(int(words[1]))))
        like.run(5)
        assert like.would(web(replicas, str(cpu))).runs
