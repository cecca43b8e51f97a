"""A GangExplanation for people: one sentence, then what was reported to members, the topology, and who was spared by
what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from fairlead.console.terminal import line, put_table

if TYPE_CHECKING:
    from rich.console import Console

Document = Mapping[str, Any]
_COLOURS = {"Scheduled": "green", "Completed": "green", "Unschedulable": "red", "Error": "red"}
_NAMED = 10


def show(console: Console, document: Document) -> None:
    group, verdict = document["podGroup"], document["verdict"]
    colour = _COLOURS.get(verdict, "yellow")
    name = named(f"{group['namespace']}/{group['name']}", group.get("owner", ""))
    console.print(line((name, "bold"), " is ", (verdict, colour), f": {document['summary']}"))
    if document.get("message"):
        console.print(document["message"])
    if document.get("where"):
        console.print(_where(document["where"], verdict))
    for text in (*shortage_lines(document), *lack_lines(document)):
        console.print(text)
    for table in (_blockers(document), _topology(document), considered_table(document)):
        put_table(console, table)


def named(group: str, owner: str) -> str:
    """The group's name, with its owner if the name was generated."""
    return f"{group} (of {owner})" if owner and owner not in group else group


def _where(where: Mapping[str, int], verdict: str) -> str:
    """Nodes of members that were placed; of a group that waits, where they would have gone."""
    named = [f"{node} ({count})" for node, count in list(where.items())[:_NAMED]]
    more = f" and {len(where) - _NAMED} more nodes" if len(where) > _NAMED else ""
    return f"{'on' if verdict == 'Scheduled' else 'found places on'} {', '.join(named)}{more}"


def _blockers(document: Document) -> Table | None:
    return _table(
        "Why not", ("members", "message"), [(b["members"], b["message"]) for b in document.get("blockers", ())]
    )


def _topology(document: Document) -> Table | None:
    topology = document.get("topology")
    if topology is None:
        return None
    level = topology["level"]
    shown = topology["domains"][:_NAMED]
    rows = [
        (f"at most {one['fits']}" if one.get("atMost") else one["fits"], one["name"], one.get("level", level))
        for one in shown
    ]
    headings = ("members that fit", "domain", "level")
    columns = 3 if any("level" in one for one in shown) else 2
    return _table(f"Room by {level}", headings[:columns], [row[:columns] for row in rows])


def considered_table(document: Document) -> Table | None:
    """Those who were evicted, and those who might have been, with the rule that decided about each."""
    considered = document.get("considered", ())
    rows = [(c["priority"], c["name"], c["rule"]) for c in considered[:_NAMED]]
    if len(considered) > _NAMED:
        rows.append(("", f"and {len(considered) - _NAMED} more", ""))
    return _table("Evictions", ("priority", "who", "rule"), rows)


def shortage_lines(document: Document) -> list[str]:
    return [
        f"asks {one['asks']} {one['resource']}, the largest node has {one['largest']}, most free {one['mostFree']}"
        for one in document.get("shortages", ())
    ]


def lack_lines(document: Document) -> list[str]:
    """What is short, by name: how much is requested, free and missing, and who holds it."""
    lines = []
    for one in document.get("lacks", ()):
        named = f"{one['of']} {one['name']}".strip()
        amounts = f"asks {one['asks']} {one['resource']}, {one['free']} free, {one['missing']} missing"
        lines.append(f"short of {named}: {amounts}")
        lines += [
            f"  held by {held['who']}: {held['amount']} ({held['why']})" for held in one.get("heldBy", ())[:_NAMED]
        ]
    return lines


def _table(title: str, headings: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Table | None:
    if not rows:
        return None
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    return table
