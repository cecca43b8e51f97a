"""Workloads, queues and quotas, and devices of nodes are listed in one form, whichever family has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.testing import Harness, deployment, node, pod
from fairlead.testing.asking import answer_of
from tests.support.koordinator import gpu_devices
from tests.support.short_gangs import (
    koord_device,
    koord_quota,
    kube_device,
    one,
    volcano_device,
    volcano_quota,
)

Doc = dict[str, Any]
GPUS = {"koordinator.sh/gpu": "200", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"}
ALIYUN = "alibabacloud.com/"
ALIBABA = {f"{ALIYUN}gpu-count": "2", f"{ALIYUN}gpu-milli": "2000"}
OPEN_GPU_SHARE: Doc = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Open-Gpu-Share"}]}}}],
}


def rows(cluster: Harness, of: str, *nodes: str) -> list[Doc]:
    cluster.run(5)
    return list(answer_of(cluster, {"kind": "RowsQuestion", "of": of, "nodes": list(nodes)}, ())["items"])


@pytest.mark.parametrize(
    ("made", "of", "name", "resource", "amounts"),
    [
        (volcano_quota, "Queue", "team", "cpu", {"limit": "3"}),
        (koord_quota, "ElasticQuota", "team", "cpu", {"guaranteed": "1", "limit": "2"}),
    ],
)
def test_queues_and_quotas(
    made: Callable[[Path], Harness], of: str, name: str, resource: str, amounts: Doc, tmp_path: Path
) -> None:
    (found,) = (one for one in rows(made(tmp_path), "quotas") if (one["of"], one["name"]) == (of, name))
    assert amounts.items() <= found["amounts"][resource].items()


@pytest.mark.parametrize(("made", "of"), [(kube_device, "gpu"), (koord_device, "gpu"), (volcano_device, "")])
def test_devices_of_a_node(made: Callable[[Path], Harness], of: str, tmp_path: Path) -> None:
    cluster = made(tmp_path)
    every, here = rows(cluster, "devices"), rows(cluster, "devices", "n0")
    assert here
    assert here == [one for one in every if one["node"] == "n0"]
    assert all(of in one["of"] for one in here)


def test_a_quota_without_a_limit_shows_none(tmp_path: Path) -> None:
    (found,) = (one for one in rows(koord_quota(tmp_path), "quotas") if one["name"] == "koordinator-default-quota")
    assert not [resource for resource, lines in found["amounts"].items() if "limit" in lines or not lines]


def test_a_shared_gpu_has_its_holder_and_what_is_left() -> None:
    with Harness(nodes=one(cpu="8", **GPUS), config="koordinator") as cluster:
        cluster.apply(gpu_devices("n0", count=2))
        cluster.run(3)
        cluster.apply(pod("half").asks({"koordinator.sh/gpu": "50"}).scheduled_by("koord-scheduler"))
        found = rows(cluster, "devices", "n0")
    assert [one["heldBy"] for one in found] == [["default/half"], []]
    assert [one["free"]["koordinator.sh/gpu-core"] for one in found] == ["50", "100"]


def test_shared_gpus_of_alibaba_have_their_holders() -> None:
    with Harness(nodes=[node("n0").offers(ALIBABA)], config=OPEN_GPU_SHARE) as cluster:
        cluster.apply(pod("part").annotated({f"{ALIYUN}gpu-milli": "300", f"{ALIYUN}gpu-count": "1"}))
        found = rows(cluster, "devices")
    assert sorted((one["heldBy"], one["free"][f"{ALIYUN}gpu-milli"]) for one in found) == [
        ([], "1000"),
        (["default/part"], "700"),
    ]


@pytest.mark.parametrize("made", [kube_device, koord_quota, volcano_quota])
def test_a_group_is_one_workload(made: Callable[[Path], Harness], tmp_path: Path) -> None:
    (group,) = (one for one in rows(made(tmp_path), "workloads") if one["of"] == "PodGroup")
    assert (group["namespace"], group["placed"]) == ("default", 0)
    assert group["pods"] == group["needed"] > 1


def test_pods_are_counted_with_their_owner_and_single_pods_alone() -> None:
    with Harness(nodes=1) as cluster:
        cluster.apply(deployment("web").replicas(2), pod("alone"), pod("large").asks(cpu="100"))
        found = {(one["of"], one["name"].partition("-")[0]): one for one in rows(cluster, "workloads")}
    assert {key: (one["pods"], one["placed"]) for key, one in found.items()} == {
        ("ReplicaSet", "web"): (2, 2),
        ("Pod", "alone"): (1, 1),
        ("Pod", "large"): (1, 0),
    }


def test_the_command_shows_quotas_and_says_which_node_is_not_there(tmp_path: Path) -> None:
    with koord_quota(tmp_path) as cluster:
        cluster.run(5)
        at = ["--kubeconfig", str(cluster.serve())]
        shown = CliRunner().invoke(cli, ["capacity", "show", "quotas", *at])
        assert shown.exit_code == 0, shown.output
        assert "ElasticQuota default/team" in shown.output
        assert "limit 2" in shown.output
        absent = CliRunner().invoke(cli, ["capacity", "show", "devices", "n9", *at])
        assert (absent.exit_code, "n9: there is no such node" in absent.output) == (3, True)
    wrong = CliRunner().invoke(cli, ["capacity", "show", "quotas", "n1"])
    assert (wrong.exit_code, "quotas are not of nodes" in wrong.output) == (2, True)
