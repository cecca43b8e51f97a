"""`fairlead explain pod`: whom it asks, what it shows, how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from fairlead.cli.explain.commands import WAITS
from fairlead.cli.explain.pod_text import show
from fairlead.cli.main import cli
from fairlead.cluster.controllers.unattended import Unattended
from fairlead.core.model.attendance import Attendance
from fairlead.core.model.explanation import Blocker, Explanation, ScoredNode, WaitingIn
from fairlead.testing.builders import deployment, job, namespace, pod
from fairlead.testing.harness import Harness

REFUSED = Explanation(
    "default",
    "p",
    "uid",
    "default-scheduler",
    "Unschedulable",
    message="0/7 nodes are available: 7 Insufficient cpu.",
    attempts=2,
    total_nodes=7,
    blockers=(Blocker("NodeResourcesFit", ("Insufficient cpu",), 7, True, tuple(f"node-{n}" for n in range(7))),),
    waiting=WaitingIn("unschedulable", 1_767_225_600.0, 2, ("NodeResourcesFit",), ("NodeAdd",), 1_767_225_900.0),
)
PLACED = Explanation(
    "default",
    "p",
    "uid",
    "default-scheduler",
    "Scheduled",
    node="a",
    attempts=1,
    total_nodes=3,
    feasible_nodes=2,
    chosen=ScoredNode("a", 15, {"Fit": 10, "Mine": 5}),
    runner_up=ScoredNode("b", 9, {"Fit": 9, "Mine": 0}),
)


def shown(explanation: Explanation, *, limit: int = 5) -> str:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        show(console, explanation.to_document(), limit=limit)
        return console.export_text()


def test_a_refusal_shows_reasons_nodes_queue_and_what_wakes_it() -> None:
    text = shown(REFUSED)
    assert "default/p is Unschedulable after 2 attempts (default-scheduler)" in text
    assert "0/7 nodes are available: 7 Insufficient cpu." in text
    assert "node-0, node-1, node-2, node-3, node-4 and 2 more" in text
    assert "cannot help" in text
    assert "waits in unschedulable since 2026-01-01T00:00:00.000000Z, because of NodeResourcesFit" in text
    assert "wakes on NodeAdd" in text
    assert "looked at again at 2026-01-01T00:05:00.000000Z at the latest" in text


def test_a_placement_shows_scores_and_the_runner_up() -> None:
    lines = shown(PLACED).splitlines()
    assert lines[0].strip() == "default/p is Scheduled on a after 1 attempt; 2 of 3 nodes fit (default-scheduler)"
    assert any(
        line.split("│")[1:4] and [c.strip() for c in line.split("│")[1:4]] == ["Mine", "5", "0"] for line in lines
    )
    assert any([cell.strip() for cell in line.split("│")[1:4]] == ["total", "15", "9"] for line in lines)
    assert any("b (second)" in line for line in lines)


def test_a_pod_that_only_one_node_could_take_was_not_scored() -> None:
    only = Explanation("default", "p", "u", "s", "Scheduled", node="a", chosen=ScoredNode("a", 0))
    assert "only one node would do: not scored" in shown(only)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a small cluster that answers explanations, with a placed pod and one that waits."""
    served = Attendance(frozenset({"default-scheduler"}))
    harness = Harness(nodes=2, controllers=[lambda view: Unattended(view, served)])
    harness.apply(namespace("other"))
    harness.apply(pod("placed"), pod("huge").asks(cpu="99"), pod("lost", "other").scheduled_by("volcano"))
    harness.apply(deployment("web").replicas(3).of(pod("t").asks(cpu="90")), job("once").of(pod("t").asks(cpu="91")))
    harness.run(2)
    with harness:
        yield harness.serve()


def explain(cluster: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explain", "pod", "--kubeconfig", str(cluster), *arguments])


def test_exit_code_0_for_a_pod_that_is_placed(cluster: Path) -> None:
    result = explain(cluster, "placed")
    assert (result.exit_code, "default/placed is Scheduled on node-" in result.output) == (0, True)


def test_exit_code_3_for_a_pod_that_waits(cluster: Path) -> None:
    result = explain(cluster, "huge", "-o", "json")
    document = json.loads(result.output)
    assert (result.exit_code, document["verdict"], document["kind"]) == (WAITS, "Unschedulable", "Explanation")
    assert document["blockers"][0]["nodes"] == ["node-0", "node-1"]


def test_exit_code_1_for_a_pod_that_nobody_knows(cluster: Path) -> None:
    result = explain(cluster, "nobody", "-n", "elsewhere")
    assert result.exit_code == 1
    assert 'the scheduler knows no pod "nobody" in namespace "elsewhere"' in result.output


def test_exit_code_1_when_no_scheduler_answers() -> None:
    result = CliRunner().invoke(cli, ["explain", "pod", "p", "--server", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "no scheduler answers: http://127.0.0.1:1: " in result.output


def test_every_documented_field_is_in_the_json_form() -> None:
    documented = (Path(__file__).parents[4] / "docs" / "explanation.md").read_text()

    def names(document: Any) -> Iterator[str]:
        for key, value in document.items():
            yield key
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, dict) and key != "scores":
                    yield from names(inner)

    full = {**PLACED.to_document(), **REFUSED.to_document(), "nominatedNode": "x", "at": "t", "node": "a"}
    assert [name for name in names(full) if f"`{name}`" not in documented] == []


def told(cluster: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *words, "--kubeconfig", str(cluster)])


def test_a_workload_says_how_many_of_its_pods_wait_and_why(cluster: Path) -> None:
    result = told(cluster, "deployment", "web")
    assert result.exit_code == WAITS, result.output
    assert "Deployment default/web: 0 of 3 pods have a node" in result.output
    assert "3 pods: 0/2 nodes are available: 2 Insufficient cpu." in result.output
    assert told(cluster, "deployment/web", "-o", "yaml").output.startswith("kind: WorkloadExplanation\n")


def test_a_plain_job_is_explained_by_its_pods(cluster: Path) -> None:
    result = told(cluster, "job", "once")
    assert (result.exit_code, "Job default/once: 0 of 1 pods have a node" in result.output) == (WAITS, True)


def test_without_a_word_everything_that_waits_is_grouped_by_reason(cluster: Path) -> None:
    result = CliRunner().invoke(cli, ["explain", "--kubeconfig", str(cluster), "-o", "json"])
    document = json.loads(result.output)
    assert result.exit_code == WAITS
    assert [len(reason["pods"]) for reason in document["waiting"]] == [5, 1]
    assert document["waiting"][1]["message"].startswith('nobody schedules pods with schedulerName "volcano" here')
    assert told(cluster).output.startswith("5 pods: 0/2 nodes are available")


def test_a_pod_of_another_scheduler_is_shown_what_is_served(cluster: Path) -> None:
    result = told(cluster, "pod", "lost", "-n", "other")
    assert result.exit_code == WAITS
    assert 'nobody schedules pods with schedulerName "volcano" here' in " ".join(result.output.split())
    assert "start with --volcano-conf to serve it" in " ".join(result.output.split())


def test_a_kind_and_a_name_may_be_one_word(cluster: Path) -> None:
    assert told(cluster, "pod/placed").exit_code == 0


@pytest.mark.parametrize("words", ["deployment.apps/web", "deploy/web", "deployments web", "deploy web"])
def test_a_kind_is_called_as_kubectl_calls_it(cluster: Path, words: str) -> None:
    assert "Deployment default/web" in told(cluster, *words.split()).output


def test_a_pod_that_no_scheduler_tried_is_shown_its_scheduler_name() -> None:
    with Harness(nodes=1, schedulers=[], housekeeping="") as cluster:
        cluster.apply(pod("lost").scheduled_by("another"))
        result = told(Path(cluster.serve()))
    assert 'no scheduler has tried it yet (its schedulerName is "another")' in result.output


def test_a_workload_that_is_not_there_is_named(cluster: Path) -> None:
    result = told(cluster, "statefulset", "db")
    assert (result.exit_code, 'statefulsets.apps "db" not found' in result.output) == (1, True)
