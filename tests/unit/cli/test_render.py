"""Tables from documents."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from fairlead.cli.render import pending_table, placement_table, utilisation_table
from fairlead.core.model.explanation import Explanation
from fairlead.testing.builders import node, pod

NODES = [node(f"n{number}").offers(cpu="4", memory="8Gi").in_zone(f"z{number % 2}").doc() for number in range(4)]


def running(name: str, where: str, cpu: str = "1") -> dict[str, Any]:
    return {**pod(name).asks(cpu=cpu).labelled(app="web").on(where).doc(), "status": {"phase": "Running"}}


PODS = [running("a", "n0"), running("b", "n1"), running("c", "n1"),
        {**pod("d").labelled(app="web").doc(), "status": {"phase": "Pending"}}]  # fmt: skip


def cells(table: Table) -> list[list[str]]:
    return [[str(cell) for cell in column.cells] for column in table.columns]


def test_placements_are_counted_by_workload_and_zone() -> None:
    assert [column[0] for column in cells(placement_table(PODS, NODES, title="x"))] == [
        "web",
        "4",
        "3",
        "1",
        "2",
        "2",
        "2",
    ]


def test_utilisation_is_what_is_asked_for_of_what_there_is() -> None:
    names, counts, pods, spread, cpu, memory = cells(utilisation_table(PODS, NODES, title="x"))
    assert (names, counts, pods) == (["z0", "z1"], ["2", "2"], ["1", "2"])
    assert spread == ["0 to 1", "0 to 2"]
    assert (cpu, memory) == (["12%", "25%"], ["0%", "0%"])


def test_reasons_come_from_explanations_and_equal_ones_are_counted_together() -> None:
    waiting = [PODS[3], {**PODS[3], "metadata": {**PODS[3]["metadata"], "name": "e"}}]

    def explain(namespace: str, name: str) -> Explanation | None:
        return Explanation(namespace, name, "", "default-scheduler", "Unschedulable", message="no room")

    assert cells(pending_table(waiting, explain, title="x")) == [["web"], ["2"], ["no room"]]
    assert cells(pending_table(waiting[:1], lambda *_: None, title="x"))[2] == ["not seen yet"]
    Console(file=None, quiet=True).print(pending_table(waiting, explain, title="x"))
