"""An Explanation for people: a verdict in one line, then the evidence as tables.

It works on the JSON form, so that what is shown is what `-o json` gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from fairlead.cli.explain.device_text import device_lines
from fairlead.console.gang_text import considered_table, lack_lines, shortage_lines
from fairlead.console.terminal import line, put_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Document = Mapping[str, Any]
_COLOURS = {"Scheduled": "green", "Binding": "green", "Unschedulable": "red", "Error": "red"}


def show(console: Console, document: Document, *, limit: int = 5, verbose: bool = False) -> None:
    """Print the whole explanation. `verbose` has all calls that led to an exception of a plugin, not the last alone."""
    console.print(headline(document))
    if document.get("message"):
        console.print(document["message"])
    for text in (*traceback_lines(document, verbose=verbose), *shortage_lines(document), *lack_lines(document)):
        console.print(text)
    if document.get("blockers"):
        put_table(console, blockers_table(document["blockers"], limit=limit))
    for devices in device_lines(document):
        console.print(devices)
    if document.get("chosen"):
        put_table(console, scores_table(document["chosen"], document.get("runnerUp")))
    put_table(console, considered_table(document))
    for waiting in waiting_lines(document):
        console.print(waiting)


def traceback_lines(document: Document, *, verbose: bool) -> list[str]:
    """Where a plugin raised: file and line, or the whole traceback."""
    lines: list[str] = document.get("traceback", "").splitlines()
    if verbose:
        return lines
    return [line for line in lines if line.startswith("  File ")][-1:]


def headline(document: Document) -> Text:
    pod, verdict = document["pod"], document["verdict"]
    where = f" on {document['node']}" if document.get("node") else ""
    promised = f", promised {document['nominatedNode']}" if document.get("nominatedNode") else ""
    nodes = document["nodes"]
    fits = f"; {nodes['feasible']} of {nodes['total']} nodes fit" if nodes["feasible"] else ""
    attempts = f" after {_count(document['attempts'], 'attempt')}" if document["attempts"] else ""
    waited = f" in {document['waitedSeconds']:.3f} s" if "waitedSeconds" in document else ""
    colour = _COLOURS.get(verdict, "yellow")
    words = f"{where}{promised}{attempts}{waited}{fits} ({document['scheduler']})"
    name = f"{pod['namespace']}/{pod['name']}"
    return line((name, "bold"), " is ", (verdict, colour), words)


def blockers_table(blockers: Sequence[Document], *, limit: int) -> Table:
    table = Table(title="Why not", title_justify="left", title_style="bold")
    for heading in ("nodes", "reason", "plugin", "eviction", "which"):
        table.add_column(heading, justify="right" if heading == "nodes" else "left", overflow="fold")
    for blocker in blockers:
        named, more = blocker["nodes"][:limit], len(blocker["nodes"]) - limit
        which = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        reasons, helps = "; ".join(blocker["reasons"]), blocker["eviction"]
        table.add_row(str(blocker["count"]), reasons, blocker["plugin"], helps, which)
    return table


def scores_table(chosen: Document, runner_up: Document | None) -> Table:
    """What each plugin gave the chosen node and the one that came second, weighted."""
    table = Table(title="Why there", title_justify="left", title_style="bold", show_footer=True)
    table.add_column("plugin", "total")
    table.add_column(chosen["node"], str(chosen["total"]), justify="right")
    if runner_up is not None:
        table.add_column(f"{runner_up['node']} (second)", str(runner_up["total"]), justify="right")
    for plugin, score in chosen["scores"].items():
        second = (str(runner_up["scores"].get(plugin, 0)),) if runner_up is not None else ()
        table.add_row(plugin, str(score), *second)
    if not chosen["scores"]:
        table.add_row("only one node would do: not scored", "")
    return table


def waiting_lines(document: Document) -> list[Text]:
    waiting = document.get("waiting")
    if waiting is None:
        return []
    blamed = f", because of {', '.join(waiting['plugins'])}" if waiting["plugins"] else ""
    lines = [line("waits in ", (waiting["queue"], "bold"), f" since {waiting['since']}{blamed}")]
    if waiting["wakesOn"]:
        lines.append(line(f"wakes on {', '.join(waiting['wakesOn'])}"))
    if waiting.get("retriedAt"):
        lines.append(line(f"looked at again at {waiting['retriedAt']} at the latest"))
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
