"""`fairlead queue` and `fairlead explain job|podgroup` on a cluster that is scheduled with the Volcano profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fairlead.cli.explain.commands import WAITS
from fairlead.cli.main import cli
from fairlead.testing.builders import nodes, queue
from fairlead.testing.harness import Harness
from fairlead.testing.serving import Served
from fairlead.volcano.config.presets import PRESETS
from tests.support.volcano import VolcanoHarness


def small_world() -> VolcanoHarness:
    """Eight cores; queue `small` may have four of them. It runs two, keeps two for a group, and a third one waits."""
    world = VolcanoHarness(PRESETS["default"], nodes(2), queues=[queue("small").capped_at(cpu="4")])
    world.gang("runs", 1, queue="small", asks={"cpu": "2"}, needs={"cpu": "2"})
    world.run(3)
    world.gang("kept", 2, queue="small", members=1, asks={"cpu": "1"}, needs={"cpu": "2"})
    world.run(3)
    world.gang("late", 1, queue="small", asks={"cpu": "1"}, needs={"cpu": "1"})
    world.gang("lost", 1, queue="nowhere", asks={"cpu": "1"})
    world.run(3)
    return world


def test_the_sum_of_a_queue_adds_up() -> None:
    world = small_world()
    explained = world.scheduler.explain_queue("small")
    assert explained is not None
    cpu = explained.sums["cpu"]
    assert (cpu["capability"], cpu["limit"], cpu["allocated"], cpu["inqueue"]) == ("4", "4", "2", "2")
    assert (cpu["elastic"], cpu["leftForEntry"], cpu["ending"]) == ("0", "0", "0")
    assert [(one.name, one.allocated.get("cpu"), one.kept.get("cpu")) for one in explained.holders] == [
        ("default/runs", "2", None),
        ("default/kept", None, "2"),
    ]
    assert set(explained.waiting) == {"default/kept", "default/late"}
    assert explained.plugin == "proportion"
    assert explained.sums["memory"]["capability"] is None


def test_a_group_that_was_not_let_in_is_shown_what_it_needs() -> None:
    explained = small_world().scheduler.explain_group("default", "late")
    assert explained is not None
    document = explained.to_document()
    checks = {check["check"]: check for check in document["checks"]}
    assert checks["queue"]["passed"] is True
    assert checks["enqueue"]["passed"] is False
    assert checks["enqueue"]["text"].startswith("not let in, needs 1 cpu: queue resource quota insufficient")
    assert document["verdict"] == "Unschedulable"
    assert (document["queue"]["name"], document["queue"]["waiting"]) == ("small", 2)
    assert document["queue"]["place"] in (1, 2)


def test_a_group_without_all_its_pods_gets_that_reason() -> None:
    explained = small_world().scheduler.explain_group("default", "kept")
    assert explained is not None
    checks = {check["check"]: check for check in explained.to_document()["checks"]}
    assert checks["enqueue"]["passed"] is True
    assert checks["gang"]["passed"] is False
    assert "0 of 1 pods have places, 2 are needed" in checks["gang"]["text"]


def test_a_group_that_runs_passed_everything() -> None:
    explained = small_world().scheduler.explain_group("default", "runs")
    assert explained is not None
    document = explained.to_document()
    assert document["verdict"] == "Scheduled"
    assert not [check for check in document["checks"] if check["passed"] is False]
    assert sum(document["where"].values()) == 1


def test_a_group_whose_queue_is_missing_gets_that_reason() -> None:
    explained = small_world().scheduler.explain_group("default", "lost")
    assert explained is not None
    assert explained.to_document()["message"] == 'queue: queue "nowhere" does not exist'
    assert explained.gang.summary == "0 of 1 members fit, 1 is needed"


def test_a_group_is_found_by_the_name_of_its_job() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(1))
    world.gang("train-0b0e7a52-3c1d-4e6f-8a9b-0123456789ab", 1, asks={"cpu": "1"})
    world.run(3)
    explained = world.scheduler.explain_group("default", "train")
    assert explained is not None
    assert explained.to_document()["podGroup"]["name"] == "train-0b0e7a52-3c1d-4e6f-8a9b-0123456789ab"


def test_nodes_that_refuse_are_the_answer_when_everything_else_passed() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(2))
    world.gang("big", 1, asks={"cpu": "5"})
    world.run(3)
    explained = world.scheduler.explain_group("default", "big")
    assert explained is not None
    checks = {check["check"]: check for check in explained.to_document()["checks"]}
    assert checks["nodes"]["passed"] is False
    assert "Insufficient cpu" in checks["nodes"]["text"] or "nodes are unavailable" in checks["nodes"]["text"]


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[Path]:
    world = small_world()
    served = Served(world.assembled, world.runtime, explainers=[partial(world.runtime.ask, world.scheduler)])
    try:
        yield served.kubeconfig
    finally:
        served.close()


def run(kubeconfig: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--kubeconfig", str(kubeconfig)])


def test_queue_list_has_the_columns_of_vcctl(kubeconfig: Path) -> None:
    lines = run(kubeconfig, "queue", "list").stdout.splitlines()
    assert lines[0].split() == [
        "Name",
        "Weight",
        "State",
        "Parent",
        "Inqueue",
        "Pending",
        "Running",
        "Unknown",
        "Completed",
    ]
    assert [line.split()[0] for line in lines[1:]] == ["default", "root", "small"]
    assert lines[3].split() == ["small", "1", "Open", "root", "1", "1", "1", "0", "0"]


def test_queues_without_the_volcano_profile_say_so() -> None:
    with Harness(nodes=1) as plain:
        kubeconfig = plain.serve()
        listed, explained = run(kubeconfig, "queue", "list"), run(kubeconfig, "queue", "explain", "default")
        assert (listed.exit_code, explained.exit_code) == (0, 1)
        assert "there are no queues, so no scheduler here has a Volcano profile" in listed.stderr
        assert "there are no queues, so no scheduler here has a Volcano profile" in explained.stderr
        plain.apply(queue("team"))
        assert "these queues wait: no scheduler here" in run(kubeconfig, "queue", "list").stderr
        assert "with --volcano-conf FILE" in " ".join(run(kubeconfig, "queue", "explain", "team").stdout.split())


def test_queue_get_shows_one_and_knows_what_is_not_there(kubeconfig: Path) -> None:
    assert len(run(kubeconfig, "queue", "get", "small").stdout.splitlines()) == 2
    missing = run(kubeconfig, "queue", "get", "nothing")
    assert (missing.exit_code, "not found" in missing.output) == (1, True)


def test_queue_explain_prints_the_sum_line_by_line(kubeconfig: Path) -> None:
    result = run(kubeconfig, "queue", "explain", "small")
    assert result.exit_code == 0
    assert "queue small is Open: weight 1, under root" in result.stdout
    for words in ("capability", "+ kept for groups let in", "= left to let groups in", "default/kept"):
        assert words in result.stdout
    document = json.loads(run(kubeconfig, "queue", "explain", "small", "-o", "json").stdout)
    assert document["sums"]["cpu"]["leftForEntry"] == "0"


def test_explain_job_and_podgroup_give_one_answer(kubeconfig: Path) -> None:
    for noun in ("job", "podgroup"):
        result = run(kubeconfig, "explain", noun, "late")
        assert result.exit_code == WAITS
        assert "default/late is Unschedulable" in result.stdout
        assert "not let in, needs 1 cpu" in " ".join(result.stdout.split())
    assert run(kubeconfig, "explain", "podgroup", "runs").exit_code == 0


def test_without_a_scheduler_the_object_is_shown() -> None:
    world = small_world()
    served = Served(world.assembled, world.runtime)
    try:
        result = run(served.kubeconfig, "queue", "explain", "small")
    finally:
        served.close()
    assert result.exit_code == 0
    assert "this is what the object says" in result.stdout


def test_a_cluster_without_the_volcano_profile_says_so() -> None:
    with Harness(nodes=1) as cluster:
        kubeconfig = cluster.serve()
        listed = run(kubeconfig, "queue", "list")
        explained = run(kubeconfig, "queue", "explain", "default")
    assert listed.exit_code == 0
    assert "no scheduler here has a Volcano profile (fairlead up --volcano-conf default does)" in listed.stderr
    assert explained.exit_code == 1
    assert '"default" not found: there are no queues' in explained.stderr


@pytest.mark.parametrize("words", ["list", "get default"])
def test_queues_without_a_cluster_say_where_one_was_looked_for(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = CliRunner().invoke(cli, ["queue", *words.split()])
    assert result.exit_code == 2
    assert (
        "no cluster to connect to: KUBECONFIG is not set, ./fairlead.kubeconfig and ~/.kube/config do not"
        in result.stderr
    )
