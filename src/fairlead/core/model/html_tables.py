"""html_table: rows of text as an HTML table, for what notebooks show of answers. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 50
"""Tables of answers are cut after so many rows, with a line that says how many are left out."""


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a line of headings; empty if there are no rows."""
    rows = list(rows)
    if not rows:
        return ""
    lines = [_line("th", head), *(_line("td", row) for row in rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        lines.append(f'<tr><td colspan="{len(head)}">and {len(rows) - MOST_ROWS} more</td></tr>')
    return f"<table>{''.join(lines)}</table>"


def html_paragraph(title: str, text: str = "") -> str:
    """A line that begins with a bold title."""
    return f"<p><b>{escape(title)}</b>{f' {escape(text)}' if text else ''}</p>"


def _line(element: str, cells: Iterable[object]) -> str:
    made = (f'<{element} style="text-align:left">{escape(str(cell))}</{element}>' for cell in cells)
    return f"<tr>{''.join(made)}</tr>"
