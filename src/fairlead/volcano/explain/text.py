"""A queue's sums and a group's checks for people, from their JSON forms: what is shown is what `-o json` gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from fairlead.console.gang_text import named
from fairlead.console.terminal import line, put_table

if TYPE_CHECKING:
    from rich.console import Console

Document = Mapping[str, Any]
_WORDS = {
    "capability": "capability",
    "guarantee": "guarantee",
    "limit": "limit",
    "deserved": "deserved",
    "request": "asked for by its pods",
    "allocated": "allocated",
    "inqueue": "+ kept for groups let in",
    "elastic": "- elastic (beyond minimums)",
    "ending": "held by pods that are ending",
    "leftForEntry": "= left to let groups in",
    "leftForPods": "= left to place pods",
}
_NAMED = 10


def show_queue(console: Console, document: Document) -> None:
    parent = f", under {document['parent']}" if document.get("parent") else ""
    plugin = f", by {document['plugin']}" if document.get("plugin") else ""
    weight = f"weight {document['weight']}{parent}{_share(document)}{plugin}"
    state = document["state"] or "not opened yet"
    console.print(line("queue ", (document["queue"], "bold"), f" is {state}: {weight}"))
    if document["sums"]:
        put_table(console, _sums(document["sums"]))
    if document["holders"]:
        put_table(console, _holders(document["holders"], document.get("owners", {})))
    if document["waiting"]:
        console.print(f"waiting, in this order: {_listed(document['waiting'], document.get('owners', {}))}")
    for sentence in document["why"]:
        console.print(sentence)


def _share(document: Document) -> str:
    share = f", share {document['share']:.3g}" if document.get("share") is not None else ""
    return share + (f", turn {document['place']} among queues" if document.get("place") else "")


def _sums(sums: Mapping[str, Mapping[str, str | None]]) -> Table:
    table = Table(title="The sum", title_justify="left", title_style="bold")
    table.add_column("")
    for resource in sums:
        table.add_column(resource, justify="right")
    for field, words in _WORDS.items():
        cells = [amounts.get(field) or "-" for amounts in sums.values()]
        table.add_row(words, *cells, style="bold" if words.startswith("=") else "")
    return table


def _listed(groups: list[str], owners: Mapping[str, str]) -> str:
    more = f" and {len(groups) - _NAMED} more" if len(groups) > _NAMED else ""
    return ", ".join(named(group, owners.get(group, "")) for group in groups[:_NAMED]) + more


def _holders(holders: list[Document], owners: Mapping[str, str]) -> Table:
    table = Table(title="Who holds it", title_justify="left", title_style="bold")
    for heading in ("group", "phase", "allocated", "kept for it"):
        table.add_column(heading, overflow="fold")
    for one in holders[:_NAMED]:
        group = named(one["group"], owners.get(one["group"], ""))
        table.add_row(group, one["phase"], _amounts(one["allocated"]), _amounts(one["kept"]))
    return table


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in amounts.items()) or "-"


def show_checks(console: Console, document: Document) -> None:
    """The checks of a group in their order, and its place in the queue."""
    table = Table(title="On its way", title_justify="left", title_style="bold")
    for heading in ("check", "", "what"):
        table.add_column(heading, overflow="fold")
    marks = {True: line(("passed", "green")), False: line(("stopped", "red")), None: line("-")}
    for check in document["checks"]:
        table.add_row(check["check"], marks[check["passed"]], check["text"])
    put_table(console, table)
    queue = document["queue"]
    if queue.get("place"):
        before = f", after {_listed(queue['before'], queue.get('owners', {}))}" if queue["before"] else ""
        console.print(f"turn {queue['place']} of {queue['waiting']} in queue {queue['name']}{before}")
