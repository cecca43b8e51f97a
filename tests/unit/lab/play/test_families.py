"""A scenario has the controllers that its policy's configuration needs, and they act the same way each time."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_pem_private_key

from fairlead.assembly.loading import presets
from fairlead.core.model.flow import Doc
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA, KOORD_NODE_METRIC
from fairlead.lab.play.run import LabRun
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    PolicySpec,
    ShapeSpec,
    constant,
)
from fairlead.volcano.kinds import VC_JOB
from tests.support.lab import KeptRows

NODES = ClusterSpec(nodes=[ShapeSpec(count=2, resources={"cpu": "4", "memory": "8Gi"})])
ONE_JOB = LoadSpec(jobs=[JobClassSpec("one", ArrivalSpec(at=[30.0]), resources={"cpu": "1"}, duration=constant(100.0))])


def run_of(policy: PolicySpec, load: LoadSpec = ONE_JOB, seed: int = 1, base: Path = Path()) -> LabRun:
    return LabRun(LabScenario(cluster=NODES), policy, load, seed, KeptRows(), base=base)


def test_nodes_report_what_is_used_to_koordinators_configuration(tmp_path: Path) -> None:
    (tmp_path / "koordinator.yaml").write_text(presets()["koordinator"])
    run = run_of(PolicySpec(config="koordinator.yaml"), base=tmp_path)
    run.play()
    metrics = run.cluster.list(KOORD_NODE_METRIC)
    assert len(metrics) == 2
    assert all(one["status"]["updateTime"] for one in metrics)
    assert {one["metadata"]["name"] for one in run.cluster.list(KOORD_ELASTIC_QUOTA)} >= {
        "koordinator-default-quota",
        "koordinator-system-quota",
    }


def test_nothing_of_koordinators_runs_beside_another_configuration() -> None:
    run = run_of(PolicySpec())
    run.play()
    assert run.cluster.list(KOORD_NODE_METRIC) == []


def ssh_job(name: str, scheduler: str) -> Doc:
    template = {"spec": {"containers": [{"name": "main", "image": "pause"}]}}
    return {
        "apiVersion": VC_JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": scheduler,
            "plugins": {"ssh": []},
            "minAvailable": 1,
            "tasks": [{"name": "task", "replicas": 2, "template": template}],
        },
    }


def keys_of(seed: int) -> dict[str, bytes]:
    run = run_of(PolicySpec(volcano="default", scheduler_name="rounds"), LoadSpec(), seed)
    run.cluster.run(1)
    run.cluster.apply(ssh_job("a", "rounds"), ssh_job("b", "rounds"))
    run.cluster.run(5)
    assert set(run.cluster.bindings()) == {"a-task-0", "a-task-1", "b-task-0", "b-task-1"}
    secrets = {one["metadata"]["name"]: one["data"] for one in run.cluster.list("secrets")}
    return {name: b64decode(data["id_rsa"]) for name, data in secrets.items()}


def test_volcanos_jobs_get_keys_that_follow_from_the_seed() -> None:
    once, again, other = keys_of(1), keys_of(1), keys_of(2)
    assert once == again
    assert len({*once.values(), *other.values()}) == 4
    for key in once.values():
        assert load_pem_private_key(key, None).key_size == 2048  # type: ignore[union-attr]
