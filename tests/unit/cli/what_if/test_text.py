"""What answers look like: nothing is read as markup, nothing that is piped is broken, nothing is left unsaid."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from rich.table import Table

from fairlead.cli.explain.workload import show_workload
from fairlead.cli.what_if.text import shortened, show_changes, show_drain, show_need, show_simulation
from fairlead.console.terminal import output, put_table

SENTENCE = (
    "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: "
    "3 No preemption victims found for incoming pod."
)
SHORT = "0/3 nodes are available: 3 Insufficient cpu."


def shown(show: Any, *about: Any, **more: Any) -> str:
    out = io.StringIO()
    show(Console(file=out, width=200, markup=False, highlight=False, soft_wrap=True), *about, **more)
    return out.getvalue()


def test_square_brackets_are_printed(capsys: Any) -> None:
    quota = "quota team: exceedDimensions: [koordinator.sh/gpu]"
    document = {"waiting": [{"message": quota, "pods": ["default/a"]}], "workload": "Deployment"}
    facts = {"namespace": "default", "name": "web", "placed": 0, "pods": 1}
    show_workload(output(), document | facts)
    assert "[koordinator.sh/gpu]" in capsys.readouterr().out


def test_what_goes_into_a_pipe_is_neither_broken_nor_cut(capsys: Any) -> None:
    console = output()
    console.print(" ".join(["word"] * 300))
    table = Table("name", "told")
    table.add_row("x" * 200, "[night] " + "y" * 300)
    put_table(console, table)
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == " ".join(["word"] * 300)
    assert "x" * 200 in printed
    assert "[night] " + "y" * 300 in printed


def test_no_cell_of_a_table_is_cut_on_a_narrow_terminal() -> None:
    out = io.StringIO()
    table = Table("name", "value", "bar")
    table.columns[1].no_wrap = False
    table.add_row("a long name of a benchmark", "12,345 pods/s", "≥5,000")
    put_table(Console(file=out, width=34, markup=False), table)
    assert "…" not in out.getvalue()


def test_kube_schedulers_sentence_is_shortened_and_whole_with_v() -> None:
    assert shortened(SENTENCE) == SHORT
    assert shortened(SENTENCE, verbose=True) == SENTENCE
    assert shortened("held by its scheduling gates: later") == "held by its scheduling gates: later"


def test_it_is_said_when_nothing_helps() -> None:
    assert shown(show_changes, {"changes": [], "tried": 12}) == "what would help: 12 changes tried, none helped\n"
    assert shown(show_changes, {}) == ""


def test_steps_are_printed_in_order() -> None:
    steps = [{"command": "kubectl delete pod/a"}, {"targets": ["pod/a"], "patch": {"spec": {"x": 1}}}]
    steps += [{"targets": ["pod/b", "pod/c"]}, {"targets": ["pod/d"], "patch": {}}]
    assert shown(show_changes, {"changes": [{"says": "with less", "steps": steps}]}).splitlines() == [
        "what would help, each tried:",
        "  with less",
        "    kubectl delete pod/a",
        '    in the file, pod/a: {"spec":{"x":1}}',
        "    in the file, leave out pod/b, pod/c",
        "    from the file, again: pod/d",
    ]


def test_what_exists_is_named_and_what_runs_is_marked() -> None:
    pods = [{"namespace": "default", "name": "a", "node": "n0", "running": True}]
    pods += [{"namespace": "default", "name": "b", "message": SENTENCE}]
    answer = {"verdict": "Waits", "placed": 1, "pods": pods, "at": "now", "exists": ["deployment/web"]}
    assert shown(show_simulation, answer).splitlines() == [
        "deployment/web: there already, 1 of 2 pods run",
        "would wait: 1 of 2 pods would have a node (state of now)",
        "  default/a → n0 (runs there)",
        f"  1 would wait: {SHORT}",
    ]


def test_drain_tells_the_nodes_own_pods_from_victims_elsewhere() -> None:
    own = [{"namespace": "default", "name": f"a{at}", "node": "n1"} for at in range(10)]
    own += [{"namespace": "default", "name": name, "message": SENTENCE} for name in ("w", "x")]
    victims = [{"namespace": "default", "name": "v", "from": "n1", "node": "n2"}]
    nodes = [{"name": "n0", "canGo": False, "pods": own, "victims": victims}, {"name": "n9", "canGo": True, "pods": []}]
    printed = shown(show_drain, {"nodes": nodes, "unknown": ["n7"]}).splitlines()
    assert printed[:3] == [
        "n7: there is no such node",
        "each of these nodes alone, while the others stay:",
        "n0: cannot go, 12 pods of its own; 1 pod elsewhere would be evicted for them",
    ]
    assert printed[3] == f"  default/w, default/x: {SHORT}"
    assert printed[-3:] == [
        "  and 2 more",
        "  default/v on n1: would go to n2",
        "n9: can go, 0 pods of its own",
    ]


def test_shapes_are_named_with_what_they_differ_in() -> None:
    shapes = [{"like": "n0", "offers": "cpu 8", "nodes": 2, "differs": {"topology.kubernetes.io/zone": "a"}}]
    printed = shown(show_need, {"runs": False, "shapes": shapes})
    assert printed == "2 nodes like n0 (cpu 8, topology.kubernetes.io/zone=a)\n"
