"""`fairlead record` on a cluster that is alive, and `fairlead replay` of what it wrote."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairlead.assembly.presets import first_profile
from fairlead.cli.main import cli
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.model import kinds
from fairlead.errors import ScenarioError
from fairlead.kube.extenders.http_extender import ExtenderSpec, HttpExtender
from fairlead.kube.replay.recording import scenarios_in
from fairlead.runtime.virtual import Latencies
from fairlead.testing.builders import pod
from fairlead.testing.harness import Harness
from tests.support.extender_server import ExtenderServer
from tests.support.patience import wait_until

_PATIENCE = 180.0
NEWCOMERS = {"a": "1", "huge": "999", "b": "2"}


@contextmanager
def recording(cluster: Harness, file: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The command, from when it has seen the cluster until the end."""
    command = [sys.executable, "-m", "fairlead", "record", str(file), "--kubeconfig", str(cluster.serve()), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: file.exists() or process.poll() is not None)
            yield process
        finally:
            process.kill()


def written(file: Path) -> int:
    """How many decisions are there; a line may be half written when we look."""
    try:
        return len(list(scenarios_in(file)))
    except ScenarioError:
        return -1


def with_newcomers(cluster: Harness) -> None:
    """Pods that come while the recording runs, one of which fits nowhere."""
    for name, cpu in NEWCOMERS.items():
        cluster.apply(pod(name).asks(cpu=cpu))


def settled() -> Harness:
    cluster = Harness(nodes=3, start=time.time())
    cluster.apply(pod("before").asks(cpu="2"))
    cluster.run(3)
    return cluster


def check_replay(file: Path, cluster: Harness) -> None:
    replayed = CliRunner().invoke(cli, ["replay", str(file), "-o", "json"])
    report = json.loads(replayed.output)
    assert (replayed.exit_code, report["total"], report["differences"]) == (0, 3, [])
    placed = {doc["metadata"]["name"]: doc["spec"].get("nodeName") for doc in cluster.list(kinds.POD)}
    decisions = {s.doc["decisions"][0]["pod"]["metadata"]["name"]: s.doc["decisions"][0] for s in scenarios_in(file)}
    assert {name: decision["node"] for name, decision in decisions.items()} == {
        name: placed[name] for name in NEWCOMERS
    }
    assert decisions["huge"]["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert len(decisions["a"]["scores"]) == 2


def test_as_many_decisions_as_wanted_are_recorded_and_replay(tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl.gz"
    with settled() as cluster:
        with recording(cluster, file, "--count", "3") as process:
            with_newcomers(cluster)
            said, _ = process.communicate(timeout=_PATIENCE)
        assert (process.returncode, said.split(";")[0]) == (0, f"recorded 3 decisions in {file}")
        check_replay(file, cluster)


@pytest.mark.parametrize(("name", "number"), [("d.jsonl", signal.SIGINT), ("d.jsonl.gz", signal.SIGTERM)])
def test_a_recording_ends_well_when_it_is_stopped(tmp_path: Path, name: str, number: signal.Signals) -> None:
    file = tmp_path / name
    with settled() as cluster:
        with recording(cluster, file) as process:
            with_newcomers(cluster)
            wait_until(lambda: written(file) == 3)
            process.send_signal(number)
            said, _ = process.communicate(timeout=_PATIENCE)
        assert (process.returncode, said.split(";")[0]) == (0, f"recorded 3 decisions in {file}")
        check_replay(file, cluster)


def replayed(file: Path, *more: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["replay", str(file), "-o", "json", *more])
    return {"exit": result.exit_code, **json.loads(result.output)}


def test_a_burst_replays_in_the_order_in_which_it_was_decided(tmp_path: Path) -> None:
    """Bindings take long, so that most of the burst is decided before the API shows the first of them."""
    file, burst = tmp_path / "burst.jsonl", 12
    with Harness(nodes=3, start=time.time(), latencies=Latencies(write=lambda rng: rng.random() * 0.3)) as cluster:
        with recording(cluster, file, "--count", str(burst + 1)) as process:
            cluster.apply(*(pod(f"p{at}").asks(cpu="500m", memory=f"{at + 1}00Mi") for at in range(burst)))
            cluster.apply(pod("huge").asks(cpu="99"))
            process.communicate(timeout=_PATIENCE)
        report = replayed(file)
    assert (report["exit"], report["total"], report["differences"]) == (0, burst + 1, [])


def _only_odd_nodes(request: dict[str, Any]) -> dict[str, Any]:
    names = request["NodeNames"]
    return {
        "NodeNames": [n for n in names if n != "node-0"],
        "FailedNodes": {n: "even" for n in names if n == "node-0"},
    }


def test_what_an_extender_answered_is_recorded_and_replays_without_it(tmp_path: Path) -> None:
    file, count = tmp_path / "extended.jsonl", 9
    server = ExtenderServer(
        filter=_only_odd_nodes,
        prioritize=lambda request: [{"Host": name, "Score": int(name[-1])} for name in request["NodeNames"]],
    )

    spec = ExtenderSpec(server.url, "filter", "prioritize", weight=5, node_cache_capable=True)

    def scheduler(store: Any) -> Scheduler:
        extender = HttpExtender(spec, store)
        closing.callback(extender.close)
        return Scheduler([replace(first_profile(), extenders=(extender,))])

    with ExitStack() as closing:
        closing.enter_context(server)
        cluster = closing.enter_context(Harness(nodes=4, start=time.time(), schedulers=[scheduler]))
        process = closing.enter_context(recording(cluster, file, "--count", str(count)))
        cluster.apply(*(pod(f"p{at}").asks(cpu="1") for at in range(count - 1)))
        cluster.apply(pod("elsewhere").asks(cpu="1").selects({"kubernetes.io/hostname": "node-0"}))
        process.communicate(timeout=_PATIENCE)
    report = replayed(file)
    assert (report["exit"], report["total"], report["differences"]) == (0, count, [])
    messages = [scenario.doc["decisions"][0]["message"] for scenario in scenarios_in(file)]
    assert any("even" in (message or "") for message in messages)


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with Harness(nodes=1, start=time.time()) as cluster:
        with recording(cluster, tmp_path / "none" / "x.jsonl") as process:
            _, said = process.communicate(timeout=_PATIENCE)
        assert process.returncode == 1
        assert "No such file or directory" in said
