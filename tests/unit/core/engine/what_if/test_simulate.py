"""What `would` says is what then happens."""

import json
from pathlib import Path

import jsonschema
import pytest

from fairlead.core.engine.what_if.node_shapes import HOSTNAME
from fairlead.errors import ConfigError
from fairlead.testing import Harness, deployment, job, node, pod, podgroup, priority_class, stateful_set
from fairlead.testing.asking import answer_of

REPOSITORY = Path(__file__).parents[5]

VOLCANO_JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  schedulerName: volcano
  minAvailable: 3
  tasks:
  - name: w
    replicas: 3
    template:
      spec: {restartPolicy: Never, containers: [{name: c, image: x, resources: {requests: {cpu: "CPU"}}}]}
"""


def test_pods_of_a_deployment_go_where_it_said() -> None:
    cluster = Harness(nodes=3)
    cluster.run(5)
    said = cluster.would(deployment("web").replicas(4))
    assert said.verdict == "Runs"
    cluster.apply(deployment("web").replicas(4))
    cluster.run(10)
    assert sorted(said.nodes.values()) == sorted(cluster.bindings().values())


def test_a_pod_that_fits_nowhere_waits_and_says_why() -> None:
    cluster = Harness(nodes=2)
    cluster.run(1)
    said = cluster.would(pod("big").asks(cpu="9"))
    assert said.verdict == "Waits"
    assert "Insufficient cpu" in said.pods[0].message
    assert said.explanation is not None
    assert said.explanation["shortages"][0]["asks"] == "9"
    assert cluster.list("pods") == []


def test_victims_with_their_rule_their_loss_and_their_next_node() -> None:
    cluster = Harness(nodes=[node("small").offers(cpu="4"), node("other").offers(cpu="4")])
    cluster.apply(priority_class("high", 1000), deployment("web").replicas(1).of(pod("web").asks(cpu="3")))
    cluster.apply(pod("filler").asks(cpu="3").on("other"))
    cluster.run(60)
    said = cluster.would(pod("vip").asks(cpu="4").of_priority("high"))
    assert said.verdict == "RunsAfterEvictions"
    victims = said.evictions.victims
    assert len(victims) == 1
    assert victims[0].rule == "its priority 0 is lower than 1000"
    assert 50 < victims[0].lost <= 60
    cluster.apply(pod("vip").asks(cpu="4").of_priority("high"))
    cluster.run(120)
    assert cluster.bindings()["vip"] == said.nodes["vip"]


def test_a_gang_is_placed_as_a_whole_or_waits() -> None:
    cluster = Harness(nodes=2)
    cluster.run(1)
    members = [pod(f"m-{number}").asks(cpu="3").in_group("gang") for number in range(5)]
    said = cluster.would(podgroup("gang", 5), *members)
    assert said.verdict == "Waits"
    assert not said.nodes
    said = cluster.would(podgroup("gang", 4), *members[:4])
    assert said.verdict == "Runs"


@pytest.mark.parametrize(("cpu", "verdict"), [("1", "Runs"), ("20", "Waits")])
def test_a_volcano_job_as_volcano_would_place_it(tmp_path: Path, cpu: str, verdict: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(VOLCANO_JOB.replace("CPU", cpu))
    cluster = Harness(nodes=3, volcano="default")
    cluster.run(5)
    said = cluster.would(file)
    assert said.verdict == verdict
    assert said.queues[0].name == "default"
    cluster.apply(file)
    cluster.run(30)
    assert said.nodes == cluster.bindings()


def test_stateful_sets_and_jobs_are_expanded() -> None:
    cluster = Harness(nodes=3)
    cluster.run(1)
    assert sorted(cluster.would(stateful_set("db").replicas(3)).nodes) == ["db-0", "db-1", "db-2"]
    assert len(cluster.would(job("batch")).nodes) == 1


def test_owners_whose_controllers_are_not_ours() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}}
    ray = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "demo"},
        "spec": {
            "headGroupSpec": {"template": template},
            "workerGroupSpecs": [{"groupName": "gpu", "replicas": 3, "template": template}],
        },
    }
    cluster = Harness(nodes=1)
    cluster.run(1)
    assert len(cluster.would(ray).nodes) == 4


def test_who_waits_and_would_be_delayed() -> None:
    cluster = Harness(nodes=[node("only").offers(cpu="4")])
    cluster.apply(priority_class("high", 1000), pod("patient").asks(cpu="3").gated("later"))
    cluster.run(5)
    cluster.patch("pod", "patient", {"spec": {"schedulingGates": None}})
    said = cluster.would(pod("vip").asks(cpu="3").of_priority("high"))
    assert said.verdict == "Runs"
    cluster.run(5)
    assert cluster.bindings() == {"patient": "only"}


def test_what_admission_refuses_is_refused() -> None:
    cluster = Harness(nodes=1)
    with pytest.raises(ConfigError, match="no PriorityClass"):
        cluster.would(pod("a").of_priority("missing"))
    with pytest.raises(ConfigError, match='no namespace "nowhere"'):
        cluster.would(pod("a", "nowhere"))


def test_pods_that_a_quota_refuses_are_an_error_with_amounts() -> None:
    cluster = Harness(nodes=1)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"}}
    cluster.apply(quota | {"spec": {"hard": {"requests.cpu": "3"}}})
    cluster.run(3)
    assert cluster.would(deployment("web").replicas(3).of(pod("web").asks(cpu="1"))).runs
    refused = r"exceeded quota: team, requested: requests.cpu=1, used: requests.cpu=3, limited: requests.cpu=3"
    with pytest.raises(ConfigError, match=refused):
        cluster.would(deployment("web").replicas(5).of(pod("web").asks(cpu="1")))


def test_answers_are_as_their_schema_says() -> None:
    schema = json.loads((REPOSITORY / "docs/reference/simulation.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    cluster = Harness(nodes=[node("only").offers(cpu="4")])
    cluster.apply(priority_class("high", 1000), pod("there").asks(cpu="3").selects({HOSTNAME: "only"}))
    cluster.run(5)
    verdicts = set()
    for wanted in (pod("a").asks(cpu="1"), pod("b").asks(cpu="3").of_priority("high"), pod("c").asks(cpu="3")):
        answer = answer_of(cluster, {"kind": "SimulateQuestion", "changes": True}, [wanted.doc()])
        jsonschema.validate(answer, schema)
        verdicts.add(answer["verdict"])
    assert verdicts == {"Runs", "RunsAfterEvictions", "Waits"}
