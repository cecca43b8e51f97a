"""`fairlead scheduler` from the outside: a process beside `fairlead up --scheduler none`, its lease and its port."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import LEASE, POD
from fairlead.testing.builders import pod
from tests.support.processes.scheduler_process import CONFIG, PATIENCE, SchedulerProcess
from tests.support.processes.up import Up
from tests.support.promql import Prometheus, alert_queries, board_queries


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("up"), "--scheduler", "none", "--nodes", "4") as up:
        up.wait_ready()
        yield up


@pytest.fixture
def scheduler(up: Up, tmp_path: Path) -> Iterator[SchedulerProcess]:
    running = SchedulerProcess(tmp_path, up.kubeconfig)
    try:
        yield running
    finally:
        running.close()


def in_cluster(up: Up, work: Callable[[KubeApi], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        api = KubeApi(load_kubeconfig(up.kubeconfig))
        try:
            async with asyncio.timeout(PATIENCE):
                return await work(api)
        finally:
            await api.close()

    return asyncio.run(connected())


def create(up: Up, *builders: Any) -> None:
    async def work(api: KubeApi) -> None:
        for builder in builders:
            doc = builder.doc()
            await api.perform(Write(Verb.CREATE, POD, "default", doc["metadata"]["name"], doc))

    in_cluster(up, work)


def node_of(up: Up, name: str) -> str:
    return str(in_cluster(up, lambda api: api.get(POD, "default", name))["spec"].get("nodeName", ""))


def explained(scheduler: SchedulerProcess, name: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "fairlead", "explain", "pod", name, "-o", "json", "--server", scheduler.url]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=scheduler.environment
    )
    return done.returncode, json.loads(done.stdout or "{}")


def fairlead(up: Up, *words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A command of somebody with a kubeconfig, who has not started the schedulers."""
    command = [sys.executable, "-m", "fairlead", *words, "--kubeconfig", str(up.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment)


def bare(url: str, path: str, *, authorization: str = "") -> int:
    """The code with which the port answers somebody who only knows its address."""
    request = urllib.request.Request(url + path, headers={"Authorization": authorization} if authorization else {})
    try:
        with urllib.request.urlopen(request, timeout=10, context=ssl._create_unverified_context()) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


UNEVENTFUL = (
    "fairlead_failed_writes_total", "fairlead_exceptions_total", "scheduler_plugin_execution_duration_seconds",
)  # fmt: skip
"""Of two pods there may be nothing to show: no write fails, nothing raises, and plugins are timed in one cycle in
ten."""


def shows_the_board(served: Prometheus) -> None:
    """Every query of the board has an answer on what is served, and no alert fires."""
    for query in board_queries():
        assert served.query(query) or any(name in query for name in UNEVENTFUL), query
    assert [query for query in alert_queries() if served.query(query)] == []
    placed = 'sum(rate(scheduler_schedule_attempts_total{result="scheduled"}[5m])) by (profile)'
    assert served.query(placed) == {(("profile", "default-scheduler"),): 1 / 60}


def test_it_leads_schedules_explains_reloads_and_leaves(up: Up, scheduler: SchedulerProcess) -> None:
    scheduler.until(lambda: scheduler.get("/readyz") == (200, "ok"), "ready")
    scheduler.until(lambda: "became leader" in scheduler.log.read_text(), "leading")
    first = scheduler.get("/metrics")[1]
    create(up, pod("one").asks(cpu="1"), pod("huge").asks(cpu="99"))
    scheduler.until(lambda: bool(node_of(up, "one")), "placed")
    code, why = explained(scheduler, "one")
    assert (code, why["node"]) == (0, node_of(up, "one"))
    scheduler.until(lambda: explained(scheduler, "huge")[1].get("verdict") == "Unschedulable", "refused")
    code, why = explained(scheduler, "huge")
    assert (code, why["waiting"]["queue"]) == (3, "unschedulable")

    scheduled = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0'
    scheduler.until(lambda: scheduled in scheduler.get("/metrics")[1], "counted")  # once the reply has come
    metrics = scheduler.get("/metrics")[1]
    assert 'leader_election_master_status{name="kube-scheduler"} 1.0' in metrics
    assert 'rest_client_requests_total{code="201"' in metrics
    shows_the_board(Prometheus(first, metrics, 60.0))

    scheduler.process.send_signal(signal.SIGUSR2)
    scheduler.until(lambda: "memory and API agree" in scheduler.log.read_text(), "comparison")

    scheduler.config.write_text(CONFIG + "podMaxBackoffSeconds: 7\n")
    scheduler.until(lambda: '"podMaxBackoffSeconds":7' in scheduler.get("/configz")[1], "reload")
    scheduler.config.write_text(CONFIG + "podMaxBackoffSeconds: [\n")
    scheduler.until(lambda: "the last good configuration stays in force" in scheduler.log.read_text(), "refusal")
    assert '"podMaxBackoffSeconds":7' in scheduler.get("/configz")[1]

    assert scheduler.end() == 0, scheduler.log.read_text()
    lease = in_cluster(up, lambda api: api.get(LEASE, "kube-system", "kube-scheduler"))
    assert not lease["spec"].get("holderIdentity"), "the lease is given back"
    assert "Traceback" not in scheduler.log.read_text()


def answered(scheduler: SchedulerProcess) -> int:
    """How many reads its API has answered, watches that are open not among them."""
    lines = scheduler.get("/metrics")[1].splitlines()
    found = [line for line in lines if line.startswith("rest_client_requests_total") and 'method="GET"' in line]
    return sum(int(float(line.split()[-1])) for line in found)


def test_a_second_one_stands_by_and_takes_over(up: Up, scheduler: SchedulerProcess, tmp_path: Path) -> None:
    scheduler.until(lambda: "became leader" in scheduler.log.read_text(), "leading")
    second = SchedulerProcess(tmp_path / "second", up.kubeconfig)
    try:
        second.until(lambda: second.get("/healthz") == (200, "ok"), "healthy")
        assert "became leader" not in second.log.read_text()
        second.until(lambda: second.get("/readyz") == (200, "ok"), "knowing the cluster")
        asked = answered(second)
        assert asked > 10, "it lists what there is while it stands by"
        knows_nothing_while_it_stands_by(up, scheduler, second, tmp_path)
        assert scheduler.end(signal.SIGINT) == 0
        second.until(lambda: "became leader" in second.log.read_text(), "taking over")
        create(up, pod("two").asks(cpu="1"))
        second.until(lambda: bool(node_of(up, "two")), "placed")
        assert second.get("/readyz") == (200, "ok")
        assert second.end() == 0
    finally:
        second.close()


def knows_nothing_while_it_stands_by(
    up: Up, leader: SchedulerProcess, standby: SchedulerProcess, tmp_path: Path
) -> None:
    """Questions to a replica that stands by are refused with the leader's name, and commands ask that one."""
    code, answer = standby.get("/apis/fairlead.io/v1/namespaces/default/pods/huge/explanation")
    assert (code, json.loads(answer)["reason"]) == (503, "NotLeading")
    holder = in_cluster(up, lambda api: api.get(LEASE, "kube-system", "kube-scheduler"))["spec"]["holderIdentity"]
    assert json.loads(answer)["details"]["name"] == holder
    status = json.loads(standby.get("/apis/fairlead.io/v1/status")[1])
    assert (status["leader"]["leading"], status["leader"]["holder"]) == (False, holder)
    elsewhere = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}  # where no scheduler has left its token
    for words in (["status"], ["status", "--server", standby.url]):
        done = fairlead(up, *words, "-o", "json", environment=elsewhere)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["leader"]["holder"] == holder
        assert json.loads(done.stdout)["leader"]["leading"]
    code = fairlead(up, "explain", "pod", "huge", "--server", standby.url, environment=elsewhere).returncode
    assert code == 3, "the leader knows that it waits"


def test_a_port_on_loopback_lets_nobody_in_without_a_token_but_to_health(up: Up, scheduler: SchedulerProcess) -> None:
    scheduler.until(lambda: scheduler.get("/readyz") == (200, "ok"), "ready")
    assert [bare(scheduler.url, path) for path in ("/healthz", "/livez", "/readyz")] == [200, 200, 200]
    assert bare(scheduler.url, "/metrics") == 403
    assert bare(scheduler.url, "/configz", authorization="Bearer guessed") == 401
    assert scheduler.get("/metrics")[0] == 200
    assert scheduler.credentials.stat().st_mode & 0o777 == 0o600
    assert str(scheduler.credentials) in scheduler.log.read_text()
    assert scheduler.end() == 0
    assert not scheduler.credentials.exists()


def test_another_lease_in_the_configuration_ends_the_process(up: Up, scheduler: SchedulerProcess) -> None:
    scheduler.until(lambda: "became leader" in scheduler.log.read_text(), "leading")
    moved = CONFIG.replace("{leaderElect: true,", "{leaderElect: true, resourceName: other,")
    scheduler.config.write_text(moved + "podMaxBackoffSeconds: 7\n")
    assert scheduler.process.wait(PATIENCE) == 0
    said = scheduler.log.read_text()
    assert "leaderElection has changed" in said
    assert "the new configuration is in force" not in said
    lease = in_cluster(up, lambda api: api.get(LEASE, "kube-system", "kube-scheduler"))
    assert not lease["spec"].get("holderIdentity"), "the lease is given back"


def test_plain_http_is_what_one_asks_for(up: Up, tmp_path: Path) -> None:
    running = SchedulerProcess(tmp_path, up.kubeconfig, "--insecure-http", "--leader-elect=false")
    try:
        running.until(lambda: "serving health" in running.log.read_text(), "serving")
        assert bare(f"http://127.0.0.1:{running.port}", "/metrics") == 200
        assert not running.credentials.exists()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(PATIENCE) == 0
    finally:
        running.close()


def test_a_lost_lease_ends_it_with_exit_code_1(up: Up, scheduler: SchedulerProcess) -> None:
    scheduler.until(lambda: "became leader" in scheduler.log.read_text(), "leading")
    stolen = {"spec": {"holderIdentity": "somebody-else", "leaseDurationSeconds": 1}}
    steal = Write(Verb.PATCH, LEASE, "kube-system", "kube-scheduler", stolen, patch_type=PatchType.MERGE)
    in_cluster(up, lambda api: api.perform(steal))
    assert scheduler.process.wait(PATIENCE) == 1
    assert scheduler.log.read_text().rstrip().endswith("leaderelection lost")


def test_json_logs_are_one_object_per_line(up: Up, tmp_path: Path) -> None:
    running = SchedulerProcess(tmp_path, up.kubeconfig, "--logging-format", "json", "--leader-elect=false")
    try:
        running.until(lambda: running.get("/readyz") == (200, "ok"), "ready")
        assert running.get("/healthz?verbose")[1] == "[+]ping ok\n[+]watches ok\nhealthz check passed\n"
        assert running.end() == 0
    finally:
        running.close()
    entries = [json.loads(line) for line in running.log.read_text().splitlines()]
    assert {"serving health, metrics and explanations", "stopping"} <= {entry["msg"] for entry in entries}
    assert all({"ts", "level", "logger", "msg"} <= entry.keys() for entry in entries)
