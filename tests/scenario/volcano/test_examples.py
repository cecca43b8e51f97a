"""The examples of examples/volcano, run in a whole cluster, with what a program in their pods would find."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from fairlead.cluster.kubelets.gang_work import WORKING
from fairlead.cluster.kubelets.kubelet import PodScript
from fairlead.cluster.kubelets.simulated_nodes import FAIL
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.testing.builders import nodes
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.kinds import VC_JOB, VC_JOB_FLOW
from tests.support.volcano import VolcanoHarness

EXAMPLES = Path(__file__).parents[3] / "examples" / "volcano"


def started(example: str, run_time: float = 5.0) -> VolcanoHarness:
    cluster = VolcanoHarness(PRESETS["shipped"], nodes(4), script=PodScript(run_time=run_time))
    for document in yaml.safe_load_all((EXAMPLES / f"{example}.yaml").read_text()):
        document["metadata"]["namespace"] = "default"
        cluster.apply(document)
    return cluster


def phase(cluster: VolcanoHarness, job: str) -> str:
    found = cluster.get(VC_JOB, job)
    return "" if found is None else ((found.get("status") or {}).get("state") or {}).get("phase", "")


def jobs_in(wanted: str, cluster: VolcanoHarness) -> set[str]:
    names = {job["metadata"]["name"] for job in cluster.list(VC_JOB)}
    return {name for name in names if phase(cluster, name) == wanted}


def variables(pod: Doc) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0].get("env") or ()}


def pods(cluster: VolcanoHarness, job: str, count: int) -> dict[str, Doc]:
    cluster.until(lambda: len(cluster.list(kinds.POD)) == count, limit=60)
    return {pod["metadata"]["name"]: pod for pod in cluster.list(kinds.POD)}


def address(pod: Doc) -> str:
    return f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}"


def test_pytorch_processes_find_the_master_and_have_ranks_of_their_own() -> None:
    cluster = started("pytorch")
    found = pods(cluster, "pytorch", 3)
    told = {name: variables(pod) for name, pod in found.items()}
    assert {one["MASTER_ADDR"] for one in told.values()} <= {address(found["pytorch-master-0"]), "localhost"}
    assert {one["MASTER_PORT"] for one in told.values()} == {"23456"}
    assert {one["WORLD_SIZE"] for one in told.values()} == {"3"}
    assert sorted(one["RANK"] for one in told.values()) == ["0", "1", "2"]
    service = cluster.get(kinds.SERVICE, "pytorch")
    assert service is not None
    assert service["spec"]["clusterIP"] == "None", "the addresses are resolved by a headless Service"
    cluster.until(lambda: phase(cluster, "pytorch") == "Completed", limit=120)


def test_tensorflow_reads_the_whole_cluster_and_its_own_place() -> None:
    cluster = started("tensorflow")
    found = pods(cluster, "tensorflow", 3)
    configs = {name: json.loads(variables(pod)["TF_CONFIG"]) for name, pod in found.items()}
    members = {
        "ps": [f"{address(found['tensorflow-ps-0'])}:2222"],
        "worker": [f"{address(found[f'tensorflow-worker-{index}'])}:2222" for index in range(2)],
    }
    for name, config in configs.items():
        _, role, index = name.rsplit("-", 2)
        assert config["cluster"] == members
        assert config["task"] == {"type": role, "index": int(index)}
    cluster.until(lambda: phase(cluster, "tensorflow") == "Completed", limit=120)


def test_ray_workers_join_the_head_at_its_service() -> None:
    cluster = started("ray")
    found = pods(cluster, "ray", 3)
    service = cluster.get(kinds.SERVICE, "ray-head-svc")
    assert service is not None
    head, worker = (
        " ".join(found[name]["spec"]["containers"][0]["command"]) for name in ("ray-head-0", "ray-worker-0")
    )
    assert "--head" in head
    assert "6379" in worker
    assert "ray-head" in worker
    selector = service["spec"]["selector"].items()
    assert [name for name, pod in found.items() if selector <= pod["metadata"]["labels"].items()] == ["ray-head-0"]
    cluster.until(lambda: phase(cluster, "ray") == "Completed", limit=120)


def test_a_flow_runs_its_three_jobs_one_after_another() -> None:
    cluster = started("flow")
    seen: list[set[str]] = []
    for _ in range(120):
        cluster.run(1)
        running = {
            job["metadata"]["name"]
            for job in cluster.list(VC_JOB)
            if phase(cluster, job["metadata"]["name"]) == "Running"
        }
        if running and (not seen or seen[-1] != running):
            seen.append(running)
    assert seen == [{"night-fetch"}, {"night-train"}, {"night-report"}]
    flow = cluster.get(VC_JOB_FLOW, "night")
    assert flow is not None
    assert flow["status"]["state"]["phase"] == "Succeed"


def test_a_cron_job_runs_every_minute_and_keeps_the_last() -> None:
    cluster = started("cron")
    made: set[str] = set()
    for _ in range(3 * 6):
        cluster.run(10)
        made |= {job["metadata"]["name"] for job in cluster.list(VC_JOB)}
    assert len(made) == 3
    assert len([job for job in cluster.list(VC_JOB) if phase(cluster, job["metadata"]["name"]) == "Completed"]) == 1


def test_workers_of_an_mpi_job_compute_only_while_all_that_it_needs_run() -> None:
    cluster = started("mpi", run_time=100.0)
    cluster.until(lambda: [one["status"].get("phase") for one in cluster.list(kinds.POD)] == ["Running"] * 3, limit=60)
    lost = cluster.list(kinds.POD)[0]["spec"]["nodeName"]
    cluster.run(40)
    cluster.runtime.at(cluster.now, lambda: cluster.apply(_failing(cluster, lost)))
    cluster.run(30)
    waiting = [
        one
        for pod in cluster.list(kinds.POD)
        if pod["spec"]["nodeName"] != lost
        for one in pod["status"]["conditions"]
        if one["type"] == WORKING
    ]
    assert waiting
    assert {one["status"] for one in waiting} == {"False"}
    assert all("pods that work together run; 6" in one["message"] for one in waiting)


def _failing(cluster: VolcanoHarness, name: str) -> Doc:
    node = cluster.get(kinds.NODE, name, namespace="")
    assert node is not None
    metadata = {"name": name, "annotations": {**node["metadata"].get("annotations", {}), FAIL: "true"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
