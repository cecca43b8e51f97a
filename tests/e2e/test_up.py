"""`fairlead up` from the outside: a process, its files, its exit code, and an API behind a kubeconfig."""

from __future__ import annotations

import asyncio
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, NODE, PERSISTENT_VOLUME_CLAIM, POD, SERVICE
from fairlead.testing.builders import deployment, pod
from tests.support.processes.up import Up


async def in_cluster(up: Up, work: Callable[[KubeApi], Any]) -> Any:
    api = KubeApi(load_kubeconfig(up.kubeconfig))
    try:
        async with asyncio.timeout(180):
            return await work(api)
    finally:
        await api.close()


async def node_names(api: KubeApi) -> list[str]:
    return [node["metadata"]["name"] for node in (await api.list(NODE)).items]


async def bound_pods(api: KubeApi, count: int) -> list[dict[str, Any]]:
    """Wait until so many pods run."""
    while True:
        pods = (await api.list(POD, Query(field_selector="status.phase=Running"))).items
        if len(pods) >= count:
            return pods
        await asyncio.sleep(0.05)


def refusal(*options: str, cwd: Path) -> tuple[int, list[str]]:
    """Exit code and standard error of a command that must not start."""
    done = subprocess.run(
        [sys.executable, "-m", "fairlead", "up", *options], cwd=cwd, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_leaves_nothing_behind(tmp_path: Path, ending: signal.Signals) -> None:
    with Up(
        tmp_path / "here",
        "--nodes",
        "4",
        "--zones",
        "2",
        "--shape",
        "1:cpu=64,memory=256Gi,example.com/fpga=2",
        "--shape",
        "cpu=4,memory=8Gi",
    ) as up:
        assert "4 nodes" in up.wait_ready()
        assert stat.S_IMODE(up.kubeconfig.stat().st_mode) == 0o600

        async def look(api: KubeApi) -> list[dict[str, Any]]:
            nodes = (await api.list(NODE)).items
            await api.perform(Write(Verb.CREATE, DEPLOYMENT, "default", "web", deployment("web").replicas(6).doc()))
            assert len(await bound_pods(api, 6)) == 6
            scraped = (await api.raw("/metrics")).decode()
            assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 6.0' in scraped
            return nodes

        nodes = asyncio.run(in_cluster(up, look))
        offered = {node["metadata"]["name"]: node["status"]["allocatable"] for node in nodes}
        zones = {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes}
        assert offered["node-0"]["example.com/fpga"] == "2"
        assert offered["node-3"]["cpu"] == "4"
        assert zones == {"zone-a", "zone-b"}
        up.signal(ending)
        assert up.wait() == 0
        assert up.errors() == ""
        assert sorted(path.name for path in up.directory.iterdir()) == ["stderr"]


def test_a_signal_while_it_starts_ends_it_as_well(tmp_path: Path) -> None:
    with Up(tmp_path / "here", "--nodes", "3000", "--data", "data") as up:
        # The lock file is the first thing there is; nodes come after it.
        while not (up.directory / "data" / "lock").exists():
            assert up._process.poll() is None, up.errors()
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
        assert up.errors() == ""
        assert not up.kubeconfig.exists()


def test_data_is_there_the_next_time_and_only_missing_nodes_are_added(tmp_path: Path) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}}
    with Up(tmp_path / "one", "--nodes", "3", "--data", "../data") as up:
        up.wait_ready()
        asyncio.run(in_cluster(up, lambda api: api.perform(Write(Verb.CREATE, CONFIG_MAP, "default", "kept", body))))
        first = up.kubeconfig.read_text()
        asyncio.run(in_cluster(up, lambda api: api.perform(Write(Verb.DELETE, NODE, "", "node-1"))))
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
        assert up.kubeconfig.exists(), "with --data the credentials live on"
    with Up(tmp_path / "two", "--shape", "4:cpu=64", "--data", "../data") as up:
        assert "2 nodes" in up.wait_ready(), "nobody asked for a number: what is there stays"
        assert "--shape and --nodes-file add no nodes to the 2 that ../data has" in up.errors()
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    with Up(tmp_path / "three", "--nodes", "5", "--data", "../data") as up:
        up.wait_ready()
        second = up.kubeconfig.read_text()
        assert asyncio.run(in_cluster(up, node_names)) == [f"node-{number}" for number in range(5)]
        kept = asyncio.run(in_cluster(up, lambda api: api.get(CONFIG_MAP, "default", "kept")))
        assert kept["data"] == {"a": "1"}
        assert [line for line in first.splitlines() if "token" in line or "authority" in line] == [
            line for line in second.splitlines() if "token" in line or "authority" in line
        ]
        up.signal(signal.SIGTERM)
        assert up.wait() == 0


def test_pods_wait_when_there_is_no_scheduler_and_run_when_bound_by_hand(tmp_path: Path) -> None:
    with Up(tmp_path / "here", "--nodes", "1", "--scheduler", "none") as up:
        up.wait_ready()

        async def bind_by_hand(api: KubeApi) -> None:
            await api.perform(Write(Verb.CREATE, POD, "default", "alone", pod("alone").doc()))
            target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "alone"}, "target": target}
            assert "nodeName" not in (await api.get(POD, "default", "alone"))["spec"]
            await api.perform(Write(Verb.CREATE, POD, "default", "alone", body, subresource="binding"))
            await bound_pods(api, 1)

        asyncio.run(in_cluster(up, bind_by_hand))
        up.signal(signal.SIGINT)
        assert up.wait() == 0


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, lines = refusal("--nodes", "1", "--port", str(port), cwd=tmp_path)
    assert code == 1
    assert lines == [
        f"Error: port {port} on 127.0.0.1 is in use; choose another with --port, or leave it away for a free one"
    ]
    assert not list(tmp_path.iterdir())


def test_a_data_directory_serves_one_process_at_a_time(tmp_path: Path) -> None:
    with Up(tmp_path / "here", "--nodes", "1", "--data", "data") as up:
        up.wait_ready()
        code, lines = refusal("--data", "data", "--kubeconfig", "other", cwd=up.directory)
        assert (code, lines) == (1, ["Error: the data directory data is in use by another process"])
        up.signal(signal.SIGTERM)
        assert up.wait() == 0


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--config", "no.yaml"], "Error: no.yaml: cannot be read: No such file or directory"),
        (
            ["--kubeconfig", "no/where"],
            "Error: the kubeconfig no/where cannot be written: no is not a directory",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_line(tmp_path: Path, options: list[str], line: str) -> None:
    assert refusal(*options, cwd=tmp_path) == (2, [line])


def test_two_clusters_in_one_directory_have_a_kubeconfig_each(tmp_path: Path) -> None:
    with Up(tmp_path, "--nodes", "1") as first:
        first.wait_ready()
        mine = first.kubeconfig.read_bytes()
        done = subprocess.Popen(
            [sys.executable, "-m", "fairlead", "up", "--nodes", "3"], cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert done.stdout is not None
        assert "--kubeconfig fairlead-2.kubeconfig" in done.stdout.readline()
        connection = load_kubeconfig(tmp_path / "fairlead-2.kubeconfig")
        assert connection.server not in mine.decode()
        done.send_signal(signal.SIGINT)
        _, told = done.communicate(timeout=60)
        assert done.returncode == 0
        assert told == (
            "fairlead.kubeconfig exists and is not this cluster's: this one's kubeconfig is fairlead-2.kubeconfig\n"
        )
        assert first.kubeconfig.read_bytes() == mine
        assert not (tmp_path / "fairlead-2.kubeconfig").exists()


def test_a_kubeconfig_that_exists_is_neither_written_over_nor_deleted(tmp_path: Path) -> None:
    precious = tmp_path / "prod.kubeconfig"
    precious.write_text("precious")
    code, lines = refusal("--kubeconfig", "prod.kubeconfig", cwd=tmp_path)
    assert code == 2
    assert "prod.kubeconfig exists and was not written by this cluster" in " ".join(lines)
    assert precious.read_text() == "precious"


def test_with_data_the_port_is_kept_so_a_kubeconfig_stays_good(tmp_path: Path) -> None:
    kubeconfigs = []
    for _ in range(2):
        with Up(tmp_path, "--nodes", "1", "--data", "data") as up:
            up.wait_ready()
            kubeconfigs.append(up.kubeconfig.read_text())
            up.signal(signal.SIGTERM)
            assert up.wait() == 0
    assert kubeconfigs[0] == kubeconfigs[1]
    port = int((tmp_path / "data" / "port").read_text())
    with socket.create_server(("127.0.0.1", port)), Up(tmp_path, "--nodes", "1", "--data", "data") as up:
        line = up.wait_ready()
        assert f":{port}" not in line
        assert f"port {port}, which this cluster had before, is in use: another is taken" in up.errors()
        assert up.kubeconfig.read_text() != kubeconfigs[0], "its own kubeconfig is brought up to date"


def test_nodes_join_fail_recover_and_leave_while_it_runs(tmp_path: Path) -> None:
    def nodes(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "fairlead", "nodes", *words], cwd=tmp_path, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    with Up(tmp_path, "--nodes", "2") as up:
        up.wait_ready()
        assert nodes("add", "2:cpu=64,name=big") == (0, "node/big-0 added\nnode/big-1 added\n")
        assert nodes("add") == (0, "node/node-2 added\n")
        assert nodes("fail", "node-2") == (0, "node/node-2 fails from now on\n")
        assert nodes("recover", "node-2") == (0, "node/node-2 recovers\n")
        assert nodes("remove", "big-0") == (0, "node/big-0 removed\n")
        assert asyncio.run(in_cluster(up, node_names)) == ["big-1", "node-0", "node-1", "node-2"]
        code, told = nodes("remove", "node-0", "nothing")
        assert (code, 'nodes "nothing" not found' in told) == (1, True)
        assert asyncio.run(in_cluster(up, node_names)) == ["big-1", "node-0", "node-1", "node-2"]


def test_fewer_nodes_than_the_data_has_are_refused(tmp_path: Path) -> None:
    with Up(tmp_path, "--nodes", "3", "--data", "data") as up:
        up.wait_ready()
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    code, lines = refusal("--data", "data", "--nodes", "2", cwd=tmp_path)
    assert code == 2
    assert "--nodes 2 is fewer than the 3 nodes that data has" in lines[-1]


def test_a_claim_without_a_class_is_bound_with_its_pod_and_an_unserved_pod_is_reported(tmp_path: Path) -> None:
    resources = {"requests": {"storage": "1Gi"}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
    user = pod("user").doc()
    user["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]

    async def story(api: KubeApi) -> None:
        assert (await api.get(SERVICE, "default", "kubernetes"))["spec"]["clusterIP"] == "10.96.0.1"
        await api.perform(Write(Verb.CREATE, PERSISTENT_VOLUME_CLAIM, "default", "data", claim))
        await api.perform(Write(Verb.CREATE, POD, "default", "user", user))
        await api.perform(Write(Verb.CREATE, POD, "default", "lost", pod("lost").scheduled_by("volcano").doc()))
        await bound_pods(api, 1)
        bound = await api.get(PERSISTENT_VOLUME_CLAIM, "default", "data")
        assert (bound["status"]["phase"], bound["spec"]["storageClassName"]) == ("Bound", "standard")
        events: list[dict[str, Any]] = []
        while not events:
            await asyncio.sleep(0.05)
            events = [event for event in (await api.list(EVENT)).items if event["reason"] == "NoScheduler"]
        assert events[0]["involvedObject"]["name"] == "lost"
        assert "--volcano-conf" in events[0]["message"]

    with Up(tmp_path, "--nodes", "1") as up:
        up.wait_ready()
        asyncio.run(in_cluster(up, story))
